"""The methods for each kind of data: the usual choice of its field, and GPSSL with kernels for it. All settings are fixed here.

Whatever a method takes from rows without their labels (words and their frequencies, categories, means, scales, lengthscales), it takes
from all training rows; nothing comes from those to predict. Logistic regression has scikit-learn's penalty, C = 1. PCA and kernel PCA have
as many components as GPSSL has dimensions, five; latent semantic analysis (LSA) has twenty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  (scikit-learn wants it imported before IterativeImputer)
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import Kernel
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import pairwise_distances_argmin
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from gpssl import MarginalizedClassifier, RepresentationPool
from gpssl.baselines._kernel_methods import KernelEstimator
from gpssl.comparison import FULL, MEAN, N_COMPONENTS, PRIOR
from gpssl.kernels import (
    CategoryKernel,
    IncompleteRBF,
    MismatchKernel,
    NeighborDiffusion,
    NeighborRBF,
    SpectrumKernel,
    SubsequenceKernel,
    TfidfKernel,
    WeisfeilerLehmanKernel,
    for_table,
)
from gpssl.kernels.documents import _default_vectorizer

from .methods import Budget, classifier_with

Method = Callable[[Any, Budget], Any]
"""From unlabeled rows to a classifier whose `fit` takes the labeled ones."""

POOL = "pool"
KERNEL_PCA = "kernel PCA"

COSTS = tuple(10.0**power for power in range(-3, 4))
N_FOLDS = 5
N_NEIGHBORS = 10
N_LATENT = 20
"""Dimensions of latent semantic analysis."""
UNLABELED = -1

WEISFEILER_LEHMAN = WeisfeilerLehmanKernel(3)


def on_numbers(transformer: Callable[[], Any], classifier: Callable[[], Any]) -> Method:
    """Return a classifier after steps that are fitted to the unlabeled rows."""

    def build(rows: Any, _budget: Budget) -> Any:
        return make_pipeline(FrozenEstimator(transformer().fit(rows)), classifier())

    return build


def with_kernel(
    name: str,
    kernel: Callable[[Any], Kernel],
    transformer: Callable[[], Any] | None = None,
    variants: Sequence[str] = (FULL, MEAN, PRIOR),
) -> dict[str, Method]:
    """Return GPSSL, its mean and its prior with the kernel for these rows, after steps that are fitted to the unlabeled rows."""
    return {f"{variant}, {name}": partial(_with_kernel, variant, kernel, transformer) for variant in variants}


def with_neighbors(name: str, kernel: Callable[[Any], Kernel], transformer: Callable[[], Any] | None = None) -> dict[str, Method]:
    """Return GPSSL, its prior and kernel PCA with diffusion among the neighbors that a kernel finds."""
    return with_kernel(f"{name}, neighbors", partial(_among_neighbors, kernel), transformer, (FULL, PRIOR, KERNEL_PCA))


def _among_neighbors(kernel: Callable[[Any], Kernel], rows: Any) -> Kernel:
    return NeighborDiffusion(kernel=kernel(rows))


def _with_kernel(variant: str, kernel: Callable[[Any], Kernel], transformer: Callable[[], Any] | None, rows: Any, budget: Budget) -> Any:
    if transformer is None:
        return classifier_with(variant, kernel(rows), rows, budget)
    steps = FrozenEstimator(transformer().fit(rows))
    transformed = steps.transform(rows)
    return make_pipeline(steps, classifier_with(variant, kernel(transformed), transformed, budget))


def pool(rows: Any, budget: Budget) -> Any:
    """Return the marginalized classifier with all defaults, its pool fitted to the unlabeled rows."""
    return MarginalizedClassifier(FrozenEstimator(RepresentationPool(random_state=budget.seed).fit(rows)), random_state=budget.seed)


def pool_of_letters(sequences: Any, budget: Budget) -> Any:
    """Return the same on a data frame with a column of letters for each position."""
    return make_pipeline(FunctionTransformer(columns_of_letters), pool(columns_of_letters(sequences), budget))


def always(kernel: Kernel) -> Callable[[Any], Kernel]:
    """Return a kernel with fixed settings, whatever the rows."""
    return lambda _rows: clone(kernel)


def _logistic(**settings: Any) -> Callable[[], LogisticRegression]:
    return lambda: LogisticRegression(max_iter=2000, **settings)


def _small_leaves() -> HistGradientBoostingClassifier:
    """Return gradient boosting with leaves of at least five rows: the default of twenty allows hardly a split of fifty labels."""
    return HistGradientBoostingClassifier(min_samples_leaf=5)


class KernelMachine(ClassifierMixin, KernelEstimator):
    """A support vector machine on any kind of rows, its cost chosen by cross-validation on the labels."""

    def __init__(self, kernel: Kernel | None = None, *, seed: int = 0) -> None:
        self.kernel = kernel
        self.seed = seed

    def fit(self, X: Any, y: NDArray[Any]) -> KernelMachine:
        """Choose the cost and train with it on all rows."""
        self.rows_ = self._check_rows(X, reset=True)
        self.kernel_ = self._resolve_kernel(X, self.rows_, np.ones(len(self.rows_)), self.seed)
        rarest = int(np.unique(y, return_counts=True)[1].min())
        folds = StratifiedKFold(max(2, min(N_FOLDS, rarest)), shuffle=True, random_state=self.seed)
        search = GridSearchCV(SVC(kernel="precomputed"), {"C": COSTS}, cv=folds)
        self.machine_ = search.fit(self.kernel_(self.rows_), y)
        self.classes_ = self.machine_.classes_
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row. [n]"""
        return self.machine_.predict(self.kernel_(self._check_rows(X, reset=False), self.rows_))


