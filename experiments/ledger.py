"""Finished tasks of a long run in a file of JSON lines: killed at any moment, it resumes where it was."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

Record = dict[str, Any]


class Task(NamedTuple):
    """One task that is run as a whole and written into the ledger when it is done."""

    data: str
    split: int
    method: str


def task_of(record: Mapping[str, Any]) -> Task:
    """Return the task that a record is of."""
    return Task(record["data"], record["split"], record["method"])


@dataclass(frozen=True)
class Ledger:
    """One line for each finished task. Lines of runs with another protocol are left alone and not used."""

    path: Path
    protocol: Mapping[str, Any]
    """What a record must have been made with to count: seed, quick or not, versions."""

    def records(self) -> list[Record]:
        """Return all finished tasks of this protocol, each once. A line that a killed run did not finish is left out."""
        if not self.path.exists():
            return []
        parsed = [_parse(line) for line in self.path.read_text(encoding="utf-8", errors="replace").split("\n")]
        mine = [record for record in parsed if record is not None and record.get("protocol") == self.protocol]
        return list({task_of(record): record for record in mine}.values())

    def append(self, record: Record) -> None:
        """Write a finished task, at once and as a whole; on return it is on the disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = as_line({**record, "protocol": self.protocol})
        with self.path.open("ab+") as file:
            unfinished = file.tell() > 0 and _last_byte(file) != b"\n"
            file.write((b"\n" if unfinished else b"") + text.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def as_line(record: Record) -> str:
    """Return a record as JSON, in which there is no NaN."""
    return json.dumps(record, ensure_ascii=False, allow_nan=False)


def _parse(line: str) -> Record | None:
    """Return a record, or None for anything else."""
    try:
        record = json.loads(line)
        task_of(record)
    except (json.JSONDecodeError, KeyError, TypeError):
        return None
    return record


def _last_byte(file: Any) -> bytes:
    file.seek(-1, os.SEEK_END)
    return file.read(1)
