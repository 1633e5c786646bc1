"""What stood in a typed file stands in the result: types, digits and words."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from gpssl.data import open_table, write_table
from gpssl.data._outputs import is_typed
from people import json_lines


def many_types(n_rows: int = 60) -> pa.Table:
    rows = range(n_rows)
    columns = {
        "id": pa.array([2**60 + 3 + i if i % 9 else None for i in rows]),
        "whole": pa.array([i % 6 if i % 9 else None for i in rows], pa.int16()),
        "flag": pa.array([i % 3 == 0 if i % 8 else None for i in rows]),
        "price": pa.array([Decimal(i % 7) / 4 for i in rows], pa.decimal128(10, 2)),
        "when": pa.array([i % 5 * 86400 * 10**6 if i % 7 else None for i in rows], pa.timestamp("us", tz="Europe/Berlin")),
        "day": pa.array([i % 4 for i in rows], pa.date32()),
        "span": pa.array([i % 5 for i in rows], pa.duration("s")),
        "level": pa.array([["NA", "b", None][i % 3] for i in rows]).dictionary_encode(),
        "code": pa.array([f"00{i % 4}" for i in rows]),
        "text": pa.array([["None", " x ", "", None][i % 4] for i in rows]),
        "single": pa.array([i % 3 + 0.1 for i in rows], pa.float32()),
    }
    return pa.table(columns)


@pytest.mark.parametrize("source", ["parquet", "arrow"])
@pytest.mark.parametrize("ending", ["parquet", "arrow", "jsonl", "csv"])
def test_values_of_typed_files_are_given_back(tmp_path: Path, source: str, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpssl.data._formats.PART_ROWS", (7, 7))
    given = many_types()
    write_typed(given, tmp_path / f"table.{source}")
    table, out = open_table(tmp_path / f"table.{source}"), tmp_path / f"out.{ending}"
    write_table(out, (part.cells(typed=is_typed(out)) for part in table.parts()))
    if is_typed(out) and ending != "jsonl":
        found = read_typed(out)
        decoded = given.set_column(7, "level", given["level"].cast(pa.string()))
        assert found.schema.remove_metadata() == decoded.schema
        assert found.to_pydict() == decoded.to_pydict()
        return
    found = pd.read_csv(out, dtype=str, keep_default_na=False) if ending == "csv" else json_lines(out)
    assert str(found["id"].tolist()[1]) == str(2**60 + 4)
    assert found["level"].tolist()[:2] == ["NA", "b"]
    assert found["text"].tolist()[:2] == ["None", " x "]
    assert found["code"].tolist()[:2] == ["000", "001"]
    assert [float(value) for value in found["price"][:3]] == [0.0, 0.25, 0.5]
    assert [float(value) for value in found["span"][:3]] == [0.0, 1.0, 2.0]
    assert str(found["flag"].tolist()[1]).lower() == "false"
    assert found["when"].tolist()[1].startswith("1970-01-02 01:00:00+01")
    assert found["single"].tolist()[1] in ("1.1", pytest.approx(1.1))


def write_typed(table: pa.Table, path: Path) -> None:
    pyarrow.parquet.write_table(table, path) if path.suffix == ".parquet" else pyarrow.feather.write_feather(table, path)


def read_typed(path: Path) -> pa.Table:
    return pyarrow.parquet.read_table(path) if path.suffix == ".parquet" else pyarrow.feather.read_table(path)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_large_whole_numbers_keep_their_digits_and_are_not_called_alike(tmp_path: Path, ending: str) -> None:
    ids = [2**60 + 3 + i for i in range(60)]
    frame = pd.DataFrame({"customer_id": ids, "ticks": ids, "x": np.arange(60) % 7})
    write_table(tmp_path / f"table.{ending}", frame)
    table = open_table(tmp_path / f"table.{ending}")
    assert table.used == ["x"]
    assert table.dropped == {
        "customer_id": "its numbers have the same first 15 digits, and more cannot be told apart",
        "ticks": "its numbers have the same first 15 digits, and more cannot be told apart",
    }
    cells = pd.concat([part.cells(typed=True) for part in table.parts()])
    assert [int(cell) for cell in cells["ticks"]] == ids
    spread = frame.assign(customer_id=np.array(ids) + 100 * np.arange(60) ** 2)
    write_table(tmp_path / f"spread.{ending}", spread)
    assert "looks like an ID" in open_table(tmp_path / f"spread.{ending}").dropped["customer_id"]
    assert open_table(tmp_path / f"table.{ending}").texts("ticks").tolist() == [str(one) for one in ids]


def test_very_large_quantities_are_numbers_in_a_typed_file(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("mass,x\n" + "".join(f"{place % 9 + 1}.5e30,{place % 7}\n" for place in range(40)))
    table = open_table(tmp_path / "table.csv")
    assert table.used == ["mass", "x"]
    assert next(table.parts()).cells(typed=True)["mass"].tolist()[:2] == [1.5e30, 2.5e30]
