"""Run the command many times, with faults: one process imports it once, and forks one child for each run.

It reads a request from each line of standard input, and answers with one line: `Server` is the other end. A run ends as processes end, with
its threads joined and what `atexit` knows of done; only the interpreter is not taken apart, which takes longer than a run.
"""

from __future__ import annotations

import atexit
import builtins
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, Any, NoReturn

LONGEST_SECONDS = 60.0
"""A run that takes longer hangs: those of tests take a second."""
STEPS = {"open", "replace", "rename", "unlink", "remove", "rmdir", "mkdir", "fsync", "link"}
"""Functions of the system that change folders and files; what matters happens around them."""
NO_MOUNT = "this process may not mount a disk"


@dataclass(frozen=True)
class Ended:
    """How a run has ended."""

    code: int
    """The exit code; less than zero for the signal that ended it."""
    stdout: str
    stderr: str
    n_moments: int
    """How many moments it had; like the next, known of runs that are to be counted."""
    steps: tuple[int, ...]
    """Those of its moments that are just before or after a step that changes files."""
    cpu_seconds: float

    @property
    def hung(self) -> bool:
        """Whether it had to be killed."""
        return self.code == -signal.SIGALRM


class Server:
    """A process that runs commands."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
        )

    def run(self, *arguments: object, folder: Path, **fault: Any) -> Ended:
        """Run a command in a folder. What may go wrong is in `FAULTS`."""
        return self.together([(arguments, fault)], folder)[0]

    def together(self, runs: Sequence[tuple[Sequence[object], Mapping[str, Any]]], folder: Path) -> list[Ended]:
        """Run several commands at once."""
        assert self._process.stdin
        assert self._process.stdout
        request = [
            {"arguments": [os.fspath(one) if isinstance(one, Path) else str(one) for one in words], **fault} for words, fault in runs
        ]
        self._process.stdin.write(json.dumps({"folder": str(folder), "runs": request}) + "\n")
        self._process.stdin.flush()
        return [Ended(**{**one, "steps": tuple(one["steps"])}) for one in json.loads(self._process.stdout.readline())]

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@contextmanager
def serving(environment: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Yield a server, which ends with the block."""
    server = Server(environment)
    try:
        yield server
    finally:
        server.close()


# What follows runs in the server and in its children.


def at_moments(act: Callable[[int, str | None], None]) -> None:
    """Call a function at each moment: a call or a return of a function of gpssl, or a step that changes files, before and after it."""
    import gpssl

    home = str(Path(gpssl.__file__).parent)
    own: dict[Any, bool] = {}
    steps = {getattr(module, name) for module in (os, builtins) for name in STEPS if hasattr(module, name)}
    n_moments = 0

    def look(frame: FrameType, event: str, function: Any) -> None:
        nonlocal n_moments
        if event in ("c_call", "c_return", "c_exception"):
            if function in steps:
                n_moments += 1
                act(n_moments, function.__name__)
            return
        code = frame.f_code
        if own[code] if code in own else own.setdefault(code, code.co_filename.startswith(home)):
            n_moments += 1
            act(n_moments, None)

    sys.setprofile(look)


class Counted:
    """Counts the moments of a run."""

    def __init__(self) -> None:
        self.n_moments, self.steps = 0, list[int]()
        at_moments(self._count)

    def _count(self, moment: int, step: str | None) -> None:
        self.n_moments = moment
        if step is not None:
            self.steps.append(moment)


def send(number: int, at: Sequence[int]) -> None:
    """Send this process a signal at these moments."""
    due = set(at)

    def act(moment: int, _step: str | None) -> None:
        if moment in due:
            os.kill(os.getpid(), number)

    at_moments(act)


def lack_memory(at: int) -> None:
    """Have no memory at a moment, within the package: elsewhere it is the libraries' to tell."""

    def act(moment: int, step: str | None) -> None:
        if moment >= at and step is None:
            sys.setprofile(None)
            raise MemoryError

    at_moments(act)


