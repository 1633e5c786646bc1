"""What the labels say of this model against other methods, by the rules of `gpssl.compare`, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..comparison._deciding import (
    FEW_SPLITS,
    LEAST_PROBABILITY,
    Difference,
    Ground,
    Verdict,
    advice_on_labels,
    differences_from,
    what_matters,
)
from ..evaluation._held_out import HeldOutClasses, HeldOutNumbers
from ._content import Compared
from ._words import method_in_words

Array = NDArray[np.float64]
HeldOut = HeldOutClasses | HeldOutNumbers

SCORES = {True: "negative log likelihood", False: "log loss"}
"""The score that decides, for numbers and for classes; the smaller, the better."""

MOST_NAMES = 2
"""Methods that the sentence about all of them names."""


def compared_with(held_out: Mapping[str, Any], own: str, groups: NDArray[Any] | None) -> list[Compared]:
    """Return a decision for each other method, where all of them were judged by the same labels in the same folds.

    Folds take the place of the random splits of `gpssl.compare`; the error of the mean difference is corrected for the rows that training
    folds share in the same way, with 1 / (K − 1) labels that are judged by for each that is learned from.
    """
    first = held_out[own]
    numeric = isinstance(first, HeldOutNumbers)
    folds = np.unique(first.fold[first.fold >= 0]) if first.fold is not None else np.empty(0)
    if len(held_out) < 2 or len(folds) < 2:
        return []
    judged = int((first.fold >= 0).sum())
    n_independent = judged if groups is None else len(np.unique(groups[first.fold >= 0]))
    ground = Ground(1 / (len(folds) - 1), what_matters(first.y, numeric=numeric), judged, n_independent, len(folds))
    losses = {name: np.array([_losses(found)[first.fold == fold].mean() for fold in folds]) for name, found in held_out.items()}
    found = differences_from(losses, ground, own)
    means = {name: float(values.mean()) for name, values in losses.items()}
    return [_in_words(name, difference, means[own], means[name], ground, numeric=numeric) for name, difference in found.items()]


def overall(compared: Sequence[Compared]) -> list[str]:
    """Return the sentence that says whether another method is to be preferred; none where none was compared."""
    if not compared:
        return []
    by_verdict = {verdict: [one.name for one in compared if one.verdict == verdict] for verdict in Verdict}
    if by_verdict[Verdict.WORSE]:
        return [f"Better than this model on these labels: {_listed(by_verdict[Verdict.WORSE])}."]
    if not by_verdict[Verdict.BETTER]:
        return [f"The labels do not show this model to be better, or worse, than any of the {len(compared)} compared methods."]
    n_open = len(compared) - len(by_verdict[Verdict.BETTER])
    others = f"; {n_open} other{' is' if n_open == 1 else 's are'} as good, or not decided" if n_open else ""
    beaten = by_verdict[Verdict.BETTER]
    named = _listed(beaten) if len(beaten) <= MOST_NAMES else f"{len(beaten)} of {len(compared)} compared methods"
    return [f"On these labels this model is better than {named}{others}."]


def _listed(names: Sequence[str]) -> str:
    """Return names in a row; some of them have commas of their own."""
    return "; ".join(names)


def _losses(held_out: HeldOut) -> Array:
    """Return what each held-out label costs, in nats: −log p, with p at least 0.001 for classes. [n]"""
    if isinstance(held_out, HeldOutNumbers):
        assert held_out.log_density is not None
        return -held_out.log_density
    codes = np.searchsorted(held_out.classes, held_out.y)
    return -np.log(np.maximum(held_out.proba[np.arange(len(codes)), codes], LEAST_PROBABILITY))


def _in_words(name: str, difference: Difference, ours: float, theirs: float, ground: Ground, *, numeric: bool) -> Compared:
    other, score = method_in_words(name, numeric=numeric), SCORES[numeric]
    interval = f"{_signed(difference.lower)} to {_signed(difference.upper)}"
    numbers = f"{score} {ours:.3g} against {theirs:.3g} (95 % interval of the difference {interval})"
    sentences = {
        Verdict.BETTER: f"This model is better than {other}: {numbers}.",
        Verdict.WORSE: f"This model is worse than {other}: {numbers}. Use that instead.",
        Verdict.ALIKE: f"This model and {other} make no difference that matters (less than {ground.matters:.2g}): {numbers}.",
        Verdict.UNDECIDED: f"The labels do not tell this model from {other}: {numbers}{_advice(difference, ground)}.",
    }
    return Compared(other, str(difference.verdict), sentences[difference.verdict])


def _advice(difference: Difference, ground: Ground) -> str:
    if difference.more_labels is not None:
        return f"; to decide, {advice_on_labels(difference.more_labels)}"
    return f"; {ground.n_labeled:,} labels decide little" if ground.n_splits < FEW_SPLITS else ""


def _signed(value: float) -> str:
    return f"{value:+.2g}".replace("-", "−")
