"""Hyper-parameters of the representation from validation labels, with one pass over the data for each kernel."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from numbers import Integral
from typing import Any, NamedTuple

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.exceptions import FitFailedWarning
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ParameterGrid
from sklearn.utils import Tags, _safe_indexing, check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_method_params, check_is_fitted

from .calibration import log_density
from .downstream import MarginalizedClassifier
from .downstream.labels import ClassLabels, find_class_labels, find_targets
from .downstream.marginal import as_indexable, seeded
from .estimator import GPSSL
from .inference import Variational
from .kernels import NeighborRBF
from .parameters import REFITTABLE, kernel_of, method_of
from .progress import Progress
from .validation import check_number, unchanged_on_failure

Array = NDArray[np.float64]
Split = tuple[NDArray[np.intp], NDArray[np.intp]]

PAPER_FOLDS = 5
"""The paper holds out 20 % of the labelled rows, which is the first of five folds."""

ROUGH_DRAWS = 16
"""Quasi-random draws that are enough to tell good settings from bad ones."""

PRECISE_SHARE, LEAST_PRECISE = 0.1, 5
"""Of many candidates, the best tenth and at least five are scored as precisely as they would be used."""

NEIGHBORHOODS = (5, 10, 20)
TEMPERATURES: tuple[str | float, ...] = ("auto", 0.01, 0.1, 1.0)


class Candidate(NamedTuple):
    """One setting of the representation's parameters."""

    kernel_params: dict[str, Any]
    """Those that need a pass over the data."""
    other_params: dict[str, Any]
    """Those that inference alone depends on."""


