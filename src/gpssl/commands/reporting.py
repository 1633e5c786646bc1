"""`gpssl report`: a model and a table as one page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from .. import GPSSL
from ..files import check_writable, replacing
from ..io import ModelCard, load, read_card
from ..progress import Progress
from ..report import render
from ..report.content import Chart, ClassColouring, HoverColumn, NumberColouring, Points, Predictions, ReportContent, RiskTable, Spectrum
from .contest import MAX_ROWS, at_most, choose
from .curves import class_charts, class_risks, number_charts, number_risks
from .explaining import facts_about, subtitle, summary_of
from .held_out import hold_out_classes, hold_out_numbers
from .labelling import check_labels, new_model
from .notes import noting
from .opening import open_subject
from .plane import plane_of
from .rivals import FULL, RIVALS, Rows
from .settings import Settings
from .subject import Labelled, Subject, Target

Array = NDArray[np.float64]

MAX_POINTS = 50_000
HOVER_COLUMNS, FEW_HOVER_COLUMNS = 12, 6
MANY_POINTS = 10_000


@dataclass(frozen=True)
class Reported:
    """What `gpssl report` has done."""

    n_rows: int
    n_points: int
    summary: list[str]
    written: list[Path]
    notes: list[str]


class Judged(NamedTuple):
    """A model with heads, what it predicts for the rows that are shown, and how it does on held-out labels."""

    predictions: Predictions
    controls: RiskTable
    risk_coverage: Chart
    reliability: Chart
    error: float
    n_labelled: int


def report(model: Path, table: Path, out: Path, *, target: str | None, rivals: bool, seed: int, force: bool) -> Reported:
    """Write the page."""
    check_writable(out, force=force)
    card, loaded = read_card(model), load(model)
    asked = target or card.notes.get("target")
    subject = open_subject(
        table, target=asked, target_kind=card.notes.get("target_kind") if target is None else None, columns=card.columns or None
    )
    with noting(subject.notes):
        content = build(loaded, card, subject, has_target=asked is not None, rivals=rivals, seed=seed)
    with replacing(out, force=force) as beside:
        beside.write_text(render(content), encoding="utf-8")
    return Reported(subject.n_rows, len(content.points.x), list(content.summary), [out], subject.notes)


def build(loaded: Any, card: ModelCard, subject: Subject, *, has_target: bool, rivals: bool, seed: int) -> ReportContent:
    """All that the page shows."""
    ssl = representation_of(loaded)
    places = _shown_places(subject.n_rows, seed)
    rows, cells = _shown_rows(subject, places)
    mean, std = ssl.transform(rows), ssl.std(rows)
    target = subject.target() if has_target else None
    judged = None if target is None else _judge(loaded, ssl, subject, target, places, rows, rivals=rivals, seed=seed)
    spread = NumberColouring(
        "standard deviation", std.mean(axis=1), explanation="Of the representation: 1 where the data say nothing, 0 where they say all."
    )
    return ReportContent(
        title=f"{subject.path.name}: {'a representation of its rows' if target is None else f'predicting {target.name}'}",
        subtitle=subtitle(card, subject.n_rows),
        summary=summary_of(ssl, subject, None if judged is None else (target, judged.error, judged.n_labelled)),
        points=_points(subject, places, mean, std, seed),
        hover=_hover(cells, target),
        colourings=[*([] if target is None else [_known(target, places)]), spread],
        predictions=judged and judged.predictions,
        controls=judged and judged.controls,
        risk_coverage=judged and judged.risk_coverage,
        reliability=judged and judged.reliability,
        spectrum=Spectrum(ssl.eigenvalues_, SPECTRUM_WORDS),
        facts=facts_about(ssl, card, subject),
    )


SPECTRUM_WORDS = (
    "How many directions the kernel sees in the rows, and how much of their variation is along each. A few tall bars: the rows have a "
    "simple structure that a few dimensions can show. Many bars of similar height: they do not."
)


def representation_of(loaded: Any) -> GPSSL:
    """The representation of any model: itself, or what its heads stand on."""
    inner = getattr(loaded, "representation_", loaded)
    return getattr(inner, "estimator", inner)  # of a frozen one


def _shown_places(n_rows: int, seed: int) -> NDArray[np.intp]:
    """All rows, or as many as stay smooth."""
    if n_rows <= MAX_POINTS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, MAX_POINTS, replace=False))


def _shown_rows(subject: Subject, places: NDArray[np.intp]) -> tuple[Any, Any]:
    """As the model takes them, and as the person had them."""
    import pandas as pd

    rows, cells = [], []
    for piece, where in subject.numbered_pieces():
        chosen = np.isin(np.arange(where.start, where.stop), places)
        rows.append(piece.rows[chosen])
        cells.append(piece.cells(False)[chosen])
    together = pd.concat(rows, ignore_index=True) if hasattr(rows[0], "columns") else np.concatenate(rows)
    return together, pd.concat(cells, ignore_index=True)


def _points(subject: Subject, places: NDArray[np.intp], mean: Array, std: Array, seed: int) -> Points:
    names = [f"{place + 1}" for place in places]
    sampled = subject.n_rows if len(places) < subject.n_rows else None
    tissue = subject.coordinates()
    if tissue is not None:
        x, y = tissue[places].T
        return Points(x=x, y=y, axes="place on the tissue", rows=names, equal_aspect=True, flip_y=True, sampled_from=sampled)
    plane = plane_of(mean, std, seed)
    return Points(x=plane.x, y=plane.y, axes=plane.axes, rows=names, sampled_from=sampled)


def _hover(cells: Any, target: Target | None) -> list[HoverColumn]:
    """The person's columns, that to predict first."""
    limit = FEW_HOVER_COLUMNS if len(cells) > MANY_POINTS else HOVER_COLUMNS
    first = [target.name] if target is not None and target.name in cells.columns else []
    names = [*first, *(name for name in cells.columns if name not in first)][:limit]
    return [HoverColumn(str(name), _texts(cells[name])) for name in names]


