"""Files of JSON lines, and tables within archives."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

from csv_inputs import ESCAPES, ODD_NAMES, WORDS, Random, cut_off, doubled_piece, flip, insert, known_tables, packed
from table_runs import Input

VALUES: tuple[Any, ...] = (
    *(0, 1, -1, 2**53 + 1, 2**63, 10**30, 0.5, -0.0, 1e308, 5e-324, True, False, None, "", " ", "NA", "1", "1,5", "2024-01-01"),
    *WORDS,
    *ESCAPES,
)
RAW = (
    *(
        "1e400",
        "-1e-400",
        "9" * 5000,
        "1" + "0" * 400,
        "NaN",
        "-Infinity",
        '"\\ud800"',
        '"\\udc00\\ud800"',
        '"\\u0000"',
        "01",
        "+1",
        "1.",
        "tru",
    ),
    *(
        '"2024-01-01T00:00:00Z"',
        '"\\x41"',
        "{}",
        "[]",
        '{"a": {"a": 1}}',
        "[[1], null]",
        "'a'",
        '"a',
        "-0",
        "-0.0",
        "1.0",
        '"' + "x" * 200_000 + '"',
    ),
    *("[" * 150 + "]" * 150, "[" * 5000 + "]" * 5000, '{"a":' * 3000 + "1" + "}" * 3000, "[" * 100_000, "null" * 2, "", '"\ud7ff"'),
)
"""Values as they are written: some are none."""


def _object(rng: Random, names: list[str], values: list[list[Any]]) -> str:
    """Return one line, in which keys may be missing, repeated or in another order."""
    pairs = [(name, json.dumps(choices[int(rng.integers(len(choices)))])) for name, choices in zip(names, values, strict=True)]
    if rng.random() < 0.1:
        pairs = [pairs[place] for place in rng.permutation(len(pairs))][: int(rng.integers(1, len(pairs) + 1))]
    if rng.random() < 0.02:
        pairs.append((pairs[0][0], "7"))
    if rng.random() < 0.02:
        pairs[-1] = (pairs[-1][0], str(rng.choice(RAW)))
    return "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in pairs) + "}"


def _columns(rng: Random) -> list[list[Any]]:
    """Return what the cells of each column are chosen from."""
    kinds: list[list[Any]] = [
        [1, 2, 3],
        [0.5, 1.5, -2.25],
        ["a", "b"],
        [True, False],
        [None, 1],
        ["2024-01-01", "2024-02-03"],
        [[1], {"a": 2}, []],
    ]
    mixed = [[VALUES[place] for place in rng.integers(len(VALUES), size=4)] for _ in range(2)]
    return [
        [1, 2, 3, 4, 5, 6, 7.5],
        ["x", "y", "z"],
        *(([*kinds, *mixed])[place] for place in rng.integers(len(kinds) + 2, size=int(rng.integers(1, 5)))),
    ]


def _lines(rng: Random) -> bytes:
    columns = _columns(rng)
    names = [str(rng.choice(ODD_NAMES)) if rng.random() < 0.1 else f"c{place}" for place in range(len(columns))]
    n_rows = int(rng.choice([0, 1, int(rng.integers(2, 60)), 800], p=[0.02, 0.03, 0.93, 0.02]))
    end = str(rng.choice(["\n", "\r\n", "\n\n"], p=[0.8, 0.15, 0.05]))
    return end.join(_object(rng, names, columns) for _ in range(n_rows)).encode("utf-8", "surrogatepass") + b"\n" * int(rng.integers(0, 2))


def known_lines(rng: Random, count: int) -> Iterator[Input]:
    """Yield files of which all cells are known, as text."""
    for _ in range(count):
        n_rows = int(rng.integers(3, 30))
        columns = {
            "x": (rng.integers(1, 999, n_rows) / 4 + 0.0625).tolist(),
            "whole": [(3, -7, 2**53 + 1, 2**62, 10**25, 0)[place] for place in rng.integers(6, size=n_rows)],
            "text": rng.choice([*WORDS, *ESCAPES, "", "2024-01-01", "1.50", "007", " x ", 'say "a"', "a\nb", "\\"], n_rows).tolist(),
            "day": [f"2024-01-{place % 28 + 1:02d}" for place in range(n_rows)],
        }
        lines = [
            json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=bool(rng.random() < 0.5))
            for row in zip(*columns.values(), strict=True)
        ]
        cells: dict[str, list[str | None]] = {
            "x": [repr(one) for one in columns["x"]],
            "whole": list(map(str, columns["whole"])),
            "text": columns["text"],
            "day": columns["day"],
        }
        if rng.random() < 0.3:  # a value of another kind far below
            lines.append('{"x": "?", "whole": null, "text": "", "day": "never"}')
            for name, cell in {"x": "?", "whole": None, "text": "", "day": "never"}.items():
                cells[name].append(cell)
        yield Input("table.jsonl", "\n".join(lines).encode(), "known", cells)


def damaged_lines(rng: Random, count: int) -> Iterator[Input]:
    """Yield files with odd values, and damaged ones."""
    changes: tuple[Callable[[Random, bytes], bytes], ...] = (flip, cut_off, insert, doubled_piece, _raw_value, _long)
    for _ in range(count):
        content = _lines(rng)
        chosen = rng.choice(len(changes), int(rng.choice([0, 1, 2])))
        for change in chosen:
            content = changes[change](rng, content)
        ending = str(rng.choice(["", ".gz", ".bz2"], p=[0.9, 0.05, 0.05]))
        yield Input("table.jsonl" + ending, packed(content, ending), " ".join(changes[one].__name__ for one in chosen))


def _raw_value(rng: Random, content: bytes) -> bytes:
    """Return lines of which some have other values, as they are written."""
    lines = content.split(b"\n")
    for _ in range(int(rng.integers(1, 4))):
        value = str(rng.choice(RAW)).encode("utf-8", "surrogatepass")
        lines[int(rng.integers(len(lines)))] = [b'{"c0": ' + value + b"}", value, b'{"c0": 1, ' + value + b": 2}"][int(rng.integers(3))]
    return b"\n".join(lines)


def _long(rng: Random, content: bytes) -> bytes:
    piece = [b'{"c0": 1}\n', b"{", b"[", b'{"c1": "' + b"x" * 90 + b'"}\n', b"\n", b" ", b'{"a":{"b":[1]}}\n'][int(rng.integers(7))]
    return content + piece * (int(rng.integers(1, 4)) * 10**6 // len(piece) // 2)


def archives(rng: Random, count: int) -> Iterator[Input]:
    """Yield archives with tables in them, of which most are damaged or not as they should be."""
    for _ in range(count):
        inside = next(known_tables(rng, 1))
        content = _archive(rng, inside)
        what = "archive"
        if rng.random() < 0.5:
            change = (flip, cut_off, insert)[int(rng.integers(3))]
            content, what = change(rng, content), f"archive {change.__name__}"
        yield Input("table.zip", content, what)


def _archive(rng: Random, table: Input) -> bytes:
    """Return an archive with a table, and perhaps with names that lead elsewhere, other archives, or far more than it seems."""
    names = [
        table.name,
        "../../" + table.name,
        "/tmp/" + table.name,
        "a\\..\\b.csv",
        "x" * 300 + ".csv",
        "ä\x1b[2J.csv",
        "con.csv",
        "..csv",
        ".csv",
    ]
    pick = float(rng.random())
    file = io.BytesIO()
    with zipfile.ZipFile(
        file, "w", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA][int(rng.integers(4))]
    ) as archive:
        archive.writestr(str(names[0] if pick < 0.5 else rng.choice(names)), table.content)
        if pick > 0.8:
            archive.writestr(str(rng.choice(["README.txt", "b.csv", "inner.zip", "__MACOSX/x.csv", "table.csv/"])), b"a,b\n1,2\n")
        if pick > 0.95:
            archive.writestr("bomb.csv", b"0,0\n" * (5 * 10**6))
    if 0.7 < pick < 0.75:
        inner = file.getvalue()
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("table.zip", inner)
    return file.getvalue()
