"""Where results go: names are checked before any work, and files look as the person's did."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from command import FEW, done, refused
from people import two_groups, written


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return written(two_groups(), tmp_path / "things.csv")


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens the table does so too early."""

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("the table was opened before the names of the outputs were checked")

    for module in ("workflows._embed", "workflows._label", "report._making"):
        monkeypatch.setattr(f"gpssl.{module}.open_subject", fail)


WRONG = {
    "out.csv.bz2": "ends in .bz2; tables are written as .csv, .tsv",
    "out.xlsx": "ends in .xlsx; tables are written as",
    "out.parquet.gz": "ends in .gz; tables are written as",
    "out.h5ad": "ends in .h5ad; tables are written as",
    "out": "ends in nothing; tables are written as",
    "nowhere/out.csv": "There is no folder",
    "things.csv": "exists: pass --force",
}


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("command", ["embed", "label"])
def test_names_of_results_are_checked_before_the_table_is_opened(table: Path, tmp_path: Path, name: str, command: str) -> None:
    options = ["-t", "kind"] if command == "label" else []
    assert WRONG[name] in refused(command, table, *options, "-o", tmp_path / name)


@pytest.mark.usefixtures("no_work")
def test_names_of_models_and_reports_are_checked_first(table: Path, tmp_path: Path) -> None:
    (tmp_path / "old.gpssl").write_bytes(b"old")
    assert "exists" in refused("label", table, "-t", "kind", "-o", tmp_path / "out.csv", "-m", tmp_path / "old.gpssl")
    assert "There is no folder" in refused("embed", table, "-o", tmp_path / "out.csv", "-m", tmp_path / "no" / "m.gpssl")
    assert "ends in .pdf: choose a name that ends in .html" in refused("report", tmp_path / "m.gpssl", table, "-o", tmp_path / "r.pdf")
    assert "There is no folder" in refused("report", tmp_path / "m.gpssl", table, "-o", tmp_path / "no" / "r.html")
    assert "ends in .gz" in refused("transform", tmp_path / "m.gpssl", table, "-o", tmp_path / "out.gz")


@pytest.mark.parametrize("ending", ["csv.gz", "tsv.gz", "jsonl.gz"])
def test_compressed_results(table: Path, tmp_path: Path, ending: str) -> None:
    printed = done("label", table, "-t", "kind", "-o", tmp_path / f"out.{ending}", *FEW)
    assert f"wrote {tmp_path / 'out.gpssl'}" in printed
    packed = (tmp_path / f"out.{ending}").read_bytes()
    lines = gzip.decompress(packed).decode().splitlines()
    done("label", table, "-t", "kind", "-o", tmp_path / f"plain.{ending[:-3]}", *FEW)
    assert lines == (tmp_path / f"plain.{ending[:-3]}").read_text().splitlines()
    done("label", table, "-t", "kind", "-o", tmp_path / f"again.{ending}", *FEW)
    assert (tmp_path / f"again.{ending}").read_bytes() == packed
    assert "60 rows" in done("transform", tmp_path / "out.gpssl", tmp_path / f"out.{ending}", "-o", tmp_path / "more.csv")
    assert len(pd.read_csv(tmp_path / "more.csv")) == 60
