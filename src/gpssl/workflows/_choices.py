"""What a person may choose, with the defaults that functions and commands share. It imports nothing heavy: `gpssl --help` is quick."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from .._runtime import N_COMPONENTS_OF_TISSUE, N_DRAWS

Kind = Literal["table", "tissue"]

N_COMPONENTS: dict[Kind, int] = {"table": 5, "tissue": N_COMPONENTS_OF_TISSUE}
"""Dimensions of the representation."""
POOL = "pool"
"""What comparisons call `MarginalizedClassifier()` and `MarginalizedRegressor()` with all defaults."""
FULL = "GPSSL-full"
"""What comparisons call the paper's method: heads on draws of one representation, which count alike."""
DECIDING = {"class": "log loss", "number": "NLL"}
"""The score that comparisons decide by, for classes and numbers. Smaller is better."""
SIGNIFICANT = 0.05
"""The level of the tests of comparisons."""
MAX_INDUCING = 512
N_SPLITS = 20
MAX_ROWS = 3000
"""Rows that `compare` uses of larger tables: kernel PCA needs a matrix of rows by rows."""


class ChoiceError(ValueError):
    """A parameter has a value that it cannot have. The command reports it as a wrong option."""

    def __init__(self, parameter: str, reason: str) -> None:
        super().__init__(f"{parameter}: {reason}")
        self.parameter, self.reason = parameter, reason


class Alike(StrEnum):
    """Which rows are alike."""

    COLUMNS = "columns"
    """Rows that agree in their columns."""
    NEIGHBORS = "neighbors"
    """Rows that can be reached from each other in small steps, from neighbor to neighbor."""

    @classmethod
    def _missing_(cls, value: object) -> Alike:
        raise ChoiceError("alike", f"{value!r} is neither {' nor '.join(repr(str(one)) for one in cls)}.")


@dataclass(frozen=True)
class Settings:
    """The choices that all workflows share."""

    n_components: int | None = None
    """None: `N_COMPONENTS` of the kind of rows."""
    alike: Alike = Alike.COLUMNS
    temperature: float | Literal["auto"] = "auto"
    n_draws: int = N_DRAWS
    max_inducing: int = MAX_INDUCING
    seed: int = 0
    is_fixed: bool = False
    """Whether a person chose kernel, temperature or draws: predictions then come from that one representation, and not from a pool."""

    def n_components_for(self, kind: Kind) -> int:
        """Return J for rows of this kind."""
        return N_COMPONENTS[kind] if self.n_components is None else self.n_components
