"""`gpssl report`: a model and a table as one page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors

from ..data._labels import Target
from ..data._writing import replacing
from ..io._card import ModelCard
from ..io._model_files import load
from ..workflows._opening import open_subject
from ..workflows._settings import check_outputs, noting, representation_of
from ..workflows._subject import Subject, one_below_the_other
from ._content import ClassColoring, HoverColumn, NumberColoring, Points, ReportContent, Spectrum
from ._explaining import facts_about, subtitle, what_is_predicted, what_was_learned
from ._judging import judge
from ._page import render

Array = NDArray[np.float64]

TSNE_ROWS = 4000
"""Rows that t-SNE arranges; it takes long with more."""
FEWEST_ROWS = 10
N_NEIGHBORS = 5


class Plane(NamedTuple):
    """Where rows are drawn."""

    x: Array
    y: Array
    axes: str


def plane_of(mean: Array, std: Array, seed: int) -> Plane:
    """Two dimensions as they are, more of them by t-SNE."""
    if mean.shape[1] == 1:
        return Plane(mean[:, 0], std[:, 0], "dimension 1 of the representation, and its standard deviation")
    if mean.shape[1] == 2 or len(mean) < FEWEST_ROWS:
        return Plane(mean[:, 0], mean[:, 1], "dimensions 1 and 2 of the representation")
    if len(mean) <= TSNE_ROWS:
        x, y = _t_sne(mean, seed).T
        return Plane(x, y, "t-SNE of the mean representation")
    chosen = np.random.default_rng(seed).permutation(len(mean))[:TSNE_ROWS]
    arranged = _t_sne(mean[chosen], seed)
    axes = f"t-SNE of the mean representation of {TSNE_ROWS:,} rows; the others are placed among their {N_NEIGHBORS} nearest"
    x, y = _among_neighbors(mean, mean[chosen], arranged).T
    return Plane(x, y, axes)


def _t_sne(mean: Array, seed: int) -> Array:
    perplexity = min(30.0, (len(mean) - 1) / 3)
    arranged: Array = TSNE(perplexity=perplexity, init="pca", random_state=seed, n_jobs=-1).fit_transform(mean).astype(np.float64)
    return arranged


def _among_neighbors(mean: Array, known: Array, arranged: Array) -> Array:
    """The average place of the nearest known rows, weighted by their inverse distance: a known row stays where it is. [n, 2]"""
    distances, places = NearestNeighbors(n_neighbors=N_NEIGHBORS).fit(known).kneighbors(mean)
    weights = 1 / np.maximum(distances, 1e-9)
    return np.einsum("nk,nkd->nd", weights / weights.sum(axis=1, keepdims=True), arranged[places])


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


def report(
    model: Path, table: Path, out: Path, *, target: str | None, group: str | None, rivals: bool, seed: int | None, force: bool
) -> Reported:
    """Write the page. Target, group and seed are those of the model, unless they are given."""
    check_outputs([model, table], [out], force=force)
    loaded = load(model)
    notes = loaded.card_.notes
    asked = target or notes.get("target")
    same = asked == notes.get("target")
    _check_not_seen(loaded.card_, asked)
    subject = open_subject(
        table,
        target=asked,
        target_kind=notes.get("target_kind") if same else None,
        group=group or (notes.get("group") if same else None),
        columns=loaded.card_.columns or None,
    )
    if same and notes.get("table") not in (None, table.name):
        subject.notes.append(f"The model was trained on {notes['table']}: the curves are of heads trained on the labels of {table.name}.")
    with noting(subject.notes):
        content = build(loaded, subject, rivals=rivals, seed=notes.get("seed", 0) if seed is None else seed)
    with replacing(out, force=force) as beside:
        beside.write_text(render(content), encoding="utf-8")
    return Reported(subject.n_rows, len(content.points.x), list(content.summary), [out], subject.notes)


def _check_not_seen(card: ModelCard, target: str | None) -> None:
    """What a representation has looked at, it predicts too well."""
    if target is not None and target in [column.name for column in card.columns or ()]:
        raise ValueError(
            f"The model has looked at {target!r} when it was learned, so that its predictions would prove nothing: learn it again with "
            f"gpssl embed --ignore {target!r}, or with gpssl label."
        )


def build(loaded: Any, subject: Subject, *, rivals: bool, seed: int) -> ReportContent:
    """All that the page shows."""
    ssl, card = representation_of(loaded), loaded.card_
    places = _shown_places(subject.n_rows, seed)
    rows, cells = _shown_rows(subject, places)
    mean, std = ssl.mean_and_std(rows)
    target = None if subject.target_name is None else subject.target()
    judged = None if target is None else judge(loaded, subject, target, places, rows, rivals=rivals, seed=seed)
    predicted = [] if target is None or judged is None else [what_is_predicted(target, judged.error)]
    spread = NumberColoring(
        "standard deviation", std.mean(axis=1), explanation="Of the representation: 1 where the data say nothing, 0 where they say all."
    )
    return ReportContent(
        title=f"{subject.path.name}: {'a representation of its rows' if target is None else f'predicting {target.name}'}",
        subtitle=subtitle(card, subject.n_rows),
        summary=[what_was_learned(ssl, subject), *predicted],
        points=_points(subject, places, mean, std, seed),
        hover=_hover(cells, target),
        colorings=[*([] if target is None else [_known(target, places)]), spread],
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


def _shown_places(n_rows: int, seed: int) -> NDArray[np.intp]:
    """All rows, or as many as stay smooth."""
    if n_rows <= MAX_POINTS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, MAX_POINTS, replace=False))


def _shown_rows(subject: Subject, places: NDArray[np.intp]) -> tuple[Any, Any]:
    """As the model takes them, and as the person had them."""
    chosen = np.zeros(subject.n_rows, dtype=bool)
    chosen[places] = True
    pieces = [(piece.rows[chosen[where]], piece.cells(False)[chosen[where]]) for piece, where in subject.numbered_pieces()]
    rows, cells = zip(*pieces, strict=True)
    return one_below_the_other(list(rows)), one_below_the_other(list(cells))


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


def _known(target: Target, places: NDArray[np.intp]) -> ClassColoring | NumberColoring:
    """The labels that were given."""
    name = f"{target.name}, as given"
    if target.kind == "number":
        return NumberColoring(name, target.values[places].astype(np.float64))
    levels, codes = np.unique(target.labels, return_inverse=True)
    all_codes = np.full(len(target.values), -1)
    all_codes[target.is_known] = codes
    return ClassColoring(name, all_codes[places], [str(level) for level in levels])
