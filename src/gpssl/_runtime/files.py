"""Files that are whole or not there: written beside their place, moved there at the end, and removed however the program ends.

Their names tell the machine and the process that made them. What a process leaves behind that was killed, or lost its power, is removed by
the next one that writes into the same folder. A link stays one: the file that it leads to is replaced. This file needs the standard library
only.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from .signals import held_back

TEMPORARY = re.compile(r"(?:\..*-)?gpssl-([0-9a-f]{8})-([0-9]{1,10})-([0-9]{1,20})-[0-9a-f]{16}(?:\..*)?", re.DOTALL)
"""Names of files and folders that a process makes for itself: which machine, which process, and when that began."""
MOST_NAME_BYTES, MOST_ENDING_BYTES = 60, 40
"""How much of a name, and of its ending, the file beside it takes over: with all else it stays below the 255 bytes that systems allow."""
NO_ROOM = {
    errno.ENOSPC: "there is no room left on its disk; make room, or name a file on another one",
    errno.EDQUOT: "you may not store more on its disk; make room, or name a file on another one",
    errno.EFBIG: "it becomes larger than files may be there; name a file on another disk",
}
"""What writing ends in where the system does not say which file it is about."""
SPECIAL = "it is a device or a pipe, and no file"
LOCK_SECONDS = 2.0
"""The longest wait for another process that puts files into the same folder, which takes it a moment."""

_unfinished: dict[Path, int] = {}
"""Files and folders to be removed, and the process that made each: one that is forked off leaves them alone."""
_Waiting = tuple[Path, Path, Path]
"""A file that is whole, where it is to be, and what the person calls that place."""
_together: ContextVar[list[_Waiting] | None] = ContextVar("together", default=None)


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """Yield an empty file beside `path`, with the same ending; move it to `path` at the end, remove it when something fails.

    Errors of the system name `path`, the name that the person knows.
    """
    place = Path(os.path.realpath(path)) if path.is_symlink() else path
    remove_left_behind(place.parent)
    ending = "".join(path.suffixes[-2:])
    temporary = place.with_name(f".{_shortened(path.name, MOST_NAME_BYTES)}-{_mark()}{_shortened(ending, MOST_ENDING_BYTES, at_end=True)}")
    waiting = None if place in _unfinished else _together.get()  # what becomes another temporary file is needed at once
    is_waiting = False
    try:
        _unfinished[temporary] = os.getpid()
        if is_special(place):
            raise FileExistsError(errno.EEXIST, SPECIAL, os.fspath(path))
        with _named(path, temporary):
            open(temporary, "xb").close()
            yield temporary
            _reach_disk(temporary)
            if waiting is None:
                os.replace(temporary, place)
            else:
                waiting.append((temporary, place, path))
                is_waiting = True
    finally:
        if not is_waiting:
            forget(temporary)


@contextmanager
def put_together() -> Iterator[None]:
    """Put all files that are written within this block into their places at its end, one right after the other; when it fails, none.

    New ones never lie beside old ones, also where the process is killed in between, or where two processes write the same files.
    """
    waiting: list[_Waiting] = []
    token = _together.set(waiting)
    try:
        try:
            yield
        finally:
            _together.reset(token)
        if waiting:
            with held_back(), _alone_in(waiting[0][1].parent):
                _put(waiting)
    finally:
        for temporary, *_ in waiting:
            forget(temporary)


def _put(waiting: Sequence[_Waiting]) -> None:
    for temporary, place, path in waiting[1:]:
        with _named(path, temporary):
            place.unlink(missing_ok=True)
    for temporary, place, path in waiting:
        with _named(path, temporary):
            os.replace(temporary, place)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Let other processes wait that put several files into this folder, where the system can do that."""
    try:
        import fcntl

        handle = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):
        yield
        return
    try:
        end = time.monotonic() + LOCK_SECONDS
        while time.monotonic() < end:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.001)
            except OSError:  # this kind of disk has no locks
                break
        yield
    finally:
        os.close(handle)


