"""The command as a process of its own: signals, and what it leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from gpssl.cli._console import AS_BEFORE

HEAD = """
import os, signal, sys, types
from pathlib import Path
from gpssl import cli
from gpssl._runtime.files import temporary_folder, written_beside

def write_example(name, path, **_):
    temporary_folder()
    with written_beside(path) as beside:
        beside.write_text("new")
        stop()

# In the place of the room that writes examples, which takes long to import.
sys.modules["gpssl.datasets"] = types.ModuleType("gpssl.datasets")
sys.modules["gpssl.datasets"].__dict__.update(TABLES={}, write_example=write_example)
sys.argv = ["gpssl", "datasets", "wine", "-o", "out.csv"]
"""


def ended(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """How a command ends that runs `stop` while it writes."""
    (folder / "tmp").mkdir(exist_ok=True)
    before = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # whoever started the tests may ignore it, as nohup does
    script = before + HEAD + textwrap.dedent(code) + "\ncli.main()"
    environment = {**os.environ, "TMPDIR": str(folder / "tmp")}
    return subprocess.run([sys.executable, "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("number", "word"), [(signal.SIGINT, "Interrupted"), (signal.SIGTERM, "Terminated"), (signal.SIGHUP, "Terminated")]
)
def test_a_signal_ends_it_in_a_sentence_and_leaves_nothing(tmp_path: Path, number: int, word: str) -> None:
    (tmp_path / "out.csv").write_text("old")
    found = ended(tmp_path, f"def stop(): signal.raise_signal({int(number)})")
    assert (found.returncode, found.stdout, found.stderr) == (128 + number, "", f"Error: {word}. {AS_BEFORE}\n")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["out.csv", "tmp"]
    assert (tmp_path / "out.csv").read_text() == "old"


def test_where_a_library_would_lose_an_exception_a_signal_ends_it_too(tmp_path: Path) -> None:
    code = """
    class Removed:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    def stop():
        try:
            Removed()
        except BaseException:
            pass
    """
    assert ended(tmp_path, code).returncode == 143
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["tmp"]


def test_a_terminal_that_was_closed_takes_no_sentence(tmp_path: Path) -> None:
    code = """
    def stop():
        os.close(2)
        signal.raise_signal(signal.SIGHUP)
    """
    found = ended(tmp_path, code)
    assert (found.returncode, found.stderr) == (129, "")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["tmp"]


def test_what_it_has_unpacked_is_gone_at_its_end_and_so_is_what_a_killed_one_left(tmp_path: Path) -> None:
    assert ended(tmp_path, "def stop(): os.kill(os.getpid(), signal.SIGKILL)").returncode == -signal.SIGKILL
    assert len(list(tmp_path.rglob("*gpssl-*"))) == 2
    ended(tmp_path, "def stop(): pass")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["out.csv", "tmp"]


def test_a_limit_of_memory_below_what_libraries_map_is_told_before_they_begin(tmp_path: Path) -> None:
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (10**9, 10**9))"
    found = subprocess.run(
        [sys.executable, "-c", f"{limit}\nfrom gpssl.cli import main; main()", "embed", "no.csv", "-o", "out.csv"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 1
    assert found.stderr.startswith(
        "Error: There is not enough memory (ulimit -v allows 953 MB, and the libraries alone map 2,048 MB: raise it)"
    )
    assert found.stderr.count("\n") == 1


def test_memory_that_lacks_before_a_command_begins_is_told_in_a_sentence(tmp_path: Path) -> None:
    code = "from gpssl import cli\ndef app(**_): raise MemoryError\ncli.app = app\ncli.main()"
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr.count("\n")) == (1, 1)
    assert found.stderr.startswith("Error: There is not enough memory: lower --max-inducing")