def _texts(column: Any) -> list[str]:
    """Cells, for people: short numbers, nothing for what is missing."""
    values = zip(column.tolist(), column.isna(), strict=True)
    return ["" if missing else f"{value:.6g}" if isinstance(value, float) else str(value) for value, missing in values]


def _known(target: Target, places: NDArray[np.intp]) -> ClassColouring | NumberColouring:
    """The labels that were given."""
    name = f"{target.name}, as given"
    if target.kind == "number":
        return NumberColouring(name, target.values[places].astype(np.float64))
    levels, codes = np.unique(target.labels, return_inverse=True)
    all_codes = np.full(len(target.values), -1)
    all_codes[target.is_known] = codes
    return ClassColouring(name, all_codes[places], [str(level) for level in levels])


def _judge(
    loaded: Any, ssl: GPSSL, subject: Subject, target: Target, places: NDArray[np.intp], rows: Any, *, rivals: bool, seed: int
) -> Judged:
    check_labels(target, subject.path.name, subject.notes)
    settings = Settings(n_components=len(ssl.posterior_.weights.mean), seed=seed)
    labelled = subject.labelled()
    has_heads = hasattr(loaded, "heads_")
    model = clone(loaded).set_params(representation=FrozenEstimator(ssl)) if has_heads else new_model(ssl, target, settings)
    fitted = loaded if has_heads else model.fit(labelled.rows, labelled.y)
    models = {FULL: model, **(_rivals(ssl, subject, labelled, settings, target) if rivals else {})}
    known = target.is_known[places]
    if target.kind == "class":
        classes = {name: hold_out_classes(m, labelled, seed, name) for name, m in models.items()}
        error = float(classes[FULL].is_wrong.mean())
        return Judged(
            _class_predictions(fitted, target, rows, known), class_risks(classes[FULL]), *class_charts(classes), error, len(labelled.y)
        )
    numbers = {name: hold_out_numbers(m, labelled, seed, name) for name, m in models.items()}
    error = float(np.sqrt(((numbers[FULL].y - numbers[FULL].mean) ** 2).mean()))
    return Judged(
        _number_predictions(fitted, target, rows, known),
        number_risks(numbers[FULL], ""),
        *number_charts(numbers, ""),
        error,
        len(labelled.y),
    )


def _rivals(ssl: GPSSL, subject: Subject, labelled: Labelled, settings: Settings, target: Target) -> dict[str, Any]:
    """The compared methods, each with the settings that suit the labels best; those that lack a package are left out."""
    found = {}
    regression = target.kind == "number"
    sampled, known = at_most(subject, labelled, MAX_ROWS, settings.seed)
    rows = Rows(sampled, ssl.kernel_, settings, regression)
    progress = Progress("compared methods", len(RIVALS) - 1, enabled=False, unit="methods")
    for name, candidates in RIVALS.items():
        if name == FULL:
            continue
        try:
            found[name] = choose(candidates(rows), known, np.arange(len(known.y)), settings.seed, regression=regression).estimator
        except ImportError:
            continue
        progress.advance(1)
    progress.finish()
    return found


def _class_predictions(model: Any, target: Target, rows: Any, known: NDArray[np.bool_]) -> Predictions:
    proba, std = model.predict_proba(rows), model.predict_proba_std(rows)
    best = proba.argmax(axis=1)
    return Predictions(
        target=target.name,
        predicted=[str(name) for name in model.classes_[best]],
        certainty=proba.max(axis=1),
        std=std[np.arange(len(best)), best],
        labelled=known,
    )


def _number_predictions(model: Any, target: Target, rows: Any, known: NDArray[np.bool_]) -> Predictions:
    mean, std = model.predict(rows), model.predict_std(rows)
    return Predictions(
        target=target.name,
        predicted=[f"{value:.6g}" for value in mean],
        certainty=-std,
        std=std,
        labelled=known,
        is_probability=False,
        values=mean,
    )
