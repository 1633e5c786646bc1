"""Runs attacks on files in a process of its own, and finds the inputs that end in neither a right answer nor the documented error."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
MOST_SECONDS = 5.0
MOST_SECONDS_TO_START = 120.0
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
    current, seconds = -1, MOST_SECONDS_TO_START
    try:
        while True:
            if not selector.select(timeout=seconds):
                found.add(current, f"said nothing for {seconds:g} seconds")
                return current + 1 if current >= 0 else stop
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
            current, seconds = told.get("begins", current), MOST_SECONDS
            if "outcome" in told:
                found.add(current, told["outcome"])
    finally:
        selector.close()
        process.stdout.close()
        process.kill()
        process.wait()
