"""Write files as a whole or not at all: beside their place, and moved there at the end."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """Yield an empty file beside `path`, with the same ending; move it to `path` at the end, remove it when something fails."""
    temporary = path.with_name(f".{path.name[:40]}-{secrets.token_hex(4)}{''.join(path.suffixes[-2:])[-30:]}")
    try:
        open(temporary, "xb").close()
        yield temporary
        put_in_place(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def put_in_place(temporary: Path, path: Path) -> None:
    """Move a file over another one, after its bytes have reached the disk: a loss of power leaves one of the two, whole."""
    with open(temporary, "rb+") as file:
        os.fsync(file.fileno())
    os.replace(temporary, path)
