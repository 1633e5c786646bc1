"""Workbooks, archives and databases, from the command line: a right result, or one sentence that says what to do."""

from __future__ import annotations

import datetime
import shutil
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import openpyxl
import openpyxl.styles
import pandas as pd
import pytest

import gpssl
from command import FEW, as_json, done, refused
from gpssl.data import TableFiles, open_table
from people import two_groups, written

FRAME = two_groups().round(6)  # workbooks keep 15 digits


def cells(frame: pd.DataFrame) -> list[list[Any]]:
    return [[None if pd.isna(cell) else cell for cell in row] for row in frame.itertuples(index=False)]


def workbook(path: Path, *, title: bool = False, totals: bool = False, more: tuple[str, ...] = ()) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Things"
    if title:
        sheet["A1"] = "Things of 2024"
        sheet.merge_cells("A1:E1")
        sheet.append([])
    sheet.append(list(FRAME.columns))
    for row in cells(FRAME):
        sheet.append(row)
    if totals:
        sheet.append(["Total", float(FRAME["size"].sum())])
        sheet.append([])
        sheet.append(["Source: my garden"])
    for name in more:
        book.create_sheet(name)["A1"] = "nothing here"
    book.save(path)
    return path


def sqlite(path: Path, *more: str) -> Path:
    with sqlite3.connect(path) as base:
        for name in ("things", *more):
            FRAME.to_sql(name, base, index=False)
    base.close()
    return path


def duck(path: Path, *more: str) -> Path:
    base = duckdb.connect(str(path))
    base.register("frame", FRAME)
    for name in ("things", *more):
        base.execute(f"""CREATE TABLE "{name.replace('"', '""')}" AS SELECT * FROM frame""")
    base.close()
    return path


def archive(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("folder/things.tsv", FRAME.to_csv(index=False, sep="\t"))
        packed.writestr("README.txt", "about the things")
        packed.writestr("__MACOSX/folder/._things.tsv", "x")
    return path


MAKERS: dict[str, Callable[[Path], Path]] = {"xlsx": workbook, "sqlite": sqlite, "db": sqlite, "duckdb": duck, "zip": archive}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("plain")
    done("embed", written(FRAME, folder / "plain.csv"), "--ignore", "kind", "--components", "2", "-o", folder / "out.csv")
    return pd.read_csv(folder / "out.csv")


@pytest.mark.parametrize("ending", MAKERS)
def test_the_same_table_in_other_files_gives_the_same_results(tmp_path: Path, ending: str, expected: pd.DataFrame) -> None:
    table = MAKERS[ending](tmp_path / f"things.{ending}")
    found = as_json("embed", table, "--ignore", "kind", "--components", "2", "-o", tmp_path / "out.csv")
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "out.csv"), expected)
    done("transform", tmp_path / "out.gpssl", table, "-o", tmp_path / "again.parquet")
    assert len(pd.read_parquet(tmp_path / "again.parquet")) == 60
    if ending in ("zip", "duckdb", "sqlite"):
        assert any(note.startswith("It was read from ") for note in found["notes"])


def test_labels_of_a_workbook(tmp_path: Path) -> None:
    found = as_json("label", workbook(tmp_path / "things.xlsx", title=True), "-t", "kind", "-o", tmp_path / "out.csv", *FEW)
    assert (found["n_labeled"], found["n_predicted"]) == (24, 36)
    assert pd.read_csv(tmp_path / "out.csv")["kind_predicted"].notna().sum() == 36


def test_a_workbook_as_people_have_it(tmp_path: Path) -> None:
    table = workbook(tmp_path / "things.xlsx", title=True, totals=True, more=("Notes", "Old"))
    printed = done("embed", table, "--components", "2", "-o", tmp_path / "out.csv")
    assert "It was read from the sheet 'Things'; the others are 'Notes', 'Old' (--sheet Notes reads one)." in printed
    assert "1 row above the names of the columns was skipped: 'Things of 2024'." in printed
    assert "Below the table, rows 64 to 66 are no rows and left out: 'Total" in printed
    result = pd.read_csv(tmp_path / "out.csv")
    assert result["size"].tolist() == FRAME["size"].tolist()
    assert open_table(table).lines(np.array([0, 59])).tolist() == [4, 63]


