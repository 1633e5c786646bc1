"""What a report shows: plain numbers and texts, no models. Parts that are None or empty vanish from the page with their headings.

Everything with one entry for each row has the order of `Points`. Texts are shown as they are: markup in them stays text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any] | np.integer[Any]]


@dataclass(frozen=True, eq=False, kw_only=True)
class Points:
    """Where each row lies in the plane."""

    x: Array
    """Horizontal places; a row is not drawn where x or y is NaN. [n]"""
    y: Array
    """Vertical places. [n]"""
    axes: str
    """What the plane is: "t-SNE of the posterior mean", "tissue coordinates"."""
    rows: Sequence[str] | None = None
    """What the rows are called, in the tables to download too; 1, 2, … if None. [n]"""
    equal_aspect: bool = False
    """Whether a step has the same length in both directions, as in tissue."""
    flip_y: bool = False
    """Whether y grows downwards, as in images."""
    sampled_from: int | None = None
    """How many rows the file has, where only some of them are shown."""
    numbering: str = ""
    """What the numbers of the rows are, in a sentence: "Rows are numbered by the lines of the file."."""

    def __post_init__(self) -> None:
        _check_length("y", self.y, len(self.x))
        _check_length("rows", self.rows, len(self.x))


@dataclass(frozen=True)
class HoverColumn:
    """One column of the user's table, as texts."""

    name: str
    texts: Sequence[str]
    """[n]"""


@dataclass(frozen=True, eq=False)
class ClassColoring:
    """A color for each class."""

    name: str
    codes: NDArray[np.integer[Any]]
    """Positions in `levels`, −1 where there is none. [n]"""
    levels: Sequence[str]
    explanation: str = ""


@dataclass(frozen=True, eq=False)
class NumberColoring:
    """A color scale."""

    name: str
    values: Array
    """NaN where there is none. [n]"""
    unit: str = ""
    """ "%" shows shares as percentages: 0.5 is 50 %."""
    explanation: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class Predictions:
    """What was predicted for each row. Brings its own colorings: predicted class, certainty, standard deviation, kept or not."""

    target: str
    """The name of the predicted column."""
    predicted: Sequence[str]
    """[n]"""
    certainty: Array
    """Larger is more certain: the probability of the predicted class, or in regression minus the standard deviation. [n]"""
    std: Array | None = None
    """Standard deviation of the probability, or of the predicted number. [n]"""
    labeled: NDArray[np.bool_]
    """Whether the row had a label or target. Such rows are not counted, abstained or listed unless all rows have one. [n]"""
    is_probability: bool = True
    """False in regression: then `std` is needed, and shown in place of the certainty."""
    values: Array | None = None
    """The predicted numbers, in regression, to color by. [n]"""
    unit: str = ""
    """The unit of the predicted numbers."""

    def __post_init__(self) -> None:
        for name in ("certainty", "std", "labeled", "values"):
            _check_length(name, getattr(self, name), len(self.predicted))
        if not self.is_probability and self.std is None:
            raise ValueError("Pass std with predictions that are not probabilities: it is shown in place of the certainty.")


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Thresholds that hold each risk target in one sense: with confidence, on average, or by cross-validation, which is no promise."""

    name: str
    threshold: Array
    """Rows with certainty ≥ threshold keep their prediction; infinite where none may. [t]"""
    coverage: Array
    """Expected share of rows that are kept, from cross-validation. [t]"""
    risk: Array
    """Expected risk among the kept, from cross-validation; NaN where none is kept. [t]"""
    explanation: str = ""
    n_kept: Array | None = None
    """How many predictions of the whole table are kept; None: the page counts the rows that it shows. [t]"""
    is_promise: bool = True
    """False for what is only estimated, which the page says wherever it shows it."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RiskTable:
    """What the slider moves over."""

    targets: Array
    """Risks that a person may ask for, increasing; infinity stands for no limit. [t]"""
    promises: Sequence[Thresholds]
    """One or more; the first is shown at the start."""
    risk_name: str = "error rate"
    unit: str = "%"
    """ "%" shows shares as percentages; otherwise the unit of the predicted numbers, or nothing."""
    start: int = 0
    """Position of the target at which the slider starts."""
    n_decided: int | None = None
    """How many predictions of the whole table there are to keep or to leave to a person, where the promises have `n_kept`."""

    def __post_init__(self) -> None:
        if len(self.promises) == 0 or len(self.targets) == 0:
            raise ValueError("The risk table is empty: pass at least one target and one promise, or None for no slider.")
        if not (np.diff(self.targets) > 0).all():
            raise ValueError("The risk targets must increase: sort them, each once.")
        if not 0 <= self.start < len(self.targets):
            raise ValueError(f"start is {self.start} and there are {len(self.targets)} targets: pass a position among them.")
        for promise in self.promises:
            for name in ("threshold", "coverage", "risk"):
                _check_length(f"{name} of {promise.name!r}", getattr(promise, name), len(self.targets))
            _check_length(f"n_kept of {promise.name!r}", promise.n_kept, len(self.targets))
            if (promise.n_kept is None) != (self.n_decided is None):
                raise ValueError("n_decided and the n_kept of each promise count the whole table: pass all of them, or none.")


