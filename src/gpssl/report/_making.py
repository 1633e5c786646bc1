"""Make a report: from a model and a table to one page, with a map of the rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data._outputs import replacing
from ..evaluation._held_out import check_labels
from ..io._card import ModelCard, representation_of
from ..workflows._embed import check_map, open_model
from ..workflows._subject import Roles, Subject, as_path, check_outputs, open_subject
from ._content import HoverColumn, NumberColoring, ReportContent, SpectrumChart
from ._judging import with_predictions
from ._page import render
from ._plane import points_of
from ._words import STD_OF_REPRESENTATION, facts_about, subtitle, what_was_learned

Array = NDArray[np.float64]
Places = NDArray[np.intp]

MAX_POINTS = 50_000
HOVER_COLUMNS, FEW_HOVER_COLUMNS = 12, 6
MANY_POINTS = 10_000


@dataclass(frozen=True)
class Report:
    """What `make_report` has made."""

    n_rows: int
    n_points: int
    summary: list[str]
    written: list[Path]
    notes: list[str]
    content: ReportContent = field(repr=False)
    """All that the page shows."""

    def html(self) -> str:
        """Return the text of the page."""
        return render(self.content)


def make_report(
    model: Any,
    table: Any,
    *,
    target: str | None = None,
    group: str | None = None,
    rivals: bool = True,
    labels: Any = (),
    sheet: str | None = None,
    random_state: int | None = None,
    out: str | PathLike[str] | None = None,
    force: bool = False,
) -> Report:
    """Explain a model on one HTML page, as `gpssl report` does.

    Parameters
    ----------
    model
        A path, or the `model` of what `gpssl.embed` or `gpssl.label` returned.
    table
        The rows to show: a path, a pandas data frame or AnnData.
    target, group, random_state
        The column to predict, the column that says which rows belong together, and the seed; by default those of the model.
    rivals
        Whether to show curves of the compared methods too, which takes longer.
    labels
        Labels that a person gave elsewhere, as for `gpssl.label`: those that the model was trained with.
    sheet
        The sheet of a workbook or the table of a database, as for `gpssl.embed`.
    out
        The file to write; without it nothing is written, and `Report.html` has the page.
    force
        Whether to replace a file that exists.
    """
    out = as_path(out)
    written = check_outputs([model, table], [out], force=force, endings=(".html", ".htm"))
    loaded = open_model(model)
    notes = loaded.card_.notes
    asked = target or notes.get("target")
    is_of_model = asked == notes.get("target")
    _check_not_seen(loaded.card_, asked)
    roles = Roles(asked, group=group, sheet=sheet)
    if is_of_model:
        unlabeled = notes.get("unlabeled", ())
        roles = Roles(asked, notes.get("target_kind"), group or notes.get("group"), unlabeled=unlabeled, sheet=sheet)
    subject = open_subject(table, roles, columns=loaded.card_.columns or None, labels=labels)
    if is_of_model and notes.get("table") not in (None, subject.name) and notes.get("rows") != subject.n_rows:
        subject.notes.append(f"The model was trained on {notes['table']}: the curves are of heads trained on the labels of {subject.name}.")
    with subject.noting():
        content = _content_of(loaded, subject, rivals=rivals, seed=notes.get("seed", 0) if random_state is None else random_state)
        if out is not None:
            with replacing(out, force=force) as beside:
                beside.write_text(render(content), encoding="utf-8")
    summary = [*content.warnings, *content.summary]
    return Report(subject.n_rows, len(content.points.x), summary, written, subject.notes, content)


def _check_not_seen(card: ModelCard, target: str | None) -> None:
    """Raise ValueError if the model learned from the target, which it would then predict too well."""
    if target is not None and target in [column.name for column in card.columns or ()]:
        raise ValueError(
            f"The model has looked at {target!r} when it was learned, so that its predictions would prove nothing: learn it again with "
            f"ignore=[{target!r}], or label the table."
        )


def _content_of(loaded: Any, subject: Subject, *, rivals: bool, seed: int) -> ReportContent:
    """Return all that the page shows."""
    ssl, card = check_map(representation_of(loaded)), loaded.card_
    places = _shown_places(subject.n_rows, seed)
    rows, cells = subject.views_at(places, lambda part: part.rows, lambda part: part.cells(typed=False))
    mean, std = ssl.mean_and_std(rows)
    if subject.roles.target is not None:
        check_labels(subject.target(), subject.name, subject.notes)
    content = ReportContent(
        title=f"{subject.name}: a representation of its rows",
        subtitle=subtitle(card, subject.n_rows),
        summary=[what_was_learned(ssl, subject)],
        points=points_of(subject, places, mean, std, seed),
        hover=_hover_columns(cells, subject.roles.target),
        colorings=[NumberColoring("standard deviation", std.mean(axis=1), explanation=STD_OF_REPRESENTATION)],
        spectrum=SpectrumChart(ssl.eigenvalues_),
        facts=facts_about(ssl, card, subject),
    )
    if subject.roles.target is None:
        return content
    return with_predictions(content, loaded, subject, places, rivals=rivals, seed=seed)


def _shown_places(n_rows: int, seed: int) -> Places:
    """Return at most MAX_POINTS rows, sampled, so that the page stays responsive."""
    if n_rows <= MAX_POINTS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, MAX_POINTS, replace=False))


def _hover_columns(cells: Any, target: str | None) -> list[HoverColumn]:
    """Return the person's columns, the one to predict first."""
    limit = FEW_HOVER_COLUMNS if len(cells) > MANY_POINTS else HOVER_COLUMNS
    first = [target] if target in cells.columns else []
    names = [*first, *(name for name in cells.columns if name not in first)][:limit]
    return [HoverColumn(str(name), _as_texts(cells[name])) for name in names]


def _as_texts(column: Any) -> list[str]:
    """Return cells as texts for people: short numbers, and nothing for missing cells."""
    values = zip(column.tolist(), column.isna(), strict=True)
    return ["" if missing else f"{value:.6g}" if isinstance(value, float) else str(value) for value, missing in values]
