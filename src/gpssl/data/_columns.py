"""Consecutive rows of a file, as a model takes them and as the person had them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute, types

from .._runtime.progress import Progress
from .._runtime.threads import map_in_order, n_workers
from ._calendar import CYCLES, Cycle, Wave
from ._cell_texts import as_text
from ._decisions import Wanted, kind_of, settle_ways
from ._errors import FileError, quoted
from ._frames import MISSING_WORDS, ColumnFacts, ColumnKind, encode_cell
from ._free_text import FEWEST_TEXTS, are_sentences, as_texts, sample_of_texts
from ._profile import NO_FINDINGS, Findings
from ._readings import (
    DASHES,
    DATES,
    NUMBERS,
    SHAPE,
    Reading,
    Way,
    are_plain_numbers,
    canonical,
    cells_of,
    plain,
    read_cells,
    storage_of,
    values_of,
)
from ._source import SourcePart, Storage, TableSource
from ._units import DIFFERENT, FRACTIONS

DTYPES: dict[ColumnKind, str] = {
    "number": "float64",
    "boolean": "float64",
    "date": "datetime64[us]",
    "category": "object",
    "text": "object",
}
OF_TEXT: tuple[ColumnKind, ...] = ("category", "text")
"""Kinds of columns whose cells are text."""
LONGEST_WORD = 5
"""Letters beyond which a text without blanks may be a sentence, in languages that have none."""
SAYS_MORE = {
    "number": r"^\s*([+-]?0\d|\+\d+\s*$|[+-]?\d{18,}\s*$)",
    "date": r":\d\d.*(Z|UTC|GMT|[+-]\d\d?:?\d{0,2})\s*$|\.\d{7}|^\s*\d{4}-\d\d\s*$|^\s*\p{L}+\.?[ -]\d{4}\s*$",
}
"""Numbers and dates whose text cannot be found again from their value: codes such as 007, +49 and very long ones; times with a zone."""
LARGEST_WHOLE = 2**53
"""Up to this size each whole number has a double of its own."""


@dataclass(frozen=True)
class Column:
    """One column and how to read it."""

    name: str
    kind: ColumnKind
    storage: Storage
    is_typed: bool
    """Whether the file says what its columns are; text is meant as text then."""
    way: Way
    findings: Findings
    wave: Wave | None = None
    """Where it is made of another column, whose values come again."""

    @property
    def reading(self) -> Reading:
        """How its cells are read."""
        return self.way.reading

    @property
    def origin(self) -> str:
        """The column of the file that its cells are in."""
        return self.name if self.wave is None else self.wave.origin

    @property
    def cycle(self) -> Cycle | None:
        """What its values come again in; None where they do not."""
        return CYCLES.get("time" if self.reading == "typed" and self.storage == "time" else self.reading)

    @property
    def unit(self) -> str | None:
        """What the numbers are given in, or what comes first in dates where that is not seen in each; None where there is no such thing."""
        if self.reading in DATES:
            either = [SHAPE[shape] for shape in ("day/month", "month/day", "day/month or month/day")]
            return self.reading if self.findings.shapes[either].any() else None
        return (self.way.unit or None) if self.reading in NUMBERS else None

    @property
    def facts(self) -> ColumnFacts:
        """What the card of a model says about this column."""
        found = self.findings
        has_range = self.kind not in OF_TEXT and found.n_values > 0
        return ColumnFacts(
            name=self.name,
            kind=self.kind,
            dtype=DTYPES[self.kind],
            n_missing=found.n_rows - found.n_values,
            minimum=found.minimum if has_range else None,
            maximum=found.maximum if has_range else None,
            levels=tuple(sorted(found.levels)) if self.kind == "category" and found.levels is not None else None,
            unit=self.unit,
        )

    def values(self, part: SourcePart) -> NDArray[Any]:
        """Return cells as a data frame has them."""
        if self.kind in OF_TEXT:
            cells = cells_of(self.text(part.cells.column(self.name)))
            return np.append(cells.distinct.to_numpy(zero_copy_only=False), [None])[cells.places]
        return _as_dates(self.encoded(part)) if self.kind == "date" else self.encoded(part)

    def encoded(self, part: SourcePart) -> NDArray[np.float64]:
        """Return cells as numbers, as `encode_column` has them."""
        if self.wave is not None:
            return self.wave.of(self._values(part))
        return self._values(part)

    def _values(self, part: SourcePart) -> NDArray[np.float64]:
        if self.origin in part.values:
            return part.values[self.origin]
        column = part.cells.column(self.origin)
        if self.kind not in OF_TEXT:
            return values_of(column, self.way)
        cells = cells_of(self.text(column))
        return np.array([encode_cell(cell) for cell in cells.distinct.to_pylist()] + [np.nan])[cells.places]

    def labels(self, column: Any, missing: Sequence[str] = MISSING_WORDS, *, keep_words: bool = False) -> NDArray[Any]:
        """Return cells as names of classes: as in the file, but whole numbers without a point; None for missing cells and these words.

        Words among numbers are None as well, unless they are to be kept.
        """
        cells = cells_of(self.text(column), missing)
        names = np.append(cells.distinct.to_numpy(zero_copy_only=False), [None])
        if self.reading in NUMBERS:
            values = np.append(read_cells(cells.distinct, self.way), np.nan)
            if not keep_words:
                names[np.isnan(values)] = None
            is_plain = np.append(are_plain_numbers(cells.distinct, self.reading), False)
            whole = np.flatnonzero(is_plain & (values == np.floor(values)) & (np.abs(values) <= LARGEST_WHOLE))
            names[whole] = [f"{value:.0f}" for value in values[whole]]
        return names[cells.places]

    def written(self, part: SourcePart, *, typed: bool) -> Any:
        """Return cells as they are given back to the person who had them: text and values as they were, but for one thing.

        In a file that knows types, what was text and can be read as plain numbers or dates is that, where nothing is lost
        (`loses_something`) but words for missing cells.
        """
        if typed and self.may_be_values:
            return self.values(part)
        column = plain(part.cells.column(self.name))
        if not typed and pa.types.is_floating(column.type):
            column = compute.if_else(compute.is_nan(column), None, column)
        return pd.arrays.ArrowExtensionArray(column)

    @property
    def may_be_values(self) -> bool:
        """Whether the cells are text that can be read as plain numbers or dates, all of them.

        Whole numbers of 64 bits with more digits than double precision has, which nearly always are IDs, stay text, as do numbers with
        units and times of day.
        """
        if self.is_typed or self.reading not in (*NUMBERS, *DATES) or self.findings.tally.n_dressed:
            return False
        is_id = self.has_too_many_digits and max(-self.findings.minimum, self.findings.maximum) <= 2**64
        return not (is_id or n_odd_cells(self) or self.findings.shapes[SHAPE["infinite"]])

    def loses_something(self, column: Any) -> bool:
        """Return whether some cells say more than their values: zeros at the beginning, zones, months without a day."""
        says_more = SAYS_MORE["number" if self.reading in NUMBERS else "date"]
        return bool(compute.any(compute.match_substring_regex(self.text(column), says_more)).as_py())

    @property
    def has_too_many_digits(self) -> bool:
        """Whether some are whole numbers that cannot be told from their neighbors in double precision."""
        found = self.findings
        return self.kind == "number" and found.is_whole and found.n_values > 0 and max(-found.minimum, found.maximum) > LARGEST_WHOLE

    def text(self, column: Any) -> pa.Array:
        """Return cells as text, whole numbers without a point."""
        if self.storage == "boolean":
            return plain(column).cast(pa.bool_()).cast(pa.string())
        column = canonical(column) if pa.types.is_duration(column.type) else plain(column)
        return column if pa.types.is_string(column.type) else column.cast(pa.string())


def waves_of(column: Column) -> list[Column]:
    """Return the columns to learn from in the place of one whose values come again; the column itself where they do not."""
    if column.cycle is None or column.wave is not None:
        return [column]
    found = replace(column.findings, minimum=-1.0, maximum=1.0, is_whole=False, n_infinite=0, n_like_codes=0)
    waves = [Wave(column.name, is_sine, column.cycle) for is_sine in (True, False)]
    return [replace(column, name=wave.name, findings=found, wave=wave) for wave in waves]


def column_of(source: TableSource, name: str, kind: ColumnKind | None, way: Way | None = None, findings: Findings = NO_FINDINGS) -> Column:
    """Return a column of a file, of the kind that is wanted, or of that which follows from its reading."""
    storage, way = source.storage[name], way or Way("typed")
    return Column(name, kind or kind_of(way.reading, storage), storage, source.knows_types or name in source.texts, way, findings)


def settle_columns(source: TableSource, wanted: Mapping[str, Wanted], progress: Progress | None = None) -> dict[str, Column]:
    """Find out what columns hold, from all their cells. `wanted` names them, with the kind that is wanted, or None."""
    ways, findings = settle_ways(source, wanted, progress)
    columns = {name: column_of(source, name, wanted[name].kind, way, findings.get(name, NO_FINDINGS)) for name, way in ways.items()}
    open_to_choice = [column for column in columns.values() if column.kind == "category" and wanted[column.name].kind is None]
    return columns | {column.name: replace(column, kind="text") for column in _with_sentences(source, open_to_choice)}


def _with_sentences(source: TableSource, columns: Iterable[Column]) -> Iterator[Column]:
    """Yield the columns that hold free text, and not categories or IDs."""
    for column in columns:
        found = column.findings
        if column.storage == "text" and found.n_distinct >= FEWEST_TEXTS and not _has_short_levels(found):
            parts = (cells_of(column.text(part.cells.column(0))) for part in source.parts([column.name]))
            sample = sample_of_texts(part.distinct.filter(pa.array(part.counts > 0)).to_pylist() for part in parts)
            if are_sentences(sample, found.n_distinct, found.n_values):
                yield column


def _has_short_levels(found: Findings) -> bool:
    """Return whether no text of a column is long enough for a sentence, where all are known without another look at the file."""
    return found.levels is not None and not any(len(level.split()) > 1 or len(level) > LONGEST_WORD for level in found.levels)


def keep_codes(source: TableSource, columns: Iterable[Column]) -> None:
    """Let the source keep the codes of categories, which are found by hashing each of them."""
    codes = [column for column in columns if column.kind in OF_TEXT]
    if codes:
        names = [column.name for column in codes]
        source.keep_values(names, ({column.name: column.encoded(part) for column in codes} for part in source.parts(names)))


def _as_dates(seconds: NDArray[np.float64]) -> NDArray[Any]:
    known = np.isfinite(seconds)
    dates = np.full(len(seconds), "NaT", dtype="datetime64[us]")
    dates[known] = np.rint(seconds[known] * 1e6).astype(np.int64).astype("datetime64[us]")
    return dates


def header_of_columns(columns: list[Column]) -> pd.DataFrame:
    """Return a data frame of these columns without rows."""
    return pd.DataFrame({column.name: np.empty(0, dtype=DTYPES[column.kind]) for column in columns})


MAY_BE_A_CLASS = "None"
"""A word for a missing cell, and a class such as no pain: a class where empty cells mark the rows without a label."""


class MissingLabels(NamedTuple):
    """Words in a target that count as missing, and what a person should know of that."""

    words: tuple[str, ...]
    """All that would count, also where they do not occur; an empty cell is one of them."""
    notes: list[str]


def missing_labels(column: Column, parts: Iterable[Any]) -> MissingLabels:
    """Return which words count as missing, from all cells of the target as they stand in the file."""
    if column.storage not in ("text", "category"):
        return MissingLabels(MISSING_WORDS, [])
    known = (*MISSING_WORDS, *(DASHES if column.reading in NUMBERS else ()))
    counts = Counter[str]()
    for part in parts:
        trimmed = compute.utf8_trim_whitespace(column.text(part)).fill_null("")
        counts.update({one["values"]: one["counts"] for one in compute.value_counts(trimmed).to_pylist() if one["values"] in known})
    is_class = counts[""] > 0 and counts[MAY_BE_A_CLASS] > 0 and column.reading not in NUMBERS
    words = tuple(word for word in known if word != MAY_BE_A_CLASS or not is_class)
    cells = {word: f"{count:,} cell{'' if count == 1 else 's'} {word!r}" for word, count in counts.items()}
    found = [word for word in words if word and counts[word]]
    notes = []
    if found:
        verb = "counts as a row" if sum(counts[word] for word in found) == 1 else "count as rows"
        notes.append(f"{', '.join(cells[word] for word in found)} of the target {column.name!r} {verb} without a label.")
    if is_class:
        reason = f"because {counts['']:,} other(s) are empty"
        notes.append(f"{cells[MAY_BE_A_CLASS]} of the target {column.name!r} count as a class, {reason}.")
    return MissingLabels(words, notes)


def n_odd_cells(column: Column) -> int:
    """Return the number of cells that are there, but cannot be read as the column is."""
    found = column.findings
    if column.kind in OF_TEXT or column.reading == "typed":
        return 0
    unread = found.n_rows - found.n_missing - found.n_values
    understood = found.shapes[SHAPE["infinite"]] + (found.shapes[SHAPE["dash"]] if column.reading in NUMBERS else 0)
    return int(unread - understood)


@dataclass(frozen=True)
class UnusedColumn:
    """A column of lists, records or bytes: nothing is learned from it, and it is given back."""

    name: str

    @property
    def origin(self) -> str:
        """The column of the file."""
        return self.name

    def written(self, part: SourcePart, *, typed: bool) -> Any:
        """Return cells as they were; in a file of text as JSON, or as the text that bytes are."""
        column = part.cells.column(self.name)
        return pd.arrays.ArrowExtensionArray(column if typed and _is_in_all_files(column.type) else as_text(column))


def _is_in_all_files(kind: Any) -> bool:
    """Return whether all files that know types can hold an unusable one: bytes, and lists and records of what is usable or bytes."""
    if types.is_nested(kind):
        inside = [kind.field(place).type for place in range(kind.num_fields)]
        is_plain = types.is_list(kind) or types.is_large_list(kind) or (types.is_struct(kind) and bool(inside))
        return is_plain and all(storage_of(one) is not None or _is_in_all_files(one) for one in inside)
    return types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)


@dataclass(frozen=True)
class TablePart:
    """Consecutive rows of a table; what is made of their cells is made when it is asked for."""

    source: SourcePart
    columns: Sequence[Column | UnusedColumn]
    """All columns of the file. [D]"""
    used: list[Column]
    """The columns to learn from. [D used]"""
    first: int
    """Where in the file the first row is."""
    kept_as_text: Callable[[], Collection[str]] = frozenset
    """Which columns of text stay text in a file that knows types, though they can be read as values."""

    def __len__(self) -> int:
        return int(self.source.cells.num_rows)

    @property
    def _index(self) -> pd.RangeIndex:
        return pd.RangeIndex(self.first, self.first + len(self))

    def rows(self) -> pd.DataFrame:
        """Return the columns to learn from: numbers and booleans as float64, dates as datetime64, categories as text. [n, D used]"""
        return pd.DataFrame({column.name: column.values(self.source) for column in self.used}, index=self._index)

    def encoded(self) -> NDArray[Any]:
        """Return the columns to learn from as numbers with NaN for gaps, as `encode_table` has them; free text stays text. [n, D used]"""
        return _beside_each_other(self.source, self.used, texts=[place for place, one in enumerate(self.used) if one.kind == "text"])

    def cells(self, *, typed: bool, as_json: bool = False) -> pd.DataFrame:
        """Return all columns as they were, for a file of text or, with `typed`, for one that knows numbers and dates. [n, D]

        With `as_json`, cells of a file of JSON lines are JSON.
        """
        if as_json and self.source.as_json is not None:
            values = {column.name: pd.arrays.ArrowExtensionArray(self.source.as_json(column.name)) for column in self.columns}
        else:
            kept = self.kept_as_text() if typed else ()
            values = {column.name: column.written(self.source, typed=typed and column.name not in kept) for column in self.columns}
        return pd.DataFrame({name: pd.Series(cells).set_axis(self._index) for name, cells in values.items()})


def origins(columns: Iterable[Column | UnusedColumn]) -> list[str]:
    """Return the columns of the file that the cells of these are in, each once."""
    return list(dict.fromkeys(column.origin for column in columns))


def encoded_arrays(
    source: TableSource, columns: Sequence[Column], dtype: type[np.floating[Any]] = np.float64, texts: Collection[int] = ()
) -> Iterator[NDArray[Any]]:
    """Yield the columns of each part of a file beside each other, as numbers with NaN for gaps; threads encode them. [n, D]

    The columns in `texts` stay text, in an array of objects.
    """
    encode = partial(_beside_each_other, columns=columns, dtype=dtype, texts=texts)
    return map_in_order(encode, source.parts(origins(columns)), n_threads=n_workers())


def _beside_each_other(
    part: SourcePart, columns: Sequence[Column], dtype: type[np.floating[Any]] = np.float64, texts: Collection[int] = ()
) -> NDArray[Any]:
    out = np.empty((part.cells.num_rows, len(columns)), dtype=object if texts else dtype)
    for place, column in enumerate(columns):
        out[:, place] = as_texts(column.values(part)) if place in texts else column.encoded(part)
    return out


def check_kinds(columns: list[Column], title: str | Path, where: str = "when the model was trained") -> None:
    """Raise FileError where a column holds something else than it held in other rows."""
    for column in columns:
        found = column.findings
        differs = column.reading == "typed" and "date" in (column.kind, column.storage) and column.kind != column.storage
        if column.wave is not None and column.reading == "typed":
            differs = column.storage != "time"
        if differs or n_odd_cells(column) > found.n_values:
            example = f" (such as {found.odd[:40]!r})" if found.odd is not None else ""
            what = f"{column.kind}s" if column.wave is None else f"parts of a {column.wave.cycle.name}"
            unit = f" in {column.way.unit}" if column.way.unit and column.way.unit not in (DIFFERENT, FRACTIONS) else ""
            raise FileError(f"Column {quoted(column.origin)} of {title} held {what}{unit} {where}, but not here{example}.")
