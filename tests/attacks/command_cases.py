"""The command on small tables: what it reads, what it writes, and what may be there after a run, however that ended."""

from __future__ import annotations

import re
import shutil
import sqlite3
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from command_server import Ended, Server

from people import two_groups

OLD = b"what was there before"
CHECKSUM_OF_CARD = re.compile(rb'"card": "[0-9a-f]+"')
"""A checksum that the time is in."""
TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
"""The time at which a model was made: all else in results follows from the table and the seed."""
FIXED = ("--draws", "5", "--components", "2", "--alike", "columns", "--temperature", "auto")
"""One representation in the place of the pool, which takes longer."""


@dataclass(frozen=True)
class Case:
    """A call of the command."""

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    stdin: str | None = None

    @property
    def fault_of_input(self) -> dict[str, Any]:
        """What a server has to know of standard input."""
        return {} if self.stdin is None else {"stdin": self.stdin}


TWO, KIND = ("--components", "2"), ("--target", "kind")
CASES = (
    Case("embed", ("embed", "table.csv", "-o", "out.csv", *TWO), ("out.csv", "out.gpssl")),
    Case("embed-archive", ("embed", "table.zip", "-o", "out.csv.gz", *TWO), ("out.csv.gz", "out.gpssl")),
    Case("embed-pipe", ("embed", "-", "-o", "out.jsonl", *TWO), ("out.jsonl", "out.gpssl"), stdin="table.csv"),
    Case("embed-workbook", ("embed", "table.xlsx", "-o", "out.parquet", *TWO), ("out.parquet", "out.gpssl")),
    Case("embed-database", ("embed", "table.sqlite", "-o", "out.arrow", *TWO, "-m", "other.gpssl"), ("out.arrow", "other.gpssl")),
    Case("label", ("label", "table.csv", *KIND, "-o", "out.csv", *FIXED), ("out.csv", "out.gpssl")),
    Case("cluster", ("cluster", "table.csv", "-k", "2", "--draws", "4", *TWO, "-o", "out.csv"), ("out.csv", "out.gpssl")),
    Case("transform", ("transform", "embedded.gpssl", "table.csv", "-o", "out.csv"), ("out.csv",)),
    Case("next", ("next", "table.csv", *KIND, "-n", "2", "-m", "labeled.gpssl", "-o", "out.csv"), ("out.csv",)),
    Case("annotate", ("annotate", "table.csv", *KIND, "-n", "2", "-m", "labeled.gpssl", "-o", "out.html"), ("out.html",)),
    Case("report", ("report", "labeled.gpssl", "table.csv", "--no-rivals", "-o", "out.html"), ("out.html",)),
    Case("datasets", ("datasets", "wine", "-o", "out.csv"), ("out.csv",)),
)
SLOW_CASES = (Case("compare", ("compare", "table.csv", *KIND, "--splits", "2", "--draws", "4")),)
"""These take ten seconds."""


def write_inputs(server: Server, folder: Path) -> None:
    """Write a table in several formats, and two models of it."""
    (folder / "tmp").mkdir(parents=True)
    frame = two_groups()
    frame.to_csv(folder / "table.csv", index=False)
    frame.to_excel(folder / "table.xlsx", index=False)
    with zipfile.ZipFile(folder / "table.zip", "w") as archive:
        archive.write(folder / "table.csv", "table.csv")
    base = sqlite3.connect(folder / "table.sqlite")
    frame.to_sql("things", base, index=False)
    base.close()
    for words in (
        ("embed", "table.csv", "-o", "embedded.csv", *TWO),
        ("label", "table.csv", "--target", "kind", "-o", "labeled.csv", *FIXED),
    ):
        ended = server.run(*words, folder=folder)
        assert ended.code == 0, ended.stderr
    for name in ("embedded.csv", "labeled.csv"):
        (folder / name).unlink()


def fresh_folder(inputs: Path, place: Path, case: Case, *, with_old: bool) -> Path:
    """Return a new folder with the inputs, and perhaps with older files in the places of the outputs."""
    shutil.copytree(inputs, place)
    for name in case.outputs if with_old else ():
        (place / name).write_bytes(OLD)
    return place


def content_of(path: Path) -> Any:
    """Return what is in a result but for the time at which it was made; fail where it is not whole."""
    if path.suffix == ".gpssl":
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            members = {name: archive.read(name) for name in archive.namelist()}
        return {name: CHECKSUM_OF_CARD.sub(b"", TIME.sub(b"", content)) for name, content in members.items()}
    if path.suffix in (".parquet", ".arrow"):
        return (pd.read_parquet if path.suffix == ".parquet" else pd.read_feather)(path).to_csv()
    return TIME.sub(b"", path.read_bytes())


def left_in(folder: Path, inputs: Path, case: Case) -> list[str]:
    """Return the names of files that are neither inputs nor outputs, and of those in the temporary folder."""
    known = {path.name for path in inputs.iterdir()} | {*case.outputs}
    found = [path.name for path in folder.iterdir() if path.name not in known]
    return sorted(found + [f"tmp/{path.name}" for path in (folder / "tmp").iterdir()])


def state_of(folder: Path, case: Case, new: Mapping[str, Any]) -> dict[str, str]:
    """Say of each output whether it is missing, old, new, or something else, which is a mistake."""

    def state(name: str) -> str:
        path = folder / name
        if not path.exists():
            return "missing"
        if path.read_bytes() == OLD:
            return "old"
        try:
            return "new" if content_of(path) == new[name] else "another"
        except Exception as error:
            return f"damaged ({type(error).__name__}: {error})"

    return {name: state(name) for name in case.outputs}


def wrong_files(states: Mapping[str, str], *, with_old: bool) -> list[str]:
    """Return what is wrong about the outputs: each is as it was or new, and new ones do not lie beside old ones."""
    wrong = [f"{name} is {state}" for name, state in states.items() if state not in ("missing", "old", "new")]
    if not with_old and "old" in states.values():
        wrong.append("old files have appeared")
    if {"old", "new"} <= {*states.values()}:
        wrong.append(f"old and new lie side by side: {dict(states)}")
    return wrong


def wrong_words(ended: Ended, *, sentences: int = 1) -> list[str]:
    """Return what is wrong about the words of a run that has failed: it is told in one sentence."""
    wrong = ["it hung"] if ended.hung else []
    errors = [line for line in ended.stderr.splitlines() if line.startswith("Error: ")]
    if len(errors) != sentences:
        wrong.append(f"{len(errors)} sentences in the place of {sentences}: {ended.stderr[-600:]!r}")
    crashes = ("Traceback", "Exception ignored", "mistake in gpssl", "terminate called", "Fatal Python")
    return wrong + [f"{word!r} in {ended.stderr[-1500:]!r}" for word in crashes if word in ended.stderr]
