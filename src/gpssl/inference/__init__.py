"""Inference: from the spectrum of the moments to a distribution over weights.

`Variational` is the paper's method, `Sampling` the exact generalized posterior, `Mode` its maximum. Each is an object with its
own settings and one method, `infer`, as `Inference` describes it.
"""

from ._methods import Inference
from ._mode import Mode
from ._sampling import Sampling
from ._variational import Variational

__all__ = ["Inference", "Mode", "Sampling", "Variational"]
