"""The methods for each kind of data: the usual choice of its field, and GPSSL with kernels for it. All settings are fixed here.

Whatever a method takes from rows without their labels (words and their frequencies, categories, means, scales, lengthscales), it takes
from all training rows; nothing comes from those to predict. Logistic regression has scikit-learn's penalty, C = 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import Kernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from ..datasets import Examples
from ..kernels import (
    CategoryKernel,
    IncompleteRBF,
    MismatchKernel,
    NeighborRBF,
    PrecomputedKernel,
    SpectrumKernel,
    SubsequenceKernel,
    TfidfKernel,
    WeisfeilerLehmanKernel,
    for_table,
)
from .kernel_methods import VARIANTS, Budget, KernelMachine, Variant, classifier_with

Method = Callable[[Any, Budget], Any]
"""From unlabelled rows to a classifier whose `fit` takes the labelled ones."""

WL_ITERATIONS = 3


def on_numbers(transformer: Callable[[], Any], classifier: Callable[[], Any]) -> Method:
    """A classifier after steps that are fitted to the unlabelled rows."""

    def build(rows: Any, _budget: Budget) -> Any:
        return make_pipeline(FrozenEstimator(transformer().fit(rows)), classifier())

    return build


def with_kernel(
    name: str, kernel: Callable[[Any], Kernel], transformer: Callable[[], Any] | None = None, variants: Sequence[Variant] = VARIANTS
) -> dict[str, Method]:
    """GPSSL, its mean and its prior with the kernel for these rows, after steps that are fitted to the unlabelled rows."""
    return {f"{variant}, {name}": partial(_with_kernel, variant, kernel, transformer) for variant in variants}


def with_string_kernel(name: str, kernel: Kernel) -> dict[str, Method]:
    """The same for strings, without the second temperature: their kernels take the longest."""
    return with_kernel(name, _always(kernel), variants=("GPSSL-full", "GPSSL-mean", "GP-prior"))


def _with_kernel(
    variant: Variant, kernel: Callable[[Any], Kernel], transformer: Callable[[], Any] | None, rows: Any, budget: Budget
) -> Any:
    if transformer is None:
        return classifier_with(variant, kernel(rows), rows, budget)
    steps = FrozenEstimator(transformer().fit(rows))
    transformed = steps.transform(rows)
    return make_pipeline(steps, classifier_with(variant, kernel(transformed), transformed, budget))


def _always(kernel: Kernel) -> Callable[[Any], Kernel]:
    """A kernel that does not depend on the rows, or takes from them what it needs when it is fitted."""
    return lambda _rows: kernel


def _logistic(**settings: Any) -> Callable[[], LogisticRegression]:
    return lambda: LogisticRegression(max_iter=2000, **settings)


# From rows of each kind to numbers


def split_letters(sequences: Any) -> NDArray[np.str_]:
    """A column for each position. [n, length]"""
    return np.array([list(sequence) for sequence in sequences])


def _letters() -> Any:
    return FunctionTransformer(split_letters)


def _letters_one_hot() -> Any:
    return make_pipeline(_letters(), OneHotEncoder(handle_unknown="ignore"))


def _standardised() -> Any:
    """Missing cells become means."""
    return make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())


def _as_floats(frame: Any) -> Any:
    return frame.astype(np.float64)


def _grades_as_numbers() -> Any:
    return make_pipeline(FunctionTransformer(_as_floats), _standardised())


def _mixed_one_hot() -> Any:
    return make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), make_column_selector(dtype_include="category")),
        remainder=StandardScaler(),
    )


def _numbers_only() -> Any:
    return make_column_transformer((StandardScaler(), make_column_selector(dtype_include="number")))


# Graphs: their kernel matrix is computed once for all splits and methods, and rows are positions in it


@cache
def _gram(load: Callable[[], Examples]) -> NDArray[np.float64]:
    """k between all graphs of a data set: of two graphs it does not depend on any other. [n, n]"""
    kernel = WeisfeilerLehmanKernel(WL_ITERATIONS)
    return kernel(kernel.prepare(load().X))


def graph_methods(load: Callable[[], Examples]) -> dict[str, Method]:
    """A support vector machine and GPSSL with the same kernel."""

    def kernel(_rows: Any) -> Kernel:
        return PrecomputedKernel(_gram(load))

    return {
        "support vector machine": lambda rows, budget: KernelMachine(kernel(rows), seed=budget.seed),
        **with_kernel("Weisfeiler–Lehman", kernel),
    }


MESSAGES: dict[str, Method] = {
    "TF–IDF + logistic regression": on_numbers(TfidfVectorizer, _logistic()),
    "TF–IDF + logistic regression, balanced": on_numbers(TfidfVectorizer, _logistic(class_weight="balanced")),
    **with_string_kernel("TF–IDF", TfidfKernel()),
    **with_string_kernel("spectrum", SpectrumKernel(4)),
    **with_string_kernel("subsequences", SubsequenceKernel(3, decay=0.5, max_span=5)),
}

SEQUENCES: dict[str, Method] = {
    "one-hot + logistic regression": on_numbers(_letters_one_hot, _logistic()),
    **with_kernel("positions", _always(CategoryKernel()), _letters),
    **with_string_kernel("spectrum", SpectrumKernel(4)),
    **with_string_kernel("mismatches", MismatchKernel(5, mismatches=1, alphabet="ACGTDNRS")),
}

CONNECTIONS: dict[str, Method] = {
    "one-hot + gradient boosting": on_numbers(_mixed_one_hot, HistGradientBoostingClassifier),
    "one-hot + logistic regression": on_numbers(_mixed_one_hot, _logistic()),
    **with_kernel("all columns", for_table),
    **with_kernel("numbers only", _always(NeighborRBF()), _numbers_only),
}

GRADES: dict[str, Method] = {
    "numbers + logistic regression": on_numbers(_grades_as_numbers, _logistic()),
    **with_kernel("grades", for_table),
    **with_kernel("numbers", _always(NeighborRBF()), _grades_as_numbers),
}

INCOMPLETE: dict[str, Method] = {
    "means + logistic regression": on_numbers(_standardised, _logistic()),
    **with_kernel("means", _always(NeighborRBF()), _standardised),
    **with_kernel("gaps", _always(IncompleteRBF())),
}
