"""Files that are whole or not there: written beside their place, moved there at the end, and removed however the program ends.

Their names tell the machine and the process that made them. What a process leaves behind that was killed, or lost its power, is removed by
the next one that writes into the same folder. This file needs the standard library only.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from .signals import held_back

TEMPORARY = re.compile(r"(?:\..*-)?gpssl-([0-9a-f]{8})-([0-9]{1,10})-[0-9a-f]{16}(?:\..*)?", re.DOTALL)
"""Names of files and folders that a process makes for itself: which machine, and which process."""
MOST_NAME_BYTES, MOST_ENDING_BYTES = 60, 40
"""How much of a name, and of its ending, the file beside it takes over: with all else it stays below the 255 bytes that systems allow."""
NO_ROOM = {
    errno.ENOSPC: "there is no room left on its disk; make room, or name a file on another one",
    errno.EDQUOT: "you may not store more on its disk; make room, or name a file on another one",
    errno.EFBIG: "it becomes larger than files may be there; name a file on another disk",
}
"""What writing ends in where the system does not say which file it is about."""

_unfinished: dict[Path, int] = {}
"""Files and folders to be removed, and the process that made each: one that is forked off leaves them alone."""
_together: ContextVar[list[tuple[Path, Path]] | None] = ContextVar("together", default=None)


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """Yield an empty file beside `path`, with the same ending; move it to `path` at the end, remove it when something fails.

    Errors of the system name `path`, the name that the person knows.
    """
    remove_left_behind(path.parent)
    ending = "".join(path.suffixes[-2:])
    temporary = path.with_name(f".{_shortened(path.name, MOST_NAME_BYTES)}-{_mark()}{_shortened(ending, MOST_ENDING_BYTES, at_end=True)}")
    waiting = None if path in _unfinished else _together.get()  # what becomes another temporary file is needed at once
    is_waiting = False
    try:
        _unfinished[temporary] = os.getpid()
        with _named(path, temporary):
            open(temporary, "xb").close()
            yield temporary
            _reach_disk(temporary)
            if waiting is None:
                os.replace(temporary, path)
            else:
                waiting.append((temporary, path))
                is_waiting = True
    finally:
        if not is_waiting:
            forget(temporary)


@contextmanager
def put_together() -> Iterator[None]:
    """Put all files that are written within this block into their places at its end, one right after the other; when it fails, none."""
    waiting: list[tuple[Path, Path]] = []
    token = _together.set(waiting)
    try:
        try:
            yield
        finally:
            _together.reset(token)
        with held_back():
            for temporary, path in waiting:
                with _named(path, temporary):
                    os.replace(temporary, path)
    finally:
        for temporary, _ in waiting:
            forget(temporary)


def _reach_disk(temporary: Path) -> None:
    """Wait until the bytes of a file have reached the disk: a loss of power then leaves the old file or the new one, whole."""
    with open(temporary, "rb+") as file:
        os.fsync(file.fileno())


@contextmanager
def _named(path: Path, temporary: Path) -> Iterator[None]:
    """Let errors of writing the temporary file name the file that it becomes."""
    try:
        yield
    except OSError as error:
        if error.errno is None or (error.filename is None and error.errno not in NO_ROOM):
            raise
        if error.filename is not None and os.fspath(error.filename) not in (os.fspath(temporary), os.fspath(path)):
            raise
        raise OSError(error.errno, NO_ROOM.get(error.errno) or os.strerror(error.errno), os.fspath(path)) from error


def temporary_folder() -> Path:
    """Return a new folder for files that only this process reads; `forget` removes it, and so does the end of the program."""
    where = Path(tempfile.gettempdir())
    remove_left_behind(where)
    folder = where / _mark()
    _unfinished[folder] = os.getpid()
    os.mkdir(folder, 0o700)
    return folder


def forget(path: Path) -> None:
    """Remove a file or a folder of this module, if it is there."""
    with suppress(OSError):  # where a folder has become read-only, the reason is told already
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    _unfinished.pop(path, None)


def forget_all() -> None:
    """Remove what this process has not finished, when it is stopped."""
    for path, process in list(_unfinished.items()):
        if process == os.getpid():
            forget(path)


def remove_left_behind(folder: Path) -> None:
    """Remove files and folders of processes of this machine that are no more: they were killed, or lost their power."""
    if os.name != "posix":  # elsewhere, to ask for a process may end it
        return
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = TEMPORARY.fullmatch(entry.name) if "gpssl-" in entry.name else None
            if found and found[1] == _machine() and _is_own(entry) and not _is_running(int(found[2])):
                forget(Path(entry.path))


def _is_own(entry: os.DirEntry[str]) -> bool:
    """Return whether this person made a file or a folder; links are not followed."""
    state = entry.stat(follow_symlinks=False)
    return state.st_uid == os.getuid() and (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode))


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:  # it belongs to somebody else
        return True
    return True


def _mark() -> str:
    """Return what tells files of this process from all others: the time is not in it, as clocks may be set back."""
    return f"gpssl-{_machine()}-{os.getpid()}-{os.urandom(8).hex()}"


@cache
def _machine() -> str:
    """Return a code of this machine, and of the container on it: folders may be shared, and numbers of processes are not."""
    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    try:
        container = os.readlink("/proc/self/ns/pid")
    except OSError:
        container = ""
    return f"{zlib.crc32(f'{name} {container}'.encode()):08x}"


def _shortened(text: str, most: int, *, at_end: bool = False) -> str:
    """Return the beginning of a name, or its end, that has at most so many bytes.

    >>> _shortened("größer.csv", 4), _shortened(".csv.gz", 3, at_end=True)
    ('gr', '.gz')
    """
    content = os.fsencode(text)
    part = content[len(content) - min(most, len(content)) :] if at_end else content[:most]
    return part.decode("utf-8", "ignore")
