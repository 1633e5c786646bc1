"""What is to be run: the tasks of an experiment, and what all experiments have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .ledger import Record, Task


class UnknownTableError(ValueError):
    """A data set that an experiment does not have."""


@dataclass(frozen=True)
class Plan:
    """How much of an experiment is run."""

    splits: int = 20
    """Random splits of each table, or samples of the circles."""
    seed: int = 0
    quick: bool = False
    """Few data sets, few settings, few draws: to see that everything works."""
    tables: Sequence[str] | None = None
    """Data sets to which an experiment is restricted; None stands for its own choice."""

    @property
    def protocol(self) -> dict[str, Any]:
        """What a finished task depends on, besides its name and the versions of packages."""
        return {"seed": self.seed, "quick": self.quick}

    def choose(self, names: Sequence[str], quick: Sequence[str]) -> Sequence[str]:
        """Return the data sets to run of an experiment that has `names`; fewer in a quick run."""
        if self.tables is None:
            return quick if self.quick else names
        unknown = [name for name in self.tables if name not in names]
        if unknown:
            raise UnknownTableError(f"There is no data set {', '.join(unknown)} in this experiment; it has {', '.join(names)}.")
        return tuple(dict.fromkeys(self.tables))


class Experiment(Protocol):
    """A module with these functions is an experiment."""

    def tasks(self, plan: Plan, /) -> list[Task]:
        """Return all tasks, those that take long first where it matters."""

    def load(self, data: str, /) -> object:
        """Read a data set, or raise an error that says what is missing."""

    def run(self, task: Task, plan: Plan, /) -> Record:
        """Run one task. What it returns is written as JSON."""

    def report(self, records: Sequence[Record], /) -> dict[str, str]:
        """Return tables in Markdown, by name, from the records of all tasks."""

    def draw(self, records: Sequence[Record], plan: Plan, folder: Path, /) -> list[Path]:
        """Draw pictures from the records of all tasks."""
