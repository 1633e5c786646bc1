from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpssl._runtime import files
from gpssl._runtime.files import forget, put_together, remove_left_behind, temporary_folder, written_beside

OWN = files._mark()
"""What is in the names of files of this process."""


def in_another_process(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run code that needs what this module imports."""
    head = "import os, sys\nfrom pathlib import Path\nfrom gpssl._runtime.files import *\nfrom gpssl._runtime import files\n"
    return subprocess.run([sys.executable, "-c", head + code, *map(str, arguments)], capture_output=True, text=True, check=False)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(path: Path, text: str) -> None:
    with written_beside(path) as beside:
        beside.write_text(text)


# One file


def test_a_file_is_replaced_when_all_of_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "out.csv.gz"
    path.write_text("old")
    with written_beside(path) as beside:
        beside.write_text("new")
        assert beside.suffixes[-2:] == [".csv", ".gz"]
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(tmp_path) == ["out.csv.gz"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_fails_leaves_the_old_file_alone(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "out.csv"
    path.write_text("old")
    with pytest.raises(error), written_beside(path) as beside:  # noqa: PT012  (it is half written)
        beside.write_text("ne")
        raise error
    assert path.read_text() == "old"
    assert names(tmp_path) == ["out.csv"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "results.csv").write_text("old")
    path = tmp_path / "out.csv"
    path.symlink_to("far/results.csv")
    with written_beside(path) as beside:
        beside.write_text("new")
        assert names(tmp_path) == ["far", "out.csv"]
    assert path.is_symlink()
    assert (tmp_path / "far" / "results.csv").read_text() == "new"
    assert names(tmp_path / "far") == ["results.csv"]


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    os.mkfifo(path)
    with pytest.raises(FileExistsError, match="device or a pipe"), written_beside(path):
        raise AssertionError
    assert path.is_fifo()
    assert names(tmp_path) == ["out.csv"]


def test_errors_name_the_file_that_the_person_knows(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with pytest.raises(OSError, match="no room left") as full, written_beside(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert full.value.filename == str(path)
    with pytest.raises(FileNotFoundError) as missing, written_beside(tmp_path / "none" / "out.csv"):
        raise AssertionError
    assert missing.value.filename == str(tmp_path / "none" / "out.csv")
    with pytest.raises(FileNotFoundError) as other, written_beside(path):
        (tmp_path / "another").read_bytes()
    assert other.value.filename == str(tmp_path / "another")
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["x" * 251 + ".csv", "ö" * 125 + ".csv", "a." + "b" * 250, "." * 200, "new\nline\x1b.csv"])
def test_names_as_long_as_they_may_be(tmp_path: Path, name: str) -> None:
    with written_beside(tmp_path / name) as beside:
        beside.write_text("new")
    assert names(tmp_path) == [name]


# Several files


def test_several_files_are_put_together(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.gpssl"
    first.write_text("old")
    second.write_text("old")
    with put_together():
        write(first, "new")
        write(second, "new")
        assert (first.read_text(), second.read_text()) == ("old", "old")
    assert (first.read_text(), second.read_text()) == ("new", "new")
    with pytest.raises(ZeroDivisionError), put_together():  # noqa: PT012  (the first of them is whole)
        write(first, "newer")
        write(second, f"{1 // 0}")
    assert (first.read_text(), second.read_text()) == ("new", "new")
    assert names(tmp_path) == ["a.csv", "b.gpssl"]


def test_what_becomes_part_of_another_file_is_not_put_off(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with put_together(), written_beside(path) as beside:
        beside.write_text("ASCII")
        with written_beside(beside) as again:
            again.write_text("UTF-8")
        assert beside.read_text() == "UTF-8"
    assert path.read_text() == "UTF-8"
    assert names(tmp_path) == ["a.csv"]


KILLED = """
real, n = os.replace, 0
def replace(*arguments):
    global n
    n += 1
    if n == int(sys.argv[2]):
        os._exit(9)
    real(*arguments)
os.replace = replace
with put_together():
    for name in "abc":
        with written_beside(Path(sys.argv[1], name)) as beside:
            beside.write_text("new")
"""


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_process_that_is_killed_does_not_leave_old_files_beside_new_ones(tmp_path: Path, at: int) -> None:
    for name in "abc":
        (tmp_path / name).write_text("old")
    assert in_another_process(KILLED, tmp_path, at).returncode == 9
    assert len({(tmp_path / name).read_text() for name in "abc" if (tmp_path / name).exists()}) == 1
    with written_beside(tmp_path / "next"):
        pass
    assert {*names(tmp_path)} <= {"a", "b", "c", "next"}


TWO = """
for _ in range(40):
    with put_together():
        for name in ("a", "b"):
            with written_beside(Path(sys.argv[1], name)) as beside:
                beside.write_text(sys.argv[2])
"""


def test_two_processes_do_not_mix_their_files(tmp_path: Path) -> None:
    head = "import os, sys\nfrom pathlib import Path\nfrom gpssl._runtime.files import *\n"
    running = [subprocess.Popen([sys.executable, "-c", head + TWO, str(tmp_path), str(one) * 1000]) for one in range(2)]
    assert [one.wait(timeout=60) for one in running] == [0, 0]
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text()
    assert names(tmp_path) == ["a", "b"]


# What others have left behind


def parts_of_own() -> tuple[str, str, str]:
    found = re.fullmatch(r"gpssl-([0-9a-f]{8})-([0-9]+)-([0-9]+)-[0-9a-f]{16}", OWN)
    assert found
    return found[1], found[2], found[3]


def test_what_dead_processes_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    machine, process, began = parts_of_own()
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    ).stdout.strip()
    end = "0123456789abcdef"
    gone = [
        f".out.csv-gpssl-{machine}-{dead}-{began}-{end}.csv",
        f".new\nline-gpssl-{machine}-{dead}-{began}-{end}.csv",
        f".out-gpssl-{machine}-99999999-1-{end}",
    ]
    kept = [
        f".out.csv-gpssl-{machine}-{process}-{began}-{end}.csv",  # of this process
        f".out.csv-gpssl-{machine}-1-0-{end}.csv",  # it is not known when that process began
        f".out.csv-gpssl-00000000-{dead}-{began}-{end}.csv",  # of another machine
        f"gpssl-{machine}-{dead}.csv",
        f"out-gpssl-{machine}-{dead}-{began}-{end}.csv",  # a person's: it does not begin with a point
        "gpssl-report.html",
    ]
    for name in (*gone, *kept):
        (tmp_path / name).write_text("")
    folder = tmp_path / f"gpssl-{machine}-{dead}-{began}-{end}"
    folder.mkdir()
    (folder / "table.csv").write_text("")
    link = tmp_path / f"gpssl-{machine}-{dead}-{began}-{end[::-1]}"
    link.symlink_to(tmp_path / "kept")
    remove_left_behind(tmp_path)
    assert names(tmp_path) == sorted([*kept, link.name])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell when a process began")
def test_a_number_that_another_process_has_now_does_not_keep_a_file(tmp_path: Path) -> None:
    machine, process, began = parts_of_own()
    (tmp_path / f".out-gpssl-{machine}-{process}-{int(began) - 1}-0123456789abcdef").write_text("")
    remove_left_behind(tmp_path)
    assert names(tmp_path) == []


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the system does not tell of processes that have ended")
def test_a_process_that_nobody_has_waited_for_is_no_more(tmp_path: Path) -> None:
    code = "from gpssl._runtime import files; print(files._mark(), flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        left = tmp_path / running.stdout.readline().strip()
        left.mkdir()
        remove_left_behind(tmp_path)
        assert left.exists()
        running.kill()
        os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOWAIT)  # until it has ended, and is still in the list of processes
        remove_left_behind(tmp_path)
    assert names(tmp_path) == []


# Folders


def test_a_folder_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folders = [temporary_folder(), temporary_folder()]
    assert [oct(folder.stat().st_mode)[-3:] for folder in folders] == ["700", "700"]
    (folders[0] / "table.csv").write_text("")
    remove_left_behind()
    assert names(tmp_path) == sorted(folder.name for folder in folders)
    forget(folders[0])
    assert names(tmp_path) == [folders[1].name]
    forget(folders[1])
    assert names(tmp_path) == []


FORKED = """
import weakref
class Holder: pass
held, folder = Holder(), temporary_folder()
weakref.finalize(held, forget, folder)
with written_beside(Path(sys.argv[1], "out.csv")) as beside:
    beside.write_text("new")
    child = os.fork()
    if child == 0:
        del held
        forget(beside)
        forget_all()
        own = temporary_folder()
        forget_all()
        os._exit(0 if folder.exists() and beside.exists() and not own.exists() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
forget_all()
print(folder.exists())
"""


def test_a_process_that_is_forked_off_leaves_the_files_of_its_parent_alone(tmp_path: Path) -> None:
    ended = in_another_process(FORKED, tmp_path)
    assert (ended.returncode, ended.stdout.strip()) == (0, "False"), ended.stderr
    assert names(tmp_path) == ["out.csv"]


def test_all_that_is_unfinished_is_removed(tmp_path: Path) -> None:
    code = """
with put_together():
    with written_beside(Path(sys.argv[1], "a.csv")):
        pass
    with written_beside(Path(sys.argv[1], "b.csv")):
        print(len(os.listdir(sys.argv[1])))
        forget_all()
        print(len(os.listdir(sys.argv[1])), flush=True)
        os._exit(0)
"""
    assert in_another_process(code, tmp_path).stdout.split() == ["2", "0"]
