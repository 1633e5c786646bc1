"""Which line of a file holds a row: the number that a person sees in an editor."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ._byte_stream import ByteStream
from ._errors import as_sentence

Lines = NDArray[np.int64]

BLOCK_BYTES = 4 * 2**20
QUOTE, NEWLINE = b'"', b"\n"


def lines_in_file(path: Path, encoding: str, n_skipped: int, *, quoted: bool) -> Lines:
    """Return the line at which each row of a file begins, as `lines_of_rows` does."""
    with as_sentence(path), ByteStream(path) as stream:
        read = codecs.EncodedFile(stream, "utf-8", encoding).read if encoding.startswith("utf-16") else stream.read
        return lines_of_rows(read, n_skipped, quoted=quoted)


def lines_of_rows(read: Callable[[int], bytes], n_skipped: int, *, quoted: bool) -> Lines:
    """Return the line at which each row begins that is not empty, after the first lines; the names of the columns are such a row.

    With `quoted`, the ends of lines between quotes are within a cell. A text with quotes elsewhere gives another number of rows than there
    are, so that the caller can tell.
    """
    found, line, n_quotes = [], 1, 0
    for block in _whole_lines(read):
        codes = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero(codes == NEWLINE[0])
        starts = np.concatenate([[0], ends[:-1] + 1])
        numbers = line + np.arange(len(ends))
        seen = numbers > n_skipped
        quotes = np.flatnonzero(codes == QUOTE[0])
        quotes = quotes[quotes >= starts[seen][0]] if quoted and seen.any() else quotes[:0]
        # A line begins a row unless it begins between quotes.
        begins = (n_quotes + np.searchsorted(quotes, starts)) % 2 == 0
        found.append(numbers[seen & begins & (ends > starts)])
        line += len(ends)
        n_quotes += len(quotes)
    return np.concatenate(found).astype(np.int64) if found else np.empty(0, dtype=np.int64)


def _whole_lines(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """Iterate over blocks of lines that all end in one newline, whatever ends them in the file."""
    rest = b""
    while block := read(BLOCK_BYTES):
        text = rest + block
        held = text[-1:] if text.endswith(b"\r") else b""  # its newline may come next
        text = _with_newlines(text[: len(text) - len(held)])
        lines, end, rest = text.rpartition(NEWLINE)
        rest += held
        if end:
            yield lines + end
    if rest:
        yield _with_newlines(rest).removesuffix(NEWLINE) + NEWLINE


def _with_newlines(text: bytes) -> bytes:
    return text.replace(b"\r\n", NEWLINE).replace(b"\r", NEWLINE) if b"\r" in text else text
