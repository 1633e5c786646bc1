"""Say which rows to label next, why each of them, and how many more labels it will take."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..active._advice import StopAdvice, stop_advice
from ..active._representation import OwnRepresentation
from ..active._stopping import LEAST_LABELS, learning_curve
from ..active._suggest import Beliefs, Suggestion, suggest_among
from ..data._labels import Target, TargetKind
from ..data._outputs import asked_for
from ..data._writing import write_table
from ..downstream._marginal import Marginalized
from ..evaluation._promises import RiskLimit
from ._choices import ChoiceError, Settings, confidence_of, risk_of
from ._embed import open_model
from ._evidence import n_drawn
from ._label import names_of_results, new_model
from ._subject import Roles, Subject, as_path, check_outputs, open_subject

Array = NDArray[np.float64]

N_SUGGESTED = 20
MAX_RISK = 0.05
"""The error rate that advice is about, unless a person names another."""
FEWEST_GROUPS = 3
"""Groups below which there is no learning curve."""
RANK, REASON, ROW = "gpssl_rank", "gpssl_reason", "gpssl_row"
"""Columns of the file of suggested rows: their order, why each, and the line or index of the row in the table."""


@dataclass(frozen=True)
class SuggestedRow:
    """A row to label."""

    place: int
    """Its place in the table, from 0."""
    line: Any
    """The number that a person sees: the line of the file; for a data frame its index."""
    reason: str
    """Why this row, in words."""
    predicted: str | float | None
    """What the model thinks now; None where there are too few labels for a model."""
    probability: float | None
    """The probability of the predicted class."""
    probabilities: dict[str, float] | None
    """The probability of each class."""


@dataclass(frozen=True)
class NextRows:
    """What `next_rows` has found."""

    target: str
    kind: str
    classes: list[str] | None
    n_rows: int
    n_labeled: int
    n_candidates: int
    """Rows without a label."""
    rows: list[SuggestedRow]
    """The rows to label, the most informative first."""
    stop: StopAdvice | None
    """Whether more labels are worth it; None without a model."""
    written: list[Path]
    notes: list[str]
    model: Any = field(repr=False)
    """The fitted classifier or regressor; None where there are too few labels for one."""
    subject: Subject = field(repr=False)
    """The table that was opened."""

    def frame(self) -> Any:
        """Return the suggested rows as a data frame: their rank, their reason, their line or index, and their cells. [n]"""
        return _cells(self.subject, self.rows, self.target, typed=True)


def next_rows(
    table: Any,
    target: str,
    n: int = N_SUGGESTED,
    *,
    model: Any = None,
    max_risk: float | str | None = None,
    confidence: float | str | None = "auto",
    target_kind: TargetKind | None = None,
    group: str | None = None,
    labels: Any = (),
    keep: Sequence[str] = (),
    ignore: Sequence[str] = (),
    unlabeled: Sequence[str] = (),
    sheet: str | None = None,
    random_state: int = 0,
    out: str | PathLike[str] | None = None,
    force: bool = False,
) -> NextRows:
    """Suggest rows to label next, as `gpssl next` does: uncertain ones that are unlike what is labeled or suggested already.

    Distances are measured in the representations of a pool that all rows train, as far as the labels believe in each
    (`gpssl.active.suggest`). With no label at all, or labels of one class, rows are suggested that cover the table.

    Parameters
    ----------
    table, target
        As for `label`: cells of rows without a label are empty.
    n
        How many rows to suggest.
    model
        A model that `label` returned, or the file of one, to use in the place of one that is fitted now.
    max_risk, confidence
        The error rate that is to be promised for all predictions, and how, as for `label`: `result.stop` says how many more labels that
        takes, from labels that are held out in turn. By default 5 % for classes; for numbers, a root mean squared error, none.
    out
        File for the suggested rows with all their columns: gpssl_rank, gpssl_reason, gpssl_row (the line in the table), and the target,
        empty, to be filled in.
    target_kind, group, labels, keep, ignore, unlabeled, sheet, random_state, force
        As for `label`.

    Examples
    --------
    >>> import gpssl
    >>> from sklearn.datasets import load_wine
    >>> wines = load_wine(as_frame=True).frame
    >>> wines.loc[wines.index % 9 > 0, "target"] = None
    >>> result = gpssl.next_rows(wines, "target", n=5)
    >>> result.n_candidates, len(result.rows)
    (158, 5)
    """
    if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
        raise ChoiceError("n", f"{n!r} is no whole number of at least 1.")
    loaded = None if model is None else _checked_model(model)
    results = re.compile(f"{names_of_results(target).pattern}|{RANK}|{REASON}|{ROW}")
    columns = None if loaded is None else loaded.card_.columns or None
    path = as_path(out)
    written = check_outputs([table, model], [path], force=force)
    subject = open_subject(
        table, Roles(target, target_kind, group, keep, ignore, unlabeled, sheet), columns=columns, results=results, labels=labels
    )
    with subject.noting():
        known = subject.target()
        wanted = confidence_of(confidence)
        wanted_risk = risk_of(max_risk, known.kind)
        _check_candidates(known, subject)
        fitted, own = _learned(subject, known, loaded, Settings(seed=random_state))
        points, beliefs = _seen(subject, own, fitted)
        found = suggest_among(points, beliefs, ~known.is_known, n, random_state=random_state)
        limit = RiskLimit.for_labels(wanted_risk, wanted, n_drawn(subject, known))
        stop = _advice(subject, fitted, known, limit, random_state)
    rows = _suggested(subject, found.rows, known.kind)
    if path is not None:
        asked, style = asked_for(path, subject.style)
        write_table(path, _cells(subject, rows, target, **asked), force=force, style=style)
    return NextRows(
        target=target,
        kind=known.kind,
        classes=_classes(known),
        n_rows=subject.n_rows,
        n_labeled=int(known.is_known.sum()),
        n_candidates=found.n_candidates,
        rows=rows,
        stop=stop,
        written=written,
        notes=subject.notes,
        model=fitted,
        subject=subject,
    )


def _checked_model(model: Any) -> Any:
    """Return a model that predicts."""
    loaded = open_model(model)
    if not isinstance(loaded, Marginalized):
        raise ChoiceError("model", "it represents rows and predicts nothing: pass one that label has made.")
    return loaded


def _check_candidates(labels: Target, subject: Subject) -> None:
    if labels.is_known.all():
        advice = f" But {subject.tidy.question}." if subject.tidy.question else ""
        raise ValueError(
            f"All {subject.n_rows:,} rows of {subject.name} have a label in {labels.name!r}: there is none left to suggest.{advice}"
        )


def _classes(labels: Target) -> list[str] | None:
    return sorted({str(label) for label in labels.labels}) if labels.kind == "class" else None


def _learned(subject: Subject, labels: Target, loaded: Any, settings: Settings) -> tuple[Any, OwnRepresentation]:
    """Return a model, None where labels are too few for one, and the representation that distances are measured in."""
    if loaded is not None:
        return loaded, _own(loaded)
    ssl = subject.fit(settings)
    if len(np.unique(labels.labels)) < 2:
        return None, _own(subject.pool(ssl, settings.seed))
    labeled = subject.labeled()
    fitted = new_model(subject, ssl, labels, settings).fit(labeled.rows, labeled.y)
    return fitted, _own(fitted)


def _own(model: Any) -> OwnRepresentation:
    own = OwnRepresentation.of(model)
    if own is None:
        raise TypeError(f"{type(model).__name__} has no representation to measure distances in.")
    return own


def _seen(subject: Subject, own: OwnRepresentation, model: Any) -> tuple[Array, Beliefs | None]:
    """Return all rows as points [n, D], and what the model believes of them, after one pass."""
    features, beliefs = [], []
    for part, _ in subject.numbered_parts("predicting"):
        features.append(own.features(part.rows))
        if model is not None:
            beliefs.append(Beliefs.of(model, part.rows))
    points = own.joined([np.concatenate(parts) for parts in zip(*features, strict=True)])
    return points, Beliefs.joined(beliefs) if beliefs else None


def _advice(subject: Subject, model: Any, labels: Target, limit: RiskLimit, seed: int) -> StopAdvice | None:
    """Return when to stop, from a learning curve; None without a model."""
    if model is None:
        return None
    wanted = MAX_RISK if limit.max_risk is None and labels.kind == "class" else limit.max_risk
    labeled = subject.labeled()
    n_units = len(labeled.y) if labeled.groups is None else len(np.unique(labeled.groups))
    if len(labeled.y) < LEAST_LABELS or n_units < FEWEST_GROUPS:
        text = f"From {len(labeled.y):,} labels nobody can tell how many more it takes: label at least {LEAST_LABELS} rows."
        return StopAdvice(text, wanted, None, None, None, None, None)
    curve = learning_curve(model, labeled.rows, labeled.y, groups=labeled.groups, random_state=seed)
    return stop_advice(curve, wanted, limit.confidence)


def _suggested(subject: Subject, found: Sequence[Suggestion], kind: Literal["class", "number"]) -> list[SuggestedRow]:
    lines = _lines(subject, np.array([one.place for one in found], dtype=np.intp))
    rows = []
    for one, line in zip(found, lines, strict=True):
        predicted = one.predicted if one.predicted is None or kind == "number" else str(one.predicted)
        by_class = None if one.probabilities is None else {str(name): share for name, share in one.probabilities.items()}
        rows.append(SuggestedRow(one.place, line, one.reason, predicted, one.probability, by_class))
    return rows


def _lines(subject: Subject, places: NDArray[np.intp]) -> list[Any]:
    """Return what a person calls the rows: lines of a file, or the index of what is in memory."""
    lines = subject.lines(places)
    if lines is not None:
        return lines.tolist()
    return places.tolist() if subject.index is None else [subject.index[place] for place in places]


def _cells(subject: Subject, rows: Sequence[SuggestedRow], target: str, *, typed: bool, as_json: bool = False) -> Any:
    """Return the cells of suggested rows in the order of their ranks, the target empty."""
    places = np.array([row.place for row in rows], dtype=np.intp)
    (cells,) = subject.views_at(places, lambda part: part.cells(typed=typed, as_json=as_json))
    frame = cells.iloc[np.argsort(np.argsort(places))].reset_index(drop=True)
    frame = frame.drop(columns=[RANK, REASON, ROW], errors="ignore").assign(**{target: None})
    frame.insert(0, RANK, np.arange(1, len(rows) + 1))
    frame.insert(1, REASON, [row.reason for row in rows])
    frame.insert(2, ROW, [row.line for row in rows])
    return frame
