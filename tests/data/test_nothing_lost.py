"""What stood in a table of text stands in results that know types: codes, words, zones, and JSON as it was."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet
import pytest

import gpssl
from gpssl.data import FileError, open_table, write_table
from gpssl.data._outputs import asked_for
from people import json_lines

COLUMNS = {
    "zip code": ("string", ["01234", "00501", "90210"]),
    "phone number": ("string", ["+49170", "+1555", "+33"]),
    "word among numbers": ("string", ["1", "2.5", *["3"] * 200, "broken"]),
    "infinity": ("string", ["1", "inf", "3"]),
    "long number": ("string", ["12345678901234567890123", "2", "3"]),
    "zone": ("string", ["2024-01-01T10:00:00+02:00", "2024-01-01T11:00:00+02:00", "2024-01-02T10:00:00Z"]),
    "month": ("string", ["2024-01", "2024-02", "2024-03"]),
    "nanoseconds": ("string", ["2024-01-01 00:00:00.000000001", "2024-01-01 00:00:01", "2024-01-01 00:00:02"]),
    "number": ("double", ["1.50", "-0.25", "1.500000000000000000e+00"]),
    "sign": ("double", ["+1.5", "-0.5", "0"]),
    "gaps": ("double", ["1", "NA", "-"]),
    "decimal commas": ("double", ["1,5", "0,25", "1.234,5"]),
    "day": ("timestamp[us]", ["31.12.2024", "1.1.2025", ""]),
}


@pytest.mark.parametrize("what", COLUMNS)
def test_text_becomes_values_where_nothing_is_lost(tmp_path: Path, what: str) -> None:
    kind, cells = COLUMNS[what]
    (tmp_path / "table.csv").write_text(
        "x;y\n" + "".join(f"{place % 3}.5;{cells[place % len(cells)]}\n" for place in range(60 * len(cells)))
    )
    copy(tmp_path / "table.csv", tmp_path / "out.parquet")
    found = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    assert str(found.schema.field("y").type) == kind
    if kind == "string":
        assert found["y"].to_pylist()[: len(cells)] == cells


def copy(path: Path, out: Path) -> None:
    table = open_table(path)
    asked, style = asked_for(out, table.style)
    write_table(out, (part.cells(**asked) for part in table.parts()), style=style)


JSON: list[dict[str, Any]] = [
    {
        "zip": "01234",
        "digit": "1",
        "flag": True,
        "long": 10**22 + 1,
        "whole": 1,
        "number": 1.0,
        "mixed": 1,
        "day": "2024-01-01",
        "list": [1],
    },
    {
        "zip": "00501",
        "digit": "2",
        "flag": False,
        "long": 2**53 + 1,
        "whole": 2,
        "number": 2.5,
        "mixed": "1",
        "day": "2024-01-02",
        "list": [],
    },
    {"zip": "90210", "digit": "3", "flag": None, "long": 3, "whole": 3, "number": -0.0, "mixed": True, "day": None, "list": "a"},
] * 10


@pytest.mark.parametrize("key", [None, *JSON[0]])
def test_json_comes_back_as_it_was(tmp_path: Path, key: str | None) -> None:
    """All keys at once are read slowly, some alone quickly, by Arrow."""
    lines = [{"x": place % 7 + 0.5, **(line if key is None else {key: line[key]})} for place, line in enumerate(JSON)]
    (tmp_path / "table.jsonl").write_text("\n".join(map(json.dumps, lines)))
    copy(tmp_path / "table.jsonl", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text().splitlines() == list(map(json.dumps, lines))


def test_keys_that_come_more_than_once_are_told(tmp_path: Path) -> None:
    (tmp_path / "table.jsonl").write_text('{"a": 1, "b": 1.5}\n{"a": 2, "b": 1, "a": {"a": 4}}\n{"a": 3, "b": 2}\n')
    assert "1 line(s), such as line 2, have a key more than once: its last value counts." in open_table(tmp_path / "table.jsonl").notes


@pytest.mark.parametrize("labels", [["a", "b"], [1, 2]])
def test_labels_of_the_page_are_json_among_json(tmp_path: Path, labels: list[Any]) -> None:
    table = tmp_path / "table.jsonl"
    lines = [
        {"x": place % 2 + place / 100, "zip": f"0{place % 5}", "kind": labels[place % 2] if place % 3 else None} for place in range(30)
    ]
    table.write_text("\n".join(map(json.dumps, lines)))
    gpssl.annotate(table, "kind", n=3, out=tmp_path / "page.html")
    from gpssl.workflows._row_checksums import row_checksums, row_names
    from gpssl.workflows._subject import Roles, open_subject

    subject, places = open_subject(table, Roles("kind")), pd.array([0, 3]).to_numpy(dtype=int)
    given = pd.DataFrame({"row": row_names(subject, places), "checksum": row_checksums(subject, places), "kind": [str(labels[0])] * 2})
    gpssl.label(table, "kind", labels=given, n_draws=3, n_components=1, out=tmp_path / "out.jsonl")
    found = json_lines(tmp_path / "out.jsonl")
    assert found["kind"].tolist()[:4] == [labels[0], labels[1], labels[0], labels[0]]
    assert found["zip"].tolist()[:2] == ["00", "01"]


def test_infinite_numbers_of_a_typed_file_count_as_missing(tmp_path: Path) -> None:
    pd.DataFrame({"x": [1.0, float("inf"), 2.0] * 5, "y": range(15)}).to_parquet(tmp_path / "table.parquet")
    result = gpssl.embed(tmp_path / "table.parquet", keep=["y"], n_components=1, out=tmp_path / "out.parquet")
    assert "5 infinite number(s) count as missing, in 'x'." in result.notes
    assert pd.read_parquet(tmp_path / "out.parquet")["x"].tolist() == [1.0, float("inf"), 2.0] * 5


def test_views_of_a_database_are_read_if_somebody_asks_for_them(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "table.sqlite")) as base:
        base.execute("CREATE VIEW endless AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c")
        base.execute("CREATE VIEW few AS SELECT 1 AS a, 'x' AS b UNION SELECT 2, 'y'")
    with pytest.raises(FileError, match="has no tables, but the views 'endless', 'few': name one, sheet='endless'"):
        open_table(tmp_path / "table.sqlite")
    assert open_table(tmp_path / "table.sqlite", sheet="few", keep=["a"]).n_rows == 2


def test_views_of_a_database_read_no_other_file(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n2,3\n")
    with closing(duckdb.connect(str(tmp_path / "table.duckdb"))) as base:
        base.execute(f"CREATE VIEW v AS SELECT * FROM read_csv('{tmp_path / 'secret.csv'}')")
    with pytest.raises(FileError, match=r"table\.duckdb cannot be read as a database"):
        open_table(tmp_path / "table.duckdb", sheet="v", keep=["a", "b"])