class SpreadingAmong(ClassifierMixin, BaseEstimator):
    """Label spreading among the neighbors of all training rows, with labels or without."""

    def __init__(self, rows: NDArray[np.float64]) -> None:
        self.rows = rows

    def fit(self, X: NDArray[np.float64], y: NDArray[Any]) -> SpreadingAmong:
        """Give labels to the training rows that are the same as these, and let them spread."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        marked = np.full(len(self.rows), UNLABELED)
        marked[pairwise_distances_argmin(X, self.rows)] = codes
        self.shares_ = np.bincount(codes) / len(codes)
        self.model_ = LabelSpreading(kernel="knn", n_neighbors=N_NEIGHBORS, max_iter=200).fit(self.rows, marked)
        return self

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of each class; rows that no label reaches get the shares of the labels. [n, K]"""
        with np.errstate(invalid="ignore"):
            proba = self.model_.predict_proba(X)
        return np.where(np.isfinite(proba), proba, self.shares_)

    def predict(self, X: NDArray[np.float64]) -> NDArray[Any]:
        """Return the class of each row. [n]"""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def spreading(transformer: Callable[[], Any]) -> Method:
    """Return label spreading after steps that are fitted to the unlabeled rows."""

    def build(rows: Any, _budget: Budget) -> Any:
        steps = FrozenEstimator(transformer().fit(rows))
        return make_pipeline(steps, SpreadingAmong(steps.transform(rows)))

    return build


# From rows of each kind to numbers


def split_letters(sequences: Any) -> NDArray[np.str_]:
    """Return a column for each position of the sequences. [n, length]"""
    return np.array([list(sequence) for sequence in sequences])


def columns_of_letters(sequences: Any) -> Any:
    """Return the same as a data frame. [n, length]"""
    import pandas as pd

    letters = split_letters(sequences)
    return pd.DataFrame(letters, columns=[f"position {place}" for place in range(1, letters.shape[1] + 1)])


def _letters() -> Any:
    return FunctionTransformer(split_letters)


def _letters_one_hot() -> Any:
    return make_pipeline(_letters(), OneHotEncoder(handle_unknown="ignore", sparse_output=False))


def _latent() -> Any:
    """Return latent semantic analysis of words and signs, messages scaled to length 1: better here than of words alone, or not scaled."""
    return make_pipeline(_default_vectorizer(), TruncatedSVD(N_LATENT, random_state=0), Normalizer())


def components(transformer: Callable[[], Any]) -> Callable[[], Any]:
    """Return as many principal components as GPSSL has dimensions, after other steps."""
    return lambda: make_pipeline(transformer(), PCA(N_COMPONENTS, random_state=0))


def _standardized() -> Any:
    """Return steps that standardize columns; missing cells become means."""
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())


def _imputed() -> Any:
    """Return steps that predict missing cells from the other columns, in turn, and standardize."""
    return make_pipeline(IterativeImputer(keep_empty_features=True, random_state=0), StandardScaler())


