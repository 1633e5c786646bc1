"""What a person may choose about the model, and the model that it stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from sklearn.gaussian_process.kernels import Kernel

from .. import GPSSL
from ..kernels import NeighborDiffusion, for_table
from .choices import Alike

RESIDUAL_TOLERANCE = 1e-3
"""Tables that nobody prepared have many small directions; the last of them would take twice the inducing points."""


@dataclass(frozen=True)
class Settings:
    """The choices that all commands share."""

    n_components: int | None = None
    """None: five for tables, ten for tissue."""
    alike: Alike = Alike.COLUMNS
    temperature: float | Literal["auto"] = "auto"
    n_draws: int = 100
    max_inducing: int = 512
    seed: int = 0


def kernel_for(frame: Any, alike: Alike) -> Kernel:
    """A kernel that suits the columns of a data frame."""
    of_columns = for_table(frame)
    return NeighborDiffusion(kernel=of_columns) if alike is Alike.NEIGHBORS else of_columns


def new_representation(kernel: Kernel, settings: Settings) -> GPSSL:
    """GPSSL with these settings, not yet fitted."""
    return GPSSL(
        settings.n_components or 5,
        kernel=kernel,
        temperature=settings.temperature,
        residual_tolerance=RESIDUAL_TOLERANCE,
        max_inducing=settings.max_inducing,
        random_state=settings.seed,
    )
