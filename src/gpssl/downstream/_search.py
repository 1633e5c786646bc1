"""Choose the representation's hyper-parameters by validation labels, with one pass over the data for each kernel."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil
from numbers import Integral
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.exceptions import FitFailedWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ParameterGrid
from sklearn.utils import Tags, _safe_indexing, check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_method_params, check_is_fitted

from .._runtime.progress import CallbackSupport, Progress, fitting
from .._validation import check_number, unchanged_on_failure
from ..core._checked_rows import kernel_or_default
from ..data._labels import KnownLabels
from ..estimator import GPSSL, REFITTABLE
from ..evaluation._calibration import component_weights, log_density, log_loss
from ..inference import inference_method
from ..inference._variational import Variational
from ..kernels.vectors import NeighborRBF
from ._distributions import ClassDistribution, NumberDistribution, Uncertainty
from ._marginal import Marginalized, SharedParams, as_indexable, seeded
from ._predictors import MarginalizedClassifier

Array = NDArray[np.float64]
Candidate = dict[str, Any]
"""Parameters of the representation that are tried together."""
Split = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Places among the labeled rows: of those that train the head, and of those that are held out."""

PAPER_FOLDS = 5
"""The paper holds out 20 % of the labeled rows, which is the first of five folds."""

NEIGHBORHOODS = (5, 10, 20)
TEMPERATURES: tuple[str | float, ...] = ("auto", 0.01, 0.1)
WARM = 1.0
"""The temperature that only draws are of use at: the posterior mean is zero there, as a rule."""

ROUGH_DRAWS = 16
"""Quasi-random draws that are enough to tell good settings from bad ones."""

PRECISE_SHARE, LEAST_PRECISE = 0.1, 5
"""Of many candidates, the best tenth and at least five are scored as precisely as they would be used."""


