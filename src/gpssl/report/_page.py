"""Turn the content of a report into the text of one HTML file that needs nothing else.

Its scripts read JSON, with long arrays as base64 and repeated texts as codes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from . import _tables as tables
from . import _words as words
from ._content import Chart, ClassColoring, NamedCurve, NumberColoring, Points, Predictions, ReportContent, RiskTable, SpectrumChart
from ._tables import escaped

Encoded = dict[str, Any]

SCRIPTS = ("shared.js", "data.js", "scatter.js", "pointer.js", "charts.js", "decisions.js", "table.js", "legend.js", "page.js")
"""The scripts, which share one scope, in this order."""
ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}
"""Characters that could end a script element or open a comment in it. Other characters beyond ASCII are escaped by `json.dumps`."""
LONGEST_BOLD = 60
"""Longest text that is set in bold, in characters: a list of columns is not a headline."""
LISTS = ("warnings", "summary", "by_class", "compared", "importance", "suspicious", "believed")
"""Parts that are there if they have entries."""
MOST_POINTS_OF_A_CURVE = 200
"""More cannot be seen."""


def render(content: ReportContent) -> str:
    """Return the text of the file, to be written as UTF-8. The same content gives the same text."""
    page = _without_absent_parts(resource("page.html"), _present_parts(content))
    return assembled(page, resource("page.css"), SCRIPTS, _data(content), _texts(content))


def assembled(page: str, style: str, scripts: Sequence[str], data: Encoded, texts: dict[str, str]) -> str:
    """Return a page with its style, these scripts in one scope, the data that they read, and texts that are HTML already."""
    script = "\n(() => {\n'use strict';\n" + "\n".join(map(resource, scripts)) + "\n})();\n"
    fields = {
        "style": style,
        "style_hash": _content_hash(style),
        "script": script,
        "script_hash": _content_hash(script),
        # Whatever the user's table contains, it may stand inside a script element.
        "data": json.dumps(data, separators=(",", ":"), allow_nan=False).translate(ESCAPES),
        **texts,
    }
    return Template(page).substitute(fields)


def resource(name: str) -> str:
    """Return a file of this folder."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _content_hash(text: str) -> str:
    """Return the hash by which the page's security policy knows its own style and script, and refuses every other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _present_parts(content: ReportContent) -> dict[str, bool]:
    """Return which parts of `page.html` this content fills."""
    has_predictions = content.predictions is not None
    curves = {"risk_coverage": content.risk_coverage is not None, "reliability": content.reliability is not None}
    learned = {"spectrum": content.spectrum is not None and bool(np.any(content.spectrum.eigenvalues > 0)), "facts": len(content.facts) > 0}
    return {
        **{name: len(getattr(content, name)) > 0 for name in LISTS},
        "controls": content.controls is not None,
        "colorings": has_predictions or len(content.colorings) > 0,
        "charts": has_predictions or any(curves.values()),
        "predictions": has_predictions,
        **curves,
        "uncertain": has_predictions and content.uncertain > 0,
        "learned": any(learned.values()),
        **learned,
    }


def _without_absent_parts(page: str, present: dict[str, bool]) -> str:
    """Remove absent parts, which stand between the marks `part NAME` and `end of NAME`."""
    for name, is_present in present.items():
        pattern = rf"<!-- part {name} -->(.*?)<!-- end of {name} -->"
        page = re.sub(pattern, (lambda match: match[1]) if is_present else "", page, flags=re.DOTALL)
    return page


def _texts(content: ReportContent) -> dict[str, str]:
    """Return what stands on the page, as HTML."""
    points, predictions, controls = content.points, content.predictions, content.controls
    alike = "" if points.equal_aspect else "; points that lie together are alike"
    is_probability = predictions is None or predictions.is_probability
    all_labeled = predictions is not None and bool(np.all(predictions.labeled))
    return {
        "title": escaped(content.title),
        "subtitle": escaped(content.subtitle),
        "warnings": tables.paragraphs(content.warnings),
        "summary": tables.list_of(content.summary),
        "plane": escaped(f"Each point is a row{alike}. The plane is: {points.axes}. {points.numbering}".strip()),
        "sample": "" if points.sampled_from is None else f" Shown are {len(points.x):,} of {points.sampled_from:,} rows.",
        "risk_name": escaped("error rate" if controls is None else controls.risk_name),
        "unlabeled": "" if all_labeled else "without a label",
        "certainty_name": "probability of the predicted class" if is_probability else "standard deviation",
        "risk_coverage_explanation": _explanation(content.risk_coverage, words.RISK_COVERAGE),
        "reliability_heading": "Can the probabilities be believed?" if is_probability else "Can the intervals be believed?",
        "reliability_explanation": _explanation(content.reliability, words.RELIABILITY if is_probability else words.INTERVALS),
        "believed_explanation": escaped(words.BELIEVED),
        "believed": tables.bars_of_beliefs(content.believed),
        "by_class_explanation": escaped(words.BY_CLASS),
        "by_class": tables.table_of_classes(content.by_class),
        "compared_explanation": escaped(words.COMPARED),
        "compared": tables.list_of_compared(content.compared),
        "importance_explanation": escaped(words.IMPORTANCE),
        "importance": tables.bars_of_columns(content.importance),
        "suspicious_explanation": escaped(words.SUSPICIOUS),
        "suspicious": tables.table_of_suspicions(content.suspicious),
        "spectrum_explanation": _explanation(content.spectrum, words.SPECTRUM),
        "facts": "".join(_fact(*fact) for fact in content.facts),
        "glossary": "".join(
            f"<div><dt>{escaped(word)}</dt><dd>{escaped(meaning)}</dd></div>" for word, meaning in words.glossary_of(content)
        ),
    }


def _explanation(part: Chart | SpectrumChart | None, otherwise: str) -> str:
    return escaped((part and part.explanation) or otherwise)


def _fact(name: str, value: str, explanation: str) -> str:
    shown = f"<strong>{escaped(value)}</strong>" if len(value) <= LONGEST_BOLD else f'<span class="long">{escaped(value)}</span>'
    return f"<div><dt>{escaped(name)}</dt><dd>{shown}<p>{escaped(explanation)}</p></dd></div>"


def _data(content: ReportContent) -> Encoded:
    """Return the parts that scripts draw; texts that only stand on the page are not among them."""
    return {
        "points": _points(content.points),
        "hover": [{"name": column.name, **_packed_texts(column.texts)} for column in content.hover],
        "colorings": [_coloring(coloring) for coloring in _all_colorings(content)],
        "predictions": None if content.predictions is None else _predictions(content.predictions),
        "controls": None if content.controls is None else _controls(content.controls),
        "riskCoverage": None if content.risk_coverage is None else _chart(content.risk_coverage),
        "reliability": None if content.reliability is None else _chart(content.reliability),
        "uncertain": content.uncertain,
        "spectrum": None if content.spectrum is None else _packed(content.spectrum.eigenvalues, "f8"),
    }


def _packed(values: Any, dtype: str) -> Encoded:
    """Return an array as base64 of its little-endian bytes: "f4", "f8", "i4", "u2" or "u1". NaN and infinity survive."""
    array = np.asarray(values).astype("<" + dtype)
    return {"dtype": dtype, "base64": base64.b64encode(array.tobytes()).decode()}


def _packed_texts(texts: Sequence[str]) -> Encoded:
    """Return texts as they are, or as codes of the distinct ones where most occur more than once."""
    codes_of: dict[str, int] = {}
    codes = [codes_of.setdefault(text, len(codes_of)) for text in texts]
    if 2 * len(codes_of) > len(codes):
        return {"texts": list(texts)}
    return {"levels": list(codes_of), "codes": _packed(codes, "u1" if len(codes_of) <= 256 else "u2" if len(codes_of) <= 65_536 else "i4")}


def _points(points: Points) -> Encoded:
    return {
        "x": _packed(points.x, "f4"),
        "y": _packed(points.y, "f4"),
        "rows": None if points.rows is None else _packed_texts(points.rows),
        "equalAspect": points.equal_aspect,
        "flipY": points.flip_y,
        "sampled": points.sampled_from is not None,
    }


def _all_colorings(content: ReportContent) -> list[ClassColoring | NumberColoring | str]:
    """Return the colorings in the order of the menu; of the one that follows the slider, its name only."""
    predictions = content.predictions
    if predictions is None:
        return list(content.colorings)
    found: list[ClassColoring | NumberColoring | str] = []
    if predictions.is_probability:
        levels, codes = np.unique(np.asarray(predictions.predicted, dtype=object).astype(str), return_inverse=True)
        found.append(ClassColoring(f"Predicted {predictions.target}", codes, levels.tolist(), words.PREDICTED_CLASS))
        found.append(NumberColoring("Probability of the predicted class", predictions.certainty, "%", words.PROBABILITY))
    if predictions.values is not None:
        found.append(NumberColoring(f"Predicted {predictions.target}", predictions.values, predictions.unit))
    if predictions.std is not None and predictions.is_probability:
        found.append(NumberColoring("Standard deviation of the probability", predictions.std, "%", words.STD_OF_PROBABILITY))
    elif predictions.std is not None:
        found.append(NumberColoring("Standard deviation", predictions.std, predictions.unit, words.STD_OF_NUMBER))
    if content.controls is not None:
        found.append(words.DECISION)
    return [*found, *content.colorings]


def _coloring(coloring: ClassColoring | NumberColoring | str) -> Encoded:
    if isinstance(coloring, str):
        return {"kind": "decision", "name": coloring, "explanation": ""}
    shared = {"name": coloring.name, "explanation": coloring.explanation}
    if isinstance(coloring, ClassColoring):
        return {"kind": "class", **shared, "codes": _packed(coloring.codes, "i4"), "levels": list(coloring.levels)}
    return {"kind": "number", **shared, "values": _packed(coloring.values, "f4"), "unit": coloring.unit}


def _predictions(predictions: Predictions) -> Encoded:
    return {
        "target": predictions.target,
        "predicted": _packed_texts(predictions.predicted),
        "certainty": _packed(predictions.certainty, "f8"),  # compared with thresholds: not to be rounded
        "std": None if predictions.std is None else _packed(predictions.std, "f4"),
        "labeled": _packed(predictions.labeled, "u1"),
        "isProbability": predictions.is_probability,
        "unit": predictions.unit,
    }


def _controls(table: RiskTable) -> Encoded:
    promises = [
        {
            "name": promise.name,
            "explanation": promise.explanation,
            "isPromise": promise.is_promise,
            "nKept": None if promise.n_kept is None else _packed(promise.n_kept, "i4"),
            **{name: _packed(getattr(promise, name), "f8") for name in ("threshold", "coverage", "risk")},
        }
        for promise in table.promises
    ]
    return {
        "targets": _packed(table.targets, "f8"),
        "promises": promises,
        "riskName": table.risk_name,
        "unit": table.unit,
        "start": table.start,
        "nDecided": table.n_decided,
    }


def _chart(chart: Chart) -> Encoded:
    curves = [_curve(curve) for curve in chart.curves]
    return {"curves": curves, "xName": chart.x_name, "yName": chart.y_name, "yUnit": chart.y_unit}


def _curve(curve: NamedCurve) -> Encoded:
    """Return a curve without points that have no place, and with no more points than a screen can show."""
    x, y = np.asarray(curve.x, dtype=np.float64), np.asarray(curve.y, dtype=np.float64)
    placed = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if len(placed) > MOST_POINTS_OF_A_CURVE:
        placed = placed[np.linspace(0, len(placed) - 1, MOST_POINTS_OF_A_CURVE).round().astype(int)]
    counts = None if curve.counts is None else _packed(np.asarray(curve.counts)[placed], "f4")
    return {"name": curve.name, "x": _packed(x[placed], "f4"), "y": _packed(y[placed], "f4"), "counts": counts}
