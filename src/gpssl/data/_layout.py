"""Where in rows of text a table begins and ends: titles above the names of its columns, totals and footers below its rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import compute

from ._errors import FileError, listed
from ._frames import MISSING_WORDS
from ._readings import DASHES, NUMBERS, Reading, Way, values_of
from ._source import ColumnStore

HEAD_ROWS = 200
"""Where the names are, and what separates the cells, is guessed from these rows."""
MOST_LINES_ABOVE = 50
"""Titles and comments above the names of the columns."""
MOST_BELOW = 12
"""Totals and footers below the rows."""
SHOWN = 40
"""Letters of a line that a note shows."""
Row = Sequence[str]
Array = NDArray[np.float64]

NUMBER = re.compile(r"[+-]?[\d.,]*\d[\d.,]*([eE][+-]?\d+)?")
TOTALS = re.compile(
    r"(?i:(grand|overall|report)?\s*totals?|sums?|summen?|(gesamt|zwischen)(summe|ergebnis)|gesamt|insgesamt"
    r"|total (g[ée]n[ée]ral|general|geral)|ensemble|somme|totale?s?( generale)?|suma( total)?|soma|totaal|summa|totalt|i alt)\s*(:.*)?"
)
_END = r"(\s*[:.].*)?"
SUMMARIES: dict[re.Pattern[str], tuple[Callable[[Array], Any], ...]] = {
    TOTALS: (np.nansum,),
    re.compile(rf"(?i:mean|averages?|avg|mittelwert|durchschnitt|moyenne|media|promedio|gemiddelde|[øØ]){_END}"): (np.nanmean,),
    re.compile(rf"(?i:median){_END}"): (np.nanmedian,),
    re.compile(rf"(?i:s\.?d|st\.?dev|std( ?dev(iation)?)?|standard deviation|standardabweichung){_END}"): (
        np.nanstd,
        partial(np.nanstd, ddof=1),
    ),
}
"""Words for rows that sum up others, and what their numbers are then."""
GRAND_TOTAL = "grand total"
FOOTER = re.compile(
    r"(?i:sources?|quellen?|notes?|anmerkung(en)?|hinweise?|stand|created|generated|exported|downloaded|printed|erstellt|data|remarks?|legend|"
    r"legende|footnotes?|copyright|retrieved|last updated?|updated)\b.*[:\s].*|©.*|\(?\d[\d,. ]*\s*(rows?|records?|entries|results?|zeilen|"
    r"datens[äa]tze)\b.*|[*†‡].*|---+.*|end of (file|report|table).*"
)
MATCHES = 0.5
"""The share of the cells beside a word for totals that must be empty or the sum of their column."""


def place_of_names(rows: Sequence[Row], wanted: Sequence[str] = ()) -> int:
    """Return which of the first rows holds the names: that with all names which a person has said, else the first below titles.

    Titles have fewer cells than the rows of the table, or text in at most half of them.
    """
    named = set(wanted)
    if named:
        fewest = min(2, max(map(len, rows), default=0))
        holding = [place for place, row in enumerate(rows[: MOST_LINES_ABOVE + 1]) if named <= {cell.strip() for cell in row}]
        found = [place for place in holding if sum(bool(cell.strip()) for cell in rows[place]) >= fewest]
        if found:
            return found[0]
    return _first_below_titles(rows)


def _first_below_titles(rows: Sequence[Row]) -> int:
    counts, filled = [len(row) for row in rows], [sum(bool(cell.strip()) for cell in row) for row in rows]
    if len(rows) < 3:
        return 0
    usual = Counter(counts[1:]).most_common(1)[0][0]
    first = next((place for place, count in enumerate(counts) if count == usual and filled[place] > usual / 2), 0)
    if usual == 1 or first > MOST_LINES_ABOVE:
        return 0
    if first == 0:
        return 1 if _is_above_names(rows) else 0
    if max(counts[:first]) > usual and not look_like_names(rows[first:]):
        return 0
    are_titles = usual > 2 and are_texts(rows[first]) and (max(filled[:first]) <= 1 or _are_short(rows[:first], usual))
    if not are_titles and not look_like_names(rows[first:]):
        return 0
    return first + 1 if _is_above_names(rows[first:]) else first


def _are_short(rows: Sequence[Row], usual: int) -> bool:
    """Return whether lines are too short for names; R leaves out the name of its row names, in the only line above the rows."""
    counts = [max((place + 1 for place, cell in enumerate(row) if cell.strip()), default=0) for row in rows]
    return max(counts) < usual and (len(counts) > 1 or counts[0] < usual - 1)


def _is_above_names(rows: Sequence[Row]) -> bool:
    """Return whether the first row has names of groups of columns, with gaps between them, and the second the names of all columns."""
    first, second = rows[0], rows[1]
    gaps = [place for place, cell in enumerate(first) if not cell.strip()]
    is_inside = any(place < len(first) - 1 for place in gaps) and bool(first[0].strip() or len(gaps) > 1)
    if len(first) != len(second) or not is_inside:
        return False
    return len(set(second)) == len(second) and are_texts(second) and look_like_names(rows[1:])


def are_texts(cells: Row) -> bool:
    """Return whether no cell is empty, a word for a missing cell, or a number."""
    return not any(cell.strip() in MISSING_WORDS or NUMBER.fullmatch(cell.strip()) for cell in cells)


def look_like_names(rows: Sequence[Row]) -> bool:
    """Return whether the first row has text where rows below it have numbers."""
    names, below = rows[0], [row for row in rows[1:] if len(row) == len(rows[0])]
    if not below or not are_texts(names):
        return False
    return any(sum(NUMBER.fullmatch(row[place].strip()) is not None for row in below) > len(below) / 2 for place in range(len(names)))


def check_names(names: Sequence[str], title: object, line: str = "The first line") -> None:
    """Raise FileError for names that are all numbers: rows of a table without names."""
    given = [name for name in names if name]
    if all(NUMBER.fullmatch(name) for name in given):
        raise FileError(f"{line} of {title} holds numbers ({listed(given, 3)}), not names of columns: give it a line of names.")


def note_above(lines: Sequence[str], what: str = "line") -> list[str]:
    """Return a note on what stood above the names of the columns, with the first lines that were not empty."""
    if not lines:
        return []
    subject = f"{what} above the names of the columns was" if len(lines) == 1 else f"{what}s above the names of the columns were"
    return [f"{len(lines):,} {subject} skipped{_quoted(lines)}."]


def note_below(lines: Sequence[str], numbers: Sequence[int], what: str = "line") -> list[str]:
    """Return a note on what stood below the rows and is no row: totals, sources, remarks."""
    if not lines:
        return []
    first, last = min(numbers), max(numbers)
    where = f"{what} {first:,}" if first == last else f"{what}s {first:,} to {last:,}"
    return [f"Below the table, {where} {'is' if first == last else 'are'} no row{'s' * (first != last)} and left out{_quoted(lines)}."]


def _quoted(lines: Sequence[str]) -> str:
    texts = [" ".join(line.strip("#,;\t| \r\n\"'").split()) for line in lines]
    shown = [text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…" for text in texts if text]
    return f": {listed(shown, 3)}" if shown else ""


def rows_below(store: ColumnStore, n_columns: int) -> list[str]:
    """Return the last rows that are none, from the first of them on: totals, footers and empty ones. Columns are called 0, 1, …

    A row of totals has a word such as "Total" as its first text, which its column has nowhere else; this column holds numbers alone, or
    most other cells are empty or the sums of their columns. A footer is one cell of text in the first column, unlike the other cells there.
    """
    if len(store) == 0 or n_columns < 2:
        return []
    last = store.part(len(store) - 1)
    tail = [[(cell or "").strip() for cell in row.values()] for row in last.slice(max(0, last.num_rows - MOST_BELOW)).to_pylist()]
    candidates = list(takewhile(is_below, reversed(tail[-(store.n_rows - 1) :] if store.n_rows > 1 else [])))
    above = _RowsAbove(store, candidates)
    found = list(takewhile(above.is_none, candidates))
    return [" ".join(filter(None, row)) for row in reversed(found)]


def is_below(row: Row) -> bool:
    """Return whether a row may be none by what it holds alone: nothing at its beginning, one cell of text there, or totals."""
    filled = [place for place, cell in enumerate(row) if cell]
    if not row or not row[0]:
        return True  # sums without a word have nothing in the first column
    return (filled == [0] and not NUMBER.fullmatch(row[0])) or _word(row) is not None


def _word(row: Row) -> tuple[int, re.Pattern[str]] | None:
    """Return the place of the first text of a row if it is a word for sums or the like, and the pattern that it matches."""
    first = next((place for place, cell in enumerate(row) if cell and cell not in DASHES and not NUMBER.fullmatch(cell)), None)
    kind = None if first is None else next((pattern for pattern in SUMMARIES if pattern.fullmatch(row[first])), None)
    return None if first is None or kind is None else (first, kind)


def is_grand_total(rows: Sequence[Row]) -> bool:
    """Return whether the row below the names is the grand total, as Google Analytics puts it: these words, numbers, and else nothing."""
    if len(rows) < 3:
        return False
    texts = [cell.strip() for cell in rows[1] if cell.strip() and not NUMBER.fullmatch(cell.strip())]
    return len(texts) == 1 and texts[0].lower() == GRAND_TOTAL and not any(texts[0] in row for row in rows[2:])


class _RowsAbove:
    """The rows above the last few, with which those are compared."""

    def __init__(self, store: ColumnStore, below: Sequence[Row]) -> None:
        self._store, self._below = store, below

    def _column(self, place: int) -> Iterator[pa.Array]:
        """Iterate over the cells of a column without space around them, part by part."""
        left = self._store.n_rows - len(self._below)
        for part in map(self._store.part, range(len(self._store))):
            if str(place) in part.schema.names:
                yield compute.utf8_trim_whitespace(part.column(str(place)).slice(0, max(0, left))).fill_null("")
            left -= part.num_rows

    def is_none(self, row: Row) -> bool:
        """Return whether a row is empty, totals, or a footer."""
        word = _word(row)
        if word is not None:
            return self._is_summary(row, *word)
        if not row[0]:
            return not any(row) or self._are_sums_alone(row)
        return self._is_footer(row[0], len(row))

    def _is_summary(self, row: Row, place: int, kind: re.Pattern[str]) -> bool:
        word = row[place].lower()
        n_alike = sum(place < len(other) and other[place].lower() == word for other in self._below)
        if n_alike > 1 or any(compute.any(compute.equal(compute.utf8_lower(cells), word)).as_py() for cells in self._column(place)):
            return False  # a category, such as total and partial
        if self._holds_numbers(place):
            return True
        others = [(other, cell) for other, cell in enumerate(row) if other != place]
        n_empty = sum(cell in ("", *DASHES) for _, cell in others)
        n_sums = sum(self._is_one_of(SUMMARIES[kind], other, cell) for other, cell in others if cell)
        is_likely = n_empty + n_sums > MATCHES * len(others) and (kind is TOTALS or n_sums > 0)
        return is_likely or n_sums > 1

    def _holds_numbers(self, place: int) -> bool:
        """Return whether a column holds two numbers or more, and nothing else but empty cells."""
        filled = (cell for cells in self._column(place) for cell in cells.to_pylist() if cell not in ("", *DASHES))
        n_numbers = 0
        for cell in filled:
            if not NUMBER.fullmatch(cell):
                return False
            n_numbers += 1
        return n_numbers > 1

    def _are_sums_alone(self, row: Row) -> bool:
        """Return whether a row has nothing in the first column, which no other row lacks, and sums that are larger than what they sum."""
        if any(compute.any(compute.equal(cells, "")).as_py() for cells in self._column(0)):
            return False
        return any(self._is_one_of((_sum_above_all,), place, cell) for place, cell in enumerate(row) if cell)

    def _is_one_of(self, numbers: Sequence[Callable[[Array], Any]], place: int, cell: str) -> bool:
        """Return whether a cell is one of these numbers of its column, to the digits that it has, in any way to write them."""
        return any(self._is_read_as(reading, numbers, place, cell) for reading in NUMBERS)

    def _is_read_as(self, reading: Reading, numbers: Sequence[Callable[[Array], Any]], place: int, cell: str) -> bool:
        is_plain = NUMBER.fullmatch(cell) is not None
        shown = values_of(_bare(pa.array([cell]), is_plain), Way(reading))[0]
        if np.isnan(shown):
            return False
        values = np.concatenate([values_of(_bare(cells, is_plain), Way(reading)) for cells in self._column(place)])
        if np.isfinite(values).sum() < 2:
            return False
        digits = re.sub(r"[^\d.,]", "", cell)
        n_decimals = len(re.split("[.,]", digits)[-1]) if re.search("[.,]", digits) else 0
        with np.errstate(over="ignore", invalid="ignore"):  # very large numbers have no finite sum
            found = [number(values) for number in numbers]
        return any(abs(one - shown) <= 0.51 * 10.0**-n_decimals + 1e-9 * abs(shown) for one in found)

    def _is_footer(self, text: str, n_columns: int) -> bool:
        others = [cell for cells in self._column(0) for cell in cells.slice(max(0, len(cells) - HEAD_ROWS)).to_pylist() if cell]
        if FOOTER.fullmatch(text):
            return not any(FOOTER.fullmatch(cell) for cell in others)
        if n_columns < 3 or not others or NUMBER.fullmatch(text):
            return False
        are_numbers = all(NUMBER.fullmatch(cell) for cell in others)
        return are_numbers or (len(text.split()) > 2 and max(len(cell.split()) for cell in others) < 3)


def _sum_above_all(values: Array) -> float:
    """Return the sum, where it is larger than each of the values; NaN elsewhere."""
    total = float(np.nansum(values))
    return total if total > np.nanmax(values) else np.nan


def _bare(cells: pa.Array, is_plain: bool) -> pa.Array:
    """Return the digits and signs of cells with money or units."""
    return cells if is_plain else compute.replace_substring_regex(cells, r"[^\d.,+-]", "")
