"""Model files, moments and checkpoints that somebody changed, or that were damaged: each works, or is refused in a sentence.

Models of every kind are changed part by part, with checksums that fit, as somebody does it who knows the format; and their files are
damaged as a whole. What still loads must answer everything with finite numbers within their bounds (`answers.py`). The inputs are tried in
a process of their own with little memory and little time for each (`file_worker.py`). To try one again:

    python tests/attacks/file_worker.py ATTACK FOLDER SEED NUMBER NUMBER+1 FILE     # FOLDER as `stored_models.py` writes it
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from budget import n_inputs
from file_attack import attack_files
from stored_models import write_models
from stored_sums import write_sums

INPUTS = {
    "changed": 500,
    "damaged": 150,
    "moments changed": 120,
    "moments damaged": 60,
    "checkpoint changed": 120,
    "checkpoint damaged": 60,
}
PARTS = 2
"""Processes that share the inputs of the largest attack."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def sums(folder: Path) -> Path:
    write_sums(folder)
    return folder


@pytest.fixture(scope="module")
def models(sums: Path) -> Path:
    write_models(sums)
    return sums


def attack(name: str, folder: Path, scratch: Path, first: int, stop: int) -> None:
    seed = int(os.environ.get("GPSSL_ATTACK_SEED", "0"))
    found = attack_files(name, folder, seed, first, stop, scratch)
    assert found.failures == {}, f"seed {seed}"
    assert found.outcomes["refused"] > 0
    assert found.outcomes["works"] + found.outcomes["refused"] == stop - first


@pytest.mark.parametrize("part", range(PARTS))
def test_models_that_somebody_changed_work_or_are_refused(part: int, models: Path, tmp_path: Path) -> None:
    n_each = n_inputs(INPUTS["changed"]) // PARTS
    attack("changed", models, tmp_path, part * n_each, (part + 1) * n_each)


def test_damaged_models_work_or_are_refused(models: Path, tmp_path: Path) -> None:
    attack("damaged", models, tmp_path, 0, n_inputs(INPUTS["damaged"]))


@pytest.mark.parametrize("name", [name for name in INPUTS if " " in name])
def test_moments_and_checkpoints_work_or_are_refused(name: str, sums: Path, tmp_path: Path) -> None:
    attack(name, sums, tmp_path, 0, n_inputs(INPUTS[name]))
