"""Turn the content of a report into the text that its scripts read: JSON, with long arrays as base64 and repeated texts as codes."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._content import (
    Chart,
    ClassColoring,
    HoverColumn,
    NamedCurve,
    NumberColoring,
    Points,
    Predictions,
    ReportContent,
    RiskTable,
    Thresholds,
)
from ._words import DECISION, PREDICTED_CLASS, PROBABILITY, STD_OF_NUMBER, STD_OF_PROBABILITY


def all_colorings(content: ReportContent) -> list[ClassColoring | NumberColoring | str]:
    """Return the colorings in the order of the menu; of the one that follows the slider, its name only."""
    from_predictions = [] if content.predictions is None else _of_predictions(content.predictions)
    decision = [] if content.controls is None else [DECISION]
    return [*from_predictions, *decision, *content.colorings]


def _of_predictions(predictions: Predictions) -> list[ClassColoring | NumberColoring]:
    found: list[ClassColoring | NumberColoring] = []
    if predictions.is_probability:
        found.append(_of_classes(predictions))
        found.append(NumberColoring("Probability of the predicted class", predictions.certainty, "%", PROBABILITY))
    if predictions.values is not None:
        found.append(NumberColoring(f"Predicted {predictions.target}", predictions.values, predictions.unit))
    if predictions.std is not None:
        found.append(_of_std(predictions, predictions.std))
    return found


def _of_classes(predictions: Predictions) -> ClassColoring:
    levels, codes = np.unique(np.asarray(predictions.predicted, dtype=object).astype(str), return_inverse=True)
    return ClassColoring(f"Predicted {predictions.target}", codes, levels.tolist(), PREDICTED_CLASS)


def _of_std(predictions: Predictions, std: np.ndarray) -> NumberColoring:
    if predictions.is_probability:
        return NumberColoring("Standard deviation of the probability", std, "%", STD_OF_PROBABILITY)
    return NumberColoring("Standard deviation", std, predictions.unit, STD_OF_NUMBER)


Encoded = dict[str, Any]

ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}
"""Characters that could end a script element or open a comment in it. Other characters beyond ASCII are escaped by `json.dumps`."""

MOST_POINTS_OF_A_CURVE = 200
"""More cannot be seen."""


def as_script_data(content: ReportContent) -> str:
    """Return JSON that may stand inside a script element whatever the user's table contains."""
    text = json.dumps(encode(content), separators=(",", ":"), allow_nan=False)
    return text.translate(ESCAPES)


def encode(content: ReportContent) -> Encoded:
    """Return the parts that scripts draw; texts that only stand on the page are not among them."""
    return {
        "points": _points(content.points),
        "hover": [_hover(column) for column in content.hover],
        "colorings": [_coloring(coloring) for coloring in all_colorings(content)],
        "predictions": None if content.predictions is None else _predictions(content.predictions),
        "controls": None if content.controls is None else _controls(content.controls),
        "riskCoverage": None if content.risk_coverage is None else _chart(content.risk_coverage),
        "reliability": None if content.reliability is None else _chart(content.reliability),
        "uncertain": content.uncertain,
        "spectrum": None if content.spectrum is None else packed(content.spectrum.eigenvalues, "f8"),
    }


def packed(values: Any, dtype: str) -> Encoded:
    """Return an array as base64 of its little-endian bytes: "f4", "f8", "i4", "u2" or "u1". NaN and infinity survive."""
    array = np.asarray(values).astype("<" + dtype)
    return {"dtype": dtype, "base64": base64.b64encode(array.tobytes()).decode()}


def packed_texts(texts: Sequence[str]) -> Encoded:
    """Return texts as they are, or as codes of the distinct ones where most occur more than once."""
    codes_of: dict[str, int] = {}
    codes = [codes_of.setdefault(text, len(codes_of)) for text in texts]
    if 2 * len(codes_of) > len(codes):
        return {"texts": list(texts)}
    return {"levels": list(codes_of), "codes": packed(codes, "u1" if len(codes_of) <= 256 else "u2" if len(codes_of) <= 65_536 else "i4")}


def _points(points: Points) -> Encoded:
    return {
        "x": packed(points.x, "f4"),
        "y": packed(points.y, "f4"),
        "rows": None if points.rows is None else packed_texts(points.rows),
        "equalAspect": points.equal_aspect,
        "flipY": points.flip_y,
        "sampled": points.sampled_from is not None,
    }


def _hover(column: HoverColumn) -> Encoded:
    return {"name": column.name, **packed_texts(column.texts)}


def _coloring(coloring: ClassColoring | NumberColoring | str) -> Encoded:
    if isinstance(coloring, str):
        return {"kind": "decision", "name": coloring, "explanation": ""}
    shared = {"name": coloring.name, "explanation": coloring.explanation}
    if isinstance(coloring, ClassColoring):
        return {"kind": "class", **shared, "codes": packed(coloring.codes, "i4"), "levels": list(coloring.levels)}
    return {"kind": "number", **shared, "values": packed(coloring.values, "f4"), "unit": coloring.unit}


def _predictions(predictions: Predictions) -> Encoded:
    return {
        "target": predictions.target,
        "predicted": packed_texts(predictions.predicted),
        "certainty": packed(predictions.certainty, "f8"),  # compared with thresholds: not to be rounded
        "std": None if predictions.std is None else packed(predictions.std, "f4"),
        "labeled": packed(predictions.labeled, "u1"),
        "isProbability": predictions.is_probability,
        "unit": predictions.unit,
    }


def _controls(table: RiskTable) -> Encoded:
    return {
        "targets": packed(table.targets, "f8"),
        "promises": [_promise(promise) for promise in table.promises],
        "riskName": table.risk_name,
        "unit": table.unit,
        "start": table.start,
    }


def _promise(promise: Thresholds) -> Encoded:
    arrays = {name: packed(getattr(promise, name), "f8") for name in ("threshold", "coverage", "risk")}
    return {"name": promise.name, "explanation": promise.explanation, **arrays}


def _chart(chart: Chart) -> Encoded:
    curves = [_curve(curve) for curve in chart.curves]
    return {"curves": curves, "xName": chart.x_name, "yName": chart.y_name, "yUnit": chart.y_unit}


def _curve(curve: NamedCurve) -> Encoded:
    """Return a curve without points that have no place, and with no more points than a screen can show."""
    x, y = np.asarray(curve.x, dtype=np.float64), np.asarray(curve.y, dtype=np.float64)
    placed = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if len(placed) > MOST_POINTS_OF_A_CURVE:
        placed = placed[np.linspace(0, len(placed) - 1, MOST_POINTS_OF_A_CURVE).round().astype(int)]
    counts = None if curve.counts is None else packed(np.asarray(curve.counts)[placed], "f4")
    return {"name": curve.name, "x": packed(x[placed], "f4"), "y": packed(y[placed], "f4"), "counts": counts}
