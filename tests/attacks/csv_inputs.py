"""Tables of separated values: in any dialect, where all cells are known, and damaged, where they are not."""

from __future__ import annotations

import bz2
import codecs
import gzip
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass, replace

import numpy as np
from table_runs import Input

Random = np.random.Generator
Column = Callable[[Random, int], list[str]]

WORDS = (
    "red",
    "größe",
    "x y",
    "Ünï",
    "it's",
    "a/b",
    "=1+1",
    "+49 170",
    "@sum",
    "-",
    "NA",
    "n/a",
    "0x1F",
    "1e5",
    "\\N",
    "#7",
    "日本",
    "🦊",
    "%s",
    "{}",
)
ESCAPES = ("\x1b[31mred\x1b[0m", "bell\x07", "\x1b]0;title\x07", "back\x08\x08", "\u202eevil", "\x9b2J")
MOST_BYTES = 5 * 10**6
"""Of a damaged table: a larger one takes more than five seconds, and may."""
ODD_NAMES = (
    "",
    " ",
    "a",
    "a",
    "a.1",
    "column 2",
    "#x",
    "größe",
    "=cmd()",
    "gpssl_1",
    "x" * 5000,
    "\x1b[2J",
    "1",
    "NaN",
    "-1",
    "sep=;",
    "a,b",
    'say "a"',
    "a\nb",
)


