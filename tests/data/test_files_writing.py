"""Results are whole files, or no files."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.ipc
import pyarrow.parquet
import pytest

from gpssl.data import FileError, write_table
from gpssl.data._outputs import check_writable, replacing

ENDINGS = ["csv", "tsv", "parquet", "pq", "arrow", "feather", "jsonl", "ndjson"]


def some_frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "number": [0.1 + 0.2, 1e-300, np.nan, -1.0, 1 / 3],
            "whole": [1, 2, 3, 4, 2**60],
            "text": ["plain", 'with, "both"', "größe\nnext", None, " spaces "],
            "flag": [True, False, True, False, True],
            "day": pd.to_datetime(["2024-01-01", None, "2024-01-02 03:04:05.5", "1800-01-01", "2024-01-01"], format="ISO8601"),
        }
    )


def read(path: Path) -> pd.DataFrame:
    readers = {".parquet": pd.read_parquet, ".pq": pd.read_parquet, ".arrow": pd.read_feather, ".feather": pd.read_feather}
    if path.suffix in readers:
        return readers[path.suffix](path)
    if path.suffix in (".jsonl", ".ndjson"):
        return pd.read_json(path, lines=True, precise_float=True)
    return pd.read_csv(path, sep="\t" if path.suffix == ".tsv" else ",", float_precision="round_trip")


@pytest.mark.parametrize("ending", ENDINGS)
def test_other_programs_read_what_is_written(tmp_path: Path, ending: str) -> None:
    frame = some_frame()
    path = tmp_path / f"out.{ending}"
    write_table(path, iter([frame[:2], frame[2:2], frame[2:]]))
    found = read(path)
    np.testing.assert_array_equal(found["number"], frame["number"])
    assert found["text"].astype(object).where(found["text"].notna(), None).tolist() == frame["text"].tolist()
    assert found["flag"].tolist() == frame["flag"].tolist()
    assert found["whole"].tolist() == frame["whole"].tolist()
    days = pd.to_datetime(found["day"], format="mixed")
    assert days.isna().tolist() == [False, True, False, False, False]
    assert days[2] == frame["day"][2]


def test_text_of_a_csv_file(tmp_path: Path) -> None:
    write_table(tmp_path / "out.csv", some_frame())
    assert (tmp_path / "out.csv").read_bytes().decode().splitlines()[:2] == [
        "number,whole,text,flag,day",
        "0.30000000000000004,1,plain,true,2024-01-01",
    ]
    write_table(tmp_path / "one.csv", pd.DataFrame({"a, b": ["x", None]}))
    assert (tmp_path / "one.csv").read_text() == '"a, b"\nx\n""\n'


def test_existing_files_are_replaced_only_by_force(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    write_table(path, some_frame())
    before = path.read_bytes()
    with pytest.raises(FileError, match="exists: pass force=True"):
        write_table(path, some_frame()[:1])
    assert path.read_bytes() == before
    write_table(path, some_frame()[:1], force=True)
    assert len(path.read_text().splitlines()) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["out.csv"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path, ending: str, error: type[BaseException]) -> None:
    path = tmp_path / f"out.{ending}"
    path.write_text("old")

    def frames() -> Iterator[pd.DataFrame]:
        yield some_frame()
        raise error

    with pytest.raises(error):
        write_table(path, frames(), force=True)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


KILLED = """
import os, signal, sys
import pandas as pd
from gpssl.data import write_table

def frames():
    for row in range(3):
        yield pd.DataFrame({"x": [float(row)] * 100_000})
    os.kill(os.getpid(), signal.SIGKILL)

write_table(sys.argv[1], frames(), force=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal")
@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow", "jsonl"])
def test_killed_process_leaves_the_old_file(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"out.{ending}"
    path.write_text("old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert path.read_text() == "old"
    assert any(file.stat().st_size > 0 for file in tmp_path.iterdir() if file != path)  # it was killed in the middle


def test_replacing_for_other_writers(tmp_path: Path) -> None:
    with replacing(tmp_path / "report.html", force=False) as temporary:
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".html"
        temporary.write_text("done")
        assert not (tmp_path / "report.html").exists()
    assert (tmp_path / "report.html").read_text() == "done"
    assert len(list(tmp_path.iterdir())) == 1


def test_new_files_have_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write_table(tmp_path / "out.csv", some_frame())
    assert (tmp_path / "out.csv").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_places_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileError, match="There is no folder"):
        check_writable(tmp_path / "nowhere" / "out.csv", force=False)
    with pytest.raises(FileError, match="is a folder"):
        check_writable(tmp_path, force=True)
    with pytest.raises(FileError, match=r"written as \.csv, \.tsv, \.parquet"):
        write_table(tmp_path / "out.xlsx", some_frame())
    with pytest.raises(FileError, match="nothing to write"):
        write_table(tmp_path / "out.csv", iter([]))
    monkeypatch.setattr("gpssl.data._outputs.os.access", lambda *_: False)
    with pytest.raises(FileError, match="Nothing may be written"):
        check_writable(tmp_path / "out.csv", force=False)


def test_parts_with_other_columns_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="same columns"):
        write_table(tmp_path / "out.csv", iter([some_frame(), some_frame()[["text"]]]))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("n_first", [0, 2])
@pytest.mark.parametrize("ending", ["parquet", "arrow", "csv", "jsonl"])
def test_columns_without_values_at_first_keep_their_types(tmp_path: Path, ending: str, n_first: int) -> None:
    def part(*cells: Any) -> pd.DataFrame:
        number, flag, text = ([cell] * (n_first if cell is None else 1) for cell in cells)
        columns = {"number": pd.array(number, "Float64").to_numpy(float, na_value=np.nan), "flag": pd.array(flag, "boolean"), "text": text}
        return pd.DataFrame(columns).astype({"text": object})

    path = tmp_path / f"out.{ending}"
    write_table(path, iter([part(None, None, None), part(1.5, True, "text"), part(None, None, None)]))
    found = read(path)
    assert found["text"].isna().tolist() == found["flag"].isna().tolist() == found["number"].isna().tolist()
    assert found.dropna().to_numpy().tolist() == [[1.5, True, "text"]]
    assert len(found) == 2 * n_first + 1
    if ending in ("parquet", "arrow"):
        schema = pyarrow.parquet.read_schema(path) if ending == "parquet" else pyarrow.ipc.open_file(path).schema
        assert [str(kind) for kind in schema.types] == ["double", "bool", "string"]
