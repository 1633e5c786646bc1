"""A file of text is read once: all that is asked of it later comes from its columns, in memory or in a temporary file."""

from __future__ import annotations

import gc
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from typer.testing import CliRunner

from gpssl import GPSSL
from gpssl.cli import app
from gpssl.data import FileError, TableFiles, open_table, write_table
from gpssl.kernels import for_table
from people import mixed_frame, two_groups

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Callable[[bytes], Path]]:
    """A file whose bytes can be read once, and never again."""
    writers = []

    def filled(content: bytes) -> Path:
        path = tmp_path / "pipe.csv"
        os.mkfifo(path)
        writers.append(threading.Thread(target=path.write_bytes, args=(content,), daemon=True))
        writers[-1].start()
        return path

    yield filled
    for writer in writers:
        writer.join(timeout=10)


def everything(path: Path, **options: Any) -> dict[str, Any]:
    """All that can be asked of a table, after its file is gone."""
    table = open_table(path, target="y", ignore=["id"], **options)
    path.unlink()
    return {
        "facts": table.facts,
        "frame": table.frame(extra=["id"]),
        "sample": table.sample(100),
        "target": table.target(),
        "texts": table.texts("color"),
        "rows": np.concatenate([part.rows for part in table.rows().parts()]),
        "again": np.concatenate([part.rows for part in table.rows().parts()]),
        "cells": pd.concat([part.cells(typed=False) for part in table.parts()]),
    }


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one["facts"] == other["facts"]
    for name in ("frame", "sample", "cells"):
        pd.testing.assert_frame_equal(one[name], other[name])
    for name in ("rows", "again"):
        np.testing.assert_array_equal(one[name], other["rows"])
    for name in ("target", "texts"):
        np.testing.assert_array_equal(one[name], other[name])


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_columns_in_a_temporary_file_are_those_in_memory(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    monkeypatch.setattr("gpssl.data._delimited.BLOCK_BYTES", (8192, 8192))
    monkeypatch.setattr("gpssl.data._json_lines.JSON_BLOCK_BYTES", 8192)
    for limit in (2**28, 50_000, 0):
        monkeypatch.setattr("gpssl.data._source.STORE_BYTES", limit)
        write_table(tmp_path / f"table.{ending}", mixed_frame())
        found.append(everything(tmp_path / f"table.{ending}"))
    assert_same(found[1], found[0])
    assert_same(found[2], found[0])


@needs_pipes
def test_bytes_of_a_file_are_read_once(tmp_path: Path, pipe: Callable[[bytes], Path]) -> None:
    write_table(tmp_path / "table.csv", mixed_frame())
    content = (tmp_path / "table.csv").read_bytes()
    assert_same(everything(pipe(content)), everything(tmp_path / "table.csv"))


@needs_pipes
@pytest.mark.parametrize("command", [["embed"], ["label", "-t", "kind", "--draws", "5"]])
@pytest.mark.parametrize("memory", [2**28, 1])
def test_commands_read_their_table_once(
    tmp_path: Path, pipe: Callable[[bytes], Path], command: list[str], memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpssl.data._table.MEMORY_BYTES", memory)
    path = pipe(two_groups(80, 40).to_csv(index=False).encode())
    out = tmp_path / "out.csv"
    result = CliRunner().invoke(app, [command[0], str(path), *command[1:], "-o", str(out)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert len(pd.read_csv(out)) == 80


@needs_pipes
def test_encoding_that_shows_late_in_a_pipe_gets_a_sentence(pipe: Callable[[bytes], Path]) -> None:
    path = pipe(b"size,color\n" + b"1.5,red\n2.5,blue\n" * 100_000 + "3.5,grün\n".encode("cp1252"))
    with pytest.raises(FileError, match="is no UTF-8, and can be read only once"):
        open_table(path)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the system does not list open files")
def test_temporary_file_has_no_name_and_goes_with_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr("gpssl.data._source.STORE_BYTES", 0)

    def open_files() -> list[str]:
        links = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
        return [path for path in (os.readlink(link) for link in links if os.path.islink(link)) if path.startswith(str(folder))]

    write_table(tmp_path / "table.csv", mixed_frame(300))
    table = open_table(tmp_path / "table.csv")
    assert len(table.frame()) == 300
    assert list(folder.iterdir()) == []
    assert open_files() != []
    del table
    gc.collect()
    assert open_files() == []


def test_no_room_for_the_temporary_file_gets_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise OSError(28, "No space left on device")

    write_table(tmp_path / "table.csv", mixed_frame(300))
    monkeypatch.setattr("gpssl.data._source.STORE_BYTES", 0)
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    with pytest.raises(FileError, match=r"no room .* \(No space left on device\): make room there, or set TMPDIR"):
        open_table(tmp_path / "table.csv")


TABLE = "size,weight,color\n" + "".join(f"{i % 7},{i % 5}.5,{'red' if i % 3 else 'blue'}\n" for i in range(40))


@pytest.mark.parametrize(
    ("above", "n_lines"),
    [
        ("# made by hand\n", 1),
        ("# made by hand\n#\n# in 2024, twice\n", 3),
        ("Sizes and weights\n", 1),
        ("Sizes and weights\n\nby, us\n", 3),
        ("# made by hand\nSizes of 2024\n\n", 3),
        ('"A title\nof two lines"\n', 2),
        ("Sizes and weights,,\n", 1),
        ("Sizes and weights,,\n,,\nof 2024,,\n", 3),
    ],
)
def test_lines_above_the_names_are_skipped_with_a_note(tmp_path: Path, above: str, n_lines: int) -> None:
    (tmp_path / "plain.csv").write_text(TABLE)
    (tmp_path / "table.csv").write_text(above + TABLE)
    table = open_table(tmp_path / "table.csv")
    pd.testing.assert_frame_equal(table.frame(), open_table(tmp_path / "plain.csv").frame())
    verb = "line above the names of the columns was" if n_lines == 1 else "lines above the names of the columns were"
    assert len(table.notes) == 1
    assert table.notes[0].startswith(f"{n_lines} {verb} skipped: ")


def test_line_numbers_count_the_lines_above(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("# one\n# two\n" + TABLE + "1\n3,1.5,red\n")
    assert "line 44 has 1 cells instead of 3" in open_table(tmp_path / "table.csv").notes[1]


@pytest.mark.parametrize("header", ["#size,weight,color", "# size,weight,color", "#size,weight", "#1,#2,#3"])
def test_sign_of_a_comment_in_the_first_name_is_a_name(tmp_path: Path, header: str) -> None:
    rows = TABLE.split("\n", 1)[1]
    (tmp_path / "table.csv").write_text(f"{header}\n{rows}")
    table = open_table(tmp_path / "table.csv")
    assert table.n_rows == 40
    assert [name for name in table.names if not name.startswith("column")] == header.split(",")


def test_names_of_text_columns_may_begin_with_the_sign_of_a_comment(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("#who,where\n" + "anna,here\nbob,there\n" * 10)
    table = open_table(tmp_path / "table.csv")
    assert (table.names, table.n_rows, table.notes) == (["#who", "where"], 20, [])


@pytest.mark.parametrize("n_marked", [1, 3, 49, 50, 51, 120])
def test_rows_may_begin_with_the_sign_of_a_comment_as_their_names_do(tmp_path: Path, n_marked: int) -> None:
    rows = [f"{'#' if row < n_marked else ''}t{row},{row / 7:.3f},{row % 5}" for row in range(120)]
    (tmp_path / "table.csv").write_text("# made by hand\n" + "\n".join(["#ticket,size,kind", *rows]) + "\n")
    table = open_table(tmp_path / "table.csv", keep=["#ticket"])
    assert (table.names, table.n_rows) == (["#ticket", "size", "kind"], 120)
    assert table.notes[0] == "1 line above the names of the columns was skipped: 'made by hand'."


@pytest.mark.parametrize("title", ["People", "People;;", "People;;\n;;\nof 2024;;"])
def test_title_above_columns_of_text_alone_is_skipped(tmp_path: Path, title: str) -> None:
    (tmp_path / "table.csv").write_text(f"{title}\nwho;where;why\n" + "anna;here;x\nbob;there;y\n" * 10)
    table = open_table(tmp_path / "table.csv")
    assert (table.names, table.n_rows) == (["who", "where", "why"], 20)
    assert "above the names of the columns" in table.notes[0]


@pytest.mark.parametrize("header", ["id,age,city,", "id,age,,", "id,,,"])
def test_names_of_which_some_are_empty_are_no_title(tmp_path: Path, header: str) -> None:
    """Not even where the first row could be taken for names."""
    rows = "".join(f"a{i},{i % 7},{'Ulm' if i % 2 else 'Bonn'},x\n" for i in range(30))
    (tmp_path / "table.csv").write_text(f"{header}\na,1,Ulm,x\n{rows}")
    table = open_table(tmp_path / "table.csv")
    assert (table.names[0], table.n_rows) == ("id", 31)


def test_row_names_of_r_with_gaps_in_the_first_row_are_no_title(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b\nr1,NA,NA\n" + "".join(f"r{i},{i % 7},{i % 5}\n" for i in range(2, 30)))
    table = open_table(tmp_path / "table.csv")
    assert (table.n_rows, table.used) == (29, ["a", "b"])


def test_command_says_that_lines_were_skipped(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("Sizes\n# by hand\n" + TABLE)
    result = CliRunner().invoke(app, ["embed", str(tmp_path / "table.csv"), "-o", str(tmp_path / "out.csv")], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert "2 lines above the names of the columns were skipped: 'Sizes', 'by hand'." in result.output


# The same reader for a fit to a path


@pytest.mark.parametrize("name", ["rows.csv", "rows.txt", "rows.jsonl", "rows.arrow", "rows.csv.gz"])
def test_fit_to_a_path_is_that_to_the_data_frame(tmp_path: Path, name: str) -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 3)).round(3), columns=["a", "b", "c"])
    path = tmp_path / name
    if name in ("rows.txt", "rows.csv.gz"):
        frame.to_csv(path, index=False, sep=";", decimal=",")
    else:
        write_table(path, frame)
    fitted, expected = (GPSSL(2, random_state=0).fit(rows) for rows in (path, frame))
    np.testing.assert_allclose(fitted.transform(path), expected.transform(frame), atol=1e-10)
    np.testing.assert_allclose(fitted.std(str(path)), expected.std(frame), atol=1e-10)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_fit_to_a_path_with_columns_of_all_kinds(tmp_path: Path, ending: str) -> None:
    frame = mixed_frame(400).drop(columns="id")
    for place, rows in enumerate((frame[:250], frame[250:])):
        write_table(tmp_path / f"rows-{place}.{ending}", rows)
    pattern = str(tmp_path / f"rows-*.{ending}")
    write_table(tmp_path / "whole.csv", frame)
    read = open_table(tmp_path / "whole.csv").frame()
    ssl = GPSSL(2, kernel=for_table(read), max_inducing=30, residual_tolerance=0.9, random_state=0)
    fitted, expected = clone(ssl).fit(pattern), clone(ssl).fit(read)
    np.testing.assert_allclose(fitted.transform(pattern), expected.transform(read), atol=1e-8)
    np.testing.assert_allclose(fitted.transform(open_table(tmp_path / "whole.csv").rows()), expected.transform(read), atol=1e-8)
    chosen = TableFiles(pattern, columns=["x", "amount"])
    assert chosen.names == ["x", "amount"]


def test_columns_that_are_no_numbers_need_a_kernel_for_tables(tmp_path: Path) -> None:
    write_table(tmp_path / "table.csv", mixed_frame(100).drop(columns="x"))
    with pytest.raises(ValueError, match=r"Column 'color' of .* holds text, not numbers: pass kernel=gpssl\.kernels\.for_table"):
        GPSSL(2).fit(tmp_path / "table.csv")
    with pytest.raises(ValueError, match=r"Column 'day' of .* holds dates, not numbers"):
        GPSSL(2).fit(TableFiles(tmp_path / "table.csv", columns=["amount", "day"]))


def test_files_whose_columns_hold_different_things_get_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n" + "1,2\n3,4\n" * 10)
    (tmp_path / "2.csv").write_text("a,b\n" + "1,red\n3,blue\n" * 10)
    with pytest.raises(FileError, match=r"Column 'b' of .*2\.csv held numbers in the files before it, but not here \(such as 'red'\)"):
        TableFiles(str(tmp_path / "*.csv"))
