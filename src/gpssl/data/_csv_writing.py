"""Write tables of separated values, in the dialect of the file that a person gave."""

from __future__ import annotations

import codecs
import gzip
import re
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute, types

from .._runtime import is_standard
from .._runtime.files import written_beside
from .._runtime.threads import InOrder, n_workers
from ._cell_texts import as_text, is_time, texts_of_times
from ._outputs import Style, ending_of

Write = Callable[[pd.DataFrame], None]

USUAL_SEPARATORS = ",;\t| "
LINES_AT_A_TIME = 2**14
LEVEL = 6
"""Of compression."""


@contextmanager
def csv_writer(path: Path, first: pd.DataFrame, style: Style) -> Iterator[Write]:
    """Yield a function that writes parts of a table; the first has the names of the columns."""
    separator = "\t" if ending_of(path)[0] == ".tsv" else style.separator or ","
    with text_file(path, style.encoding) as file:
        names = _quoted(pa.array([str(name) for name in first.columns]), separator)
        told = "" if separator in USUAL_SEPARATORS else f"sep={separator}\n"  # without it, nobody could tell the cells apart
        file.write((told + separator.join(names.to_pylist()) + "\n").encode())
        to_lines, n_threads = partial(_lines, separator=separator, decimal=style.decimal), n_workers()
        with InOrder(to_lines, n_threads) as lines:

            def write(frame: pd.DataFrame) -> None:  # threads make lines of these rows, while the caller makes the next
                table = arrow_table(frame)
                for start in range(0, len(frame), LINES_AT_A_TIME):
                    lines.add(table.slice(start, LINES_AT_A_TIME))
                    for text in lines.results(max_waiting=2 * n_threads):
                        file.write(text)

            yield write
            for text in lines.results(max_waiting=0):
                file.write(text)


def arrow_table(frame: pd.DataFrame) -> pa.Table:
    """Return the columns of a data frame, without its index."""
    return pa.Table.from_pandas(frame.rename(columns=str), preserve_index=False)


@contextmanager
def text_file(path: Path, encoding: str = "utf-8") -> Iterator[Any]:
    """Yield something that takes bytes of UTF-8: a file, compressed if its name says so, or standard output."""
    if is_standard(path):
        sys.stdout.flush()
        file = getattr(sys.stdout, "buffer", None) or _TextOnly()
        yield file
        file.flush()
    elif encoding == "utf-8":
        with _opened(path, "wb") as plain:
            yield plain
    else:
        with ExitStack() as stack:
            yield _Recoded(path, encoding, stack)


@contextmanager
def _opened(path: Path, mode: Literal["rb", "wb", "ab"]) -> Iterator[BinaryIO]:
    """Open a file of bytes, or the bytes within a compressed one; the same rows give the same compressed file."""
    with open(path, mode) as file:
        if not ending_of(path)[1]:
            yield file
            return
        with gzip.GzipFile(filename="", mode=mode, compresslevel=LEVEL, fileobj=file, mtime=0) as packed:
            yield packed  # type: ignore[misc]  # of the same methods


class _Recoded:
    """A file in another encoding than UTF-8, which takes bytes of UTF-8; where a letter is not in it, all of the file becomes UTF-8."""

    def __init__(self, path: Path, encoding: str, stack: ExitStack) -> None:
        self._path, self._encoding, self._stack = path, encoding, stack
        self._file = stack.enter_context(_opened(path, "wb"))
        self._encode: Callable[[str], bytes] | None = codecs.getincrementalencoder(encoding)().encode

    def write(self, text: bytes | memoryview) -> None:
        """Write bytes of UTF-8."""
        if self._encode is not None:
            try:
                self._file.write(self._encode(str(text, "utf-8")))
                return
            except UnicodeEncodeError as error:
                letter = error.object[error.start]
            self._become_utf8(letter)
        self._file.write(text)

    def _become_utf8(self, letter: str) -> None:
        warnings.warn(f"The results are written in UTF-8, as the encoding of the table lacks the letter {letter!r}.", stacklevel=2)
        self._stack.close()
        with written_beside(self._path) as again, _opened(self._path, "rb") as old, _opened(again, "wb") as new:
            shutil.copyfileobj(codecs.getreader(self._encoding)(old), codecs.getwriter("utf-8")(new))
        self._file = self._stack.enter_context(_opened(self._path, "ab"))
        self._encode = None


class _TextOnly:
    """Standard output of a notebook, which takes text alone."""

    def write(self, text: bytes | memoryview) -> None:
        """Write bytes of UTF-8."""
        sys.stdout.write(str(text, "utf-8"))

    def flush(self) -> None:
        """Show what was written."""
        sys.stdout.flush()


def _lines(table: pa.Table, separator: str, decimal: str) -> memoryview:
    """Return all cells as text, joined by Arrow: the bytes of its array of lines are the lines of the file."""
    cells = [_cells(column.combine_chunks(), separator, decimal) for column in table.columns]
    if len(cells) == 1:  # an empty line would be no row
        cells = [compute.if_else(compute.equal(cells[0], ""), '""', cells[0])]
    last = compute.binary_join_element_wise(cells[-1], "", "\n")
    lines = compute.binary_join_element_wise(*cells[:-1], last, separator) if len(cells) > 1 else last
    offsets = np.frombuffer(lines.buffers()[1], dtype=np.int32)
    return memoryview(lines.buffers()[2])[offsets[lines.offset] : offsets[lines.offset + len(lines)]]


def _cells(column: Any, separator: str, decimal: str) -> pa.Array:
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_float16(column.type):
        column = column.cast(pa.float32())
    if types.is_floating(column.type):
        is_nan = compute.is_nan(column)
        if compute.any(is_nan).as_py():  # most columns have none, and need no copy
            column = compute.if_else(is_nan, None, column)
    if is_time(column.type):
        return texts_of_times(column).fill_null("")
    has_signs = not (types.is_boolean(column.type) or types.is_integer(column.type) or types.is_floating(column.type))
    text = as_text(column)
    text = text.fill_null("") if text.null_count else text
    if decimal != "." and (types.is_floating(column.type) or types.is_decimal(column.type)):
        text, has_signs = compute.replace_substring(text, ".", decimal), separator == decimal
    return _quoted(text, separator) if has_signs else text


def _quoted(text: pa.Array, separator: str) -> pa.Array:
    """Return the cells with quotes around those that need them."""
    start, end = np.frombuffer(text.buffers()[1], dtype=np.int32)[[text.offset, text.offset + len(text)]]
    content = b"" if start == end else memoryview(text.buffers()[2])[start:end].tobytes()
    if not any(sign in content for sign in (*(b'"', b"\r", b"\n", b"\t", b"\f", b" "), separator.encode())):
        return text  # far quicker than to look at each cell
    needs = compute.match_substring_regex(text, f'["\r\n]|{re.escape(separator)}|^\\s|\\s$')
    if not compute.any(needs).as_py():
        return text
    doubled = compute.replace_substring(text, '"', '""')
    return compute.if_else(needs, compute.binary_join_element_wise('"', doubled, '"', ""), text)
