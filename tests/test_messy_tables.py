"""From a messy file to a result or a sentence: what a person gets from `gpssl embed` and `gpssl label`, whatever the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from gpssl.cli import app
from people import two_groups

ROWS = two_groups(40, 20).drop(columns="number")


def text_of(frame: pd.DataFrame, **options: object) -> str:
    return str(frame.to_csv(index=False, **options))


def semicolons_and_commas() -> bytes:
    return text_of(ROWS, sep=";", decimal=",").encode()


def umlauts(encoding: str) -> Callable[[], bytes]:
    return lambda: text_of(ROWS.rename(columns={"size": "größe"}).replace({"grey": "grün"})).encode(encoding)


def quoted_lines() -> bytes:
    return text_of(ROWS.assign(colour=ROWS["colour"] + "\nor so")).encode()


def useless_columns() -> bytes:
    return text_of(ROWS.assign(empty=None, constant=7, row_id=np.arange(40) * 3 + 1, name=[f"x{place}" for place in range(40)])).encode()


def dates_and_truths() -> bytes:
    days = pd.date_range("2024-01-01", periods=40).strftime("%d.%m.%Y")
    return text_of(ROWS.assign(day=days, paid=np.where(np.arange(40) % 3 == 0, "yes", "no"))).encode()


def doubled_header() -> bytes:
    header, rest = text_of(ROWS).split("\n", 1)
    return f"{header.replace('weight', 'size')}\n{rest}".encode()


RESULTS: dict[str, tuple[Callable[[], bytes], str]] = {
    "UTF-8 with a byte-order mark": (umlauts("utf-8-sig"), ""),
    "Latin-1": (umlauts("latin-1"), "Windows-1252"),
    "semicolons and decimal commas": (semicolons_and_commas, ""),
    "quoted line breaks": (quoted_lines, ""),
    "empty, constant and ID-like columns": (useless_columns, "'row_id' (it looks like an ID"),
    "dates and truth values": (dates_and_truths, ""),
    "two columns of the same name": (doubled_header, "size"),
}


@pytest.mark.parametrize("case", RESULTS)
def test_result(case: str, tmp_path: Path) -> None:
    content, note = RESULTS[case]
    table, out = tmp_path / "table.csv", tmp_path / "out.csv"
    table.write_bytes(content())
    result = CliRunner().invoke(app, ["label", str(table), "-t", "kind", "-o", str(out), "--draws", "5"])
    assert result.exit_code == 0, result.output
    assert note in result.output
    written = pd.read_csv(out)
    assert len(written) == 40
    assert written["kind_predicted"].notna().sum() == 20


def header_only() -> bytes:
    return b"size,weight,kind\n"


def one_row() -> bytes:
    return b"size,weight,kind\n1.5,2,stone\n"


def alike_rows() -> bytes:
    return text_of(ROWS.assign(size=1.0, weight=2.0, colour="red")).encode()


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


def test_table_that_does_not_fit_in_memory_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "table.csv"
    table.write_text(text_of(two_groups(300, 60)))
    outputs = []
    for limit in (2**28, 1):
        monkeypatch.setattr("gpssl.files.table.MEMORY_BYTES", limit)
        out = tmp_path / f"out{limit}.csv"
        result = CliRunner().invoke(app, ["label", str(table), "-t", "kind", "-o", str(out), "--draws", "5"])
        assert result.exit_code == 0, result.output
        outputs.append(pd.read_csv(out))
    pd.testing.assert_frame_equal(outputs[0], outputs[1], rtol=1e-6)
