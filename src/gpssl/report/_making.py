"""Make a report: from a model and a table to one page."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from ..data._writing import replacing
from ..io._card import ModelCard
from ..workflows._embed import open_model, representation_of
from ..workflows._subject import Subject, as_path, check_outputs, open_subject
from ._content import NumberColoring, ReportContent, SpectrumChart
from ._judging import judge
from ._map import hover_columns, labels_coloring, points_of, shown_places, shown_rows
from ._page import render
from ._words import STD_OF_REPRESENTATION, facts_about, subtitle, what_is_predicted, what_was_learned


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
    out
        The file to write; without it nothing is written, and `Report.html` has the page.
    force
        Whether to replace a file that exists.
    """
    out = as_path(out)
    written = check_outputs([model, table], [out], force=force)
    loaded = open_model(model)
    notes = loaded.card_.notes
    asked = target or notes.get("target")
    is_of_model = asked == notes.get("target")
    _check_not_seen(loaded.card_, asked)
    subject = open_subject(
        table,
        target=asked,
        target_kind=notes.get("target_kind") if is_of_model else None,
        group=group or (notes.get("group") if is_of_model else None),
        columns=loaded.card_.columns or None,
    )
    if is_of_model and notes.get("table") not in (None, subject.name):
        subject.notes.append(f"The model was trained on {notes['table']}: the curves are of heads trained on the labels of {subject.name}.")
    with subject.noting():
        content = build(loaded, subject, rivals=rivals, seed=notes.get("seed", 0) if random_state is None else random_state)
        if out is not None:
            with replacing(out, force=force) as beside:
                beside.write_text(render(content), encoding="utf-8")
    return Report(subject.n_rows, len(content.points.x), list(content.summary), written, subject.notes, content)


def _check_not_seen(card: ModelCard, target: str | None) -> None:
    """Raise ValueError if the model learned from the target, which it would then predict too well."""
    if target is not None and target in [column.name for column in card.columns or ()]:
        raise ValueError(
            f"The model has looked at {target!r} when it was learned, so that its predictions would prove nothing: learn it again with "
            f"ignore=[{target!r}], or label the table."
        )


def build(loaded: Any, subject: Subject, *, rivals: bool, seed: int) -> ReportContent:
    """Return all that the page shows."""
    ssl, card = representation_of(loaded), loaded.card_
    places = shown_places(subject.n_rows, seed)
    rows, cells = shown_rows(subject, places)
    mean, std = ssl.mean_and_std(rows)
    target = None if subject.target_name is None else subject.target()
    judged = None if target is None else judge(loaded, subject, target, places, rows, rivals=rivals, seed=seed)
    predicted = [] if target is None or judged is None else [what_is_predicted(target, judged.error)]
    spread = NumberColoring("standard deviation", std.mean(axis=1), explanation=STD_OF_REPRESENTATION)
    return ReportContent(
        title=f"{subject.name}: {'a representation of its rows' if target is None else f'predicting {target.name}'}",
        subtitle=subtitle(card, subject.n_rows),
        summary=[what_was_learned(ssl, subject), *predicted],
        points=points_of(subject, places, mean, std, seed),
        hover=hover_columns(cells, target),
        colorings=[*([] if target is None else [labels_coloring(target, places)]), spread],
        predictions=judged and judged.predictions,
        controls=judged and judged.controls,
        risk_coverage=judged and judged.risk_coverage,
        reliability=judged and judged.reliability,
        spectrum=SpectrumChart(ssl.eigenvalues_),
        facts=facts_about(ssl, card, subject),
    )