def test_the_sheet_and_the_table_that_were_asked_for(tmp_path: Path) -> None:
    book = workbook(tmp_path / "book.xlsx", more=("Notes",))
    assert "has no sheet 'Thing'; its sheets are 'Things', 'Notes'." in refused("embed", book, "--sheet", "Thing", "-o", tmp_path / "x.csv")
    base = sqlite(tmp_path / "base.db", "other things")
    assert "is a database of 2 tables, 'things', 'other things': name one" in refused("embed", base, "-o", tmp_path / "x.csv")
    assert "has no table 'x'; its tables are 'things', 'other things'." in refused("embed", base, "--table", "x", "-o", tmp_path / "x.csv")
    done("embed", base, "--table", "other things", "-o", tmp_path / "out.csv")
    done("report", tmp_path / "out.gpssl", base, "--table", "things", "-o", tmp_path / "page.html", "--no-rivals")
    assert "has no table 'x'" in refused("compare", base, "--table", "x", "-t", "kind")
    ducks = duck(tmp_path / "base.duckdb", 'with "quotes"')
    assert "2 tables" in refused("embed", ducks, "-o", tmp_path / "x.csv")
    done("transform", tmp_path / "out.gpssl", ducks, "--table", 'with "quotes"', "-o", tmp_path / "more.csv")
    plain = written(FRAME, tmp_path / "plain.csv")
    assert "has no sheets or tables to choose from" in refused("embed", plain, "--sheet", "a", "-o", tmp_path / "x.csv")
    assert gpssl.embed(book, sheet="Things", n_components=2).n_rows == 60


def test_the_sheet_with_the_column_that_was_named_is_taken(tmp_path: Path) -> None:
    with pd.ExcelWriter(tmp_path / "book.xlsx") as book:
        pd.DataFrame({"a": [1, 2, 3], "b": [4, 5, 6]}).to_excel(book, sheet_name="Summary", index=False)
        FRAME.to_excel(book, sheet_name="Raw data", index=False)
    assert open_table(tmp_path / "book.xlsx").names == ["a", "b"]
    table = open_table(tmp_path / "book.xlsx", target="kind")
    assert table.n_rows == 60
    assert "It was read from the sheet 'Raw data'; the others are 'Summary'" in table.notes[0]
    assert TableFiles(tmp_path / "book.xlsx", ["size"], sheet="Raw data").n_rows == 60


def test_cells_that_are_only_colored_are_no_columns(tmp_path: Path) -> None:
    book = openpyxl.load_workbook(workbook(tmp_path / "things.xlsx"))
    for row in range(1, 80):
        book.active.cell(row, 500).fill = openpyxl.styles.PatternFill("solid", start_color="FFEE00")
    book.save(tmp_path / "colored.xlsx")
    table = open_table(tmp_path / "colored.xlsx", target="kind")
    assert (table.names, table.n_rows) == (list(FRAME.columns), 60)


