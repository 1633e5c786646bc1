"""Clocks that jump, and files from before 1970 or from the future: the same results."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from budget import generator, n_inputs
from command_cases import CASES, OLD, Case, content_of, fresh_folder, left_in
from command_server import Server

pytest_plugins = ["command_fixtures"]
YEAR = 365.25 * 86400


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in ("embed", "embed-pipe", "label", "report")], ids=lambda case: case.name
)
def test_the_time_of_day_changes_nothing(case: Case, server: Server, inputs: Path, tmp_path: Path) -> None:
    rng = generator(f"clock {case.name}")
    folder = fresh_folder(inputs, tmp_path / "now", case, with_old=False)
    assert server.run(*case.arguments, folder=folder, **case.fault_of_input).code == 0
    expected = {name: content_of(folder / name) for name in case.outputs}
    for place in range(n_inputs(1)):
        folder = fresh_folder(inputs, tmp_path / f"{place}", case, with_old=True)
        for path in folder.iterdir():
            then = float(rng.uniform(-50, 400) * YEAR)
            os.utime(path, (then, then))
        jump = {"seconds": float(rng.uniform(-20, 20) * YEAR), "every": int(rng.integers(1, 5))}
        ended = server.run(*case.arguments, "--force", folder=folder, jump=jump, **case.fault_of_input)
        assert ended.code == 0, (jump, ended.stderr)
        assert {name: content_of(folder / name) for name in case.outputs} == expected, jump
        assert OLD not in [(folder / name).read_bytes() for name in case.outputs]
        assert left_in(folder, inputs, case) == []
