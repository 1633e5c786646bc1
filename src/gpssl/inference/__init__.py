"""Inference: from the spectrum of the moments to a distribution over weights.

`Variational` is the paper's method, `Sampling` the exact generalized posterior, `Mode` its maximum. Each is an object with its
own settings and one method, `infer`, as `Inference` describes it.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from .._runtime.progress import SILENT, Task
from ..core._moments import Spectrum
from ..core._objective import Objective
from ..core._posterior import Weights
from ._mode import Mode
from ._sampling import Sampling
from ._variational import Variational

__all__ = ["Inference", "Mode", "Sampling", "Variational", "inference_method"]

_METHODS: dict[str, type[Variational] | type[Sampling] | type[Mode]] = {"variational": Variational, "sampling": Sampling, "mode": Mode}


@runtime_checkable
class Inference(Protocol):
    """A method of inference: an object with its own settings and one method."""

    def infer(
        self, spectrum: Spectrum, objective: Objective, n_components: int, seed: int, *, verbose: bool = False, task: Task = SILENT
    ) -> tuple[Weights, float, Any]:
        """Return a distribution over the weights, the value of the objective, and a report; tell `task`, the fit, of each step."""
        ...


def inference_method(inference: str | Inference) -> Inference:
    """Return the method of this name with its default settings, or the method itself. Raise ValueError where it is neither."""
    if isinstance(inference, str) and inference in _METHODS:
        return _METHODS[inference]()
    if not isinstance(inference, Inference) or isinstance(inference, str | type):
        raise ValueError(f"inference must be one of {', '.join(_METHODS)} or an object of gpssl.inference, got {inference!r}.")
    return inference
