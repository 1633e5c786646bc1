"""Little memory: a command ends in success, or in one sentence that says what to lower."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from budget import generator, n_inputs
from command_cases import CASES, Case, content_of, fresh_folder, left_in, state_of, wrong_files, wrong_words
from command_server import LONGEST_SECONDS, Ended, Server

pytest_plugins = ["command_fixtures"]

MEGABYTE = 2**20
MOMENTS = {"label": 59_000, "next": 78_000, "annotate": 80_000, "cluster": 27_000, "report": 41_000, "transform": 9400, "datasets": 470}
"""About how many moments a run has; the later ones of those that are tried find a run that has ended."""


def wrong_without_memory(ended: Ended, case: Case, folder: Path, inputs: Path) -> list[str]:
    """Return what is wrong after a run that may have had too little memory."""
    new = {name: content_of(folder / name) for name in case.outputs} if ended.code == 0 else {}
    states = state_of(folder, case, new)
    wrong = wrong_files(states, with_old=False)
    if ended.code != 0:
        wrong += wrong_words(ended)
        wrong += [] if ended.code == 1 else [f"exit code {ended.code}: {ended.stderr[-500:]}"]
        wrong += [] if "not enough memory" in ended.stderr and "--max-inducing" in ended.stderr else [f"no advice: {ended.stderr[-500:]}"]
        wrong += [] if {*states.values()} <= {"missing"} else [f"{states}"]
    left = left_in(folder, inputs, case)
    return wrong + ([f"left behind: {left}"] if left else [])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_more_memory_at_any_moment(case: Case, server: Server, inputs: Path, tmp_path: Path) -> None:
    rng, most = generator(f"memory {case.name}"), MOMENTS.get(case.name, 20_000)
    failures = []
    for place in range(n_inputs(2)):
        at = int(most ** rng.uniform(0, 1))
        folder = fresh_folder(inputs, tmp_path / f"{place}", case, with_old=False)
        ended = server.run(*case.arguments, folder=folder, lack_memory={"at": at}, **case.fault_of_input)
        wrong = wrong_without_memory(ended, case, folder, inputs)
        if wrong:
            failures.append((at, wrong))
    assert not failures, f"{len(failures)} of {n_inputs(2)}: {failures[:3]}"


def limited(amount: int, *arguments: str, folder: Path) -> Ended:
    """How a command of its own ends that may map so many bytes in all, its libraries among them."""
    code = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({amount}, {amount})); from gpssl.cli import main; main()"
    words = [sys.executable, "-c", code, *arguments]
    found = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=LONGEST_SECONDS, check=False)
    return Ended(found.returncode, found.stdout, found.stderr, 0, (), 0.0)


def test_libraries_that_do_not_fit_into_memory(inputs: Path, tmp_path: Path) -> None:
    """Some libraries abort, or wait forever, where they have no memory: they are not begun then."""
    rng, case, failures = generator("memory of libraries"), CASES[0], []
    for place in range(n_inputs(4)):
        amount = int(2 ** rng.uniform(7, 11)) * MEGABYTE
        folder = fresh_folder(inputs, tmp_path / f"{place}", case, with_old=False)
        wrong = wrong_without_memory(limited(amount, *case.arguments, folder=folder), case, folder, inputs)
        if wrong:
            failures.append((f"{amount / MEGABYTE:.0f} MB", wrong))
    assert not failures, f"{len(failures)} of {n_inputs(4)}: {failures[:3]}"


def test_the_system_limits_memory() -> None:
    """Without this, the attacks above would try nothing."""
    code = "import resource; resource.setrlimit(resource.RLIMIT_AS, (10**9, 10**9)); bytearray(2 * 10**9)"
    assert "MemoryError" in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr
