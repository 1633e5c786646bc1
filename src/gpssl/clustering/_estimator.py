"""Clusters of rows, each with a probability: what clusterings of drawn representations agree on."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.utils import ClassifierTags, Tags, get_tags
from sklearn.utils.validation import _num_samples, check_is_fitted

from .._runtime.threads import one_blas_thread
from .._validation import check_number, seed_from, unchanged_on_failure
from ..core._checked_rows import check_rows_in_memory, copy_columns, rows_in_memory, warn_outside_training
from ..core._draws import FunctionDraws
from ..core._posterior import Posterior
from ..data._arrays import hash_rows, row_blocks
from ..downstream._marginal import PREDICTION_ROWS, in_memory, inner, seeded
from ..downstream._pool_members import default_kernel
from ..estimator import GPSSL
from ._consensus import consensus, most_central
from ._counting import preferred_numbers, show_no_clusters
from ._kmeans import Clusterings, Labels, grown, nearest, refined

Array = NDArray[np.float64]

N_DRAWS = 50
N_COMPONENTS = 10
"""Dimensions of the default representation: those that hold no clusters are narrow, and do not disturb."""
ROWS_OF_A_DIMENSION = 3
LEARNING_ROWS = 1000
"""Rows that clusters are learned from, at most; all others are assigned to them."""
COUNTING_ROWS = 500
"""Rows that tell how many clusters there are, at most."""
NARROWEST = 1e-8
"""Directions of the mean representation, relative to the widest, that count as none."""


class PosteriorClustering(ClusterMixin, BaseEstimator):
    """Clusters with certainty: each draw of a representation is clustered, and clusters of all draws are matched.

    A draw of the representation is one function, and k-means on its values at the rows is one clustering. Over S draws, matched by the
    Hungarian algorithm, a row is in cluster k with probability

        p(k | x) = (1/S) Σ_s [π_s(c_s(x)) = k]

    so that rows between clusters, and rows about which the representation knows little, say so. Each draw also prefers a number of
    clusters, by their silhouettes, and the share of draws that prefer K is the posterior of that number.

    Dimensions of `GPSSL` all have the same variance. Here each counts in units of the norm of its mean function, which is kernel principal
    components' own scale: a direction in which the kernel sees few rows differ is a narrow one.

    Parameters
    ----------
    n_clusters
        K, or "auto" for the number that most draws prefer.
    representation
        An estimator with `draw_functions`, by default `GPSSL` of ten dimensions with a kernel for this kind of rows; it is cloned and
        fitted. Wrap one that was fitted before in `sklearn.frozen.FrozenEstimator`.
    max_clusters
        The largest number that "auto" considers.
    n_draws
        S.
    random_state
        Seed for the draws, and for the representation where it has none of its own.

    Attributes
    ----------
    labels_
        The most probable cluster of each row, numbered from 0, the largest cluster first. [n]
    probabilities_
        The probability of each cluster for each row. [n, K]
    n_clusters_
        K.
    n_clusters_proba_
        The posterior of the number of clusters, given that there are some: the share of draws that prefer each number, by that number.
    one_cloud_proba_
        The share of draws that show no clusters: two clusters explain no more than in a uniform cloud, and the preferred ones do not stand
        apart, or are nearly as many as there may be. Where it is large, one cloud is cut where convention says.
    representation_
        The fitted representation.
    functions_
        The drawn functions.
    centers_
        The centers of the clusters of each draw, in the representation as k-means sees it. [S, K, J]
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from gpssl.clustering import PosteriorClustering
    >>> X, _ = make_blobs(200, 4, centers=3, random_state=0)
    >>> clusters = PosteriorClustering(random_state=0).fit(X)
    >>> clusters.n_clusters_, clusters.probabilities_.shape
    (3, (200, 3))
    >>> clusters.predict_proba(X[:5]).max(axis=1).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = "auto",
        representation: Any = None,
        *,
        max_clusters: int = 10,
        n_draws: int = N_DRAWS,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.representation = representation
        self.max_clusters = max_clusters
        self.n_draws = n_draws
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> PosteriorClustering:  # noqa: ARG002  (y is scikit-learn's)
        """Fit the representation, cluster each of its draws, and match the clusters; `y` is ignored."""
        self._check_parameters()
        with unchanged_on_failure(self):
            X = in_memory(X)
            self._fit_representation(X)
            rows = self._checked(X)
            n_rows = _num_samples(rows)
            if not isinstance(self.n_clusters, str) and n_rows < self.n_clusters:
                raise ValueError(f"n_samples={n_rows} rows cannot form {self.n_clusters} clusters: ask for fewer, or give more rows.")
            with one_blas_thread():
                self._learn(rows)
                self.probabilities_ = self._predict_proba(rows)
            self.labels_ = self.probabilities_.argmax(axis=1)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each cluster for each row: the share of draws that put it there. [n, K]"""
        check_is_fitted(self)
        rows = self._checked(in_memory(X))
        with one_blas_thread():
            return self._predict_proba(rows)

    def predict(self, X: Any) -> Labels:
        """Return the most probable cluster of each row. [n]"""
        return self.predict_proba(X).argmax(axis=1)

    # Steps of fitting

    def _fit_representation(self, X: Any) -> None:
        """Fit the representation to all rows, and draw functions."""
        for name in ("functions_", "card_"):
            self.__dict__.pop(name, None)  # of an earlier fit, or of a file
        seed = seed_from(self.random_state)
        if self.representation is None:
            self.representation_ = _default_representation(X, seed)
        else:
            self.representation_ = seeded(clone(self.representation), np.random.RandomState(seed)).fit(X, None)
        copy_columns(self.representation_, self)
        self.functions_ = inner(self.representation_).draw_functions(int(self.n_draws), random_state=seed)
        self._seed = seed

    def _learn(self, rows: Any) -> None:
        """Find the centers of the clusters of each draw, from some of the rows."""
        if isinstance(self.functions_, FunctionDraws):
            draws = np.asarray(self.functions_(rows_in_memory(_some_rows(rows, self._seed))), dtype=np.float64)
            self.functions_.settle()  # all other rows are drawn given these
        else:
            draws = np.asarray(self.functions_(_take(rows, slice(0, LEARNING_ROWS))), dtype=np.float64)
        self._scale = _scale_of(inner(self.representation_), draws.shape[2])
        draws = draws @ self._scale
        self._count_clusters(draws[:, :COUNTING_ROWS])
        self.centers_ = matched_centers(draws, self.n_clusters_)

    def _count_clusters(self, draws: Array) -> None:
        """Let each draw say how many clusters it has, and whether it has any."""
        most = min(int(self.max_clusters), draws.shape[1] - 1)
        if most > 1:
            preferred, silhouettes = preferred_numbers(draws, most)
        else:
            preferred, silhouettes = np.ones(len(draws), dtype=np.intp), np.zeros(len(draws))
        numbers, counts = np.unique(preferred, return_counts=True)
        self.n_clusters_proba_ = {int(number): float(count) / len(draws) for number, count in zip(numbers, counts, strict=True)}
        self.one_cloud_proba_ = float(show_no_clusters(draws, preferred, silhouettes, most, self._seed).mean())
        self.n_clusters_ = int(numbers[counts.argmax()]) if isinstance(self.n_clusters, str) else int(self.n_clusters)

    # Use

    def _checked(self, X: Any) -> Any:
        """Return rows that need no further check, where the functions have a kernel; else rows as they are."""
        warn_outside_training(self, X)
        if not isinstance(self.functions_, FunctionDraws):
            return X
        return check_rows_in_memory(self, X, self.functions_.kernel, reset=False, sparse=True)

    def _predict_proba(self, rows: Any) -> Array:
        parts = []
        for draws in self._draws_in_parts(rows):
            labels, _ = nearest(draws @ self._scale, self.centers_)
            proba = np.zeros((draws.shape[1], self.n_clusters_))
            places = np.arange(draws.shape[1])
            for own in labels:
                proba[places, own] += 1
            parts.append(proba / len(labels))
        return np.concatenate(parts)

    def _draws_in_parts(self, rows: Any) -> Iterator[Array]:
        """Yield the drawn functions at consecutive parts of the rows. [S, n part, J]"""
        for block in row_blocks(_num_samples(rows), PREDICTION_ROWS):
            if isinstance(self.functions_, FunctionDraws):
                # A row's cluster should depend on the row alone, not on what else is asked and when.
                yield np.asarray(self.functions_.one_row_at_a_time(rows_in_memory(rows[block])), dtype=np.float64)
            else:
                yield np.asarray(self.functions_(_take(rows, block)), dtype=np.float64)

    # Checks

    def _check_parameters(self) -> None:
        if isinstance(self.n_clusters, str):
            if self.n_clusters != "auto":
                raise ValueError(f'n_clusters must be a whole number of at least 1 or "auto", got {self.n_clusters!r}.')
        else:
            check_number("n_clusters", self.n_clusters, Integral, at_least=1, otherwise='or "auto"')
        check_number("max_clusters", self.max_clusters, Integral, at_least=1)
        check_number("n_draws", self.n_draws, Integral, at_least=1)
        if self.representation is not None and not hasattr(inner(self.representation), "draw_functions"):
            raise TypeError(
                f"The representation {type(self.representation).__name__} has no draw_functions. Pass GPSSL() or another estimator that "
                "has it."
            )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = ClassifierTags()  # scikit-learn's check of sparse rows asks whoever has predict_proba for them
        if self.representation is not None:
            tags.input_tags = get_tags(self.representation).input_tags
        else:
            tags.input_tags.sparse = True
            tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def matched_centers(draws: Array, n_clusters: int) -> Array:
    """Return the centers of the clusters of each draw [S, n, J], the same cluster at the same place in all draws. [S, K, J]

    Each draw is clustered from two starts, its own and the clusters that all draws agree on; the tighter clustering counts.
    """
    found = grown(draws, n_clusters)[-1]
    proba, numbers = consensus(found.labels, n_clusters, found.labels[most_central(found.labels)])
    from_all = refined(draws, np.broadcast_to(proba.argmax(axis=1), found.labels.shape), n_clusters)
    found = found.better_of(from_all)
    proba, numbers = consensus(found.labels, n_clusters, proba.argmax(axis=1))
    return _ordered(found, numbers, proba)


def _ordered(found: Clusterings, numbers: Labels, proba: Array) -> Array:
    """Return centers in the order of the size of their clusters, the largest first. [S, K, J]"""
    centers = np.empty_like(found.centers)
    np.put_along_axis(centers, numbers[:, :, None], found.centers, axis=1)
    sizes = np.bincount(proba.argmax(axis=1), minlength=proba.shape[1])
    shares = np.round(proba.sum(axis=0), 6)
    first_axis = centers.mean(axis=0)[:, 0]  # clusters of the same size
    return centers[:, np.lexsort((first_axis, -shares, -sizes))]


def _default_representation(X: Any, seed: int) -> GPSSL:
    """Return `GPSSL` with a kernel for this kind of rows, and as many dimensions as these have, up to ten."""
    return widened(GPSSL(1, kernel=default_kernel(X), random_state=seed).fit(X))


def widened(ssl: GPSSL, n_components: int | None = None) -> GPSSL:
    """Return the representation with so many dimensions; by default ten, or as many as the rows have, from the stored moments."""
    if n_components is None:
        n_components = min(N_COMPONENTS, len(ssl.eigenvalues_), max(1, int(ssl.moments_.weight) // ROWS_OF_A_DIMENSION))
    return ssl if n_components == ssl.n_components else ssl.refit(n_components=n_components)


def _scale_of(representation: Any, n_components: int) -> Array:
    """Return A such that f(x) A has the principal directions of the mean function as its dimensions, each in units of its norm. [J, J]

    With the mean weights E v = R diag(σ) Qᵀ [J, r], A = R diag(1/σ), times the smallest σ: the widest dimension keeps its width. The mean
    has unit variance in all dimensions, and σ_j² = 1/λ_j, so that λ_j is the variance of dimension j afterwards, up to a factor.
    """
    posterior = getattr(representation, "posterior_", None)
    if not isinstance(posterior, Posterior) or not posterior.weights.mean.any():
        return np.eye(n_components)
    rotation, norms, _ = np.linalg.svd(posterior.weights.mean, full_matrices=True)
    known = np.zeros(n_components)
    known[: len(norms)] = norms
    is_known = known > NARROWEST * known.max()
    return rotation * np.where(is_known, known[is_known].min() / np.where(is_known, known, 1.0), 0.0)


def _some_rows(rows: NDArray[Any], seed: int) -> NDArray[Any]:
    """Return the rows that clusters are learned from: the same ones for any order of the rows."""
    if rows.shape[0] <= LEARNING_ROWS or not isinstance(rows, np.ndarray):
        return rows[:LEARNING_ROWS]
    hashes = hash_rows(rows, seed)
    return rows[np.sort(np.argpartition(hashes, LEARNING_ROWS)[:LEARNING_ROWS])]


def _take(rows: Any, block: slice) -> Any:
    return rows.iloc[block] if hasattr(rows, "iloc") else rows[block]
