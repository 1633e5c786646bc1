"""Predict classes or numbers for the rows that have none, with an expectation of how often they are wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from .. import downstream
from .._runtime import N_DRAWS
from ..data._labels import Target, TargetKind
from ..estimator import GPSSL
from ..evaluation._calibration import INTERVAL
from ..evaluation._held_out import check_labels
from ..evaluation._importance import ColumnImportance
from ..evaluation._promises import Expectation, RiskLimit
from ._choices import MAX_INDUCING, Alike, Settings, confidence_of, risk_of
from ._evidence import n_drawn
from ._label_findings import Foreseen, SuspiciousLabel, find_out, nothing_to_predict
from ._subject import NewColumns, Roles, Subject, SubjectPart, Writing, as_path, check_outputs, model_path, open_subject

Array = NDArray[np.float64]

OF_CLASSES = ("predicted", "probability", "std")
OF_NUMBERS = ("predicted", "std", "lower", "upper")
ABSTAIN = "abstain"


def names_of_results(target: str) -> re.Pattern[str]:
    """Return a pattern of the columns that predictions are written to: what an earlier run left there is not learned from."""
    return re.compile(rf"{re.escape(target)}_({'|'.join({*OF_CLASSES, *OF_NUMBERS, ABSTAIN})})")


@dataclass(frozen=True)
class LabeledTable:
    """What `label` has found."""

    target: str
    kind: str
    classes: list[str] | None
    n_rows: int
    n_labeled: int
    n_predicted: int
    n_abstained: int
    counts: dict[str, int] | None
    """How often each class was predicted and kept."""
    promise: RiskLimit
    """What was asked of the predictions that are kept."""
    expectation: Expectation
    members: list[downstream.MemberShare]
    """Which representations the labels believe in, and how far; see `MarginalizedClassifier.members_`."""
    importance: list[ColumnImportance]
    """Which columns matter most: how much worse held-out predictions become when a column is shuffled. Columns that tell the same share
    their importance. Empty for tissue."""
    suspicious: list[SuspiciousLabel]
    """Labels that are perhaps wrong, the most doubtful first: held-out predictions contradict them with high certainty."""
    written: list[Path]
    notes: list[str]
    model: Any = field(repr=False)
    """The fitted classifier or regressor, with its card as `card_`."""
    new_columns: NewColumns = field(repr=False)

    def frame(self) -> Any:
        """Return the predictions as a data frame: TARGET_predicted and so on, empty for rows that have a label. [n rows]"""
        return self.new_columns.frame()


def label(
    table: Any,
    target: str,
    *,
    max_risk: float | str | None = None,
    confidence: float | str | None = "auto",
    n_components: int | None = None,
    alike: Literal["columns", "neighbors"] | Alike | None = None,
    temperature: float | Literal["auto"] | None = None,
    n_draws: int | None = None,
    max_inducing: int = MAX_INDUCING,
    target_kind: TargetKind | None = None,
    group: str | None = None,
    labels: Any = (),
    keep: Sequence[str] = (),
    ignore: Sequence[str] = (),
    unlabeled: Sequence[str] = (),
    sheet: str | None = None,
    random_state: int = 0,
    out: str | PathLike[str] | None = None,
    model_out: str | PathLike[str] | None = None,
    only_new: bool = False,
    force: bool = False,
) -> LabeledTable:
    """Label the rows that have no label, and say what error rate to expect, as `gpssl label` does.

    All rows train the representations of a pool (`RepresentationPool.for_rows`); the labels train heads on them, and say how far to believe
    each: `result.members`. The expectation comes from labels that are held out in turn.

    Parameters
    ----------
    table
        A path, a pandas data frame or AnnData, as for `embed`.
    target
        The column to predict; cells without a label are empty.
    max_risk, confidence
        The largest error rate of the predictions that are kept; the others abstain. None keeps all. A text may be a percentage, as on the
        command line: "5%". It is held on average over repetitions (`gpssl.evaluation.average_risk_threshold`) with confidence "average" or
        None, or in this share of repetitions (`gpssl.evaluation.risk_controlled_threshold`), such as 0.95; "auto" is "average" with fewer
        than 300 labels and 0.95 with more. For numbers, the largest root mean squared error, on average. Labels of rows that were chosen
        to be labeled are not judged, and labels that are no random sample are weighed; notes say so. Where predictions are much less sure
        of the other rows than of held-out labels, nothing is promised and nothing kept.
    alike, temperature, n_draws
        Where one of them is given, predictions come from `n_draws` functions of one `GPSSL`, weighed by the labels, and not from the pool:
        as `embed` would learn it, with kernel and temperature of your choice.
    target_kind
        "class" or "number"; by default the cells decide.
    group
        The column that says which rows belong together: they are held out together.
    unlabeled
        Words in the target that mean "no label", such as "unknown", without regard to case. Notes ask about words that may mean it.
    labels
        Labels that a person gave in the page of `gpssl.annotate`: a path or a data frame, or several, of which the last counts. They are
        matched by row and checksum, and stand in the target column of the results.
    n_components, max_inducing, keep, ignore, sheet, random_state, out, model_out, only_new, force
        As for `embed`. The new columns are TARGET_predicted, TARGET_probability and TARGET_std (of the probability); for numbers
        TARGET_predicted, TARGET_std, TARGET_lower and TARGET_upper, which hold the number with a probability of 90 %; with `max_risk`
        TARGET_abstain.

    Examples
    --------
    >>> import gpssl
    >>> from sklearn.datasets import load_wine
    >>> wines = load_wine(as_frame=True).frame
    >>> wines.loc[wines.index % 3 > 0, "target"] = None
    >>> result = gpssl.label(wines, "target")
    >>> result.n_labeled, result.n_predicted
    (60, 118)
    >>> result.frame().columns.tolist()
    ['target_predicted', 'target_probability', 'target_std']
    """
    wanted = confidence_of(confidence)
    settings = settings_of(n_components, alike, temperature, n_draws, max_inducing, random_state)
    out, model_file = as_path(out), model_path(as_path(out), model_out)
    given = labels if isinstance(labels, list | tuple) else [labels]
    written = check_outputs([table, *given], [out, model_file], force=force)
    roles = Roles(target, target_kind, group, keep, ignore, unlabeled, sheet)
    subject = open_subject(table, roles, results=names_of_results(target), labels=labels)
    known = subject.target()
    limit = RiskLimit.for_labels(risk_of(max_risk, known.kind), wanted, n_drawn(subject, known))
    with subject.noting(settings):
        check_labels(known, subject.name, subject.notes)
        subject.notes.extend(nothing_to_predict(subject, known))
        model = new_model(subject, subject.fit(settings), known, settings)
        found = find_out(model, subject, known, limit, settings.seed)
        predict = PredictionColumns(found.fitted, target, None if limit.max_risk is None else found.expectation.threshold, found.foreseen)
        columns = NewColumns(subject, lambda part, where: predict(part, ~known.is_known[where]))
        of_run = {"unlabeled": list(unlabeled), "target_kind": known.kind, "seed": settings.seed, "promise": asdict(limit), **found.notes()}
        subject.finish(
            found.fitted, columns, out, model_file, Writing(only_new, force), lambda: {**of_run, "decided": asdict(predict.decided())}
        )
    decided = predict.decided()
    return LabeledTable(
        target=target,
        kind=known.kind,
        classes=found.fitted.classes_.tolist() if known.kind == "class" else None,
        n_rows=subject.n_rows,
        n_labeled=found.n_labeled,
        n_predicted=decided.n_predicted,
        n_abstained=decided.n_abstained,
        counts=decided.counts,
        promise=limit,
        expectation=found.expectation,
        members=found.fitted.members_,
        importance=found.importance,
        suspicious=found.suspicious,
        written=written,
        notes=subject.notes,
        model=found.fitted,
        new_columns=columns,
    )


def settings_of(
    n_components: int | None,
    alike: str | Alike | None,
    temperature: float | Literal["auto"] | None,
    n_draws: int | None,
    max_inducing: int,
    seed: int,
) -> Settings:
    """Return the settings; whoever chooses kernel, temperature or draws chooses one representation."""
    is_fixed = any(choice is not None for choice in (alike, temperature, n_draws))
    return Settings(
        n_components,
        Alike.COLUMNS if alike is None else Alike(alike),
        "auto" if temperature is None else temperature,
        N_DRAWS if n_draws is None else n_draws,
        max_inducing,
        seed,
        is_fixed,
    )


def new_model(subject: Subject, ssl: GPSSL, target: Target, settings: Settings) -> Any:
    """Return a classifier or regressor on representations that are fitted, its heads still to be trained."""
    kind = downstream.MarginalizedClassifier if target.kind == "class" else downstream.MarginalizedRegressor
    representation = ssl if settings.is_fixed else subject.pool(ssl, settings.seed)
    return kind(FrozenEstimator(representation), n_draws=settings.n_draws, random_state=settings.seed)


@dataclass(frozen=True)
class Decided:
    """What a run decided."""

    n_predicted: int
    n_abstained: int
    counts: dict[str, int] | None
    """How often each class was predicted and kept; None for numbers."""


class PredictionColumns:
    """The columns of predictions for parts of a table, and how many were made and kept."""

    def __init__(self, model: Any, target: str, threshold: float | None, foreseen: Foreseen | None = None) -> None:
        self.model, self.target, self.threshold, self.foreseen = model, target, threshold, foreseen
        self.is_class = isinstance(model, downstream.MarginalizedClassifier)
        self.n_predicted = self.n_abstained = 0
        self.counts = Counter[str]()
        """How often each class was predicted and kept."""

    def decided(self) -> Decided:
        """Return how many predictions were made, and kept, so far."""
        return Decided(self.n_predicted, self.n_abstained, dict(self.counts) if self.is_class else None)

    @classmethod
    def of_model(cls, model: Any, target: str) -> PredictionColumns:
        """Return those of a model that `label` trained, with the threshold that it found."""
        notes = model.card_.notes
        is_limited = notes.get("promise", {}).get("max_risk") is not None
        return cls(model, target, float(notes["expectation"]["threshold"]) if is_limited else None)

    def __call__(self, part: SubjectPart, is_open: NDArray[np.bool_]) -> Any:
        """Return a data frame, empty for rows that are not open because they have a label. Without a threshold, nothing abstains."""
        columns, certainty = self._predict(part.rows[is_open])
        kept = certainty > (-np.inf if self.threshold is None else self.threshold)
        if self.threshold is not None:
            columns[ABSTAIN] = ~kept
        self.n_predicted += len(kept)
        self.n_abstained += int((~kept).sum())
        if self.is_class:
            for name, count in zip(*np.unique(columns["predicted"][kept].astype(str), return_counts=True), strict=True):
                self.counts[str(name)] += int(count)
        return pd.DataFrame({f"{self.target}_{name}": _spread(values, is_open) for name, values in columns.items()})

    def _predict(self, rows: Any) -> tuple[dict[str, NDArray[Any]], Array]:
        """Return the columns, and how certain each prediction is. [n]"""
        if len(rows) == 0:
            empty = {name: np.empty(0) for name in (OF_CLASSES if self.is_class else OF_NUMBERS)}
            return {**empty, "predicted": np.empty(0, dtype=object if self.is_class else float)}, np.empty(0)
        if self.foreseen is not None and self.foreseen.n_rows == len(rows):  # the part has all open rows
            found = self.foreseen.distribution
        else:
            found = self.model.predict_distribution(rows)
        if self.is_class:
            certainty = found.certainty
            return {"predicted": found.predicted.astype(object), "probability": certainty, "std": found.certainty_std}, certainty
        lower, upper = found.interval(INTERVAL).T
        return {"predicted": found.mean, "std": found.std, "lower": lower, "upper": upper}, -found.std


def _spread(values: NDArray[Any], places: NDArray[np.bool_]) -> Any:
    """Return values at their places and nothing elsewhere, in a type that does not depend on how many there are. [n]"""
    is_float = values.dtype.kind == "f"
    out: NDArray[Any] = np.full(len(places), np.nan if is_float else None, dtype=float if is_float else object)
    out[places] = values
    return pd.array(out, dtype="boolean") if values.dtype.kind == "b" else out
