"""How quick the commands are: CPU seconds of each, and as a multiple of what importing scikit-learn and pandas takes."""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from .measurement import alternate, describe_seconds, in_fresh_process
from .report import Comparison, Finding

IMPORTS = 'python -c "import sklearn, pandas"'
SOURCES = Path(__file__).resolve().parents[1] / "src"
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

SETTING = """\
CPU seconds of the whole command with the start of Python and all imports, user and system, of all its threads, in a process of its own
with one thread for BLAS; files of results are written anew each time. "× imports" is the median over that of `{imports}` in the same run,
which takes turns with the commands. `cells.csv` is `gpssl datasets breast_cancer --labels 150`, 569 rows of 30 columns; `wide.csv` has
{n_rows:,} rows of 20 columns by `make_classification` with {n_labels} labels."""


class Command(NamedTuple):
    """One command, what it needs before, and what is asked of it."""

    words: tuple[str, ...]
    seconds: float | None = None
    """The most CPU seconds that are asked for."""
    imports: float | None = None
    """The most times the imports that are asked for."""
    before: tuple[str, ...] = ()
    """The command that makes what this one reads, which is not measured."""
    code: int = 0
    """The exit code: 2 for wrong options."""

    @property
    def name(self) -> str:
        """The line that a person types."""
        return " ".join(("gpssl", *self.words))


LABEL = ("label", "cells.csv", "-t", "target", "--max-risk", "0.05")
LABEL_NEIGHBORS = ("label", "wide.csv", "-t", "y", "--alike", "neighbors")
COMMANDS: Sequence[Command] = (
    Command(("--help",)),
    Command(("label", "cells.csv", "--no-such-option"), code=2),
    Command(("info", "labeled.gpssl"), before=(*LABEL, "-o", "labeled.csv")),
    Command(("embed", "cells.csv", "-o", "embedded.csv", "--ignore", "target"), imports=2),
    Command(("cluster", "cells.csv", "-o", "clustered.csv", "--ignore", "target")),
    Command(("transform", "labeled.gpssl", "cells.csv", "-o", "again.csv"), imports=2),
    Command((*LABEL, "-o", "out.csv"), imports=2),
    Command(("compare", "cells.csv", "-t", "target"), seconds=15),
    Command(("report", "labeled.gpssl", "cells.csv", "-o", "out.html"), seconds=15),
    Command((*LABEL_NEIGHBORS, "-o", "out.csv"), seconds=10),
    Command(
        ("report", "wide.gpssl", "wide.csv", "--no-rivals", "-o", "out.html"),
        seconds=10,
        before=(*LABEL_NEIGHBORS, "-o", "wide.out.csv", "-m", "wide.gpssl"),
    ),
)
"""They run in one folder; those that write get --force."""


def write_wide_csv(path: Path, n_rows: int, n_labels: int) -> None:
    """Write two classes in 20 columns of numbers; all but some labels are left empty."""
    import pandas as pd
    from sklearn.datasets import make_classification

    X, y = make_classification(n_rows, 20, n_informative=8, n_redundant=4, n_clusters_per_class=3, random_state=0)
    labels = np.where(y == 1, "yes", "no").astype(object)
    labels[np.random.default_rng(0).permutation(n_rows)[n_labels:]] = None
    frame = pd.DataFrame(X.round(4), columns=[f"x{column}" for column in range(20)])
    frame.assign(y=labels).to_csv(path, index=False)


def run_command(words: Sequence[str], folder: Path, code: int = 0) -> None:
    """Run one command in the folder, with the code of this checkout and one thread for BLAS; raise where it ends otherwise."""
    forced = [] if "-o" not in words else ["--force"]
    command = [sys.executable, "-m", "gpssl.cli", *words, *forced]
    done = subprocess.run(command, check=False, cwd=folder, env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if done.returncode != code:
        raise subprocess.CalledProcessError(done.returncode, command)


def run_imports() -> None:
    """Run what all times are compared with."""
    subprocess.run([sys.executable, "-c", "import sklearn, pandas"], check=True, env=_environment())


def _environment() -> dict[str, str]:
    return {**os.environ, **ONE_THREAD, "PYTHONPATH": str(SOURCES)}


def seconds_of_children(command: Command | None, folder: Path) -> float:
    """Return the CPU seconds of a command, the only child of this process; None runs the imports."""
    if command is None:
        run_imports()
    else:
        run_command(command.words, folder, command.code)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def compare(*, quick: bool, only: str = "", repeats: int = 3) -> Comparison:
    """Measure all commands, or those whose line has a text in it."""
    n_rows, n_labels = (400, 60) if quick else (5000, 300)
    commands = [command for command in COMMANDS if only in command.name]
    with TemporaryDirectory() as name:
        folder = Path(name)
        run_command(("datasets", "breast_cancer", "--labels", "150", "-o", "cells.csv"), folder)
        in_fresh_process("writing wide.csv", partial(write_wide_csv, folder / "wide.csv", n_rows, n_labels))
        for words in dict.fromkeys(_needed(commands)):
            run_command(words, folder)
        jobs = {IMPORTS: partial(seconds_of_children, None, folder)}
        jobs |= {command.name: partial(seconds_of_children, command, folder) for command in commands}
        runs = alternate(jobs, 1 if quick else repeats)
    base = median(runs[IMPORTS])
    return Comparison(
        title="The commands",
        setting=SETTING.format(imports=IMPORTS, n_rows=n_rows, n_labels=n_labels),
        header=("command", "CPU seconds (range)", "× imports"),
        rows=[(f"`{name}`", describe_seconds(seconds), f"{median(seconds) / base:.1f}") for name, seconds in runs.items()],
        findings=[finding for command in commands for finding in _findings(command, median(runs[command.name]), base)],
    )


def _needed(commands: Sequence[Command]) -> list[tuple[str, ...]]:
    """Return the commands that make what these read."""
    makers = {"labeled.gpssl": (*LABEL, "-o", "labeled.csv")}
    return [words for command in commands for words in (command.before, *(makers.get(word, ()) for word in command.words)) if words]


def _findings(command: Command, seconds: float, base: float) -> list[Finding]:
    found = []
    if command.seconds is not None:
        found.append(Finding(f"`{command.name}`: at most {command.seconds:g} CPU seconds", f"{seconds:.1f}", seconds <= command.seconds))
    if command.imports is not None:
        ratio = seconds / base
        found.append(Finding(f"`{command.name}`: at most {command.imports:g} × imports", f"{ratio:.1f}", ratio <= command.imports))
    return found


def main() -> None:
    """Measure some commands, and print them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commands", description=__doc__)
    parser.add_argument("--only", default="", help="commands whose line has this text in it")
    parser.add_argument("--repeats", type=int, default=1)
    arguments = parser.parse_args()
    result = compare(quick=False, only=arguments.only, repeats=arguments.repeats)
    print(*(" | ".join(row) for row in (result.header, *result.rows)), *result.findings, sep="\n")


if __name__ == "__main__":
    from benchmarks import commands  # by its own name, under which a fresh process finds its functions

    commands.main()
