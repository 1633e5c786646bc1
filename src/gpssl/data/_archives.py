"""Files within others: a table in a zip archive, or one that comes through standard input."""

from __future__ import annotations

import lzma
import shutil
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from .._runtime import is_standard
from .._runtime.files import NO_ROOM, forget, temporary_folder
from ._errors import FileError, listed
from ._rows import COMPRESSED

STANDARD_INPUT = Path("standard input")
"""What sentences call it."""
NO_TABLES = ("__macosx/", ".ds_store", "thumbs.db", "desktop.ini", "readme", "license", "licence")
"""Beginnings of names, in lower case, of files that lie beside tables in archives."""
DOCUMENTS = (".md", ".pdf", ".html", ".htm", ".rtf", ".doc", ".docx", ".png", ".jpg", ".jpeg", ".xml", ".yaml", ".yml")
DAMAGES = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    ValueError,
    EOFError,
    OverflowError,
    struct.error,
    zlib.error,
    lzma.LZMAError,
)
"""What is raised for archives that are damaged, encrypted, or packed in a way that Python does not know."""
CONTENTS = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"SQLite format 3": ".sqlite", b"{": ".jsonl"}
"""How files of these kinds begin; what else comes through standard input is text."""


class Located(NamedTuple):
    """A file that can be opened."""

    path: Path
    """What sentences call it."""
    content: Path
    """Where its bytes are."""
    ending: str
    """Of its name, which tells the kind; without that of a compression."""
    notes: list[str]
    folder: Path | None = None
    """A temporary folder, to be removed when nobody reads the file any more."""


def located(path: Path) -> Located:
    """Return where the bytes of a table are: of standard input and archives, in a temporary file."""
    if is_standard(path):
        return _received()
    ending = ending_of_table(path.name)
    return _unpacked(path) if ending == ".zip" else Located(path, path, ending, [])


def ending_of_table(name: str) -> str:
    """Return the ending that tells the kind of a table, in lower case.

    >>> ending_of_table("rows.CSV.gz"), ending_of_table("rows.xlsx")
    ('.csv', '.xlsx')
    """
    name = name.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    return PurePosixPath(name).suffix


def _received() -> Located:
    """Copy standard input into a file, so that it can be read more than once."""
    with _new_folder() as folder:
        content = folder / "table"
        given: Any = getattr(sys.stdin, "buffer", sys.stdin)
        with open(content, "wb") as file:
            shutil.copyfileobj(given, file, 2**20)
        with open(content, "rb") as file:
            start = file.read(16)
        ending = next((ending for mark, ending in CONTENTS.items() if start.startswith(mark)), "")
        if start.startswith(b"PK\x03\x04"):
            with _unpacking(STANDARD_INPUT), zipfile.ZipFile(content) as archive:
                ending = ".xlsx" if "xl/workbook.xml" in archive.namelist() else ".zip"
        if ending == ".zip":
            inside = _unpacked(content, STANDARD_INPUT)
            forget(folder)
            return inside
        return Located(STANDARD_INPUT, content.rename(content.with_suffix(ending)), ending, [], folder)


@contextmanager
def _new_folder() -> Iterator[Path]:
    """Make a temporary folder, which is removed where it cannot be filled; say where there is no room."""
    folder = temporary_folder()
    try:
        yield folder
    except BaseException as error:
        forget(folder)
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            raise FileError(
                f"There is no room for the table in the folder {tempfile.gettempdir()}, where it is unpacked: make room there, or set "
                "TMPDIR to another folder."
            ) from error
        raise


@contextmanager
def _unpacking(shown: Path) -> Iterator[None]:
    """Raise what is wrong with an archive in a sentence."""
    try:
        yield
    except FileError:
        raise
    except DAMAGES as error:
        raise FileError(f"{shown} cannot be read as a zip archive: it is damaged, or packed in an unusual way; pack it again.") from error


def _unpacked(archive: Path, path: Path | None = None) -> Located:
    """Unpack the only table of an archive into a temporary folder."""
    shown = path or archive
    with _unpacking(shown), zipfile.ZipFile(archive) as opened:
        member = _only_table(opened, shown)
        with _new_folder() as folder:
            content = folder / PurePosixPath(member.filename).name
            with opened.open(member) as packed, open(content, "wb") as file:
                shutil.copyfileobj(packed, file, 2**20)
    note = f"It was read from {member.filename!r} in the archive."
    return Located(shown, content, ending_of_table(content.name), [note], folder)


def _only_table(archive: zipfile.ZipFile, shown: Path) -> zipfile.ZipInfo:
    """Return the file that may be a table; raise FileError where there is none, or more than one."""
    files = [one for one in archive.infolist() if not one.is_dir()]
    if any(one.filename == "xl/workbook.xml" for one in files):
        raise FileError(f"{shown} is a workbook by its content: rename it to end in .xlsx.")
    tables = [one for one in files if _may_be_table(one.filename)]
    if len(tables) != 1:
        names = [one.filename for one in tables or files]
        what = (
            f"{len(names):,} tables ({listed(names)}): unpack it and name one" if tables else f"no table ({listed(names) or 'it is empty'})"
        )
        raise FileError(f"{shown} holds {what}.")
    if ending_of_table(tables[0].filename) == ".zip":
        raise FileError(f"{shown} holds another archive ({tables[0].filename!r}): unpack it first.")
    if tables[0].flag_bits & 1:
        raise FileError(f"{shown} is protected by a password: unpack it first.")
    return tables[0]


def _may_be_table(name: str) -> bool:
    plain = name.lower()
    parts = PurePosixPath(plain)
    if plain.startswith(NO_TABLES) or parts.name.startswith((*NO_TABLES, ".", "._")):
        return False
    return parts.suffix not in DOCUMENTS