def test_cells_of_workbooks(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet["B2"] = "day"  # a table need not begin in the first cell
    for place, name in enumerate(["day", "time", "flag", "whole", "share", "text", "error", "span"]):
        sheet.cell(2, 2 + place, name)
    for row in range(30):
        moment = datetime.datetime(2024, 1, 1 + row % 28, 12, 30) if row % 2 else datetime.datetime(2024, 1, 1 + row % 28)
        values = [datetime.date(2024, 1, 1 + row % 28), moment, row % 3 == 0, row % 7, row % 11 / 100, "ab"[row % 2], row % 5, row % 9]
        for place, value in enumerate(values):
            sheet.cell(3 + row + (row > 9), 2 + place, value)  # with an empty row between
    sheet["H3"] = "#DIV/0!"
    for row in range(30):
        sheet.cell(3 + row + (row > 9), 9).value = datetime.timedelta(hours=30, minutes=row)
    sheet["F3"].number_format = "0%"
    book.save(tmp_path / "cells.xlsx")
    table = open_table(tmp_path / "cells.xlsx")
    kinds = {fact.name: fact.kind for fact in table.facts}
    assert kinds == {"day": "date", "time": "date", "flag": "boolean", "whole": "number", "share": "number", "text": "category"} | {
        name: kinds[name] for name in ("error", "span") if name in kinds
    }
    frame = table.frame()
    assert frame["day"][1] == pd.Timestamp("2024-01-02")
    assert frame["time"][1] == pd.Timestamp("2024-01-02 12:30")
    assert frame["flag"].tolist()[:3] == [1.0, 0.0, 0.0]
    assert np.isnan(frame["error"][0])
    assert frame["share"].tolist()[:2] == [0.0, 0.01]
    assert any("1 cell(s) hold errors of formulas (#DIV/0!) and count as missing" in note for note in table.notes)
    assert table.lines(np.array([0, 10])).tolist() == [3, 14]


def test_formulas_have_the_values_that_were_stored(tmp_path: Path) -> None:
    book = openpyxl.load_workbook(workbook(tmp_path / "things.xlsx"))
    sheet = book.active
    sheet["F1"] = "double"
    for row in range(2, 62):
        sheet.cell(row, 6, f"=2*B{row}")
    book.save(tmp_path / "formulas.xlsx")
    printed = done("embed", tmp_path / "formulas.xlsx", "-o", tmp_path / "out.csv")
    assert "The formulas of 'double' have no stored results" in printed
    stored = tmp_path / "stored.xlsx"
    with zipfile.ZipFile(tmp_path / "formulas.xlsx") as old, zipfile.ZipFile(stored, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("sheet1.xml"):  # as a spreadsheet program stores it
                for row, size in enumerate(FRAME["size"], start=2):
                    content = content.replace(f"<f>2*B{row}</f><v />".encode(), f"<f>2*B{row}</f><v>{2 * size!r}</v>".encode())
                    content = content.replace(f"<f>2*B{row}</f><v></v>".encode(), f"<f>2*B{row}</f><v>{2 * size!r}</v>".encode())
            new.writestr(name, content)
    np.testing.assert_allclose(open_table(stored).frame()["double"], 2 * FRAME["size"])


def damaged(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_files_that_cannot_be_read_get_one_sentence(tmp_path: Path) -> None:
    openpyxl.Workbook().save(tmp_path / "blank.xlsx")
    base, ducks = sqlite(tmp_path / "good.db").read_bytes(), duck(tmp_path / "good.duckdb").read_bytes()
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as packed:
        packed.writestr("a.csv", "x,y\n1,2\n")
        packed.writestr("b.csv", "x,y\n1,2\n")
    with zipfile.ZipFile(tmp_path / "none.zip", "w") as packed:
        packed.writestr("README.md", "nothing")
    shutil.copy(workbook(tmp_path / "book.xlsx"), tmp_path / "book.zip")
    sqlite3.connect(tmp_path / "bare.db").execute("VACUUM").connection.close()
    wrong = {
        tmp_path / "blank.xlsx": "holds no table: its sheets ('Sheet') are empty",
        damaged(tmp_path / "a.xlsx", b"\xd0\xcf\x11\xe0rest"): "is protected by a password, or a workbook of an old Excel",
        damaged(tmp_path / "b.xlsx", b"PK\x03\x04rest"): "cannot be read as a workbook",
        damaged(tmp_path / "c.xlsx", b""): "is empty",
        damaged(tmp_path / "d.xls", b"x"): "save it as .xlsx",
        tmp_path / "two.zip": "holds 2 tables ('a.csv', 'b.csv'): unpack it",
        tmp_path / "none.zip": "holds no table ('README.md')",
        tmp_path / "book.zip": "is a workbook by its content: rename it to end in .xlsx",
        damaged(tmp_path / "e.zip", b"nothing"): "cannot be read as a zip archive",
        damaged(tmp_path / "f.db", base[:5000] + bytes([255]) * 3000 + base[8000:]): "cannot be read as a database",
        damaged(tmp_path / "g.db", b"nothing at all, in fact"): "is neither a SQLite nor a DuckDB database",
        damaged(tmp_path / "h.duckdb", ducks[:6000] + bytes([1]) * len(ducks[6000:])): "cannot be read as a database",
        damaged(tmp_path / "i.sqlite", b""): "is empty",
    }
    for path, sentence in wrong.items():
        assert sentence in refused("embed", path, "-o", tmp_path / "out.csv"), path


def test_columns_of_bytes_and_records_are_named_and_given_back(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "base.db") as base:
        base.execute("CREATE TABLE rows (key INTEGER, size REAL, picture BLOB, mixed)")
        rows = [(place * 3 % 50, place % 7 / 2, bytes([0, place]), place % 4 if place % 2 else f"{place % 3}.5") for place in range(40)]
        base.executemany("INSERT INTO rows VALUES (?, ?, ?, ?)", rows)
    base.close()
    table = open_table(tmp_path / "base.db")
    assert table.dropped["picture"] == "holds bytes, neither numbers, text nor dates"
    assert table.frame()["mixed"].tolist()[:3] == [0.5, 1.0, 2.5]
    assert table.lines(np.array([0, 39])).tolist() == [1, 40]
