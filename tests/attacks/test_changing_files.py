"""A table that changes while it is read: the rows of one moment, or one sentence; never rows of before and after."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from budget import generator, n_inputs
from command_cases import wrong_words
from command_server import Server

from people import two_groups

pytest_plugins = ["command_fixtures"]

N_ROWS, BATCH = 400, 50
ENDINGS = ("csv", "jsonl", "parquet", "arrow", "xlsx")
CHANGES = ("append", "cut", "empty", "overwrite", "replace", "delete")
MOMENTS = 4000
"""Most of those of a run in which a file is read."""


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write a table, in several parts where the format has them."""
    match path.suffix:
        case ".csv":
            frame.to_csv(path, index=False)
        case ".jsonl":
            frame.to_json(path, orient="records", lines=True)
        case ".parquet":
            frame.to_parquet(path, row_group_size=BATCH, index=False)
        case ".arrow":
            table = pa.Table.from_pandas(frame, preserve_index=False)
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table, max_chunksize=BATCH)
        case _:
            frame.to_excel(path, index=False)


def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Two tables of the same columns and about the same size; every cell of a column tells which of the two it is from."""
    first = two_groups(N_ROWS)
    second = first.assign(size=first["size"] + 1.0)
    return first.assign(which="first!"), second.assign(which="second")


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("how", CHANGES)
def test_a_table_that_changes_while_it_is_read(ending: str, how: str, server: Server, inputs: Path, tmp_path: Path) -> None:
    rng = generator(f"changing {ending} {how}")
    first, second = tables()
    failures = []
    for place in range(n_inputs(1)):
        folder = tmp_path / f"{place}"
        (folder / "tmp").mkdir(parents=True)
        shutil.copy(inputs / "embedded.gpssl", folder)
        path = folder / f"rows.{ending}"
        write(first, path)
        write(second, folder / f"other.{ending}")
        (folder / f"other.{ending}").rename(f"{path}.other")
        change = {"path": str(path), "how": how, "at": int(rng.integers(1, MOMENTS))}
        ended = server.run("transform", "embedded.gpssl", path.name, "-o", "out.csv", folder=folder, change=change)
        wrong = []
        if ended.code != 0:
            wrong += wrong_words(ended) if ended.code in (1, 2) else [f"exit code {ended.code}: {ended.stderr}"]
            wrong += ["results of a run that has failed"] if (folder / "out.csv").exists() else []
        else:
            wrong += mixed(pd.read_csv(folder / "out.csv"), first, second)
        left = sorted(one.name for one in [*folder.iterdir(), *(folder / "tmp").iterdir()] if "gpssl-" in one.name)
        if wrong or left:
            failures.append((change, wrong, left))
    assert not failures, f"{len(failures)} of {n_inputs(1)}: {failures[:3]}"


def mixed(found: pd.DataFrame, first: pd.DataFrame, second: pd.DataFrame) -> list[str]:
    """Return what is wrong about results: they have rows of two moments, or a part of the rows of one."""
    if found["which"].nunique() != 1:
        return [f"rows of both: {found['which'].value_counts().to_dict()}"]
    original = first if found["which"].iloc[0] == "first!" else second
    n_rows = min(len(found), N_ROWS)  # what was appended are rows of the same table, perhaps cut
    same = np.allclose(found["size"][:n_rows], original["size"][:n_rows])
    return [] if same else ["cells of one table with the name of the other"]


def test_the_attack_sees_mixed_rows() -> None:
    first, second = tables()
    assert mixed(first, first, second) == mixed(second, first, second) == []
    assert mixed(pd.concat([first[:200], second[200:]]), first, second) != []
    assert mixed(first.assign(size=second["size"]), first, second) != []
