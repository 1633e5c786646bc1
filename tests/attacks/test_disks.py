"""Disks that are full, folders that cannot be written in, and outputs that are no files: one sentence, and the old files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from budget import generator, n_inputs
from command_cases import CASES, OLD, Case, content_of, fresh_folder, left_in, state_of, wrong_files, wrong_words
from command_server import NO_MOUNT, Server

pytest_plugins = ["command_fixtures"]

BY_NAME = {case.name: case for case in CASES}
NOBODY = 65534


def refused(server: Server, case: Case, folder: Path, inputs: Path, words: str, *, code: int = 1, **fault: Any) -> None:
    """A command that has to fail, with these words, and leave everything as it was."""
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file() and os.access(path, os.R_OK)}
    ended = server.run(*case.arguments, "--force", folder=folder, **fault, **case.fault_of_input)
    assert (ended.code, wrong_words(ended)) == (code, []), ended.stderr
    assert words in ended.stderr
    assert {path: path.read_bytes() for path in before} == before
    assert [name for name in left_in(folder, inputs, case) if not name.startswith("out")] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_files_that_become_too_large(case: Case, server: Server, inputs: Path, tmp_path: Path) -> None:
    rng = generator(f"full {case.name}")
    failures = []
    for place in range(n_inputs(1)):
        with_old = bool(rng.random() < 0.5)
        folder = fresh_folder(inputs, tmp_path / f"{place}", case, with_old=with_old)
        amount = int(2 ** rng.uniform(11, 14.5))
        ended = server.run(
            *case.arguments, "--force", folder=folder, limit={"name": "RLIMIT_FSIZE", "amount": amount}, **case.fault_of_input
        )
        new = {name: content_of(folder / name) for name in case.outputs} if ended.code == 0 else {}
        wrong = [] if ended.code == 0 else wrong_words(ended)
        if ended.code not in (0, 1):
            wrong.append(f"exit code {ended.code}")
        if ended.code == 1 and ("larger than files may be" not in ended.stderr and "no room" not in ended.stderr):
            wrong.append(f"it does not say that there is no room: {ended.stderr}")
        states = state_of(folder, case, new)
        if ended.code == 1 and {*states.values()} != {"old" if with_old else "missing"}:
            wrong.append(f"{states}")
        wrong += wrong_files(states, with_old=with_old)
        left = left_in(folder, inputs, case)
        if wrong or left:
            failures.append((amount, wrong, left))
    assert not failures, f"{len(failures)} of {n_inputs(1)}: {failures[:3]}"


@pytest.mark.parametrize("name", ["embed", "embed-pipe", "embed-workbook", "embed-database", "report", "datasets"])
def test_a_disk_without_room(name: str, server: Server, inputs: Path, tmp_path: Path) -> None:
    case, rng = BY_NAME[name], generator(f"no room {name}")
    place = "tmp" if name == "embed-pipe" else "full"
    for number in range(n_inputs(1)):
        folder = fresh_folder(inputs, tmp_path / f"{number}", case, with_old=False)
        (folder / "full").mkdir()
        words = [f"full/{word}" if word in case.outputs else word for word in case.arguments]
        disk = {"path": str(folder / place), "amount": 4096 * int(rng.integers(1, 3))}
        ended = server.run(*words, folder=folder, small_disk=disk, **case.fault_of_input)
        if NO_MOUNT in ended.stderr:
            pytest.skip(NO_MOUNT)
        if ended.code == 0:
            continue
        assert (ended.code, wrong_words(ended)) == (1, []), ended.stderr
        assert "no room" in ended.stderr
        assert "LEFT []" in ended.stderr


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may look into."""
    folder = Path(tempfile.mkdtemp(prefix="attack-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["embed", "embed-pipe", "transform", "annotate", "report"])
def test_folders_in_which_nothing_may_be_written(name: str, server: Server, inputs: Path, open_folder: Path) -> None:
    case = BY_NAME[name]
    folder = fresh_folder(inputs, open_folder / "run", case, with_old=True)
    (folder / "tmp").chmod(0o777)
    folder.chmod(0o555)
    fault: dict[str, Any] = {"become": {"user": NOBODY}} if os.geteuid() == 0 else {}
    try:
        refused(server, case, folder, inputs, "Nothing may be written in the folder", **fault)
        (folder / "table.csv").chmod(0)
        folder.chmod(0o777)
        if name != "embed-pipe":
            refused(server, case, folder, inputs, "not readable", code=2, **fault)
    finally:
        folder.chmod(0o755)
        (folder / "table.csv").chmod(0o644)


def out_of(case: Case, name: str) -> Case:
    """The same call with another name of the results."""
    return Case(case.name, tuple(name if word == case.outputs[0] else word for word in case.arguments), case.outputs, case.stdin)


@pytest.mark.parametrize("name", ["embed", "next", "datasets"])
def test_outputs_that_are_no_files(name: str, server: Server, inputs: Path, tmp_path: Path) -> None:
    case = BY_NAME[name]
    folder = fresh_folder(inputs, tmp_path / "run", case, with_old=False)
    out = folder / case.outputs[0]
    out.mkdir()
    refused(server, case, folder, inputs, "is a folder: name a file")
    out.rmdir()
    os.mkfifo(out)
    refused(server, case, folder, inputs, "device or a pipe")
    out.unlink()
    out.symlink_to("/dev/null")
    refused(server, case, folder, inputs, "device or a pipe")
    out.unlink()
    out.symlink_to("nowhere/else.csv")
    refused(server, case, folder, inputs, "is not there")
    out.unlink()
    out.symlink_to(out.name)
    refused(server, case, folder, inputs, out.name)
    out.unlink()
    for strange in (f"{'x' * 300}{out.suffix}", f"table.csv/{out.name}", f"none/{out.name}"):
        refused(server, out_of(case, strange), folder, inputs, "Error: ")


@pytest.mark.parametrize("name", ["embed", "report", "datasets"])
def test_a_link_leads_to_the_new_results(name: str, server: Server, inputs: Path, tmp_path: Path) -> None:
    case = BY_NAME[name]
    folder = fresh_folder(inputs, tmp_path / "run", case, with_old=False)
    (folder / "far").mkdir()
    for output in case.outputs:
        (folder / "far" / output).write_bytes(OLD)
        (folder / output).symlink_to(f"far/{output}")
    assert server.run(*case.arguments, folder=folder).code == 1
    assert {path.read_bytes() for path in (folder / "far").iterdir()} == {OLD}
    ended = server.run(*case.arguments, "--force", folder=folder)
    assert ended.code == 0, ended.stderr
    assert all((folder / output).is_symlink() for output in case.outputs)
    assert sorted(path.name for path in (folder / "far").iterdir()) == sorted(case.outputs)
    assert OLD not in [path.read_bytes() for path in (folder / "far").iterdir()]
