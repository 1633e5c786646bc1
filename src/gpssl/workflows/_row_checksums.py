"""A short checksum of what a row holds, by which a label that was given elsewhere finds its row again.

It is made of the cells without the target and without columns of results, and depends neither on the format of the file nor on the order
of its columns: CSV, Parquet and workbooks of the same cells give the same checksums.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data._columns import LARGEST_WHOLE
from ..data._frames import MISSING_WORDS, is_missing

if TYPE_CHECKING:
    from ._subject import Subject

Places = NDArray[np.intp]

RESULTS = re.compile(r"gpssl_\w+")
"""Columns that commands add to a table, beside those of a target."""
N_DIGITS = 10
MARK = "c"
"""The first character of a checksum: spreadsheets would take digits alone, and digits around an e, for a number."""
MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def row_checksums(subject: Subject, places: Places) -> list[str]:
    """Return the checksum of each of these rows, whose places increase. [n]"""
    cells = subject.cells_at(places)
    return checksums_of(cells, subject.roles.target)


def checksums_of(cells: Any, target: str | None) -> list[str]:
    """Return the checksum of each row of a data frame of cells. [n]

    It is a mark and the first digits of the SHA-256 of JSON: pairs of name and text, sorted, of the cells that are not empty.
    """
    from ._label import names_of_results

    ours = [RESULTS] if target is None else [RESULTS, names_of_results(target)]
    names = sorted(name for name in map(str, cells.columns) if name != target and not any(one.fullmatch(name) for one in ours))
    columns = [column_texts(cells[name]) for name in names]
    return [_checksum([(name, text) for name, text in zip(names, row, strict=True) if text]) for row in zip(*columns, strict=True)]


def _checksum(pairs: Sequence[tuple[str, str]]) -> str:
    text = json.dumps(pairs, ensure_ascii=False, separators=(",", ":"))
    return MARK + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:N_DIGITS]


def column_texts(column: Any) -> list[str]:
    """Return the cells of a column of a data frame as texts that do not depend on how a file stores them. [n]"""
    if "float32" in str(column.dtype) or "float[" in str(column.dtype):  # 0.1 in single precision is 0.1, not 0.100000001490116
        return ["" if is_missing(cell) else text_of(float(str(np.float32(cell)))) for cell in column.tolist()]
    return [text_of(cell) for cell in column.tolist()]


def text_of(cell: Any) -> str:
    """Return the text of a cell: nothing for missing ones, numbers in one spelling, dates as 2024-12-31.

    >>> [text_of(cell) for cell in (1, 1.0, "1.00", " 1e0 ", None, "N/A", True, "TRUE", "two  words")]
    ['1', '1', '1', '1', '', '', 'true', 'true', 'two words']
    >>> [text_of(cell) for cell in (date(2024, 12, 31), "2024-12-31T00:00", "2024-12-31T10:00:00+02:00")]
    ['2024-12-31', '2024-12-31', '2024-12-31 08:00:00']
    """
    if isinstance(cell, str):
        return _of_text(" ".join(cell.split()))
    if isinstance(cell, list | tuple | dict | np.ndarray):
        return json.dumps(cell, ensure_ascii=False, sort_keys=True, default=_inside)
    if is_missing(cell):
        return ""
    if isinstance(cell, bool | np.bool_):
        return str(bool(cell)).lower()
    if isinstance(cell, Integral):
        return str(int(cell))
    if isinstance(cell, Real | Decimal):
        return _of_number(float(cell))
    if isinstance(cell, timedelta):
        return _of_number(cell.total_seconds())
    if isinstance(cell, date):
        return _of_date(cell)
    return _of_text(" ".join(str(cell).split()))


def _inside(value: Any) -> Any:
    """Return what JSON knows, for what is in a list or a record."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def _of_text(text: str) -> str:
    if text in MISSING_WORDS:
        return ""
    if NUMBER.fullmatch(text):
        return str(int(text)) if text.lstrip("+-").isascii() and text.lstrip("+-").isdigit() else _of_number(float(text))
    if MOMENT.fullmatch(text):
        return _of_moment(text)
    return text.lower() if text.lower() in ("true", "false") else text


def _of_moment(text: str) -> str:
    try:
        return _of_date(datetime.fromisoformat(text))
    except ValueError:  # a month or an hour that no calendar has
        return text


def _of_number(number: float) -> str:
    """Return a number with twelve digits, as many as all formats keep; a whole one without a point."""
    is_whole = np.isfinite(number) and number == np.floor(number) and abs(number) <= LARGEST_WHOLE
    return str(int(number)) if is_whole else f"{number:.12g}"


def _of_date(moment: date) -> str:
    """Return a date, with the time of the day where it is not midnight, in Greenwich time where the zone is known."""
    if not isinstance(moment, datetime):
        return moment.isoformat()
    plain = moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    return plain.isoformat(sep=" ").removesuffix(" 00:00:00")


def row_names(subject: Subject, places: Places) -> list[str]:
    """Return what a person calls these rows: lines of the file, or the index of a data frame. [n]"""
    if subject.index is not None:
        return [str(subject.index[place]) for place in places]
    lines = subject.lines(places)
    return [str(line) for line in (places + 1 if lines is None else lines)]
