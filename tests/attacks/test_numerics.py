"""Whatever a table holds, what comes of it are finite numbers that mean something, the same ones each time, or one sentence.

`numeric_tables` has the tables, `numeric_checks` what is done with them and what must hold.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from budget import generator, n_inputs
from numeric_tables import ARRAYS, COLUMNS, FRAMES

HERE = Path(__file__).parent
LEARNED = ("learn",)
PREDICTED = {"classify": 6, "regress": 6, "label": 3, "embed": 6}
"""How many tables are predicted from in each way."""
ROUNDS = 2
"""How often each kind of array is learned from; data frames, whose columns are of many types, as often together."""
REPEATED = 4


class Worker:
    """A process that works on tables, and is started again where one ends it."""

    def __init__(self, **environment: str) -> None:
        self.environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment}
        self.process: subprocess.Popen[str] | None = None

    def ask(self, kind: str, consumer: str, seed: list[int]) -> dict[str, Any]:
        """Return how the work on a table ended."""
        if self.process is None:
            command = [sys.executable, str(HERE / "numeric_worker.py")]
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=self.environment
            )
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([kind, consumer, seed]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if answer:
            return dict(json.loads(answer))
        code = self.process.wait()
        self.close()
        return {"fault": f"the process ended with {code}, as it does after sixty seconds of work", "bits": ""}

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.close()


def faults(worker: Worker, requests: list[tuple[str, str, list[int]]]) -> dict[str, str]:
    """Return what is wrong with the results, by kind of table, use and seed."""
    answers = [(request, worker.ask(*request)) for request in requests]
    return {str(request): answer["fault"] for request, answer in answers if answer["fault"]}


def _requests(name: str, kinds: list[str], consumers: tuple[str, ...]) -> list[tuple[str, str, list[int]]]:
    rng = generator(name)
    return [(kind, str(rng.choice(consumers)), [int(seed) for seed in rng.integers(2**31, size=2)]) for kind in kinds]


def test_representations_of_any_array(worker: Worker) -> None:
    assert faults(worker, _requests("arrays", list(ARRAYS) * n_inputs(ROUNDS), LEARNED)) == {}


def test_representations_of_any_data_frame(worker: Worker) -> None:
    kinds = list(FRAMES) * (n_inputs(ROUNDS) * len(COLUMNS) // len(FRAMES))
    assert faults(worker, _requests("data frames", kinds, LEARNED)) == {}


@pytest.mark.parametrize("consumer", PREDICTED)
def test_predictions_from_any_table(worker: Worker, consumer: str) -> None:
    rng = generator(f"predictions, {consumer}")
    kinds = [str(kind) for kind in rng.choice([*ARRAYS, *FRAMES] + 4 * list(FRAMES), size=n_inputs(PREDICTED[consumer]))]
    assert faults(worker, _requests(f"predictions, {consumer}", kinds, (consumer,))) == {}


def test_bits_do_not_depend_on_hashes_of_texts_or_on_threads() -> None:
    requests = _requests("processes", ["pandas", "ordinary"] * n_inputs(REPEATED), LEARNED)
    answers = []
    for environment in ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2", "OPENBLAS_NUM_THREADS": "2"}):
        worker = Worker(**environment)
        answers.append([worker.ask(*request) for request in requests])
        worker.close()
    differing = [request for request, one, other in zip(requests, *answers, strict=True) if one["bits"] != other["bits"]]
    assert differing == []
    assert np.any([answer["bits"] for answer in answers[0]])
