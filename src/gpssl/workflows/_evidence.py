"""Which labels an expectation and a promise rest on: those drawn at random from the table, or all of them, weighed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..active._representation import represent
from ..data._labels import Target
from ..evaluation._held_out import HeldOutClasses, HeldOutNumbers, Labeled
from ..evaluation._label_sample import LEAST_ROWS, LabelSample, compare_with_others
from ..evaluation._promises import Evidence, RiskLimit
from ._subject import Subject

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class Others(NamedTuple):
    """Rows without a label, and which of them belong together."""

    rows: Any
    groups: NDArray[Any] | None = None


def n_drawn(subject: Subject, target: Target) -> int:
    """Return how many labels were not chosen by their difficulty; of rows that belong together one counts."""
    counts, groups = target.is_known & ~subject.is_chosen(), subject.groups()
    return int(counts.sum()) if groups is None else len(np.unique(groups[counts]))


def find_evidence(
    held_out: HeldOutClasses | HeldOutNumbers,
    limit: RiskLimit,
    model: Any,
    labeled: Labeled,
    others: Others,
    certainties: Array,
    is_chosen: Mask,
) -> Evidence:
    """Return what a promise for the other rows rests on.

    Labels of rows that were chosen because they are hard to predict [n] only train, where those of other rows are enough. Else all labels
    are weighed, as they are where they are clearly no random sample of the table: see `compare_with_others`. Distances are those of the
    representation that the fitted model believes in.
    """
    drawn = np.flatnonzero(~is_chosen)
    are_enough = _n_independent(labeled.take(drawn)) >= max(LEAST_ROWS, limit.least_labels) if len(drawn) else False
    rests_on = drawn if are_enough else np.arange(len(is_chosen))
    sample = _sample(model, labeled.take(rests_on), others)
    is_weighed = sample is not None and (not sample.is_random or (is_chosen.any() and not are_enough))
    return Evidence(held_out.take(rests_on), certainties, sample if is_weighed else None, int(is_chosen.sum()))


def _n_independent(labeled: Labeled) -> int:
    return len(labeled.y) if labeled.groups is None else len(np.unique(labeled.groups))


def _sample(model: Any, labeled: Labeled, others: Others) -> LabelSample | None:
    """Return how labeled rows differ from others; None where there are no others."""
    if len(others.rows) == 0:
        return None
    other_points, points = represent(model, others.rows, labeled=labeled.rows)
    return compare_with_others(points, other_points, labeled.groups, others.groups)


def notes_on_evidence(evidence: Evidence) -> list[str]:
    """Return what to know of the labels that an expectation rests on, where these are not all of them, or do not count alike."""
    n_used, n_chosen = len(evidence.judged.y), evidence.n_chosen
    chosen = f"{n_chosen:,} label{' is of a row' if n_chosen == 1 else 's are of rows'} chosen to be labeled, which are harder than others"
    if evidence.sample is None:
        return [f"{chosen}: what to expect and to promise rests on the other {n_used:,} labels."] if n_chosen else []
    weighed = f"labels count as much as there are other rows like theirs, and tell as much as {evidence.sample.n_effective:.0f} would"
    if n_chosen:
        return [f"{chosen}: for what to expect and to promise, {weighed}. Labels of rows drawn at random would make it exact."]
    return [
        f"The labels were not drawn at random from this table: for what to expect and to promise, {weighed} that were. That is "
        "approximate; labels of rows drawn at random would make it exact."
    ]
