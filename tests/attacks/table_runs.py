"""Let a process of its own read many inputs, and say which of them it could not cope with."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

WORKER = Path(__file__).with_name("table_worker.py")
MOST_FAILURES = 20
"""Then nothing more is tried: something is wrong everywhere."""
INPUTS_OF_A_WORKER = 1000
"""Then a new one starts, so that memory which one input leaves does not count for another for long."""
WALL_SECONDS = 300
"""A worker that neither works nor answers hangs; the machine may be busy."""
ENDINGS = {signal.SIGPROF: "took more than 5 s of work", signal.SIGKILL: "was killed, perhaps for its memory"}


@dataclass(frozen=True)
class Input:
    """A file, and what is known of it."""

    name: str
    """Of the file, which tells its format."""
    content: bytes
    what: str
    """What was done to it, for the message about a failure."""
    cells: dict[str, list[str | None]] | None = None
    """All its cells as text, where they are known."""
    must_be_read: bool = False
    """Whether to refuse it is wrong too."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """What is needed besides."""


@dataclass(frozen=True)
class Tried:
    """How inputs ended."""

    n_inputs: int
    n_read: int
    failures: list[str]


class Worker:
    """The process that reads. It is started again when an input ends it."""

    def __init__(self, folder: Path, deeds: tuple[str, ...]) -> None:
        self._folder, self._deeds, self._n_answered = folder, deeds, 0
        self._process: subprocess.Popen[str] | None = None
        for name in ("inputs", "temporary"):
            (folder / name).mkdir(exist_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def failure_of(self, one: Input) -> tuple[str | None, bool]:
        """Return how an input failed, if it did, and whether it was read."""
        path = self._folder / "inputs" / one.name
        path.write_bytes(one.content)
        called = [str(path), one.name, one.name.partition(".")[0]]
        request = {
            "path": str(path),
            "called": called,
            "deeds": self._deeds,
            "cells": one.cells,
            "must_be_read": one.must_be_read or one.cells is not None,
            **one.more,
        }
        answer = self._ask(json.dumps(request))
        if answer is None:
            code = self._stop()
            found = ENDINGS.get(signal.Signals(-code)) if code < 0 else None
            return f"the process {found or f'ended with {code}'}", False
        if answer["fault"] is None:
            path.unlink()
        else:
            self._stop()  # an error of memory may leave anything
        return answer["fault"], answer["was_read"]

    def _ask(self, request: str) -> dict[str, Any] | None:
        if self._process is None or self._n_answered >= INPUTS_OF_A_WORKER:
            self._stop()
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(request + "\n")
            self._process.stdin.flush()
        self._n_answered += 1
        line = self._line()
        return json.loads(line) if line else None

    def _line(self) -> str:
        """Return the next line of the process; nothing where it has ended, or does not answer."""
        assert self._process is not None
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], WALL_SECONDS)
        return self._process.stdout.readline() if ready else ""

    def _start(self) -> None:
        environment = {
            **os.environ,
            "TMPDIR": str(self._folder / "temporary"),
            "ARROW_DEFAULT_MEMORY_POOL": "system",  # other pools keep address space that nobody uses
            "MALLOC_ARENA_MAX": "2",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONFAULTHANDLER": "",
        }
        with open(self._folder / "errors.txt", "ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, str(WORKER), *self._deeds],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
            )
        self._n_answered = 0
        assert self._line() == "ready\n", (self._folder / "errors.txt").read_text()[-2000:]

    def _stop(self) -> int:
        """End the process; return its exit code."""
        if self._process is None:
            return 0
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()  # which it takes for the end
        try:
            code = self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
        return code


def tried(folder: Path, inputs: Iterable[Input], deeds: tuple[str, ...] = ("open", "files")) -> Tried:
    """Let a process do this with all inputs: functions of `table_worker.py`. What fails stays in the folder of inputs, under its name."""
    n_inputs = n_read = 0
    failures = []
    with Worker(folder, deeds) as worker:
        for number, one in enumerate(inputs):
            fault, was_read = worker.failure_of(one)
            n_inputs += 1
            n_read += was_read
            if fault is not None:
                kept = folder / f"failed-{number}-{one.name}"[:200]
                (folder / "inputs" / one.name).rename(kept)
                failures.append(f"{number} {kept.name} ({one.what}): {fault}")
            if len(failures) >= MOST_FAILURES:
                break
    return Tried(n_inputs, n_read, failures)