class RepresentationSearch(MetaEstimatorMixin, BaseEstimator):
    """Chooses the parameters of the representation by the likelihood of held-out labels.

    As in the paper: the representation learns from all rows, without labels; the head is trained on 80 % of the labelled rows and scored
    on the other 20 %, by the mean log-likelihood of their labels. With `cv=k`, each of k folds is held out in turn. The moments of the rows
    are computed once for each kernel; the candidates that differ in temperature, number of components and weights share them. Many
    candidates are first compared after a few steps of inference (`Variational(precise=False)`), and the best tenth then in full.

    Parameters
    ----------
    estimator
        A `MarginalizedClassifier` or `MarginalizedRegressor` over `GPSSL`; by default the former.
    grid
        What to try: lists of values by name of a parameter of the representation, or a list of such dictionaries, as for scikit-learn's
        `ParameterGrid`. For example `{"kernel": [NeighborRBF(5), NeighborRBF(20)], "temperature": ["auto", 1.0], "n_components": [2, 5]}`.
        By default neighborhoods of 5, 10 and 20 (unless the representation has a kernel of another kind) and four temperatures.
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
        were scored in full; they rank first. "warning" has what a candidate had to say, "error" why it failed.
    n_splits_
        Number of splits.
    classes_
        For classifiers.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpssl import MarginalizedClassifier
    >>> from gpssl.selection import RepresentationSearch
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> few = np.where(np.arange(len(y)) < 60, y, -1)
    >>> search = RepresentationSearch(MarginalizedClassifier(), {"temperature": ["auto", 1.0], "n_components": [2, 5]}, random_state=0)
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
        with unchanged_on_failure(self):
            estimator = self._seeded_estimator()
            candidates = list(self._candidates(estimator.representation))
            labels = (find_class_labels if is_classifier(estimator) else find_targets)(y)
            X = as_indexable(X, y)
            splits = self._splits(X, labels, stratify=is_classifier(estimator))
            trials = _Trials(estimator, candidates, X, labels, splits, params)
            trials.run(verbose=bool(self.verbose))
            self.n_splits_, self.cv_results_, self.best_index_ = len(splits), trials.table(), trials.best()
            self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
            self.best_params_ = self.cv_results_["params"][self.best_index_]
            self.best_estimator_ = _with_representation(estimator, self.best_params_).fit(X, y, **params)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """What the best estimator predicts. [n]"""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @available_if(lambda self: is_classifier(self._estimator()))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """The best estimator's probabilities. [n, K]"""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The best estimator's score: accuracy or R², at the rows with a label."""
        check_is_fitted(self)
        return self.best_estimator_.score(X, y, sample_weight)

    @property
    def classes_(self) -> NDArray[Any]:
        """The class labels."""
        return self.best_estimator_.classes_

    @property
    def n_features_in_(self) -> int:
        """As everywhere in scikit-learn."""
        return self.best_estimator_.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """As everywhere in scikit-learn."""
        return self.best_estimator_.feature_names_in_

    def _estimator(self) -> Any:
        return MarginalizedClassifier() if self.estimator is None else self.estimator

    def _seeded_estimator(self) -> Any:
        """A clone with the representation spelled out and a seed: candidates should differ by their parameters alone."""
        estimator = clone(self._estimator())
        representation = GPSSL() if estimator.representation is None else estimator.representation
        if isinstance(representation, FrozenEstimator) or not hasattr(representation, "refit"):
            raise TypeError(
                f"Candidates share the moments of a GPSSL; {type(representation).__name__} has none. Use GridSearchCV for other "
                "representations, and refit for one that is already fitted."
            )
        if estimator.random_state is None:
            estimator.set_params(random_state=check_random_state(self.random_state).randint(2**31 - 1))
        return estimator.set_params(representation=seeded(clone(representation), check_random_state(estimator.random_state)))

    def _candidates(self, representation: GPSSL) -> Iterator[Candidate]:
        grid = default_grid(representation) if self.grid is None else self.grid
        known = representation.get_params(deep=False)
        for params in ParameterGrid(grid):
            unknown = sorted(set(params) - set(known))
            if unknown:
                raise ValueError(
                    f"{type(representation).__name__} has no parameter {', '.join(unknown)}, but {', '.join(known)}. A neighborhood is a "
                    'parameter of the kernel: {"kernel": [NeighborRBF(5), NeighborRBF(10)]}.'
                )
            yield Candidate(
                {name: value for name, value in params.items() if name not in REFITTABLE},
                {name: value for name, value in params.items() if name in REFITTABLE},
            )

    def _splits(self, X: Any, labels: ClassLabels, *, stratify: bool) -> list[Split]:
        """Places among the labelled rows: to train the head, and to score it."""
        if hasattr(self.cv, "split"):
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
                f"n_samples={len(folds)} labelled rows are too few to hold some out: some class needs two. Label more rows, or choose "
                "the parameters by hand."
            )
        return splits

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._estimator())
        tags.estimator_type, tags.input_tags, tags.target_tags = inner.estimator_type, inner.input_tags, inner.target_tags
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        return tags


def default_grid(representation: GPSSL) -> dict[str, list[Any]]:
    """The paper's neighborhoods for tables, if lengthscales come from neighborhoods, and temperatures from 1/N to 1."""
    kernel = kernel_of(representation.kernel)
    kernels = [clone(kernel).set_params(neighborhood=size) for size in NEIGHBORHOODS] if isinstance(kernel, NeighborRBF) else [kernel]
    return {"kernel": kernels, "temperature": list(TEMPERATURES)}


def deal_folds(classes: NDArray[Any], n_folds: int, random_state: np.random.RandomState) -> NDArray[np.intp]:
    """The fold of each row; −1 for the only row of a class, which is never held out. [n]

    The rows of each class are shuffled and dealt in turn, on from where the class before ended.
    """
    folds = np.full(len(classes), -1, dtype=np.intp)
    next_fold = 0
    for label in np.unique(classes):
        members = np.flatnonzero(classes == label)
        if len(members) > 1:
            folds[random_state.permutation(members)] = (next_fold + np.arange(len(members))) % n_folds
            next_fold += len(members)
    return folds


