"""What `label` found and decided when it trained a model, as the model's card tells it, and the sentences with which the page opens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._runtime import percent
from ..data._labels import Target
from ..evaluation._promises import Expectation, RiskLimit, what_cannot_be_promised
from ..workflows._label_findings import worse_than_guessing
from ..workflows._sentences import expectation_of, expected, limit_of, promised
from ._content import ColumnBar, Suspicion
from ._words import NOT_ALIKE, PROMISED_ON_AVERAGE

MOST_COLUMNS = 12
"""Columns that have a bar."""
MOST_SUSPICIONS = 50


@dataclass(frozen=True)
class Run:
    """A run of `label`. Cards of older versions, and of models that predict something else, say less: what is missing is None or empty."""

    limit: RiskLimit = field(default_factory=RiskLimit)
    expectation: Expectation | None = None
    table: str | None = None
    n_rows: int | None = None
    decided: tuple[int, int] | None = None
    """How many predictions were made, and how many of them were left to a person."""
    shift: str | None = None
    """A sentence, where the labels are not like the other rows and nothing is promised."""
    importance: Sequence[ColumnBar] = ()
    suspicious: Sequence[Suspicion] = ()

    @property
    def threshold(self) -> float | None:
        """The certainty above which the run kept a prediction; None where it was asked for nothing."""
        return None if self.expectation is None or self.limit.max_risk is None else self.expectation.threshold

    @property
    def is_plain(self) -> bool:
        """Whether the promise rests on all labels alike, so that other error rates can be promised from them as well."""
        basis = None if self.expectation is None else self.expectation.basis
        return basis is None or (basis.n_chosen == 0 and basis.n_effective is None)

    def is_on(self, n_rows: int, n_labels: int) -> bool:
        """Return whether a table has as many rows and labels as that of the run, which is then taken to be the same."""
        return self.n_rows in (None, n_rows) and self.expectation is not None and self.expectation.n_judged == n_labels


def run_of(notes: Mapping[str, Any], target: str) -> Run:
    """Return what a card says of the run that predicted this target."""
    if notes.get("target") != target:
        return Run()
    expectation = expectation_of(notes)
    return Run(
        limit_of(notes),
        expectation,
        notes.get("table"),
        notes.get("rows"),
        _decided(notes.get("decided")),
        _shift_in_words(expectation, notes.get("shift")),
        [_column_bar(one) for one in _entries(notes, "importance", {"name", "increase"})][:MOST_COLUMNS],
        [_suspicion(one) for one in _entries(notes, "suspicious", {"label", "predicted", "probability"})][:MOST_SUSPICIONS],
    )


def _decided(stored: Any) -> tuple[int, int] | None:
    """Return how many predictions were made and left to a person."""
    if not isinstance(stored, Mapping) or not {"n_predicted", "n_abstained"} <= stored.keys():
        return None
    return int(stored["n_predicted"]), int(stored["n_abstained"])


def _shift_in_words(expectation: Expectation | None, shift: Any) -> str | None:
    """Return what `label` said of labels that are not like the other rows, or a sentence of our own where the card has only a mark."""
    if expectation is not None and expectation.shift is not None:
        return expected(expectation)
    return (shift if isinstance(shift, str) else NOT_ALIKE) if shift else None


def _entries(notes: Mapping[str, Any], name: str, needed: set[str]) -> list[Mapping[str, Any]]:
    """Return the entries of a list on the card that have what is needed."""
    found = notes.get(name)
    return [one for one in found if isinstance(one, Mapping) and needed <= one.keys()] if isinstance(found, Sequence) else []


def _column_bar(entry: Mapping[str, Any]) -> ColumnBar:
    share = entry.get("share")
    return ColumnBar(str(entry["name"]), float(entry["increase"]), "" if share is None else percent(float(share), 0))


def _suspicion(entry: Mapping[str, Any]) -> Suspicion:
    line = entry.get("line")
    row = str(int(entry["place"]) + 1) if line is None and "place" in entry else str(line)
    return Suspicion(row, _cell(entry["label"]), _cell(entry["predicted"]), float(entry["probability"]))


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def opening(run: Run, now: Expectation, target: Target, n_predicted: int, n_kept: int, *, is_same: bool) -> list[str]:
    """Return the sentences with which the page opens: what `label` promised and decided, as it said it.

    `now` is what cross-validation says on the table at hand, of which the run's threshold keeps `n_kept` of `n_predicted`.
    """
    if n_predicted == 0:
        return [f"All rows have a label in {target.name!r}: nothing is left to predict. {expected(now)}"]
    if run.expectation is None:
        return [_all_kept(now, n_predicted)]
    made, left = run.decided or (n_predicted, n_predicted - n_kept)
    said = _said(run, run.expectation, target, made, left)
    if is_same and (made, made - left) == (n_predicted, n_kept):
        return said
    rows = "row" if n_predicted == 1 else "rows"
    here = f"This table is not the one of that run{'' if run.table is None else f', {run.table}, as it was then'}: it has"
    return [*said, f"{here} {n_predicted:,} {rows} without a label, of which the same threshold keeps {n_kept:,}."]


def _said(run: Run, expectation: Expectation, target: Target, n_predicted: int, n_abstained: int) -> list[str]:
    """Return what the run promised and decided; what it said of a shift is a warning at the top of the page."""
    if run.limit.max_risk is None:
        return [_all_kept(expectation, n_predicted)]
    said = promised(expectation, run.limit, n_predicted, n_abstained)
    if run.shift is not None:
        return [said]
    return [said, *what_cannot_be_promised(expectation, run.limit, target), expected(expectation)]


def warnings_of(run: Run, now: Expectation) -> list[str]:
    """Return what a reader must know before the predictions are used."""
    return worse_than_guessing(run.expectation or now) if run.shift is None else [run.shift]


def _all_kept(expectation: Expectation, n_predicted: int) -> str:
    kept = f"All {n_predicted:,} predictions are kept."
    return kept if expectation.shift is not None else f"{kept} {expected(expectation)}"


def confidence_in_words(limit: RiskLimit) -> str:
    """Return the name of the promise."""
    if limit.confidence is None:
        return PROMISED_ON_AVERAGE
    return f"with {percent(limit.confidence, 0)} confidence"