@dataclass(frozen=True)
class Dialect:
    """How a table is written."""

    separator: str = ","
    end: str = "\n"
    encoding: str = "utf-8"
    quotes_all: bool = False
    ends_last_line: bool = True
    packed: str = ""
    has_mark: bool = False
    """Whether a byte order mark comes first."""

    def line(self, cells: list[str]) -> str:
        """Return one row of the file."""
        return self.separator.join(self._quoted(cell, alone=len(cells) == 1) for cell in cells)

    def _quoted(self, cell: str, *, alone: bool) -> str:
        needs = any(sign in cell for sign in (self.separator, '"', "\n", "\r")) or cell != cell.strip() or (alone and not cell)
        return '"' + cell.replace('"', '""') + '"' if self.quotes_all or needs else cell

    def bytes_of(self, rows: list[list[str]]) -> bytes:
        """Return the whole file."""
        text = self.end.join(map(self.line, rows)) + (self.end if self.ends_last_line else "")
        plain = {"utf-8": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
        mark = plain[self.encoding] if self.has_mark else b""
        return packed(mark + text.encode(self.encoding), self.packed)


def packed(content: bytes, how: str) -> bytes:
    """Return compressed bytes."""
    if how == ".gz":
        return gzip.compress(content)
    return bz2.compress(content) if how == ".bz2" else content


def _numbers(rng: Random, n: int) -> list[str]:
    return [f"{value:.6g}" for value in rng.lognormal(0, 3, n) * rng.choice([-1, 1], n)]


def _comma_numbers(rng: Random, n: int) -> list[str]:
    return [cell.replace(".", ",") for cell in _numbers(rng, n)]


def _with_units(rng: Random, n: int) -> list[str]:
    units = rng.choice(["mg", " g", "%", " €", "k", " kWh", "°C", " foo", "h", "\u00a0km"], n)
    return [f"{value:.1f}{unit}" for value, unit in zip(rng.uniform(0, 100, n), units, strict=True)]


def _dates(rng: Random, n: int) -> list[str]:
    form = rng.choice(
        ["{y}-{m:02d}-{d:02d}", "{d}.{m}.{y}", "{m}/{d}/{y}", "{d}/{m}/{y}", "{y}-{m:02d}-{d:02d}T{h:02d}:05:06Z", "{h}:05", "{d} Mar {y}"]
    )
    parts = rng.integers([1, 1, 1500, 0], [32, 13, 2300, 24], (n, 4))
    return [form.format(d=d, m=m, y=y, h=h) for d, m, y, h in parts.tolist()]


def _words(rng: Random, n: int) -> list[str]:
    return rng.choice(rng.choice(WORDS, 4), n).tolist()


def _odd(rng: Random, n: int) -> list[str]:
    return rng.choice(
        [
            *WORDS,
            *ESCAPES,
            "",
            " ",
            "a\nb",
            "a\r\nb",
            '"',
            '""',
            "a;b,c\td|e",
            "'",
            "x" * 3000,
            "1,234.5",
            "(1)",
            "\ufeff",
            "\u2028",
            "\x0b",
            "\x85",
        ],
        n,
    ).tolist()


def _large(rng: Random, n: int) -> list[str]:
    return rng.choice(
        [
            "9" * 400,
            "1e400",
            "-1e-400",
            "9007199254740993",
            "18446744073709551616",
            "0.1" + "0" * 300,
            "inf",
            "-Infinity",
            "nan",
            "1e308",
            "00",
            "-0",
            "٣",
        ],
        n,
    ).tolist()


def _ids(_: Random, n: int) -> list[str]:
    return [f"N{place:04d}" for place in range(n)]


COLUMNS: tuple[Column, ...] = (_numbers, _comma_numbers, _with_units, _dates, _words, _odd, _large, _ids)


def any_table(rng: Random) -> dict[str, list[str]]:
    """Return columns of cells, of which the first is no total and no remark."""
    n_rows, n_columns = int(rng.integers(3, 40)), int(rng.integers(2, 8))
    kinds = [_ids, _numbers, *(COLUMNS[place] for place in rng.integers(len(COLUMNS), size=n_columns - 2))]
    names = [f"{kind.__name__.strip('_')} {place}" for place, kind in enumerate(kinds)]
    return {name: kind(rng, n_rows) for name, kind in zip(names, kinds, strict=True)}


def any_dialect(rng: Random) -> Dialect:
    """Return one of the dialects that are read."""
    encoding, has_mark = [("utf-8", False), ("utf-8", True), ("utf-16-le", True), ("utf-16-be", True)][
        int(rng.choice(4, p=[0.6, 0.2, 0.1, 0.1]))
    ]
    return Dialect(
        str(rng.choice([",", ";", "\t", "|"])),
        str(rng.choice(["\n", "\r\n", "\r"], p=[0.5, 0.4, 0.1])),
        encoding,
        bool(rng.random() < 0.3),
        bool(rng.random() < 0.8),
        str(rng.choice(["", ".gz", ".bz2"], p=[0.8, 0.1, 0.1])),
        has_mark,
    )


def rows_of(table: dict[str, list[str]]) -> list[list[str]]:
    """Return the names, and the cells row by row."""
    return [list(table), *map(list, zip(*table.values(), strict=True))]


def name_of(dialect: Dialect) -> str:
    """Return the name of a file of this dialect."""
    return ("table.tsv" if dialect.separator == "\t" else "table.csv") + dialect.packed


def known_tables(rng: Random, count: int) -> Iterator[Input]:
    """Yield tables in dialects that lose nothing: the same cells must come back."""
    for _ in range(count):
        table, dialect = any_table(rng), any_dialect(rng)
        cells = {name: [cell or None for cell in column] for name, column in table.items()}
        # What only blanks tell from nothing, and line ends within a cell, are the same where a dialect has no quotes around them.
        yield Input(name_of(dialect), dialect.bytes_of(rows_of(table)), f"known, {dialect}", cells)


def damaged_tables(rng: Random, count: int) -> Iterator[Input]:
    """Yield tables that were changed: some of the cells, the rows, the text or the bytes."""
    for _ in range(count):
        rows, dialect = rows_of(any_table(rng)), any_dialect(rng)
        what = []
        for change in rng.choice(len(OF_ROWS), int(rng.integers(0, 3))):
            rows = OF_ROWS[change](rng, rows)
            what.append(OF_ROWS[change].__name__)
        content = replace(dialect, packed="").bytes_of(rows)
        for change in rng.choice(len(OF_BYTES), int(rng.integers(0 if what else 1, 3))):
            content = OF_BYTES[change](rng, content)
            what.append(OF_BYTES[change].__name__)
        content = packed(content[:MOST_BYTES], dialect.packed)
        if dialect.packed and rng.random() < 0.3:
            content = cut_off(rng, flip(rng, content))
            what.append("damaged compression")
        yield Input(name_of(dialect), content, " ".join(what))


def _place(rng: Random, content: Sized) -> int:
    return int(rng.integers(0, len(content) + 1))


def ragged(rng: Random, rows: list[list[str]]) -> list[list[str]]:
    """Return rows of which some have too few or too many cells."""
    return [row[: _place(rng, row)] if rng.random() < 0.1 else [*row, "more"] if rng.random() < 0.05 else row for row in rows]


def other_names(rng: Random, rows: list[list[str]]) -> list[list[str]]:
    return [rng.choice(ODD_NAMES, len(rows[0]) if rows else 1).tolist(), *rows[1:]]


def many_columns(rng: Random, rows: list[list[str]]) -> list[list[str]]:
    n = int(rng.integers(100, 500))
    return [[f"c{place}" for place in range(n)], *([str(place % 7) for place in range(n)] for _ in rows[1:8])]


def huge_cell(rng: Random, rows: list[list[str]]) -> list[list[str]]:
    row = list(rows[-1]) if rows and rows[-1] else ["x"]
    row[-1] = str(rng.choice(["x", "1", '"', "a b ", "\n", ",", "é"])) * int(rng.integers(10**4, 2 * 10**6))
    return [*rows[:-1], row]


def titles(rng: Random, rows: list[list[str]]) -> list[list[str]]:
    above = [["# comment"], ["Report of 2024", *[""] * 3], [""], ["Total"], ["sep=;"], ["a", "", "b"], ["#a", "b"], ["1", "2"]]
    return [*(above[place] for place in rng.integers(len(above), size=3)), *rows]


def totals(rng: Random, rows: list[list[str]]) -> list[list[str]]:
    below = [
        ["Total", *["1"] * (len(rows[0]) - 1)] if rows else ["Total"],
        ["Source: x"],
        [],
        ["---"],
        ["", "", ""],
        ["Mean", "٣"],
        ["Σ"],
        ["total", "1e999"],
    ]
    return [*rows, *(below[place] for place in rng.integers(len(below), size=4))]


def empty_lines(rng: Random, rows: list[list[str]]) -> list[list[str]]:
    return [one for row in rows for one in ([row, []] if rng.random() < 0.3 else [row])]


def odd_cells(rng: Random, rows: list[list[str]]) -> list[list[str]]:
    odd = _odd(rng, 20) + _large(rng, 20) + _with_units(rng, 5) + _dates(rng, 5)
    return [[str(rng.choice(odd)) if rng.random() < 0.3 else cell for cell in row] for row in rows]


def repeated_rows(rng: Random, rows: list[list[str]]) -> list[list[str]]:
    return rows + rows * int(rng.integers(1, 60))


def nothing_below(_: Random, rows: list[list[str]]) -> list[list[str]]:
    return rows[:1]


def another_table(rng: Random, rows: list[list[str]]) -> list[list[str]]:
    return [*rows, [], *rows_of(any_table(rng))]


OF_ROWS = (
    ragged,
    other_names,
    many_columns,
    huge_cell,
    titles,
    totals,
    empty_lines,
    odd_cells,
    odd_cells,
    repeated_rows,
    nothing_below,
    another_table,
)


def flip(rng: Random, content: bytes) -> bytes:
    """Return bytes of which a few are others."""
    changed = bytearray(content)
    for _ in range(int(rng.integers(1, 12)) if changed else 0):
        changed[int(rng.integers(len(changed)))] = int(rng.integers(256))
    return bytes(changed)


def cut_off(rng: Random, content: bytes) -> bytes:
    return content[: _place(rng, content)]


def cut_in_front(rng: Random, content: bytes) -> bytes:
    return content[_place(rng, content) :]


def insert(rng: Random, content: bytes) -> bytes:
    pieces = (
        b'"',
        b'""',
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\r",
        b"\n\n",
        b"\x1b[31m",
        b",,,,",
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\x81",
        b"\x1a",
        b"'",
        b"\\",
        b"sep=",
        b"#",
        b"\t",
        b" ",
    )
    for _ in range(int(rng.integers(1, 6))):
        place = _place(rng, content)
        content = content[:place] + pieces[int(rng.integers(len(pieces)))] + content[place:]
    return content


def doubled_piece(rng: Random, content: bytes) -> bytes:
    start, end = sorted((_place(rng, content), _place(rng, content)))
    return content[:end] + content[start:end] * int(rng.integers(1, 5)) + content[end:]


def separated_by(rng: Random, content: bytes) -> bytes:
    sign = (
        bytes([int(rng.integers(1, 256))])
        if rng.random() < 0.7
        else rng.choice([b"]", b"^", b"\\", b"-", b"$", b"'", b'"', b"\r", "§".encode(), b"x", b"1", b"."])
    )
    changed = content.replace(b",", bytes(sign)).replace(b";", bytes(sign)) if rng.random() < 0.7 else content
    return b"sep=" + bytes(sign) + b"\r\n" + changed


def other_encoding(rng: Random, content: bytes) -> bytes:
    text = content.decode("utf-8", "replace")
    return text.encode(str(rng.choice(["cp1252", "latin-1", "utf-16", "utf-32", "shift_jis", "cp037"])), "replace")


def a_bomb(rng: Random, content: bytes) -> bytes:
    piece = [b"0,0\n", b"a" * 80, b'"', b"\n", b",", b"#x\n", b"1e9,", b'""'][int(rng.integers(8))]
    return (content if rng.random() < 0.5 else b"") + piece * (int(rng.integers(1, 6)) * 10**6 // len(piece))


OF_BYTES = (flip, flip, cut_off, cut_in_front, insert, insert, insert, doubled_piece, separated_by, other_encoding, a_bomb)
