"""Runs attacks on files in a process of its own, and finds the inputs that end in neither a right answer nor the documented error."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
MOST_SECONDS = 5.0
"""Of work, and a minute in all: other processes may have the machine meanwhile."""
MOST_SECONDS_TO_WAIT = 60.0
MOST_SECONDS_TO_START = 300.0
FINE = ("works", "refused")


@dataclass
class Found:
    """What became of the inputs of an attack."""

    outcomes: Counter[str] = field(default_factory=Counter)
    failures: dict[int, str] = field(default_factory=dict)
    """What the inputs that failed ended in, by their numbers."""

    def add(self, number: int, outcome: str) -> None:
        self.outcomes[outcome if outcome in FINE else "failed"] += 1
        if outcome not in FINE:
            self.failures[number] = outcome


def attack_files(attack: str, folder: Path, seed: int, first: int, stop: int, scratch: Path) -> Found:
    """Try the inputs of these numbers. A process that ends or says nothing for too long is a failure, and the next goes on."""
    found = Found()
    while first < stop:
        first = _attack_until_it_ends(attack, folder, seed, first, stop, scratch, found)
    return found


def _attack_until_it_ends(attack: str, folder: Path, seed: int, first: int, stop: int, scratch: Path, found: Found) -> int:
    """Return the number of the input to go on with."""
    errors = scratch / f"{attack}-{first}.err"
    command = [sys.executable, str(HERE / "file_worker.py"), attack, str(folder), str(seed), str(first), str(stop)]
    paths = os.pathsep.join([str(HERE), str(HERE.parent), *sys.path])
    with open(errors, "wb") as stderr:
        process = subprocess.Popen(
            [*command, str(scratch / f"{attack}-{first}.gpssl")],
            stdout=subprocess.PIPE,
            stderr=stderr,
            env={**os.environ, "PYTHONPATH": paths},
            bufsize=0,  # what a buffer has read already, nobody would wait for
        )
    assert process.stdout is not None
    selector = selectors.DefaultSelector()
    selector.register(process.stdout, selectors.EVENT_READ)
    current = -1
    try:
        while True:
            if not _says_something(process.pid, selector, is_started=current >= 0):
                assert current >= 0, "the process that asks files did not start"
                found.add(current, f"said nothing for {MOST_SECONDS:g} seconds")
                return current + 1
            line = process.stdout.readline()
            if not line:
                if current < 0:
                    raise AssertionError(f"the process that asks files did not start: {errors.read_text()[-2000:]}")
                process.wait()
                if process.returncode == 0:
                    return stop
                found.add(current, f"ended with {process.returncode}: {errors.read_text()[:300]}")
                return current + 1
            told = json.loads(line)
            current = told.get("begins", current)
            if "outcome" in told:
                found.add(current, told["outcome"])
    finally:
        selector.close()
        process.stdout.close()
        process.kill()
        process.wait()


def _says_something(process: int, selector: selectors.BaseSelector, *, is_started: bool) -> bool:
    """Wait for the next line. Return False where the process works for too long without one, or waits for too long."""
    if not is_started:
        return bool(selector.select(timeout=MOST_SECONDS_TO_START))
    worked, began = _seconds_of_work(process), time.monotonic()
    while not selector.select(timeout=MOST_SECONDS):
        if _seconds_of_work(process) - worked > 0.9 * MOST_SECONDS or time.monotonic() - began > MOST_SECONDS_TO_WAIT:
            return False
    return True


def _seconds_of_work(process: int) -> float:
    """Return the processor time that a process has had."""
    numbers = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")