@dataclass(frozen=True, eq=False)
class NamedCurve:
    """One line of a chart."""

    name: str
    x: Array
    y: Array
    counts: Array | None = None
    """How many rows each point stands for, in reliability. [points]"""

    def __post_init__(self) -> None:
        _check_length(f"y of {self.name!r}", self.y, len(self.x))
        _check_length(f"counts of {self.name!r}", self.counts, len(self.x))


@dataclass(frozen=True, eq=False)
class Chart:
    """Curves of the compared methods; the first is the model that the report is about."""

    curves: Sequence[NamedCurve]
    x_name: str
    y_name: str
    y_unit: str = "%"
    """The horizontal axis is always a share. "%" shows shares as percentages."""
    explanation: str = ""


@dataclass(frozen=True, eq=False)
class SpectrumChart:
    """Eigenvalues of the feature covariance, largest first."""

    eigenvalues: Array
    explanation: str = ""


class Belief(NamedTuple):
    """How far the labels believe in one representation."""

    name: str
    """What it is, in words."""
    share: float
    """Its share of the weight, from 0 to 1."""


class ClassErrors(NamedTuple):
    """How one class fares."""

    name: str
    n_labels: int
    n_wrong: int
    """Of the labels, how many held-out predictions were wrong."""
    lower: float
    upper: float
    """Ends of the 95 % interval of the share of errors."""
    n_predicted: int
    """How many rows without a label are predicted to be of this class."""


class ColumnBar(NamedTuple):
    """How much a column matters."""

    name: str
    increase: float
    """How much worse predictions become without it; not above zero: it does not matter."""
    words: str = ""
    """The same for people."""


class Suspicion(NamedTuple):
    """A label that may be wrong."""

    row: str
    """What the row is called."""
    label: str
    """As given."""
    predicted: str
    """What the model predicts from the other labels."""
    probability: float
    """How probable that is, says the model."""


class Compared(NamedTuple):
    """What the labels say of this model against another method."""

    name: str
    """The other method, in words."""
    verdict: str
    """In a word or two: "better", "undecided"."""
    sentence: str


class Fact(NamedTuple):
    """A setting or result, and what it means in plain words."""

    name: str
    value: str
    explanation: str = ""


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportContent:
    """All that a report shows, from top to bottom."""

    title: str
    subtitle: str = ""
    """The file, its number of rows, a date, a version."""
    warnings: Sequence[str] = ()
    """What a reader must know before anything else, at the top of the page."""
    summary: Sequence[str] = ()
    """Sentences in plain words."""
    points: Points
    hover: Sequence[HoverColumn] = ()
    """Columns of the user's table: shown for the row under the pointer, listed with the most uncertain rows."""
    colorings: Sequence[ClassColoring | NumberColoring] = ()
    """Colorings beyond those that `predictions` bring."""
    predictions: Predictions | None = None
    controls: RiskTable | None = None
    """The slider, which needs `predictions`."""
    risk_coverage: Chart | None = None
    reliability: Chart | None = None
    by_class: Sequence[ClassErrors] = ()
    compared: Sequence[Compared] = ()
    importance: Sequence[ColumnBar] = ()
    """Columns, the one that matters most first."""
    suspicious: Sequence[Suspicion] = ()
    """Labels that may be wrong, the most suspicious first."""
    believed: Sequence[Belief] = ()
    """Representations and their shares, largest first; empty where there is only one."""
    uncertain: int = 50
    """How many of the most uncertain rows are listed."""
    spectrum: SpectrumChart | None = None
    facts: Sequence[Fact] = ()
    glossary: Sequence[tuple[str, str]] = ()
    """Words and their meanings, beyond those of the parts that are there."""

    def __post_init__(self) -> None:
        n_rows = len(self.points.x)
        for column in self.hover:
            _check_length(f"column {column.name!r}", column.texts, n_rows)
        for coloring in self.colorings:
            per_row = coloring.codes if isinstance(coloring, ClassColoring) else coloring.values
            _check_length(f"coloring {coloring.name!r}", per_row, n_rows)
        _check_length("predictions", None if self.predictions is None else self.predictions.predicted, n_rows)
        if self.controls is not None and self.predictions is None:
            raise ValueError("A risk table without predictions has nothing to hold back: pass predictions, or no controls.")


def _check_length(name: str, values: Any, expected: int) -> None:
    if values is not None and len(values) != expected:
        raise ValueError(f"{name}: {len(values)} entries where {expected} are needed: pass one for each.")
