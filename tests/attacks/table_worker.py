"""Read one damaged or odd table after another, in a process of its own with little memory and little time.

Run as a program: each line of standard input names a file and what is to be done with it, each line of standard output says how that ended.
What ends this process tells `worked_on` in `table_runs.py`, whatever it is: an abort, a fault in memory, or five seconds of work.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SECONDS = 5
"""Of work, in all threads together: a machine that is busy does not count."""
MEMORY = 2**30
"""Bytes beyond those of the imported libraries."""
LONGEST_SENTENCE = 2000
FILES = "files of this process"


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    _import_all(sys.argv[1:])
    gc.collect()
    gc.freeze()
    _limit_memory()
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        request = json.loads(line)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # it ends the process also within compiled code
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        fault, was_read = _answer(request)
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(json.dumps({"fault": fault, "was_read": was_read}) + "\n")
        answers.flush()


def _import_all(deeds: Sequence[str]) -> None:
    """Import and start what is used later: memory and files that are taken once count for no single input."""
    import pandas as pd

    from gpssl.data import TableFiles, open_table, write_table

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_text("a,b\n" + "1.5,x\n2,y\n" * 20)
        part = next(open_table(path).parts())
        write_table(path.with_suffix(".parquet"), part.cells(typed=True))
        list(TableFiles(path.with_suffix(".parquet"), columns=["a"]).parts())
        if "embed" in deeds or "labels" in deeds:
            import gpssl

            gpssl.embed(pd.read_csv(path), n_components=1, max_inducing=4).frame()


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(request: dict[str, Any]) -> tuple[str | None, bool]:
    """Return what went wrong with a file, if anything did, and whether it was read."""
    path = Path(request["path"])
    was_read = False
    before = _state(path)
    for deed in request["deeds"]:
        fault, ended_well = _tried(DEEDS[deed], path, request)
        was_read |= ended_well and deed == "open"
        if fault is None and deed == "open" and request["must_be_read"] and not ended_well:
            fault = "was refused, and has nothing that is wrong"
        if fault is not None:
            return f"{deed}: {fault}", was_read
    gc.collect()
    return _litter(before, path), was_read


def _tried(deed: Callable[[Path, dict[str, Any]], str | None], path: Path, request: dict[str, Any]) -> tuple[str | None, bool]:
    """Return what went wrong, and whether the deed ended well; the documented error is neither."""
    from gpssl.data import FileError

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*left out.*", UserWarning)  # of `TableFiles`, which has no notes
        try:
            return deed(path, request), True
        except FileError as error:
            return _wrong_sentence(str(error), request["called"]), False
        except ValueError as error:
            if deed is open_whole or type(error) is not ValueError:  # those of Unicode and JSON are others
                return _told(error), False
            return _wrong_sentence(" ".join(str(error).split()), None), False
        except BaseException as error:
            return _told(error), False


def _told(error: BaseException) -> str:
    import traceback

    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}: {str(error)[:200]!r}"


def _wrong_sentence(message: str, called: Sequence[str] | None) -> str | None:
    """Return what is wrong with the text of an error: it is one line, not long, and names the file."""
    if "\n" in message.strip():
        return f"the error has several lines: {message[:300]!r}"
    if len(message) > LONGEST_SENTENCE:
        return f"the error has {len(message):,} letters: {message[:200]!r}"
    if called is not None and not any(name in message for name in called):
        return f"the error does not name the file: {message[:300]!r}"
    if not message.strip().endswith((".", ").", "?", "!")):
        return f"the error is no sentence: {message[:300]!r}"
    return None


def open_whole(path: Path, request: dict[str, Any]) -> str | None:
    """Open a table, and look at all its rows in each way."""
    from gpssl.data import open_table

    table = open_table(path, sheet=request.get("sheet"))
    n_rows = 0
    texts: list[Any] = []
    for part in table.parts():
        n_rows += len(part)
        texts.append(part.cells(typed=False))
        if len(part.rows()) != len(part) or len(part.cells(typed=True)) != len(part) or len(part.encoded()) != len(part):
            return "its parts have different numbers of rows"
    if n_rows != table.n_rows:
        return f"{n_rows:,} rows of {table.n_rows:,} came"
    if len(table.sample(50)) != min(50, n_rows):
        return "the sample has another number of rows"
    if any("\n" in note for note in table.notes if len(note) > LONGEST_SENTENCE):
        return "a note is very long"
    return _difference(texts, request["cells"])


def _difference(texts: list[Any], expected: dict[str, list[str | None]] | None) -> str | None:
    """Return where cells are not those that are known, if they are."""
    if expected is None:
        return None
    import pandas as pd

    found = pd.concat(texts, ignore_index=True)
    if list(found.columns) != list(expected):
        return f"the columns are {list(found.columns)!r:.300} instead of {list(expected)!r:.300}"
    for name, cells in expected.items():
        here = [None if pd.isna(cell) else cell if isinstance(cell, str) else str(cell) for cell in found[name].tolist()]
        if here != cells:
            place = next(
                (place for place, pair in enumerate(zip(here, cells, strict=False)) if pair[0] != pair[1]), min(len(here), len(cells))
            )
            return f"column {name!r:.80} has {len(here)} cells of {len(cells)}, in row {place} {here[place : place + 1]!r:.100}"
    return None


def write(path: Path, _request: dict[str, Any]) -> str | None:
    """Write all cells into files of each kind, and read those."""
    from gpssl.data import open_table, write_table
    from gpssl.data._outputs import asked_for

    table = open_table(path)
    with tempfile.TemporaryDirectory(prefix="results") as folder:
        for ending in ("csv", "parquet", "arrow", "jsonl"):
            out = Path(folder) / f"out.{ending}"
            asked, style = asked_for(out, table.style)
            write_table(out, (part.cells(**asked) for part in table.parts()), style=style)
            again = open_table(out, keep=[name for name in table.used if name in table.names])
            if again.n_rows != table.n_rows:
                return f"{again.n_rows:,} rows of {table.n_rows:,} stand in the results as {ending}"
    return None


def read_files(path: Path, _request: dict[str, Any]) -> str | None:
    """Read the rows as a fit does."""
    from gpssl.data import TableFiles

    files = TableFiles(path)
    rows = files.for_tables()
    n_rows = sum(len(part.rows) for part in rows.parts())
    if n_rows != rows.n_rows:
        return f"{n_rows:,} rows of {rows.n_rows:,} came from TableFiles"
    list(files.parts())
    return None


def embed(path: Path, _request: dict[str, Any]) -> str | None:
    """Learn from the rows, write them beside what was learned, and read that."""
    import gpssl

    with tempfile.TemporaryDirectory(prefix="results") as folder:
        out = Path(folder) / "out.csv"
        result = gpssl.embed(path, n_components=2, max_inducing=8, out=out)
        again = gpssl.transform(result.model, path)
        if len(again.frame()) != result.n_rows:
            return "transform has another number of rows than embed"
        if not out.exists():
            return "there are no results"
    return None


def merge_labels(path: Path, request: dict[str, Any]) -> str | None:
    """Merge a file of labels into its table, and compare the target with what is known."""
    from gpssl.workflows._subject import Roles, open_subject

    subject = open_subject(Path(request["table"]), Roles(request["target"]), labels=[path])
    given = list(map(str, subject.target().values.tolist()))
    expected = None if request["labels"] is None else list(map(str, request["labels"]))
    if expected is not None and given != expected:
        place = next(place for place, pair in enumerate(zip(given, expected, strict=True)) if pair[0] != pair[1])
        return f"row {place} has the label {given[place]!r}, not {expected[place]!r}"
    return None


DEEDS: dict[str, Callable[[Path, dict[str, Any]], str | None]] = {
    "open": open_whole,
    "files": read_files,
    "embed": embed,
    "write": write,
    "labels": merge_labels,
}


def _state(path: Path) -> dict[str, int]:
    """Return how many files lie where none may be left, and how many are open."""
    folders = {str(folder): len(os.listdir(folder)) for folder in (path.parent, Path(tempfile.gettempdir()))}
    return {**folders, FILES: len(os.listdir("/proc/self/fd"))}


def _litter(before: dict[str, int], path: Path) -> str | None:
    """Return where files are left behind; compiled threads may hold some for a moment longer."""
    for _ in range(50):
        more = [where for where, count in _state(path).items() if count > before[where]]
        if not more:
            return None
        gc.collect()
        time.sleep(0.01)
    return f"files are left behind in {more}"


if __name__ == "__main__":
    main()
