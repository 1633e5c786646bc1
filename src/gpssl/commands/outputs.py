"""Where results may go: checked before hours of work, not after."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..files import check_writable


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
