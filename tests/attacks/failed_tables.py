"""Tables that once failed, with what they ended in; each is built anew, as it was or as small as shows the mistake."""

from __future__ import annotations

import io
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from table_runs import Input


def failed_tables() -> Iterator[Input]:
    """Yield them all."""
    rows = [[f"r{place}", f"1,{place}", f"0,{place % 9}", str(place % 4)] for place in range(1, 30)]
    german = "\n".join(map(";".join, [["id", "x", "y", "z"], *rows]))
    cells: dict[str, list[str | None]] = {name: [row[place] for row in rows] for place, name in enumerate(["id", "x", "y", "z"])}
    yield Input("table.csv", german.encode(), "decimal commas, as many in each row, were separators", cells)
    yield Input("table.csv", b"a,b,c\n1,2,3\n" + b"1,2\n" * 10**6, "more than 5 s: each bad row was kept")
    yield Input("table.csv", b"sep=]\na]b\n" + b"1]x\n2]y\n" * 9, "a separator that is a sign of patterns")
    yield Input("table.jsonl", b'{"x": 1, "a": [1]}\n{"x": 2, "a": "text"}\n{"x": 2.5}\n', "JSONDecodeError where results were written")
    yield Input("table.jsonl", b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}\n", "no stack was left for Arrow")
    yield Input(
        "table.arrow", arrow_bytes({"when": pa.array([1] * 9, pa.timestamp("s", tz="ABCD"))}).replace(b"ABCD", b"A\xff\x93D"), "Unicode"
    )
    odd = {
        "years": pa.array([10**12] * 9, pa.timestamp("s")),
        "days": pa.array([2**30] * 9, pa.date32()),
        "zone": pa.array([0] * 9, pa.timestamp("ms", tz="Mars/Base")),
        "spans": pa.array([2**62] * 9, pa.duration("s")),
        "levels": pa.DictionaryArray.from_arrays(pa.array([0] * 9, pa.int32()), pa.array([[1, 2]])),
        "intervals": pa.array([(1, 2, 3)] * 9, pa.month_day_nano_interval()),
    }
    for name, column in odd.items():
        yield Input("table.arrow", arrow_bytes({name: column}), f"{name}: OverflowError or ArrowInvalid where results were written")
    yield Input("table.arrow", arrow_bytes({"text": pa.array(["a", "b", "c"] * 1500)}, 5), "more than 5 s: 900 batches of five rows")
    wrong = pa.DictionaryArray.from_arrays(pa.array([0, 1, 10**6] * 3, pa.int32()), pa.array(["a", "b"]), safe=False)
    yield Input("table.arrow", arrow_bytes({"level": wrong}), "an index outside of its dictionary")
    for damage in (b"\xff\xfe", b'{"index_columns": 7}', b"[" * 100_000, b"null"):
        table = pa.table({"x": [1.5, 2.0, 3.0] * 3, "y": ["a", "b", "c"] * 3}).replace_schema_metadata({b"pandas": damage})
        file = io.BytesIO()
        pyarrow.parquet.write_table(table, file)
        yield Input("table.parquet", file.getvalue(), "damaged metadata of pandas", must_be_read=True)
    yield Input("table.sqlite", _endless_view(), "a view without an end was read")


def arrow_bytes(columns: dict[str, pa.Array], rows_of_a_batch: int = 10_000) -> bytes:
    """Return an Arrow file of these columns beside one of numbers."""
    n_rows = len(next(iter(columns.values())))
    table = pa.table({**columns, "x": [place % 3 for place in range(n_rows)]})
    file = io.BytesIO()
    with pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows_of_a_batch)
    return file.getvalue()


def _endless_view() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.sqlite"
        base = sqlite3.connect(path)
        base.execute("CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c")
        base.close()
        return path.read_bytes()
