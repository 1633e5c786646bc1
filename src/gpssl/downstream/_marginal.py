"""What classifier and regressor share: a representation or a pool of them, draws of functions, and weights for the draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import Tags, _safe_indexing, check_random_state, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import (
    _check_method_params,
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    has_fit_parameter,
    indexable,
)

from .._runtime import N_DRAWS
from .._runtime.progress import CallbackSupport, Task, fitting
from .._runtime.threads import one_blas_thread
from .._validation import check_number, check_weights, unchanged_on_failure
from ..core._checked_rows import check_rows_in_memory, copy_columns, rows_in_memory, warn_outside_training
from ..core._draws import FunctionDraws
from ..data._arrays import row_blocks
from ..data._frames import refuse_arrow
from ..data._labels import KnownLabels
from ..data._rows import is_lazy
from ..estimator import GPSSL
from ._gp_head import SoftmaxGP
from ._heads import HeadForDraws
from ._known_features import KnownFeatures, KnownPart
from ._pool import RepresentationPool
from ._pool_parts import FittedPart
from ._weighting import NEGLIGIBLE_SHARE, draw_weights, effective_number, evidence_of, member_shares

Array = NDArray[np.float64]

PREDICTION_ROWS = 1024
"""Rows whose features are held for all draws at a time."""
POWER = 0.5
"""β, the power of the evidence. On 22 tables 1 was best with 10 labels and ½ with 100; docs/results.md has the table."""
MOST_LABELS, MOST_LABELS_OF_CLASSES = 500, 150
"""Labels up to which heads see all features of a kernel: numbers or two classes, and more classes. There, work on matrices of labels by
labels is quick; beyond, heads see the leading features only, and lose little."""
MOST_FEATURES = 64
MANY_CLASSES, MOST_WEIGHTS = 10, 400
"""With more classes than this, heads see so few leading features that their weights, one for each feature and class, are about so many: the
work grows with their cube. They see all features of so many fewer labels as the work allows."""


class Marginalized(CallbackSupport, MetaEstimatorMixin, BaseEstimator, ABC):
    """An estimator that fits a representation, draws its functions, trains a head on each, and evaluates them."""

    representation_: Any
    functions_: Any
    heads_: Any
    _known: KnownPart | None = None
    """What other models know of the rows, while one of several is fitted."""

    def __init__(
        self,
        representation: Any = None,
        head: Any = None,
        *,
        n_draws: int | None = N_DRAWS,
        weighting: Literal["evidence", "equal"] = "evidence",
        power: float = POWER,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.representation = representation
        self.head = head
        self.n_draws = n_draws
        self.weighting = weighting
        self.power = power
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def set_params(self, **params: Any) -> Self:
        """Set parameters, nested ones too, such as `representation__n_components` and `head__max_iter`.

        Where no representation is given, parameters of `GPSSL` make it one, and those of `RepresentationPool` the pool; where no head is
        given, its parameters are those of the default one. So a search over them works with all defaults.
        """
        nested = {name.partition("__")[2].split("__")[0] for name in params if name.startswith("representation__")}
        if nested and params.get("representation", self.representation) is None:
            of_pool = nested <= RepresentationPool().get_params(deep=False).keys() - GPSSL().get_params(deep=False).keys()
            params = {**params, "representation": RepresentationPool() if of_pool else GPSSL()}
        if any(name.startswith("head__") for name in params) and params.get("head", self.head) is None:
            params = {**params, "head": self._head()}
        return super().set_params(**params)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:
        """Fit the representation to all rows and the heads to the labeled ones.

        Sample weights reach the representation and the heads, other metadata the heads; with scikit-learn's metadata routing, all go to who
        requested them.
        """
        with fitting(self, 2, X, y, sample_weight) as task, unchanged_on_failure(self), one_blas_thread():
            self._check_parameters()
            labels = self._find_labels(y)
            X = as_indexable(X, y)
            shared = self._share_params(X, labels, self._head(), sample_weight, params)
            self._check_labels(shared.labels.values)
            Z = self._fit_representation(X, shared.labels.rows, shared.representation, task)
            with task.subtask("heads"):
                self._fit_heads(Z, shared)
            self.n_labeled_ = len(shared.labels.rows)
        return self

    def fit_parts(self, X: Any, y: Any, parts: Iterable[NDArray[np.intp]]) -> Iterator[Self]:
        """Yield a clone that is fitted to each of some parts of the rows, such as the training rows of folds.

        Each is what `clone(self).fit(X[part], y[part])` gives, to rounding. Where the representation is a frozen pool, which all parts
        share, its members are evaluated once at all rows, and heads are found from those of the part before.
        """
        pool = inner(self.representation) if isinstance(self.representation, FrozenEstimator) else None
        X = as_indexable(X, y)
        known = KnownFeatures(pool, X) if isinstance(pool, RepresentationPool) else None
        for part in parts:
            model = clone(self)
            if known is not None:
                model._known = known.at(part)
            model.fit(_safe_indexing(X, part), _safe_indexing(y, part))
            vars(model).pop("_known", None)
            yield model

    def _fit_heads(self, Z: list[Array], shared: SharedParams) -> None:
        """Train the heads of all draws of all members, and weigh the draws. Of a pool, members that hardly count are left out then."""
        y, heads, evidence = shared.labels.values, [], []
        weight = np.asarray(shared.head.get("sample_weight", np.ones(len(y))), dtype=np.float64)
        for member, values in enumerate(Z):
            # All draws' heads start alike.
            head = seeded(clone(self._head_for(values, len(y))), self.random_state)
            fit_draws = head.fit_draws if isinstance(head, HeadForDraws) else partial(self._fit_clones, head)
            if self._known is not None and isinstance(head, SoftmaxGP):
                heads.append(self._known.fit_head(member, head, values, y, shared.labels.rows, **shared.head))
            else:
                heads.append(fit_draws(values, y, **shared.head))
            if self._weighs:

                def refit(rows: NDArray[np.intp], values: Array = values, fit_draws: Any = fit_draws) -> Any:
                    return fit_draws(values[:, rows], y[rows], **_check_method_params(y, shared.head, indices=rows))

                evidence.append(evidence_of(heads[-1], refit, values, y, weight, self._log_likelihood))
            else:
                evidence.append(np.zeros(len(values)))
        names, prior = self._names_and_prior()
        weights = draw_weights(evidence, prior, float(self.power) if self._weighs else 0.0)
        self.members_ = member_shares(names, weights, evidence if self._weighs else [np.full(len(own), np.nan) for own in weights])
        self._keep(heads, weights)

    def _keep(self, heads: list[Any], weights: list[Array]) -> None:
        """Keep the heads; of a pool, those whose member counts."""
        if not self._is_pool:
            (self.heads_,) = heads
            self.draw_weights_ = weights[0]
        else:
            shares = np.array([own.sum() for own in weights])
            counts = shares >= min(NEGLIGIBLE_SHARE, shares.max())
            self.heads_ = [head for head, counted in zip(heads, counts, strict=True) if counted]
            self.draw_weights_ = np.concatenate([own for own, counted in zip(weights, counts, strict=True) if counted])
            self.draw_weights_ /= self.draw_weights_.sum()
            self.functions_ = _only(self.functions_, counts)
        self.n_effective_draws_ = effective_number(self.draw_weights_)

    @property
    def _weighs(self) -> bool:
        """Whether evidence counts."""
        return self.weighting == "evidence" and self.power > 0

    @property
    def component_weights(self) -> Array | None:
        """The weights of the draws, as functions of `gpssl.evaluation` take them; None where all are equal. [S]"""
        weights = getattr(self, "draw_weights_", None)  # models of older files have none
        return None if weights is None or (weights == weights[0]).all() else weights

    @property
    def _is_pool(self) -> bool:
        return isinstance(inner(self.representation_), RepresentationPool)

    def _names_and_prior(self) -> tuple[list[str], list[float]]:
        if not self._is_pool:
            return [type(inner(self.representation_)).__name__], [1.0]
        parts = self.functions_
        return [name for part in parts for name in part.names], [float(weight) for part in parts for weight in part.prior]

    # What classifier and regressor differ in

    @abstractmethod
    def _find_labels(self, y: Any) -> KnownLabels:
        """Return the rows with a label, and their labels."""

    @abstractmethod
    def _check_labels(self, values: NDArray[Any]) -> None:
        """Raise ValueError where the labels of positive weight are too few."""

    @abstractmethod
    def _head(self) -> Any:
        """Return the head or its default; raise TypeError for an estimator that cannot be one."""

    @abstractmethod
    def _head_for(self, Z: Array, n_labeled: int) -> Any:
        """Return the head, or the default one for features of this shape [S, n, J]."""

    def _sees_all_features(self, n_labeled: int) -> bool:
        """Return whether heads on the kernels of a pool see all their features."""
        return n_labeled <= MOST_LABELS

    def _most_features(self) -> int:
        """Return how many leading features of a kernel heads see that do not see all."""
        return MOST_FEATURES

    @abstractmethod
    def _log_likelihood(self, heads: Any, Z: Array, y: NDArray[Any]) -> Array:
        """Return the log likelihood of each label under the head of each draw. [S, n]"""

    @abstractmethod
    def _fit_clones(self, head: Any, Z: Array, y: NDArray[Any], **params: Any) -> Any:
        """Fit a clone of the head for each draw."""

    # Steps of fitting

    def _check_parameters(self) -> None:
        if self.n_draws is not None:
            check_number("n_draws", self.n_draws, Integral, at_least=1, otherwise="or None for the mean representation")
        if self.weighting not in ("evidence", "equal"):
            raise ValueError(f'weighting must be "evidence" or "equal", got {self.weighting!r}.')
        check_number("power", self.power, Real, at_least=0)
        needed = "transform" if self.n_draws is None else "draw_functions"
        representation = self._representation()
        if not isinstance(inner(representation), RepresentationPool) and not hasattr(representation, needed):
            raise TypeError(
                f"The representation {type(self.representation).__name__} has no {needed}. Pass GPSSL() or another estimator that has it; "
                "steps before it, such as a scaler, go into a pipeline around this estimator."
            )

    def _representation(self) -> Any:
        return RepresentationPool() if self.representation is None else self.representation

    def _fit_representation(self, X: Any, labeled: NDArray[np.intp], params: Mapping[str, Any], task: Task) -> list[Array]:
        """Fit the representation to all rows, and evaluate each member at the labeled ones. [S, n labeled, J] each"""
        random_state = None if self.random_state is None else check_random_state(self.random_state)
        representation = seeded(clone(self._representation()), random_state)
        with task.fit_of(representation, "representation"):
            self.representation_ = representation.fit(X, None, **params)
        copy_columns(self.representation_, self)
        for name in ("functions_", "card_"):
            self.__dict__.pop(name, None)  # of an earlier fit, or of a file
        if self._is_pool:
            return self._draw_from_pool(X, labeled, random_state)
        if self.n_draws is None:
            return [self._represent(_safe_indexing(X, labeled))]
        seed = None if random_state is None else random_state.randint(2**31 - 1)
        self.functions_ = self.representation_.draw_functions(int(self.n_draws), random_state=seed)
        # At the labeled rows jointly: each function trains its head there, and new rows are drawn given these.
        Z = self.functions_(_safe_indexing(X, labeled))
        if isinstance(self.functions_, FunctionDraws):
            self.functions_.settle()
        return [Z]

    def _draw_from_pool(self, X: Any, labeled: NDArray[np.intp], random_state: Any) -> list[Array]:
        """Draw the functions of all members, and evaluate them at the labeled rows."""
        pool = inner(self.representation_)
        seed = pool.seed() if random_state is None else random_state.randint(2**31 - 1)
        drawn = pool.draw(None if self.n_draws is None else int(self.n_draws), seed)
        limit = None if self._sees_all_features(len(labeled)) else self._most_features()
        self.functions_ = drawn if limit is None else [part.limited(limit) for part in drawn]
        if self._known is not None:
            return self._known.settle(self.functions_, limit, labeled)
        rows = pool.check(_safe_indexing(X, labeled))
        return [Z for part in self.functions_ for Z in part.settle(rows)]

    def _share_params(self, X: Any, labels: KnownLabels, head: Any, sample_weight: Any, params: Mapping[str, Any]) -> SharedParams:
        """Share weights and other metadata between the representation (all rows) and the head (labeled rows of positive weight)."""
        weights = {} if sample_weight is None else {"sample_weight": check_weights(sample_weight, _num_samples(X))}
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **weights, **params)
            for_representation, for_head = dict(routed.representation.fit), dict(routed.head.fit)
        else:
            frozen = isinstance(self.representation, FrozenEstimator)
            for estimator in [head] if frozen else [head, self._representation()]:
                if weights and not has_fit_parameter(estimator, "sample_weight"):
                    raise ValueError(
                        f"{type(estimator).__name__} takes no sample_weight in fit. Leave the weights out, or enable metadata routing and "
                        "say who should get them (sklearn.set_config(enable_metadata_routing=True), then set_fit_request)."
                    )
            for_representation, for_head = {} if frozen else weights, {**weights, **params}
        if for_head.get("sample_weight") is not None:
            counts = np.asarray(for_head["sample_weight"])[labels.rows] > 0
            labels = KnownLabels(labels.rows[counts], labels.values[counts])
        return SharedParams(for_representation, _check_method_params(X, for_head, indices=labels.rows), labels)

    # Features of rows

    def _represent(self, X: Any) -> Array:
        """Return the features of rows, for each draw. [S, n, J]"""
        if self.n_draws is None:
            return np.asarray(self.representation_.transform(X), dtype=np.float64)[None]
        if isinstance(self.functions_, FunctionDraws):
            # A prediction should depend on its row alone, not on what else is asked and when.
            return self.functions_.one_row_at_a_time(X)
        return self.functions_(X)

    def _represent_in_parts(self, X: Any) -> Iterator[Iterable[Array]]:
        """Yield the features of consecutive parts of the rows, member by member. [S, n part, J] each. Rows are checked once, before."""
        X = in_memory(X)
        if not self._is_pool:
            yield from ([Z] for Z in self._represent_one_in_parts(X))
            return
        if not hasattr(self.representation_, "card_"):  # with which it warns by itself
            warn_outside_training(self, X)
        rows = inner(self.representation_).check(X)
        for block in row_blocks(len(rows), PREDICTION_ROWS):
            part = rows[block]
            yield (Z for functions in self.functions_ for Z in functions(part))

    def _members_in_parts(self, X: Any) -> Iterator[list[tuple[Any, Array]]]:
        """Yield the heads and the features [S, n part, J] of each member, for consecutive parts of the rows."""
        check_is_fitted(self)
        heads = self.heads_ if self._is_pool else [self.heads_]
        for features in self._represent_in_parts(X):
            with one_blas_thread():
                members = list(zip(heads, features, strict=True))
            yield members

    def _represent_one_in_parts(self, X: Any) -> Iterator[Array]:
        """Yield the features of consecutive parts of the rows, for a representation that is no pool. [S, n part, J] each"""
        kernel = self._kernel_of_rows()
        if kernel is None:
            if not hasattr(self.representation_, "card_"):  # with which it warns by itself
                warn_outside_training(self, X)
            n_rows = _num_samples(X)
            for block in row_blocks(n_rows, PREDICTION_ROWS) if n_rows > PREDICTION_ROWS else [None]:
                yield self._represent(X if block is None else _safe_indexing(X, block))
            return
        checked = check_rows_in_memory(self, X, kernel, reset=False, sparse=True)
        warn_outside_training(self, X)
        for block in row_blocks(checked.shape[0], PREDICTION_ROWS):
            yield self._represent(rows_in_memory(checked[block]))

    def _kernel_of_rows(self) -> Kernel | None:
        """Return the kernel that says what rows must look like; None for a representation that checks its rows by itself."""
        if self.n_draws is not None:
            return self.functions_.kernel if isinstance(self.functions_, FunctionDraws) else None
        frozen = isinstance(self.representation_, FrozenEstimator)
        fitted = self.representation_.estimator if frozen else self.representation_
        return fitted.kernel_ if isinstance(fitted, GPSSL) else None

    # scikit-learn's protocol

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which metadata go to the representation and which to the head."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=type(self).__name__)
        return router.add(representation=self._representation(), method_mapping=mapping).add(head=self._head(), method_mapping=mapping)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._representation()).input_tags
        return tags


def inner(representation: Any) -> Any:
    """Return the estimator in `FrozenEstimator`, or the representation itself."""
    return representation.estimator if isinstance(representation, FrozenEstimator) else representation


def _only(parts: Sequence[FittedPart], counts: NDArray[np.bool_]) -> list[FittedPart]:
    """Return those members that count, which are numbered through all parts."""
    kept, first = [], 0
    for part in parts:
        places = np.flatnonzero(counts[first : first + len(part.names)])
        first += len(part.names)
        if len(places):
            kept.append(part.only(places.tolist()))
    return kept


class SharedParams(NamedTuple):
    """The metadata that the representation and the head get at `fit`."""

    representation: dict[str, Any]
    head: dict[str, Any]
    labels: KnownLabels
    """The labeled rows that train the head."""


def as_indexable(X: Any, y: Any) -> Any:
    """Return rows that can be indexed, and raise ValueError unless they are as many as the labels."""
    X = in_memory(X)
    check_consistent_length(X, y)
    return X


def in_memory(X: Any) -> Any:
    """Return rows that can be indexed; raise TypeError for files, Dask and the like, and say what to do."""
    if is_lazy(X) and not isinstance(X, np.memmap):
        raise TypeError(
            f"Heads need rows in memory, got {type(X).__name__}. Fit the representation to all rows, ssl = GPSSL().fit(X), then the heads "
            "to the labeled ones, with sklearn.frozen.FrozenEstimator(ssl) as representation; predict part by part."
        )
    refuse_arrow(X)
    (X,) = indexable(X)
    return X


def seeded(estimator: Any, random_state: Any) -> Any:
    """Set all parameters `random_state` that are None from this random state, if any, so that one seed makes all reproducible."""
    if random_state is not None:
        random_state = check_random_state(random_state)
        names = sorted(name for name in estimator.get_params() if name == "random_state" or name.endswith("__random_state"))
        unset = [name for name in names if estimator.get_params()[name] is None]
        estimator.set_params(**{name: int(random_state.randint(2**31 - 1)) for name in unset})
    return estimator