def is_special(path: Path) -> bool:
    """Return whether a path leads to a device, a pipe or the like, which a file cannot take the place of."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


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
    where = _temporary_place()
    remove_left_behind(where)
    folder = where / _mark()
    _unfinished[folder] = os.getpid()
    os.mkdir(folder, 0o700)
    return folder


def _temporary_place() -> Path:
    """Return the folder for temporary files. Python finds it by writing a file there, which is left where the process is killed."""
    named = [tempfile.tempdir, *(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")), "/tmp"]
    usable = (Path(os.path.abspath(name)) for name in named if name and os.path.isdir(name) and os.access(name, os.W_OK | os.X_OK))
    return next(usable, None) or Path(tempfile.gettempdir())


def forget(path: Path) -> None:
    """Remove a file or a folder of this module, if it is there and no other process has made it that is still at work."""
    if _unfinished.get(path, os.getpid()) != os.getpid():
        return
    _remove(path)
    _unfinished.pop(path, None)


def forget_all() -> None:
    """Remove what this process has not finished, when it ends."""
    for path in list(_unfinished):
        forget(path)


def _remove(path: Path) -> None:
    with suppress(OSError):  # where a folder has become read-only, the reason is told already
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def remove_left_behind(folder: Path | None = None) -> None:
    """Remove files and folders of processes of this machine that are no more: they were killed, or lost their power.

    Without a folder, it is the one for temporary files.
    """
    if os.name != "posix":  # elsewhere, to ask for a process may end it
        return
    with suppress(OSError), os.scandir(_temporary_place() if folder is None else folder) as entries:
        for entry in entries:
            found = TEMPORARY.fullmatch(entry.name) if "gpssl-" in entry.name else None
            if found and found[1] == _machine() and _is_own(entry) and not _is_running(int(found[2]), int(found[3])):
                _remove(Path(entry.path))


def _is_own(entry: os.DirEntry[str]) -> bool:
    """Return whether this person made a file or a folder that is there; links are not followed."""
    try:
        state = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return state.st_uid == os.getuid() and (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode))


def _is_running(process: int, began: int) -> bool:
    """Return whether a process is running, and is not another one that was given the same number later."""
    now = _beginning_of(process)
    return now is not None and (now == began or 0 in (now, began))


def _beginning_of(process: int) -> int | None:
    """Return when a process began, in the system's counts since its start; 0 where it does not tell, None for one that has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
        return None if fields[0] in (b"Z", b"X") else int(fields[19])  # one that has ended may wait for its parent to see it
    except (OSError, LookupError, ValueError):
        pass
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return None
    except OSError:  # it belongs to somebody else
        return 0
    return 0


def _mark() -> str:
    """Return what tells files of this process from all others: the time of day is not in it, as clocks may be set back."""
    return f"gpssl-{_machine()}-{os.getpid()}-{_beginning_of(os.getpid()) or 0}-{os.urandom(8).hex()}"


@cache
def _machine() -> str:
    """Return a code of this machine, and of the container on it: folders may be shared, and numbers of processes are not."""
    known = [os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")]
    with suppress(OSError):  # many machines are called localhost
        known.append(Path("/etc/machine-id").read_text(encoding="utf-8", errors="replace"))
    with suppress(OSError):
        known.append(os.readlink("/proc/self/ns/pid"))
    return f"{zlib.crc32(' '.join(known).encode('utf-8', 'surrogateescape')):08x}"


def _shortened(text: str, most: int, *, at_end: bool = False) -> str:
    """Return the beginning of a name, or its end, that has at most so many bytes.

    >>> _shortened("größer.csv", 3), _shortened(".csv.gz", 3, at_end=True)
    ('gr', '.gz')
    """
    content = os.fsencode(text)
    part = content[len(content) - min(most, len(content)) :] if at_end else content[:most]
    return part.decode("utf-8", "ignore")
