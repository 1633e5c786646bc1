"""Workbooks and databases: with odd cells, and damaged."""

from __future__ import annotations

import io
import re
import sqlite3
import tempfile
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from csv_inputs import ESCAPES, ODD_NAMES, WORDS, Random, cut_off, flip, insert
from table_runs import Input

CELLS: tuple[Any, ...] = (
    *(
        1,
        2.5,
        -0.0,
        1e308,
        2**53,
        True,
        None,
        "",
        " ",
        "=1+1",
        "=1/0",
        "#N/A",
        "#DIV/0!",
        "007",
        datetime(2024, 1, 2, 3, 4, 5),
        date(1900, 1, 1),
    ),
    *(time(1, 2), timedelta(hours=30), *WORDS, *(re.sub(r"[\x00-\x1f]", "", one) for one in ESCAPES), "x" * 30_000, "_x001B_[2J", "a\nb"),
)
ENTITIES = (
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {new} "{f"&{old};" * 10}">' for old, new in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)
"""Entities that become a thousand million letters where somebody replaces them."""
ELSEWHERE = '<!DOCTYPE x [<!ENTITY i SYSTEM "file:///etc/hostname">]>'


def _book(rng: Random) -> bytes:
    """Return a workbook with a table among odd cells."""
    from openpyxl import Workbook

    book = Workbook()
    for number in range(int(rng.integers(1, 3))):
        sheet = book.active if number == 0 else book.create_sheet("second")
        names = ["id", "x", "group", *rng.choice(ODD_NAMES[2:12], 2).tolist()]
        sheet.append([re.sub(r"[\x00-\x1f]", "", name) for name in names])
        for row in range(int(rng.integers(0, 30))):
            odd = [CELLS[place] for place in rng.integers(len(CELLS), size=2)] if rng.random() < 0.5 else [row % 3, "a"]
            sheet.append([f"N{row}", row * 0.5, "ab"[row % 2], *odd])
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def _changed(book: bytes, name: str, change: Any) -> bytes:
    """Return a workbook of which one file within is another."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(book)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for one in old.namelist():
            content = old.read(one)
            new.writestr(one, change(content.decode()).encode("utf-8", "replace") if one == name else content)
    return out.getvalue()


SHEET, STRINGS, BOOK, STYLES = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/workbook.xml", "xl/styles.xml"
CHANGES: tuple[tuple[str, str, str, str], ...] = (
    ("reference beyond all columns", SHEET, r'r="B2"', 'r="ZZZZ2"'),
    ("reference beyond all rows", SHEET, r'r="B2"', 'r="B99999999999"'),
    ("reference that is none", SHEET, r'r="B2"', 'r="&#27;[2J"'),
    ("no reference", SHEET, r'r="[A-Z]\d+"', ""),
    ("row far below", SHEET, r'<row r="3"', '<row r="1048576"'),
    ("row beyond all rows", SHEET, r'<row r="3"', '<row r="99999999999999999999"'),
    ("rows that go back", SHEET, r'<row r="4"', '<row r="2"'),
    ("row zero", SHEET, r'<row r="2"', '<row r="0"'),
    ("row that is no number", SHEET, r'<row r="2"', '<row r="two"'),
    ("last column", SHEET, r'r="C2"', 'r="XFD2"'),
    ("huge dimensions", SHEET, r'<dimension ref="[^"]*"', '<dimension ref="A1:XFD1048576"'),
    ("wrong dimensions", SHEET, r'<dimension ref="[^"]*"', '<dimension ref="ZZ:-1"'),
    ("string that is not there", SHEET, r't="s"><v>\d+', 't="s"><v>999999'),
    ("string before the first", SHEET, r't="s"><v>\d+', 't="s"><v>-2'),
    ("string without number", SHEET, r't="s"><v>\d+', 't="s"><v>one'),
    ("number that is none", SHEET, r"<v>0.5</v>", "<v>half</v>"),
    ("number that is too large", SHEET, r"<v>0.5</v>", "<v>1e999</v>"),
    ("number of many digits", SHEET, r"<v>0.5</v>", f"<v>{'9' * 5000}</v>"),
    ("type that is none", SHEET, r't="n"', 't="zz"'),
    ("errors", SHEET, r't="n"><v>[^<]*', 't="e"><v>#REF!'),
    ("dates beyond the calendar", SHEET, r't="n"><v>[^<]*', 't="d"><v>9999-99-99'),
    ("serial date beyond the calendar", SHEET, r'(<c r="B3") t="n"><v>[^<]*', r'\1 s="1" t="n"><v>99999999999'),
    ("style that is not there", SHEET, r'<c r="B3"', '<c s="12345" r="B3"'),
    ("entities", SHEET, r"^(<\?xml[^>]*>)?(.*?)<v>[^<]*", rf"\1{ENTITIES}\2<v>&i;"),
    ("entities in names", STRINGS, r"^(<\?xml[^>]*>)?(.*?)<t>[^<]*", rf"\1{ENTITIES}\2<t>&i;"),
    ("file elsewhere", STRINGS, r"^(<\?xml[^>]*>)?(.*?)<t>[^<]*", rf"\1{ELSEWHERE}\2<t>&i;"),
    ("no strings", STRINGS, r"<si>.*</si>", ""),
    ("sheet that is not there", BOOK, r'r:id="rId1"', 'r:id="rId77"'),
    ("no sheets", BOOK, r"<sheets>.*</sheets>", "<sheets/>"),
    ("name of a sheet", BOOK, r'name="Sheet"', 'name="&#13;&#10;&lt;b&gt;"'),
    ("hidden sheet", BOOK, r'state="visible"', 'state="veryHidden"'),
    ("cut off", SHEET, r"</row>.*$", ""),
    ("deep", SHEET, r"<sheetData>", "<sheetData>" + "<a>" * 20_000),
    ("no styles", STYLES, r"<cellXfs.*</cellXfs>", ""),
    ("date of 1904", BOOK, r"<workbookPr", '<workbookPr date1904="1"'),
)


def workbooks(rng: Random, count: int) -> Iterator[Input]:
    """Yield workbooks, of which most are damaged: in their XML, or in their bytes."""
    for number in range(count):
        book, what = _book(rng), "as it was saved"
        pick = float(rng.random())
        if pick < 0.6:
            what, file, old, new = CHANGES[number % len(CHANGES)]
            n_places = int(rng.choice([1, 0]))
            book = _changed(book, file, lambda text, old=old, new=new, n=n_places: re.sub(old, new, text, count=n, flags=re.DOTALL))
        elif pick < 0.75:
            file = str(rng.choice([SHEET, STRINGS, BOOK, STYLES, "[Content_Types].xml", "xl/_rels/workbook.xml.rels"]))
            change = (flip, cut_off, insert)[int(rng.integers(3))]
            what = f"{change.__name__} in {file}"
            book = _changed(book, file, lambda text, change=change: change(rng, text.encode()).decode("utf-8", "replace"))
        elif pick < 0.95:
            change = (flip, cut_off, insert)[int(rng.integers(3))]
            book, what = change(rng, book), change.__name__
        yield Input("table.xlsx", book, what)


SQL_NAMES = ("table", "a b", 'say "x"', "gr\u00f6\u00dfe", "select", "\x1b[2J", "x" * 500)


def _sqlite(rng: Random, path: Path) -> None:
    values: list[Any] = [1, 2.5, None, "a", "NA", b"\x00\xff", 2**62, "x" * 1000, "\x1b[31m", float("inf"), -0.0, "1,5", ""]
    base = sqlite3.connect(path)
    for number in range(int(rng.choice([1, 2], p=[0.9, 0.1]))):
        name = str(rng.choice(SQL_NAMES)).replace('"', '""') + "x" * number
        base.execute(f'CREATE TABLE "{name}" (id TEXT, x REAL, "{["a b", "é", "x y", "1"][int(rng.integers(4))]}" BLOB)')
        rows = [
            (f"N{row}", row * 0.5, values[int(rng.integers(len(values)))] if rng.random() < 0.7 else "b")
            for row in range(int(rng.integers(0, 40)))
        ]
        base.executemany(f'INSERT INTO "{name}" VALUES (?, ?, ?)', rows)
    if rng.random() < 0.1:
        base.execute("CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c")
        base.execute(f'DROP TABLE "{name}"') if rng.random() < 0.5 else None
    if rng.random() < 0.2:
        base.execute("PRAGMA writable_schema = 1")
        base.execute(
            "UPDATE sqlite_master SET sql = ?", (str(rng.choice(["CREATE TABLE x", "", "DROP TABLE x", "CREATE TABLE t (a, a, a)"])),)
        )
    base.commit()
    base.close()


def _duckdb(rng: Random, path: Path) -> None:
    import duckdb

    base = duckdb.connect(str(path))
    name = str(rng.choice(SQL_NAMES[:5])).replace('"', '""')
    kinds = [
        "1::HUGEINT << 100",
        "'a'",
        "[1, 2]",
        "{'a': 1}",
        "DATE '2024-01-01'",
        "'x'::BLOB",
        "INTERVAL 1 DAY",
        "uuid()",
        "1.5::DECIMAL(38, 10)",
        "NULL",
        "'a'::ENUM ('a', 'b')",
    ]
    kind, n_rows = kinds[int(rng.integers(len(kinds)))], int(rng.integers(0, 40))
    base.execute(f'CREATE TABLE "{name}" AS SELECT i AS x, i * 0.5 AS y, {kind} AS z FROM range({n_rows}) t(i)')
    base.close()


def databases(rng: Random, count: int) -> Iterator[Input]:
    """Yield databases of SQLite and DuckDB, of which most are damaged."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            make, path = (_sqlite, Path(folder) / "table.sqlite") if rng.random() < 0.7 else (_duckdb, Path(folder) / "table.duckdb")
            make(rng, path)
            content, what = path.read_bytes(), "as it was written"
            path.unlink()
            if rng.random() < 0.7:
                change = (flip, cut_off, insert, _page_flip)[int(rng.integers(4))]
                content, what = change(rng, content), change.__name__
            yield Input(path.name, content, f"{number} {what}")


def _page_flip(rng: Random, content: bytes) -> bytes:
    """Return bytes of which some in the first pages are others, where databases say what they hold."""
    return flip(rng, content[:5000]) + content[5000:]
