"""Score candidate settings on held-out labels, from moments that those with the same kernel share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from .._runtime.progress import Progress
from ..data._labels import KnownLabels
from ..estimator import GPSSL
from ..evaluation._calibration import log_density, log_loss
from ..inference import inference_method
from ..inference._variational import Variational
from ._marginal import SharedParams

Split = tuple[NDArray[np.intp], NDArray[np.intp]]

ROUGH_DRAWS = 16
"""Quasi-random draws that are enough to tell good settings from bad ones."""

PRECISE_SHARE, LEAST_PRECISE = 0.1, 5
"""Of many candidates, the best tenth and at least five are scored as precisely as they would be used."""


class TrialParams(NamedTuple):
    """One setting of the representation's parameters."""

    kernel_params: dict[str, Any]
    """Parameters that need a pass over the data."""
    other_params: dict[str, Any]
    """Parameters that inference alone depends on."""


class Trials:
    """Scores of candidates, on the same splits, from moments that those with the same kernel share."""

    def __init__(
        self,
        estimator: Any,
        candidates: Sequence[TrialParams],
        X: Any,
        labels: KnownLabels,
        splits: Sequence[Split],
        shared: SharedParams,
    ) -> None:
        self.estimator = estimator
        self.candidates = candidates
        self.splits = splits
        self.X, self.shared = X, shared
        self.labeled, self.labels = _safe_indexing(X, labels.rows), labels.values
        self.bases: dict[str, GPSSL] = {}
        self.scores = np.full((len(candidates), len(splits)), np.nan)
        self.precise = np.zeros(len(candidates), dtype=bool)
        self.warnings = [""] * len(candidates)
        self.failures: dict[int, Exception] = {}
        self.listener: Callable[[int], None] | None = None

    @property
    def n_precise(self) -> int:
        """How many candidates are scored precisely, if there are more."""
        return max(LEAST_PRECISE, ceil(PRECISE_SHARE * len(self.candidates)))

    @property
    def n_trials(self) -> int:
        """How many scores are computed, unless all candidates fail that are scored precisely."""
        return len(self.candidates) + (self.n_precise if len(self.candidates) > self.n_precise else 0)

    def run(self, *, verbose: bool, listener: Callable[[int], None] | None = None) -> None:
        """Score all candidates, roughly if they are many, and the best of them precisely. The listener is called for each."""
        n_precise, self.listener = self.n_precise, listener
        if len(self.candidates) > n_precise:
            self._score(range(len(self.candidates)), precise=False, verbose=verbose)
            order = np.argsort(-self.scores.mean(axis=1), kind="stable")  # failures, which are NaN, come last
            succeeded = [int(place) for place in order if place not in self.failures]
            # Where all of these fail in full, the next ones are tried.
            while succeeded and not self.precise.any():
                self._score(succeeded[:n_precise], precise=True, verbose=verbose)
                succeeded = succeeded[n_precise:]
        else:
            self._score(range(len(self.candidates)), precise=True, verbose=verbose)
        self._tell_failures()

    def _score(self, places: Sequence[int], *, precise: bool, verbose: bool) -> None:
        task = "selection" if precise else "selection, roughly"
        progress = Progress(task, len(places), enabled=verbose, unit="candidates", listener=self.listener)
        for place in places:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    self.scores[place] = self._score_one(self.candidates[place], precise=precise)
                    self.precise[place] = precise
                except (ValueError, TypeError, ArithmeticError, np.linalg.LinAlgError) as failure:
                    self.failures[place] = failure
                    self.scores[place] = np.nan
            self.warnings[place] = "; ".join(dict.fromkeys(str(warning.message) for warning in caught))
            progress.advance(1)
        progress.finish()

    def _score_one(self, candidate: TrialParams, *, precise: bool) -> list[float]:
        params = dict(candidate.other_params)
        base = self._base(candidate.kernel_params)
        method = inference_method(params.get("inference", base.inference))
        if isinstance(method, Variational) and not precise:
            params["inference"] = clone(method).set_params(precise=False, n_draws=min(ROUGH_DRAWS, method.n_draws))
        model = clone(self.estimator).set_params(representation=FrozenEstimator(base.refit(**params)))
        return [_score(model, self.labeled, self.labels, split, self.shared.head) for split in self.splits]

    def _base(self, kernel_params: Mapping[str, Any]) -> GPSSL:
        """Return kernel, inducing points and moments, without inference, which `partial_fit` leaves for later."""
        key = joblib.hash(dict(kernel_params))
        if key not in self.bases:
            representation = clone(self.estimator.representation).set_params(**kernel_params)
            self.bases[key] = representation.partial_fit(self.X, **self.shared.representation)
        return self.bases[key]

    def _tell_failures(self) -> None:
        """Raise the first error if all candidates failed; warn if some did."""
        failures = [self.failures[place] for place in sorted(self.failures)]
        if len(failures) == len(self.candidates):
            failures[0].add_note(f"All {len(failures)} candidates failed; this is the first one's error.")
            raise failures[0]
        if failures:
            warnings.warn(
                f"{len(failures)} of {len(self.candidates)} candidates failed; cv_results_['error'] says why. The first one: {failures[0]}",
                FitFailedWarning,
                stacklevel=4,
            )

    def best(self) -> int:
        """Return the place of the best candidate among those that were scored precisely."""
        return int(np.nanargmax(np.where(self.precise, self.scores.mean(axis=1), np.nan)))

    def table(self) -> dict[str, Any]:
        """Return columns named as in `GridSearchCV`; candidates that were scored precisely rank before the others."""
        settings = [{**candidate.kernel_params, **candidate.other_params} for candidate in self.candidates]
        columns: dict[str, Any] = {}
        for name in dict.fromkeys(name for setting in settings for name in setting):
            columns[f"param_{name}"] = np.empty(len(settings), dtype=object)
            columns[f"param_{name}"][:] = [setting.get(name) for setting in settings]
        columns["params"] = settings
        columns.update({f"split{i}_test_score": column for i, column in enumerate(self.scores.T)})
        mean = self.scores.mean(axis=1)
        columns["mean_test_score"], columns["std_test_score"], columns["precise"] = mean, self.scores.std(axis=1), self.precise
        order = np.lexsort([-np.where(np.isnan(mean), -np.inf, mean), ~self.precise | np.isnan(mean)])
        columns["rank_test_score"] = np.empty(len(mean), dtype=int)
        columns["rank_test_score"][order] = np.arange(1, len(mean) + 1)
        columns["warning"] = self.warnings
        columns["error"] = [f"{type(f).__name__}: {f}" if (f := self.failures.get(place)) else "" for place in range(len(settings))]
        return columns


def _score(model: Any, X: Any, y: NDArray[Any], split: Split, params: Mapping[str, Any]) -> float:
    """Train the head on some labels and return the mean log-likelihood of the others.

    Held-out rows of a class that the head has not seen do not count: no candidate could know it.
    """
    train, test = split
    model.fit(_safe_indexing(X, train), y[train], **_check_method_params(X, dict(params), indices=train))
    if is_classifier(model):
        test = test[np.isin(y[test], model.classes_)]
        if len(test) == 0:
            raise ValueError("No held-out row is of a class among the training rows. Choose a splitter that puts each class on both sides.")
    weight = None if params.get("sample_weight") is None else np.asarray(params["sample_weight"])[test]
    held_out = _safe_indexing(X, test)
    if is_classifier(model):
        return -log_loss(y[test], model.predict_proba(held_out), labels=model.classes_, sample_weight=weight)
    return float(np.average(log_density(y[test], *model.predict_draws(held_out)), weights=weight))
