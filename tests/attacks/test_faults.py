"""Commands that are killed, interrupted and terminated at any moment: files are whole and belong together, and nothing is left behind."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from budget import generator, n_inputs
from command_cases import CASES, SLOW_CASES, Case, content_of, fresh_folder, left_in, state_of, wrong_files, wrong_words
from command_server import Ended, Server

pytest_plugins = ["command_fixtures"]

STOPPED = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)


def wrong_after_stop(
    server: Server, ended: Ended, number: signal.Signals, case: Case, folder: Path, inputs: Path, new: dict[str, Any], *, with_old: bool
) -> list[str]:
    """Return what is wrong after a run that a signal was sent to, perhaps when all was done."""
    if number == signal.SIGKILL:
        wrong = [] if ended.code in (0, -9) else [f"exit code {ended.code}"]
        again = server.run("datasets", "wine", "-o", "again.csv", folder=folder)
        (folder / "again.csv").unlink()
        wrong += [] if again.code == 0 else [f"the next command fails: {again.stderr}"]
    else:
        wrong = [] if ended.code in (0, STOPPED[number]) else [f"exit code {ended.code}"]
        wrong += wrong_words(ended, sentences=int(ended.code != 0))
    states = state_of(folder, case, new)
    wrong += wrong_files(states, with_old=with_old)
    if ended.code == 0 and {*states.values()} != {"new"} and case.outputs:
        wrong.append(f"all was done, and files are {states}")
    left = left_in(folder, inputs, case)
    return wrong + ([f"left behind: {left}"] if left else [])


@pytest.mark.parametrize("case", [*CASES, *SLOW_CASES], ids=lambda case: case.name)
def test_stopped_at_any_moment(case: Case, server: Server, inputs: Path, tmp_path: Path) -> None:
    rng = generator(f"stopped {case.name}")
    new: dict[str, Any] = {}
    moments, steps, seconds = 5000, [], 2.0
    if case not in SLOW_CASES:
        folder = fresh_folder(inputs, tmp_path / "counted", case, with_old=False)
        counted = server.run(*case.arguments, folder=folder, count=True, **case.fault_of_input)
        assert counted.code == 0, counted.stderr
        assert left_in(folder, inputs, case) == []
        new = {name: content_of(folder / name) for name in case.outputs}
        moments, steps, seconds = counted.n_moments, [*counted.steps], counted.cpu_seconds
    failures = []
    for place in range(n_inputs(4)):
        number = SIGNALS[place % 3]
        with_old = bool(rng.random() < 0.7)
        if place % 4 == 3:
            fault: dict[str, Any] = {"after": {"number": int(number), "seconds": float(rng.uniform(0, seconds))}}
        else:
            at = int(rng.choice(steps) if steps and rng.random() < 0.6 else rng.integers(1, moments + 1))
            fault = {"send": {"number": int(number), "at": [at]}}
        folder = fresh_folder(inputs, tmp_path / f"{place}", case, with_old=with_old)
        ended = server.run(*case.arguments, *(["--force"] if case.outputs else []), folder=folder, **fault, **case.fault_of_input)
        wrong = wrong_after_stop(server, ended, number, case, folder, inputs, new, with_old=with_old)
        if wrong:
            failures.append((number.name, fault, wrong))
    assert not failures, f"{len(failures)} of {n_inputs(4)}: {failures[:3]}"


TWO_WAYS = (("embed", "table.csv", "-o", "out.csv", "--components", "2"), ("embed", "table.csv", "-o", "out.csv", "--components", "1"))


def test_two_commands_that_write_the_same_files_at_once(server: Server, inputs: Path, tmp_path: Path) -> None:
    """Results and model are of the same one of the two; what is written without --force may be refused to one of them."""
    case = Case("two", TWO_WAYS[0], ("out.csv", "out.gpssl"))
    expected = []
    for place, words in enumerate(TWO_WAYS):
        folder = fresh_folder(inputs, tmp_path / f"alone-{place}", case, with_old=False)
        assert server.run(*words, folder=folder).code == 0
        expected.append({name: content_of(folder / name) for name in case.outputs})
    assert expected[0] != expected[1]
    failures = []
    folder = fresh_folder(inputs, tmp_path / "together", case, with_old=True)
    for place in range(n_inputs(4)):
        ended = server.together([((*words, "--force"), {}) for words in TWO_WAYS], folder)
        found = {name: content_of(folder / name) for name in case.outputs}
        if [one.code for one in ended] != [0, 0] or found not in expected or left_in(folder, inputs, case):
            failures.append((place, [one.stderr for one in ended], left_in(folder, inputs, case)))
    assert not failures, f"{len(failures)} of {n_inputs(4)}: {failures[:3]}"
