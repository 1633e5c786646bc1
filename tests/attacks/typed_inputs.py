"""Parquet and Arrow files: of all types, and damaged in their bytes, their footers, and what pandas has written into them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from csv_inputs import ESCAPES, ODD_NAMES, WORDS, Random, cut_off, flip, insert
from table_runs import Input

Form = str
FORMS: tuple[Form, ...] = ("parquet", "arrow", "feather", "stream")
ENDINGS = {"parquet": "table.parquet", "arrow": "table.arrow", "feather": "table.feather", "stream": "table.ipc"}
Make = Callable[[Random, int], Any]

FEW_COLUMNS: dict[str, Make] = {
    "whole": lambda rng, n: pa.array(rng.integers(-5, 5, n)),
    "small": lambda rng, n: pa.array(rng.integers(0, 9, n).astype(np.uint8), mask=rng.random(n) < 0.2),
    "number": lambda rng, n: pa.array(rng.normal(size=n), mask=rng.random(n) < 0.1),
    "single": lambda rng, n: pa.array(rng.normal(size=n).astype(np.float32)),
    "half": lambda rng, n: pa.array(rng.normal(size=n).astype(np.float16)),
    "odd number": lambda rng, n: pa.array(rng.choice([np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e308, 2.0**60], n)),
    "text": lambda rng, n: pa.array(rng.choice([*WORDS, *ESCAPES, "", " "], n).tolist()),
    "large text": lambda rng, n: pa.array(rng.choice(["a", "bb", ""], n).tolist(), pa.large_string()),
    "view": lambda rng, n: pa.array(rng.choice(["a", "a text of more than twelve letters"], n).tolist(), pa.string_view()),
    "category": lambda rng, n: pa.array(rng.choice(["a", "b", "NA"], n).tolist()).dictionary_encode(),
    "number category": lambda rng, n: pa.array(rng.integers(0, 4, n)).dictionary_encode(),
    "flag": lambda rng, n: pa.array(rng.random(n) < 0.5, mask=rng.random(n) < 0.1),
    "moment": lambda rng, n: pa.array(rng.integers(-(2**60), 2**60, n), pa.timestamp(str(rng.choice(["us", "ns"])))),
    "any moment": lambda rng, n: pa.array(rng.integers(-(2**62), 2**62, n), pa.timestamp(str(rng.choice(["s", "ms", "us", "ns"])))),
    "zoned": lambda rng, n: pa.array(rng.integers(0, 2**40, n), pa.timestamp("ms", tz=str(rng.choice(["UTC", "Europe/Berlin", "+05:30"])))),
    "no zone": lambda rng, n: pa.array(
        rng.integers(0, 2**40, n), pa.timestamp("ms", tz=str(rng.choice(["Mars/Base", "", "\x1b[2J", "+99:99"])))
    ),
    "day": lambda rng, n: pa.array(rng.integers(-(2**31), 2**31, n).astype(np.int32), pa.date32()),
    "day 64": lambda rng, n: pa.array(rng.integers(0, 10**6, n) * 86_400_000, pa.date64()),
    "time": lambda rng, n: pa.array(rng.integers(0, 86_400, n).astype(np.int32), pa.time32("s")),
    "fine time": lambda rng, n: pa.array(rng.integers(-5, 2**50, n), pa.time64("ns")),
    "span": lambda rng, n: pa.array(rng.integers(-(2**62), 2**62, n), pa.duration(str(rng.choice(["s", "ms", "us", "ns"])))),
    "decimal": lambda rng, n: pa.array([Decimal(int(one)).scaleb(-3) for one in rng.integers(-(10**9), 10**9, n)], pa.decimal128(38, 3)),
    "long decimal": lambda rng, n: pa.array([Decimal(int(one)) * 10**50 for one in rng.integers(-9, 9, n)], pa.decimal256(76, 0)),
    "nothing": lambda _, n: pa.nulls(n),
    "bytes": lambda rng, n: pa.array([rng.bytes(3) for _ in range(n)]),
    "fixed bytes": lambda rng, n: pa.array([rng.bytes(3) for _ in range(n)], pa.binary(3)),
    "list": lambda rng, n: pa.array([rng.integers(0, 5, int(rng.integers(0, 3))).tolist() for _ in range(n)]),
    "record": lambda rng, n: pa.array([{"a": int(one), "b": [None, "x"]} for one in rng.integers(0, 3, n)]),
    "map": lambda rng, n: pa.array([[("k", int(one))] for one in rng.integers(0, 3, n)], pa.map_(pa.string(), pa.int64())),
}
ONLY_IN_ARROW: dict[str, Make] = {
    "interval": lambda _, n: pa.array([(1, 2, 3)] * n, pa.month_day_nano_interval()),
    "union": lambda _, n: pa.UnionArray.from_sparse(pa.array([0] * n, pa.int8()), [pa.array(range(n)), pa.nulls(n, pa.string())]),
    "runs": lambda _, n: pa.RunEndEncodedArray.from_arrays(pa.array([n], pa.int32()), pa.array(["x"])),
    "list category": lambda _, n: pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array([[1, 2]])),
}


def any_table(rng: Random, form: Form) -> pa.Table:
    """Return a table of a few columns of any types, perhaps with odd names, perhaps as pandas writes it."""
    makers = FEW_COLUMNS | (ONLY_IN_ARROW if form != "parquet" else {})
    n_rows = int(rng.choice([0, 1, 2, int(rng.integers(3, 50)), 1500], p=[0.05, 0.05, 0.05, 0.83, 0.02]))
    kinds = [*rng.choice(list(makers), int(rng.integers(0, 6))).tolist(), "number", "text"] if rng.random() < 0.98 else []
    names = [str(rng.choice(ODD_NAMES)) if rng.random() < 0.1 else f"{kind} {place}" for place, kind in enumerate(kinds)]
    table = pa.Table.from_arrays([makers[kind](rng, n_rows) for kind in kinds], names=names)
    return table.replace_schema_metadata(_metadata(rng, names)) if rng.random() < 0.5 else table


def _metadata(rng: Random, names: list[str]) -> dict[bytes, bytes]:
    """Return what pandas writes about a table, in part damaged."""
    index: Any = [
        names[:1],
        ["__index_level_0__"],
        [{"kind": "range", "name": None, "start": 0, "stop": 9, "step": 1}],
        7,
        [[]],
        "x",
        [None],
        {},
    ]
    columns = [{"name": name, "field_name": name, "pandas_type": "unicode", "numpy_type": "object", "metadata": None} for name in names]
    about = {
        "index_columns": index[int(rng.integers(len(index)))],
        "columns": columns if rng.random() < 0.7 else [None, 3],
        "column_indexes": [],
        "pandas_version": "9",
    }
    text = json.dumps(about).encode()
    damage = rng.random()
    if damage < 0.2:
        text = [b"\xff\xfe", b"{", b"[" * 100_000, b"null", b"", b'{"index_columns": NaN}', b"1" * 5000][int(rng.integers(7))]
    elif damage < 0.5:
        text = flip(rng, text) if rng.random() < 0.5 else cut_off(rng, text)
    more = {b"pandas": text, b"x" * int(rng.integers(1, 2000)): rng.bytes(20)}
    return more if rng.random() < 0.9 else {b"ARROW:schema": rng.bytes(40), **more}


def bytes_of(table: pa.Table, form: Form, rng: Random | None = None) -> bytes:
    """Return a file of this form, with the options that follow from the random numbers."""
    file = io.BytesIO()
    rng = rng or np.random.default_rng(0)
    if form == "parquet":
        pyarrow.parquet.write_table(
            table,
            file,
            row_group_size=int(rng.choice([7, 10**6])),
            compression=str(rng.choice(["none", "snappy", "zstd", "gzip"])),
            use_dictionary=bool(rng.random() < 0.5),
            version=str(rng.choice(["1.0", "2.6"])),
            data_page_version=str(rng.choice(["1.0", "2.0"])),
            store_schema=bool(rng.random() < 0.8),
            coerce_timestamps=None,
            write_page_checksum=bool(rng.random() < 0.1),
        )
        return file.getvalue()
    if form == "feather":
        pyarrow.feather.write_feather(table, file, compression=str(rng.choice(["uncompressed", "zstd", "lz4"])), chunksize=9)
        return file.getvalue()
    new = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
    with new(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=int(rng.choice([5, 1000])))
    return file.getvalue()


def _as_one_batch(table: pa.Table, form: Form) -> bytes:
    """Return an Arrow file whose bytes are those of the table in memory."""
    file = io.BytesIO()
    with (pa.ipc.new_stream if form == "stream" else pa.ipc.new_file)(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


def _written(rng: Random, form: Form) -> bytes:
    """Return a file that could be written: not each type goes into each form."""
    while True:
        try:
            return bytes_of(any_table(rng, form), form, rng)
        except (pa.ArrowException, OverflowError, ValueError):
            continue


def known_tables(rng: Random, form: Form, count: int) -> Iterator[Input]:
    """Yield files of which all cells are known: they must come back."""
    for _ in range(count):
        n = int(rng.integers(2, 30))
        texts = rng.choice([*WORDS, *ESCAPES, " x ", "a\nb", '"'], n).tolist()
        whole = rng.integers(-(2**62), 2**62, n).tolist()
        columns = {
            "x": pa.array(rng.normal(size=n).round(3)),
            "text": pa.array(texts),
            "category": pa.array(texts).dictionary_encode(),
            "whole": pa.array(whole),
            "large": pa.array(texts, pa.large_string()),
        }
        table = pa.table(columns)
        cells: dict[str, list[str | None]] = {name: [str(cell) for cell in column.to_pylist()] for name, column in columns.items()}
        yield Input(ENDINGS[form], bytes_of(table, form, rng), "known", cells)


def damaged_tables(rng: Random, form: Form, count: int) -> Iterator[Input]:
    """Yield files of any types, of which most are damaged."""
    for number in range(count):
        if form != "parquet" and rng.random() < 0.3:
            yield Input(ENDINGS[form], _with_wrong_buffers(rng, form), f"{number} wrong buffers")
            continue
        content = _written(rng, form)
        changes = rng.choice(len(CHANGES), int(rng.integers(0, 3)))
        for change in changes:
            content = CHANGES[change](rng, content)
        what = " ".join(CHANGES[change].__name__ for change in changes)
        yield Input(ENDINGS[form], content, f"{number} {what or 'as it was written'}")


def footer_flip(rng: Random, content: bytes) -> bytes:
    """Return bytes of which some near the end are others, where both formats say what the file holds."""
    start = max(0, len(content) - int(rng.integers(4, 2000)))
    return content[:start] + flip(rng, content[start:])


def footer_length(rng: Random, content: bytes) -> bytes:
    """Return a file that says of its footer that it has another length."""
    length = int(rng.choice([0, 1, 2**31 - 1, 2**32 - 1, len(content), len(content) - 8, int(rng.integers(2**32))]))
    end = 10 if content.startswith(b"ARROW1") else 8
    return content[:-end] + length.to_bytes(4, "little") + content[len(content) - end + 4 :]


def large_numbers(rng: Random, content: bytes) -> bytes:
    """Return bytes in which some aligned numbers, such as lengths and places, are far too large, or negative."""
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        place = 8 * int(rng.integers(0, max(1, len(changed) // 8)))
        number = int(rng.choice([-1, 2**31 - 1, 2**31, 2**62, -(2**31), 0, 255, 2**40]))
        changed[place : place + 8] = number.to_bytes(8, "little", signed=True)
    return bytes(changed)


def beginning_flip(rng: Random, content: bytes) -> bytes:
    return flip(rng, content[:600]) + content[600:]


def other_marks(rng: Random, content: bytes) -> bytes:
    marks = (b"PAR1", b"ARROW1\0\0", b"PARE", b"FEA1", b"\xff\xff\xff\xff", b"")
    return marks[int(rng.integers(len(marks)))] + content[int(rng.integers(0, 9)) :]


def longer(rng: Random, content: bytes) -> bytes:
    return content + rng.bytes(int(rng.integers(1, 100)))


CHANGES: tuple[Callable[[Random, bytes], bytes], ...] = (
    flip,
    flip,
    footer_flip,
    footer_flip,
    footer_length,
    large_numbers,
    beginning_flip,
    cut_off,
    insert,
    other_marks,
    longer,
)


def _with_wrong_buffers(rng: Random, form: Form) -> bytes:
    """Return a file whose columns point outside of their memory, or hold text that is none."""
    n = 20
    kind = str(rng.choice(["dictionary", "text", "bytes of text", "large text", "list", "levels", "view"]))
    texts = [f"t{place}" for place in range(10, 10 + n)]
    wrong = np.array([-1, 2**31 - 1, 10**6, -(2**31), 0, 50], dtype=np.int32)
    places = np.arange(0, 3 * n + 1, 3, dtype=np.int32)
    columns: dict[str, Any] = {
        "dictionary": pa.DictionaryArray.from_arrays(pa.array(places[:n] % 4 + 1, pa.int32()), pa.array([*"abcdef"])),
        "text": pa.array(texts),
        "bytes of text": pa.array(texts),
        "large text": pa.array(texts, pa.large_string()),
        "list": pa.array([[1, 2, 3]] * n),
        "levels": pa.DictionaryArray.from_arrays(pa.array([0, 1] * (n // 2), pa.int32()), pa.array(["level one", "two"])),
        "view": pa.array([f"a text of many letters {place}" for place in range(n)], pa.string_view()),
    }
    column = columns[kind]
    table = pa.Table.from_arrays([column, pa.array(range(n)), pa.array(["x", "y"] * (n // 2))], names=["a", "b", "c"])
    content = _as_one_batch(table, form)
    inside = column.dictionary if kind == "levels" else column.indices if kind == "dictionary" else column
    buffers = inside.buffers()
    old = buffers[2 if kind == "bytes of text" else 1].to_pybytes()
    if kind == "bytes of text":
        new = flip(rng, old)
    else:
        numbers = np.frombuffer(old, dtype=np.int64 if kind == "large text" else np.int32).copy()
        spots = rng.integers(0, len(numbers), int(rng.integers(1, 4)))
        numbers[spots] = rng.choice(wrong, len(spots))
        new = numbers.tobytes()
    found = content.find(old[:40])
    assert found >= 0, kind
    return content[:found] + new[:40] + content[found + 40 :] if len(old) > 40 else content.replace(old, new, 1)