def _as_floats(frame: Any) -> Any:
    return frame.astype(np.float64)


def _grades_as_numbers() -> Any:
    return make_pipeline(FunctionTransformer(_as_floats), _standardized())


def _mixed_one_hot() -> Any:
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), make_column_selector(dtype_include="category")),
        remainder=_standardized(),
    )


def _numbers_only() -> Any:
    return make_column_transformer((StandardScaler(), make_column_selector(dtype_include="number")))


MESSAGES: dict[str, Method] = {
    "TF–IDF + logistic regression": on_numbers(TfidfVectorizer, _logistic()),
    "TF–IDF + logistic regression, balanced": on_numbers(TfidfVectorizer, _logistic(class_weight="balanced")),
    "words and signs + logistic regression, balanced": on_numbers(_default_vectorizer, _logistic(class_weight="balanced")),
    "LSA + logistic regression, balanced": on_numbers(_latent, _logistic(class_weight="balanced")),
    "LSA + label spreading": spreading(_latent),
    **with_kernel("TF–IDF", always(TfidfKernel())),
    **with_neighbors("TF–IDF", always(TfidfKernel())),
    **with_kernel("spectrum", always(SpectrumKernel(4)), variants=(FULL, PRIOR)),
    **with_kernel("subsequences", always(SubsequenceKernel(3, 0.5, 5))),
    POOL: pool,
}

SEQUENCES: dict[str, Method] = {
    "one-hot + logistic regression": on_numbers(_letters_one_hot, _logistic()),
    "one-hot + PCA + logistic regression": on_numbers(components(_letters_one_hot), _logistic()),
    "one-hot + PCA + label spreading": spreading(components(_letters_one_hot)),
    **with_kernel("positions", always(CategoryKernel()), _letters),
    **with_neighbors("positions", always(CategoryKernel()), _letters),
    **with_kernel("spectrum", always(SpectrumKernel(4)), variants=(FULL, PRIOR)),
    **with_kernel("mismatches", always(MismatchKernel(5, 1, "ACGTDNRS")), variants=(FULL, PRIOR)),
    POOL: pool,
    f"{POOL}, columns of letters": pool_of_letters,
}

CONNECTIONS: dict[str, Method] = {
    "one-hot + gradient boosting": on_numbers(_mixed_one_hot, HistGradientBoostingClassifier),
    "one-hot + gradient boosting, small leaves": on_numbers(_mixed_one_hot, _small_leaves),
    "one-hot + logistic regression": on_numbers(_mixed_one_hot, _logistic()),
    "one-hot + PCA + logistic regression": on_numbers(components(_mixed_one_hot), _logistic()),
    **with_kernel("all columns", for_table),
    **with_neighbors("all columns", for_table),
    **with_kernel("numbers only", always(NeighborRBF()), _numbers_only, (FULL, PRIOR)),
    POOL: pool,
}

GRADES: dict[str, Method] = {
    "numbers + logistic regression": on_numbers(_grades_as_numbers, _logistic()),
    "numbers + PCA + logistic regression": on_numbers(components(_grades_as_numbers), _logistic()),
    "one-hot + PCA + logistic regression": on_numbers(components(_mixed_one_hot), _logistic()),
    **with_kernel("grades", for_table),
    **with_neighbors("grades", for_table),
    **with_kernel("numbers", always(NeighborRBF()), _grades_as_numbers),
    POOL: pool,
}

INCOMPLETE: dict[str, Method] = {
    "means + logistic regression": on_numbers(_standardized, _logistic()),
    "means + PCA + logistic regression": on_numbers(components(_standardized), _logistic()),
    "imputation + PCA + logistic regression": on_numbers(components(_imputed), _logistic()),
    **with_kernel("means", always(NeighborRBF()), _standardized),
    **with_kernel("gaps", always(IncompleteRBF())),
    POOL: pool,
}

GRAPHS: dict[str, Method] = {
    "support vector machine": lambda _rows, budget: KernelMachine(WEISFEILER_LEHMAN, seed=budget.seed),
    **with_kernel("Weisfeiler–Lehman", always(WEISFEILER_LEHMAN), variants=(KERNEL_PCA, FULL, MEAN, PRIOR)),
    **with_neighbors("Weisfeiler–Lehman", always(WEISFEILER_LEHMAN)),
    POOL: pool,
}
