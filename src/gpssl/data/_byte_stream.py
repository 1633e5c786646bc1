"""The bytes of a file, read once and looked at as they pass."""

from __future__ import annotations

import codecs
import io
import re
from pathlib import Path

import pyarrow as pa

from ._errors import FileError

HEAD_BYTES = 2**20
COMPRESSIONS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
ENCODING_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
NOT_IN_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")


class ByteStream(io.RawIOBase):
    """The bytes of a file, unpacked if it is compressed, whatever its name says. They are read once, and looked at as they pass.

    A named pipe can be read too: nothing is read twice, and nothing is sought.
    """

    def __init__(self, content: Path, path: Path | None = None) -> None:
        self.n_bytes = self.n_quotes = self._n_ends = 0
        self._is_open = False
        self.wants_cp1252 = False
        """Raise `NotCp1252Error` at a byte that Windows-1252 does not have."""
        self._path = path or content
        self._file = open(content, "rb")  # noqa: SIM115  (closed by `close`)
        start = self._file.peek(8)[:8]
        self.compression = next((kind for mark, kind in COMPRESSIONS.items() if start.startswith(mark)), None)
        packed = pa.PythonFile(self._file, "r")
        self._bytes = packed if self.compression is None else pa.CompressedInputStream(packed, self.compression)
        self.head = b""
        while len(self.head) < HEAD_BYTES and (more := self._bytes.read(HEAD_BYTES - len(self.head))):  # few at a time from a pipe
            self.head += more
        self.is_marked = self.head.startswith(tuple(ENCODING_MARKS))
        self._ahead: bytes = self.head

    def readable(self) -> bool:
        """Return true: bytes can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, after a look at them."""
        block, self._ahead = (self._ahead[:size], self._ahead[size:]) if self._ahead else (self._bytes.read(size), b"")
        self.n_bytes += len(block)
        self.n_quotes += block.count(b'"')
        self._n_ends += block.count(b"\n")
        self._is_open = not block.endswith(b"\n") if block else self._is_open
        if b"\0" in block and not self.is_marked:
            raise FileError(f"{self._path} is no text: it has bytes that are zero. Save the table as CSV.")
        if self.wants_cp1252 and NOT_IN_CP1252.search(block):
            raise NotCp1252Error
        return block

    @property
    def n_lines(self) -> int:
        """Lines that have passed, of a file in which a newline ends each of them."""
        return self._n_ends + self._is_open

    def close(self) -> None:
        """Close the file."""
        self._bytes.close()
        self._file.close()
        super().close()


class NotCp1252Error(Exception):
    """A file that is no UTF-8 has a byte that Windows-1252 does not have: it is read again, as Latin-1."""