class _Trials:
    """Scores of candidates, on the same splits, from moments that those with the same kernel share."""

    def __init__(
        self,
        estimator: Any,
        candidates: Sequence[Candidate],
        X: Any,
        labels: ClassLabels,
        splits: Sequence[Split],
        params: Mapping[str, Any],
    ) -> None:
        self.estimator = estimator
        self.candidates = candidates
        self.splits = splits
        self.X, self.params = X, params
        self.labelled, self.labels = _safe_indexing(X, labels.rows), labels.values
        self.labelled_params = _check_method_params(X, dict(params), indices=labels.rows)
        self.bases: dict[str, GPSSL] = {}
        self.scores = np.full((len(candidates), len(splits)), np.nan)
        self.precise = np.zeros(len(candidates), dtype=bool)
        self.warnings = [""] * len(candidates)
        self.failures: dict[int, Exception] = {}

    def run(self, *, verbose: bool) -> None:
        """Score all candidates, roughly if they are many, and the best of them precisely."""
        n_precise = max(LEAST_PRECISE, ceil(PRECISE_SHARE * len(self.candidates)))
        if len(self.candidates) > n_precise:
            self._score(range(len(self.candidates)), precise=False, verbose=verbose)
            order = np.argsort(-self.scores.mean(axis=1), kind="stable")  # failures, which are NaN, come last
            self._score([int(place) for place in order[:n_precise] if place not in self.failures], precise=True, verbose=verbose)
        else:
            self._score(range(len(self.candidates)), precise=True, verbose=verbose)
        self._tell_failures()

    def _score(self, places: Sequence[int], *, precise: bool, verbose: bool) -> None:
        task = "selection" if precise else "selection, roughly"
        progress = Progress(task, len(places), enabled=verbose, unit="candidates")
        for place in places:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    self.scores[place] = self._score_one(self.candidates[place], precise=precise)
                except (ValueError, TypeError, ArithmeticError, np.linalg.LinAlgError) as failure:
                    self.failures[place] = failure
            self.warnings[place] = "; ".join(dict.fromkeys(str(warning.message) for warning in caught))
            self.precise[place] = precise
            progress.advance(1)
        progress.finish()

    def _score_one(self, candidate: Candidate, *, precise: bool) -> list[float]:
        params = dict(candidate.other_params)
        base = self._base(candidate.kernel_params)
        method = method_of(params.get("inference", base.inference))
        if isinstance(method, Variational) and not precise:
            params["inference"] = clone(method).set_params(precise=False, n_draws=min(ROUGH_DRAWS, method.n_draws))
        model = clone(self.estimator).set_params(representation=FrozenEstimator(base.refit(**params)))
        return [_score(model, self.labelled, self.labels, split, self.labelled_params) for split in self.splits]

    def _base(self, kernel_params: Mapping[str, Any]) -> GPSSL:
        """Kernel, inducing points and moments, without inference: `partial_fit` leaves that to whoever asks."""
        key = joblib.hash(dict(kernel_params))
        if key not in self.bases:
            weights = {name: value for name, value in self.params.items() if name == "sample_weight"}
            self.bases[key] = clone(self.estimator.representation).set_params(**kernel_params).partial_fit(self.X, **weights)
        return self.bases[key]

    def _tell_failures(self) -> None:
        """What made all candidates fail is the user's to see; what made some fail is said in a warning."""
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
        """The place of the best among those that were scored precisely."""
        return int(np.nanargmax(np.where(self.precise, self.scores.mean(axis=1), np.nan)))

    def table(self) -> dict[str, Any]:
        """Columns named as in `GridSearchCV`; those that were scored precisely rank before the others."""
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


def _with_representation(estimator: Any, params: Mapping[str, Any]) -> Any:
    return clone(estimator).set_params(representation=clone(estimator.representation).set_params(**params))


def _score(model: Any, X: Any, y: NDArray[Any], split: Split, params: Mapping[str, Any]) -> float:
    """Mean log-likelihood of the held-out labels, given a head trained on the others.

    Rows of a class that is not among the others do not count: no candidate could know it.
    """
    train, test = split
    model.fit(_safe_indexing(X, train), y[train], **_check_method_params(X, dict(params), indices=train))
    if not is_classifier(model):
        return float(log_density(y[test], *model.predict_draws(_safe_indexing(X, test))).mean())
    test = test[np.isin(y[test], model.classes_)]
    proba = model.predict_proba(_safe_indexing(X, test))
    likelihood = proba[np.arange(len(test)), np.searchsorted(model.classes_, y[test])]
    return float(np.log(np.maximum(likelihood, np.finfo(float).eps)).mean())
