"""What is inside a model that was read from a file."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sklearn.gaussian_process.kernels import Kernel

from ..data._writing import check_writable
from ..estimator import GPSSL
from ..io._card import OutsideTrainingRangeWarning
from ..kernels.neighbors import NeighborDiffusion
from ..kernels.tables import for_table
from ._choices import Alike, with_options

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


INDUCING = re.compile(r"(\d+) inducing points leave (\S+) of the prior variance open")


def _for_people(text: str) -> str:
    """With the options of the command in the place of parameters."""
    found = INDUCING.match(text)
    if found is None:
        return with_options(text)
    advice = f"--max-inducing {2 * int(found[1])} would follow the rows better"
    return f"{found[1]} inducing points leave {found[2]} of the prior variance open: {advice}."


@contextmanager
def noting(notes: list[str]) -> Iterator[None]:
    """Within this block, warnings become sentences in `notes`, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)  # what libraries say to their developers is left out
        try:
            yield
        finally:
            # Of rows outside the ranges, pieces of a table tell one by one: the first is enough.
            outside = [warning for warning in caught if issubclass(warning.category, OutsideTrainingRangeWarning)]
            texts = [_for_people(str(warning.message)) for warning in caught if warning not in outside[1:]]
            notes.extend(text for text in dict.fromkeys(texts) if text not in notes)


def model_path(out: Path, model: Path | None) -> Path:
    """Where the model goes unless a person says otherwise: beside the results."""
    return out.with_suffix(".gpssl") if model is None else model


def check_outputs(inputs: Sequence[Path], outputs: Sequence[Path], *, force: bool) -> None:
    """A sentence for files that are there, that cannot be written, or that are still needed."""
    for path in outputs:
        check_writable(path, force=force)
        if path.resolve() in [given.resolve() for given in inputs]:
            raise ValueError(f"{path} is what the command reads: write to another file.")
    if len({path.resolve() for path in outputs}) < len(outputs):
        raise ValueError(f"{outputs[0]} cannot be both the results and the model: name another file with --model.")


def representation_of(loaded: Any) -> GPSSL:
    """The representation of any model: itself, or what its heads stand on."""
    inner = getattr(loaded, "representation_", loaded)
    return getattr(inner, "estimator", inner)  # of a frozen one
