"""A kernel for documents: two documents are alike if they share words, and rare words count more than common ones."""

from __future__ import annotations

import operator
from numbers import Integral, Real
from typing import Any
from weakref import WeakKeyDictionary

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import normalize

from .._validation import check_number
from ..data._rows import Part, Rows
from ._protocol import Array, BlockKernel, full_repr, not_resolved, training_rows
from ._word_counts import write_products
from .strings import _StringKernel

_WORDS_AND_SIGNS = r"\w+|[^\w\s]"
"""Words of one letter and signs carry meaning in short messages: "u", "2", "£", "!". scikit-learn's own pattern leaves them out."""


class TfidfKernel(_StringKernel):
    """The cosine of the angle between tf-idf vectors, or a squared exponential of their distance.

        k(x, y) = xᵀ y                               without a lengthscale
        k(x, y) = exp(−|x − y|² / 2l²)               with lengthscale l;      |x − y|² = 2 − 2 xᵀ y

    x and y are the vectors of two documents, scaled to length 1. A document without any word of the training documents would have a
    vector of zeros. All such documents get one further word, which no other has: they are the same to the kernel, and xᵀ y = 0 with
    all others.

    Parameters
    ----------
    vectorizer
        A `TfidfVectorizer`, or another object with `fit` and `transform`, that turns documents into vectors. A clone is fitted to the
        distinct training documents, so that `min_df`, `max_df` and `max_features` count each of them once; idf is that of all rows
        with their weights. Pass one that is fitted already as a `sklearn.frozen.FrozenEstimator`. None: words and signs in lower
        case, with 1 + log of their count.
    length_scale
        l, in units in which two documents without a common word are √2 apart; None: the cosine.
    max_rows
        With more distinct documents than this, a sample of this size has the words and their weights. None: all documents.
    """

    def __init__(self, vectorizer: Any = None, length_scale: float | None = None, *, max_rows: int | None = None) -> None:
        self.vectorizer = vectorizer
        self.length_scale = length_scale
        self.max_rows = max_rows

    @property
    def is_resolved(self) -> bool:
        """Whether nothing is left to be taken from the training rows."""
        return isinstance(self.vectorizer, FrozenEstimator)

    def resolve(self, X: Any, sample_weight: Array | None = None, seed: int = 0) -> TfidfKernel:
        """Return the kernel with a vectorizer that is fitted to these documents, unless its own is fitted already."""
        self._check_parameters()
        if self.is_resolved:
            return TfidfKernel(self.vectorizer, self.length_scale, max_rows=self.max_rows)
        texts, weight = _distinct_documents(training_rows(self, X, sample_weight), self.max_rows, seed)
        blank = _default_vectorizer() if self.vectorizer is None else self.vectorizer
        fitted = clone(blank).fit(texts)
        if isinstance(fitted, TfidfVectorizer) and fitted.use_idf:
            fitted.idf_ = _weighted_idf(fitted, texts, weight)
        return TfidfKernel(FrozenEstimator(fitted), self.length_scale, max_rows=self.max_rows)

    def describe(self) -> str:
        """Return a hash of the words and their weights, for `SelfDescribingKernel`."""
        given = _default_vectorizer() if self.vectorizer is None else self.vectorizer
        fitted = given.estimator if self.is_resolved else given
        if self.is_resolved and fitted not in _HASHES:
            _HASHES[fitted] = _hash_of_state(fitted)
        state = _HASHES[fitted] if self.is_resolved else _hash_of_state(fitted)
        limit = "" if self.is_resolved or self.max_rows is None else f", {self.max_rows}"
        return f"TfidfKernel({type(fitted).__name__}, {state}, {self.length_scale!r}{limit})"

    def __repr__(self) -> str:
        return full_repr(self, without=("max_rows",) if self.max_rows is None else ())

    def _check_parameters(self) -> None:
        if self.length_scale is not None:
            check_number("length_scale", self.length_scale, Real, above=0, otherwise="or None")
        if self.max_rows is not None:
            check_number("max_rows", self.max_rows, Integral, at_least=1, otherwise="or None")
        usable = not isinstance(self.vectorizer, type) and hasattr(self.vectorizer, "fit") and hasattr(self.vectorizer, "transform")
        if self.vectorizer is not None and not usable:
            raise ValueError(f"vectorizer must be an object such as TfidfVectorizer(), or None, got {self.vectorizer!r}.")

    def block_kernel(self, points: NDArray[Any]) -> BlockKernel:
        """Compute the vectors of the points once, and return a function that fills in k(X, points) block by block."""
        self._check_parameters()
        if not self.is_resolved:
            raise not_resolved(self, "words and their weights")
        columns = self._vectors(points).T.tocsr()

        def fill(X: NDArray[Any], out: Array) -> None:
            write_products(self._vectors(X), columns, out)
            np.minimum(out, 1.0, out=out)
            if self.length_scale is not None:
                out -= 1.0
                out /= self.length_scale**2
                np.exp(out, out=out)

        return fill

    def _vectors(self, texts: NDArray[Any]) -> csr_array:
        """Return vectors of length 1, with one more entry for documents that have no known word. [n, D + 1]"""
        vectors = normalize(csr_array(self.vectorizer.transform(texts), dtype=np.float64))
        vectors.eliminate_zeros()
        nothing_known = (np.diff(vectors.indptr) == 0).astype(np.float64)
        return csr_array(hstack([vectors, csr_array(nothing_known[:, None])], format="csr"))


_HASHES: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""Hashes of vectorizers that are fitted and frozen, whose many words take long to hash."""


def _hash_of_state(vectorizer: Any) -> str:
    # scikit-learn remembers where in memory the stop words lie, which differs between processes.
    return str(joblib.hash({name: value for name, value in vectorizer.__getstate__().items() if name != "_stop_words_id"}))


def _default_vectorizer() -> TfidfVectorizer:
    """Return a vectorizer of words and signs in lower case, with 1 + log of their count."""
    return TfidfVectorizer(sublinear_tf=True, token_pattern=_WORDS_AND_SIGNS)


def _distinct_documents(rows: Rows, limit: int | None, seed: int) -> tuple[NDArray[Any], Array]:
    """Return each document of positive weight once, in alphabetical order, with the summed weight of its copies; so many at most."""
    if limit is not None:
        sample = rows.sample(int(limit), seed)
        order = np.argsort(sample.rows)
        return sample.rows[order], sample.weight[order]

    def summarize(part: Part) -> list[Part]:
        present = part.weight > 0
        return [Part(part.rows[present], part.weight[present])]

    texts, weight = (np.concatenate(column) for column in zip(*rows.reduce(summarize, operator.add), strict=True))
    # Sorted by weight first, so that the weights of copies are added in the same order for any order of the rows.
    order = np.argsort(weight, kind="stable")
    distinct, inverse = np.unique(texts[order], return_inverse=True)
    return distinct, np.bincount(inverse, weight[order], minlength=len(distinct)).astype(np.float64, copy=False)


def _weighted_idf(fitted: TfidfVectorizer, texts: NDArray[Any], weight: Array) -> Array:
    """Return idf = log((n + s) / (df + s)) + 1 with s = 1 if `smooth_idf`, else 0; a document of weight w is w documents. [D]"""
    occurs = csr_array(fitted.transform(texts)) != 0
    frequency = occurs.astype(np.float64).T @ weight
    smooth = float(fitted.smooth_idf)
    idf: Array = np.log((weight.sum() + smooth) / (frequency + smooth)) + 1
    return idf
