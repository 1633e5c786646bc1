"""A user's kernel for strings in ten lines, with scikit-learn's methods alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import kernels as sk

Array = NDArray[np.float64]


class SharedLetters(sk.GenericKernelMixin, sk.Kernel):
    """k(x, y) = Σ over letters of count in x × count in y, plus 1. It does not know its gradient."""

    def __init__(self) -> None:
        pass

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Array:
        Y = X if Y is None else Y
        return np.array([[1.0 + sum(x.count(c) * y.count(c) for c in set(x)) for y in Y] for x in X])

    def diag(self, X: Any) -> Array:
        return np.array([self([x])[0, 0] for x in X])

    def is_stationary(self) -> bool:
        return False