class RepresentationSearch(CallbackSupport, MetaEstimatorMixin, BaseEstimator):
    """A search for the parameters of the representation that give held-out labels the highest likelihood.

    As in the paper: the representation learns from all rows, without labels; the head is trained on 80 % of the labeled rows and scored
    on the other 20 %, by the mean log-likelihood of their labels. With `cv=k`, each of k folds is held out in turn. The moments of the rows
    are computed once for each kernel; the candidates that differ in temperature, number of components and weights share them. Many
    candidates are first compared after a few steps of inference (`Variational(precise=False)`), and the best tenth then in full.

    Parameters
    ----------
    estimator
        A `MarginalizedClassifier` or `MarginalizedRegressor` over `GPSSL`, which stands in where it has no representation; by default
        `MarginalizedClassifier(GPSSL())`. Draws are weighed as it says, in the search as in the end; the paper has `weighting="equal"`.
    grid
        What to try: lists of values by name of a parameter of the representation, or a list of such dictionaries, as for scikit-learn's
        `ParameterGrid`. For example `{"kernel": [NeighborRBF(5), NeighborRBF(20)], "temperature": ["auto", 1.0], "n_components": [2, 5]}`.
        By default neighborhoods of 5, 10 and 20 (unless the representation has a kernel of another kind) and temperatures of 1/N, 0.01,
        0.1 and, unless `n_draws=None`, 1.
    cv
        None for the paper's 80 % and 20 %, a number of folds, or one of scikit-learn's splitters. Folds are dealt within classes, and the
        only row of a class is never held out.
    random_state
        Seed for the split, and for the estimator where it has none of its own.
    verbose
        Whether to show progress.

    Attributes
    ----------
    best_estimator_
        The estimator with the best parameters, fitted to all rows and all labels.
    best_params_, best_score_, best_index_
        The parameters, their mean log-likelihood, and their place in `cv_results_`.
    cv_results_
        Columns of the table of all candidates, as in `GridSearchCV`; `pandas.DataFrame(search.cv_results_)` shows it. "precise" says which
        were scored in full; they rank first. "warning" has the warnings of a candidate, "error" why it failed.
    n_splits_
        Number of splits.
    classes_
        The class labels, for classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpssl import GPSSL, MarginalizedClassifier
    >>> from gpssl.downstream import RepresentationSearch
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> few = np.where(np.arange(len(y)) < 60, y, -1)
    >>> grid = {"temperature": ["auto", 1.0], "n_components": [2, 5]}
    >>> search = RepresentationSearch(MarginalizedClassifier(GPSSL()), grid, random_state=0)
    >>> len(search.fit(X, few).cv_results_["params"])
    4
    """

    def __init__(
        self, estimator: Any = None, grid: Any = None, *, cv: Any = None, random_state: Any = None, verbose: bool | int = False
    ) -> None:
        self.estimator = estimator
        self.grid = grid
        self.cv = cv
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, **params: Any) -> RepresentationSearch:
        """Try all candidates, and fit the best to all rows; `params` go to the estimator's `fit`."""
        with fitting(self, 2, X, y, params.get("sample_weight")) as task, unchanged_on_failure(self):
            estimator = self._seeded_estimator()
            candidates = list(self._candidates(estimator))
            X = as_indexable(X, y)
            others = {name: value for name, value in params.items() if name != "sample_weight"}
            shared = estimator._share_params(X, estimator._find_labels(y), estimator._head(), params.get("sample_weight"), others)
            splits = self._splits(X, shared.labels, stratify=is_classifier(estimator))
            trials = Trials(estimator, candidates, X, splits, shared)
            with task.steps("candidates", "candidate", trials.n_trials) as steps:
                trials.run(verbose=bool(self.verbose), listener=steps.listener)
            self.n_splits_, self.cv_results_, self.best_index_ = len(splits), trials.table(), trials.best()
            self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
            self.best_params_ = self.cv_results_["params"][self.best_index_]
            best = clone(estimator).set_params(representation=clone(estimator.representation).set_params(**self.best_params_))
            with task.fit_of(best, "best estimator"):
                self.best_estimator_ = best.fit(X, y, **params)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the best estimator's predictions. [n]"""
        return self._fitted().predict(X)

    @available_if(lambda self: is_classifier(self._estimator()))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return the best estimator's probabilities. [n, K]"""
        return self._fitted().predict_proba(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the best estimator's score, accuracy or R², at the rows with a label."""
        return self._fitted().score(X, y, sample_weight)

    @available_if(lambda self: is_classifier(self._estimator()))  # type: ignore[untyped-decorator]
    def predict_proba_std(self, X: Any) -> Array:
        """Return the standard deviation of the best estimator's probabilities. [n, K]"""
        return self._fitted().predict_proba_std(X)

    @available_if(lambda self: is_regressor(self._estimator()))  # type: ignore[untyped-decorator]
    def predict_std(self, X: Any) -> Array:
        """Return the best estimator's standard deviation of the target. [n]"""
        return self._fitted().predict_std(X)

    @available_if(lambda self: is_regressor(self._estimator()))  # type: ignore[untyped-decorator]
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Return the best estimator's intervals. [n, 2]"""
        return self._fitted().predict_interval(X, coverage)

    def predict_distribution(self, X: Any) -> ClassDistribution | NumberDistribution:
        """Return the best estimator's distribution at each row."""
        return self._fitted().predict_distribution(X)

    def predict_uncertainty(self, X: Any) -> Uncertainty:
        """Return the best estimator's uncertainty and its two parts. [n] each"""
        return self._fitted().predict_uncertainty(X)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return a router that sends all metadata to the estimator."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=type(self).__name__).add(estimator=self._estimator(), method_mapping=mapping)

    @property
    def classes_(self) -> NDArray[Any]:
        """The class labels."""
        return self.best_estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        """The number of columns of the rows in `fit`."""
        return self.best_estimator_.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the columns in `fit`, where they have names."""
        return self.best_estimator_.feature_names_in_

    def _fitted(self) -> Any:
        check_is_fitted(self)
        return self.best_estimator_

    def _estimator(self) -> Any:
        """Return the estimator; `GPSSL` stands in where it has no representation, since there is nothing to search in a pool."""
        estimator = MarginalizedClassifier() if self.estimator is None else self.estimator
        if isinstance(estimator, Marginalized) and estimator.representation is None:
            return clone(estimator).set_params(representation=GPSSL())
        return estimator

    def _seeded_estimator(self) -> Any:
        """Return a clone with an explicit representation and a seed: candidates should differ by their parameters alone."""
        if not isinstance(self._estimator(), Marginalized):
            raise TypeError(
                f"The estimator must be a MarginalizedClassifier or MarginalizedRegressor, got {type(self._estimator()).__name__}. Pass it "
                "as their head, or use GridSearchCV."
            )
        estimator = clone(self._estimator())
        representation = estimator.representation
        if not isinstance(representation, GPSSL):
            raise TypeError(
                f"Candidates share the moments of a GPSSL; {type(representation).__name__} has none. Use GridSearchCV for other "
                "representations, and refit for one that is already fitted."
            )
        if estimator.random_state is None:
            estimator.set_params(random_state=check_random_state(self.random_state).randint(2**31 - 1))
        return estimator.set_params(representation=seeded(clone(representation), estimator.random_state))

    def _candidates(self, estimator: Any) -> Iterator[Candidate]:
        representation = estimator.representation
        grid = default_grid(representation, of_mean=estimator.n_draws is None) if self.grid is None else self.grid
        known = representation.get_params(deep=False)
        for params in ParameterGrid(grid):
            unknown = sorted(set(params) - set(known))
            if unknown:
                raise ValueError(
                    f"{type(representation).__name__} has no parameter {', '.join(unknown)}, but {', '.join(known)}. Names have "
                    'no prefix here, and a neighborhood is a parameter of the kernel: {"kernel": [NeighborRBF(5), NeighborRBF(10)]}.'
                )
            yield dict(sorted(params.items(), key=lambda item: item[0] in REFITTABLE))  # what needs a pass over the data comes first

    def _splits(self, X: Any, labels: KnownLabels, *, stratify: bool) -> list[Split]:
        """Return the paper's split, folds within classes, or the splits of the user's splitter."""
        if hasattr(self.cv, "split") and not isinstance(self.cv, str):
            return list(self.cv.split(_safe_indexing(X, labels.rows), labels.values))
        if self.cv is not None:
            check_number("cv", self.cv, Integral, at_least=2, otherwise="folds, a splitter, or None for a single split")
        n_folds = PAPER_FOLDS if self.cv is None else int(self.cv)
        folds = deal_folds(labels.values if stratify else np.zeros(len(labels.values)), n_folds, check_random_state(self.random_state))
        places = np.arange(len(folds))
        splits = [(places[folds != fold], places[folds == fold]) for fold in range(1 if self.cv is None else n_folds)]
        splits = [split for split in splits if len(split[1]) > 0]
        if not splits:
            raise ValueError(
                f"n_samples={len(folds)} labeled rows are too few to hold some out: some class needs two. Label more rows, or choose "
                "the parameters by hand."
            )
        return splits

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._estimator())
        tags.estimator_type, tags.input_tags, tags.target_tags = inner.estimator_type, inner.input_tags, inner.target_tags
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        return tags


def default_grid(representation: GPSSL, *, of_mean: bool = False) -> dict[str, list[Any]]:
    """Return the paper's neighborhoods for tables, if lengthscales come from neighborhoods, and temperatures from 1/N to 1.

    For a head on the posterior mean the highest is 0.1.
    """
    kernel = kernel_or_default(representation.kernel)
    kernels = [clone(kernel).set_params(neighborhood=size) for size in NEIGHBORHOODS] if isinstance(kernel, NeighborRBF) else [kernel]
    return {"kernel": kernels, "temperature": [*TEMPERATURES, *([] if of_mean else [WARM])]}


def deal_folds(classes: NDArray[Any], n_folds: int, random_state: np.random.RandomState) -> NDArray[np.intp]:
    """Return the fold of each row; −1 for the only row of a class, which is never held out. [n]

    The rows of each class are shuffled and dealt to the folds in turn, starting after the fold of the last row before.
    """
    folds = np.full(len(classes), -1, dtype=np.intp)
    next_fold = 0
    for label in np.unique(classes):
        members = np.flatnonzero(classes == label)
        if len(members) > 1:
            folds[random_state.permutation(members)] = (next_fold + np.arange(len(members))) % n_folds
            next_fold += len(members)
    return folds


class Trials:
    """Scores of candidates, on the same splits, from moments that those with the same kernel share."""

    def __init__(self, estimator: Any, candidates: Sequence[Candidate], X: Any, splits: Sequence[Split], shared: SharedParams) -> None:
        self.estimator = estimator
        self.candidates = candidates
        self.splits = splits
        self.X, self.shared = X, shared
        self.labeled = _safe_indexing(X, shared.labels.rows)
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
        for place in progress.each(places):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    self.scores[place] = self._score_one(self.candidates[place], precise=precise)
                    self.precise[place] = precise
                except (ValueError, TypeError, ArithmeticError, np.linalg.LinAlgError) as failure:
                    self.failures[place] = failure
                    self.scores[place] = np.nan
            self.warnings[place] = "; ".join(dict.fromkeys(str(warning.message) for warning in caught))

    def _score_one(self, candidate: Candidate, *, precise: bool) -> list[float]:
        base = self._base({name: value for name, value in candidate.items() if name not in REFITTABLE})
        params = {name: value for name, value in candidate.items() if name in REFITTABLE}
        method = inference_method(params.get("inference", base.inference))
        if isinstance(method, Variational) and not precise:
            params["inference"] = clone(method).set_params(precise=False, n_draws=min(ROUGH_DRAWS, method.n_draws))
        model = clone(self.estimator).set_params(representation=FrozenEstimator(base.refit(**params)))
        return [_log_likelihood(model, self.labeled, self.shared.labels.values, split, self.shared.head) for split in self.splits]

    def _base(self, params: Candidate) -> GPSSL:
        """Return kernel, inducing points and moments, without inference, which `partial_fit` leaves for later."""
        key = joblib.hash(params)
        if key not in self.bases:
            representation = clone(self.estimator.representation).set_params(**params)
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
        columns: dict[str, Any] = {}
        for name in dict.fromkeys(name for candidate in self.candidates for name in candidate):
            columns[f"param_{name}"] = np.empty(len(self.candidates), dtype=object)
            columns[f"param_{name}"][:] = [candidate.get(name) for candidate in self.candidates]
        columns["params"] = self.candidates
        columns.update({f"split{i}_test_score": column for i, column in enumerate(self.scores.T)})
        mean = self.scores.mean(axis=1)
        columns["mean_test_score"], columns["std_test_score"], columns["precise"] = mean, self.scores.std(axis=1), self.precise
        order = np.lexsort([-np.where(np.isnan(mean), -np.inf, mean), ~self.precise | np.isnan(mean)])
        columns["rank_test_score"] = np.empty(len(mean), dtype=int)
        columns["rank_test_score"][order] = np.arange(1, len(mean) + 1)
        columns["warning"] = self.warnings
        columns["error"] = [f"{type(f).__name__}: {f}" if (f := self.failures.get(place)) else "" for place in range(len(mean))]
        return columns


def _log_likelihood(model: Any, X: Any, y: NDArray[Any], split: Split, params: Mapping[str, Any]) -> float:
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
    return float(np.average(log_density(y[test], *model.predict_draws(held_out), weights=component_weights(model)), weights=weight))