def change(path: str, how: str, at: int) -> None:
    """Change a file at a moment: append to it, cut it, write over it, or put another file in its place."""
    place = Path(path)

    def act(moment: int, _step: str | None) -> None:
        if moment == at:
            sys.setprofile(None)
            content = place.read_bytes()
            if how == "append":
                with place.open("ab") as file:
                    file.write(content[len(content) // 2 :])
            elif how == "cut":
                os.truncate(place, len(content) // 2)
            elif how == "empty":
                os.truncate(place, 0)
            elif how == "overwrite":
                other = Path(f"{path}.other").read_bytes()
                with place.open("rb+") as file:
                    file.write(other)
                    file.truncate()
            elif how == "replace":
                os.replace(f"{path}.other", place)
            else:
                place.unlink()

    at_moments(act)


def limit(name: str, amount: int) -> None:
    """Limit what this process may take."""
    import resource

    if name == "RLIMIT_FSIZE":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as Python does, for the error in its place
    resource.setrlimit(getattr(resource, name), (amount, amount))


def become(user: int) -> None:
    """Be somebody who has no rights beyond those of files."""
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


def small_disk(path: str, amount: int) -> None:
    """Put a disk of so many bytes in the place of an empty folder, for this process alone; say at the end what is left there."""
    libc = ctypes.CDLL(None, use_errno=True)
    clone_newns, private, everywhere = 0x00020000, 1 << 18, 1 << 14
    if (
        libc.unshare(clone_newns) != 0
        or libc.mount(None, b"/", None, private | everywhere, None) != 0
        or libc.mount(b"tmpfs", path.encode(), b"tmpfs", 0, f"size={amount}".encode()) != 0
    ):
        os.write(2, NO_MOUNT.encode())
        os._exit(0)
    atexit.register(lambda: os.write(2, f"\nLEFT {sorted(os.listdir(path))}\n".encode()))


def jump(seconds: float, every: int) -> None:
    """Let the clock jump back and forth by so many seconds at every so many calls."""
    import datetime
    import time

    real, n_calls = time.time, 0

    def now() -> float:
        nonlocal n_calls
        n_calls += 1
        return real() + (seconds if n_calls // every % 2 else -seconds)

    class Jumping(datetime.datetime):
        """The time of day, by that clock."""

        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return cls.fromtimestamp(now(), tz)

    time.time = now
    for module in [module for name, module in sys.modules.items() if name.startswith("gpssl")]:
        if getattr(module, "datetime", None) is datetime.datetime:
            module.datetime = Jumping  # type: ignore[attr-defined]


FAULTS: dict[str, Callable[..., None]] = {
    "send": send,
    "change": change,
    "limit": limit,
    "small_disk": small_disk,
    "become": become,
    "jump": jump,
}


def run(request: Mapping[str, Any], folder: str, streams: Sequence[IO[bytes]], report: int) -> NoReturn:
    """Run a command in this process, which is a child of the server."""
    from gpssl import cli

    os.chdir(folder)
    os.environ["TMPDIR"] = f"{folder}/tmp"
    tempfile.tempdir = None
    given = os.open(request.get("stdin", os.devnull), os.O_RDONLY)
    for place, stream in enumerate((given, streams[0].fileno(), streams[1].fileno())):
        os.dup2(stream, place)
    sys.argv = ["gpssl", *request["arguments"]]
    counted = Counted() if request.get("count") else None
    for name, fault in FAULTS.items():
        if name in request:
            fault(**request[name])
    code = 0
    try:
        getattr(cli, "main", cli.app)()
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else 0 if ending.code is None else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        if counted is not None:
            sys.setprofile(None)
            os.write(report, json.dumps([counted.n_moments, counted.steps]).encode())
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def answer(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return how the runs of a request have ended."""
    with ExitStack() as stack:
        files = [[stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)] for _ in request["runs"]]
        children = []
        for one, opened in zip(request["runs"], files, strict=True):
            child = os.fork()
            if child == 0:
                run(one, request["folder"], opened[:2], opened[2].fileno())
            children.append(child)
        return [end_of(*each) for each in zip(request["runs"], children, files, strict=True)]


def end_of(request: Mapping[str, Any], child: int, files: Sequence[IO[bytes]]) -> dict[str, Any]:
    """Wait until a child ends, and send it a signal after some time where that is asked for; kill it where it hangs."""
    handle = os.pidfd_open(child)
    try:
        if "after" in request and not select.select([handle], [], [], request["after"]["seconds"])[0]:
            os.kill(child, request["after"]["number"])
        hangs = not select.select([handle], [], [], LONGEST_SECONDS)[0]
        if hangs:
            os.kill(child, signal.SIGKILL)
    finally:
        os.close(handle)
    _, status, usage = os.wait4(child, 0)
    for file in files:
        file.seek(0)
    out, error, report = (file.read() for file in files)
    n_moments, steps = json.loads(report or b"[0, []]")
    return {
        "code": -signal.SIGALRM if hangs else os.waitstatus_to_exitcode(status),
        "stdout": out.decode("utf-8", "replace"),
        "stderr": error.decode("utf-8", "replace"),
        "n_moments": n_moments,
        "steps": steps,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
    }


def serve() -> None:
    """Answer requests until there are no more."""
    import gpssl.cli
    import gpssl.comparison
    import gpssl.data._databases
    import gpssl.data._workbooks
    import gpssl.datasets
    import gpssl.report._annotating
    import gpssl.report._making
    import gpssl.workflows._cluster
    import gpssl.workflows._embed
    import gpssl.workflows._label
    import gpssl.workflows._next  # noqa: F401  (children have what is imported here)

    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    serve()
