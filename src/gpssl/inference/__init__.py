"""Inference: from the spectrum of the moments to a distribution over weights.

`Variational` is the paper's method, `Sampling` the exact generalized posterior, `Mode` its maximum. Each is an object with its
own settings and one method, `infer`.
"""

from __future__ import annotations

from typing import Any, Protocol

from .._runtime.callbacks import SILENT, Task
from ..core._moments import Spectrum
from ..core._objective import Objective
from ..core._posterior import DrawnWeights, GaussianWeights, PointWeights, Weights
from ._mode import Mode
from ._sampling import Sampling
from ._variational import Variational


class Inference(Protocol):
    """A method of inference."""

    def infer(
        self, spectrum: Spectrum, objective: Objective, n_components: int, seed: int, *, verbose: bool = False, task: Task = SILENT
    ) -> tuple[Weights, float, Any]:
        """A distribution over the weights, the value of the objective, and how it went; `task` is the fit, to report steps to."""
        ...


METHODS: dict[str, type[Variational] | type[Sampling] | type[Mode]] = {
    "variational": Variational,
    "sampling": Sampling,
    "mode": Mode,
}

__all__ = [
    "METHODS",
    "DrawnWeights",
    "GaussianWeights",
    "Inference",
    "Mode",
    "PointWeights",
    "Sampling",
    "Variational",
    "Weights",
]
