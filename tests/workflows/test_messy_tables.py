"""From a messy file to a result or a sentence: what a person gets from `gpssl embed` and `gpssl label`, whatever the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import gpssl
from gpssl.cli import app
from gpssl.data._frames import ColumnFacts
from gpssl.workflows._subject import Roles
from gpssl.workflows._table_subject import TableSubject
from people import two_groups

ROWS = two_groups(40, 20).drop(columns="number")


def text_of(frame: pd.DataFrame, **options: object) -> str:
    return str(frame.to_csv(index=False, **options))


def semicolons_and_commas() -> bytes:
    return text_of(ROWS, sep=";", decimal=",").encode()


def umlauts(encoding: str) -> Callable[[], bytes]:
    return lambda: text_of(ROWS.rename(columns={"size": "größe"}).replace({"gray": "grün"})).encode(encoding)


def quoted_lines() -> bytes:
    return text_of(ROWS.assign(color=ROWS["color"] + "\nor so")).encode()


def useless_columns() -> bytes:
    return text_of(ROWS.assign(empty=None, constant=7, row_id=np.arange(40) * 3 + 1, name=[f"x{place}" for place in range(40)])).encode()


def dates_and_truths() -> bytes:
    days = pd.date_range("2024-01-01", periods=40).strftime("%d.%m.%Y")
    return text_of(ROWS.assign(day=days, paid=np.where(np.arange(40) % 3 == 0, "yes", "no"))).encode()


def doubled_header() -> bytes:
    header, rest = text_of(ROWS).split("\n", 1)
    return f"{header.replace('weight', 'size')}\n{rest}".encode()


def words_for_missing_cells() -> bytes:
    return text_of(ROWS.assign(kind=ROWS["kind"].replace({"flower": "None"}), weight=ROWS["weight"].fillna("n/a"))).encode()


def number(name: str, source: str | None = None) -> ColumnFacts:
    """What should be known of a column of numbers."""
    cells = ROWS[source or name]
    return ColumnFacts(name, "number", "float64", int(cells.isna().sum()), cells.min(), cells.max(), None)


def category(name: str, *levels: str) -> ColumnFacts:
    return ColumnFacts(name, "category", "object", 0, None, None, levels)


def seconds(day: str) -> float:
    return pd.Timestamp(day).timestamp()


class Case(NamedTuple):
    """A table, what should be said about it, what should be known of its columns, and how its second row should be given back."""

    content: Callable[[], bytes]
    notes: list[str]
    facts: list[ColumnFacts]
    cells: dict[str, str]


PLAIN = [number("size"), number("weight"), category("color", "blue", "gray", "red")]
UMLAUTS = [number("größe", "size"), number("weight"), category("color", "blue", "grün", "red")]
SIZE, WEIGHT = (repr(float(ROWS[name][1])) for name in ("size", "weight"))
RESULTS: dict[str, Case] = {
    "UTF-8 with a byte-order mark": Case(umlauts("utf-8-sig"), ["byte order mark"], UMLAUTS, {"größe": SIZE, "color": "grün"}),
    "Latin-1": Case(umlauts("latin-1"), ["Windows-1252"], UMLAUTS, {"größe": SIZE, "color": "grün"}),
    "semicolons and decimal commas": Case(
        semicolons_and_commas,
        ["separated by semicolons", "Numbers with decimal commas: 'size', 'weight'."],
        PLAIN,
        {"size": SIZE.replace(".", ","), "weight": WEIGHT.replace(".", ",")},
    ),
    "quoted line breaks": Case(
        quoted_lines, [], [*PLAIN[:2], category("color", "blue\nor so", "gray\nor so", "red\nor so")], {"color": "gray\nor so"}
    ),
    "empty, constant and ID-like columns": Case(
        useless_columns,
        [
            "'empty' (it is empty)",
            "'constant' (all its cells are alike)",
            "'row_id' (it looks like an ID: by its name",
            "'name' (it looks like an ID: 40 different texts in 40 rows)",
        ],
        PLAIN,
        {"empty": "", "constant": "7", "row_id": "4", "name": "x1"},
    ),
    "dates and truth values": Case(
        dates_and_truths,
        ["Dates read as day.month.year: 'day'."],
        [
            *PLAIN,
            ColumnFacts("day", "date", "datetime64[us]", 0, seconds("2024-01-01"), seconds("2024-02-09"), None),
            ColumnFacts("paid", "boolean", "float64", 0, 0.0, 1.0, None),
        ],
        {"day": "02.01.2024", "paid": "no"},
    ),
    "two columns of the same name": Case(
        doubled_header, ["renamed: 'size.1'."], [number("size"), number("size.1", "weight"), PLAIN[2]], {"size": SIZE, "size.1": WEIGHT}
    ),
    "words for missing cells, and a class that looks like one": Case(
        words_for_missing_cells, ["12 cells 'None' of the target 'kind' count as a class, because 20"], PLAIN, {"weight": WEIGHT}
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_result(name: str, tmp_path: Path) -> None:
    case = RESULTS[name]
    table, out = tmp_path / "table.csv", tmp_path / "out.csv"
    table.write_bytes(case.content())
    result = CliRunner().invoke(app, ["label", str(table), "-t", "kind", "-o", str(out), "--draws", "5"])
    assert result.exit_code == 0, result.output
    assert all(note in result.output for note in case.notes), result.output
    assert ("Note" in result.output) == (case.notes != [])
    card = gpssl.read_card(out.with_suffix(".gpssl"))
    assert card.columns == tuple(case.facts)
    assert card.n_rows == 40
    dialect = {"sep": ";"} if "semicolons" in name else {"encoding": "cp1252"} if name == "Latin-1" else {}
    written = pd.read_csv(out, dtype=str, keep_default_na=False, **dialect)
    assert written.loc[1, list(case.cells)].to_dict() == case.cells
    assert len(written) == 40
    flower = "None" if "class" in name else "flower"
    open_rows = ROWS["kind"].isna()
    expected = np.where(open_rows, np.where(ROWS["color"] == "gray", "stone", flower), "")
    assert written["kind_predicted"].tolist() == expected.tolist()
    given = ROWS["kind"].replace({"flower": flower}).fillna("")
    assert written["kind"].tolist() == given.tolist()


def header_only() -> bytes:
    return b"size,weight,kind\n"


def one_row() -> bytes:
    return b"size,weight,kind\n1.5,2,stone\n"


def alike_rows() -> bytes:
    return text_of(ROWS.assign(size=1.0, weight=2.0, color="red")).encode()


def numbers_for_names() -> bytes:
    return b"1.5,2.5\n3.5,4.5\n5.5,6.5\n"


SENTENCES: dict[str, tuple[Callable[[], bytes], str]] = {
    "no rows": (header_only, "no rows"),
    "one row": (one_row, "row"),
    "nothing at all": (lambda: b"", "empty"),
    "rows that are all alike": (alike_rows, "all its cells are alike"),
    "no names": (numbers_for_names, "names"),
    "a picture": (lambda: b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0d", "table.csv"),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_sentence(case: str, tmp_path: Path) -> None:
    content, sentence = SENTENCES[case]
    table = tmp_path / "table.csv"
    table.write_bytes(content())
    options = [] if case == "no names" else ["--ignore", "kind"]
    result = CliRunner().invoke(app, ["embed", str(table), "-o", str(tmp_path / "out.csv"), *options])
    assert result.exit_code == 1, result.output
    assert result.output.startswith("Error: ")
    assert len(result.output.strip().splitlines()) == 1
    assert sentence in result.output
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]


def test_ten_thousand_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(30, 10_000)).round(3), columns=[f"gene {place}" for place in range(10_000)])
    frame.to_csv(tmp_path / "table.csv", index=False)
    out = tmp_path / "out.parquet"
    result = CliRunner().invoke(app, ["embed", str(tmp_path / "table.csv"), "-o", str(out), "--only-new", "--components", "2"])
    assert result.exit_code == 0, result.output
    assert "10,000 columns" in result.output
    assert pd.read_parquet(out).shape == (30, 4)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_table_that_does_not_fit_in_memory_gives_the_same(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, frame = tmp_path / "table.csv", two_groups(300, 60).sort_values("kind", ignore_index=True)  # parts without predictions first
    table.write_text(text_of(frame.assign(note=np.where(np.arange(300) % 3 == 0, "NA", "x"))))
    outputs = []
    for name, memory, block in (("whole", 2**28, 2**20), ("parts", 1, 2048)):
        monkeypatch.setattr("gpssl.data._table.MEMORY_BYTES", memory)
        monkeypatch.setattr("gpssl.data._delimited.BLOCK_BYTES", (block, block))
        pieces = list(TableSubject(table, Roles("kind")).parts())
        assert (len(pieces) > 5) == (name == "parts")
        out = tmp_path / f"{name}.{ending}"
        result = CliRunner().invoke(
            app, ["label", str(table), "-t", "kind", "-o", str(out), "--draws", "5", "--max-risk", "0.2"], catch_exceptions=False
        )
        assert result.exit_code == 0, result.output
        outputs.append(pyarrow.parquet.read_table(out) if ending == "parquet" else pa.Table.from_pandas(pd.read_csv(out)))
    whole, parts = outputs
    assert whole.schema.remove_metadata() == parts.schema.remove_metadata()
    pd.testing.assert_frame_equal(whole.to_pandas(), parts.to_pandas(), rtol=1e-6)
    types = {field.name: str(field.type) for field in parts.schema}
    assert (types["size"], types["kind_probability"], types["kind_std"]) == ("double",) * 3
    if ending == "parquet":
        assert types["kind_abstain"] == "bool"
        assert types["kind_predicted"] == types["note"] == "string"
        assert parts["note"].to_pylist()[:2] == ["NA", "x"]
    assert parts["kind_predicted"].null_count == 60
