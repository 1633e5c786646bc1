"""End in an orderly way when a signal asks the process to stop: files that are not finished are removed, and the rest is told."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What a person, a scheduler and a terminal that is closed send."""


class Stopped(BaseException):
    """A signal asks the process to stop. It is no Exception, so that nothing takes it for an error that can be mended."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        """What shells tell of a process that this signal has ended."""
        return 128 + self.number


class _Held:
    """Signals that have come while steps are under way that belong together."""

    n_blocks = 0
    number: int | None = None


_held = _Held()


def _stop(number: int, _frame: FrameType | None) -> None:
    if _held.n_blocks:
        _held.number = number
        return
    raise Stopped(number)


@contextmanager
def stopping_in_order() -> Iterator[None]:
    """Raise `Stopped` where a signal comes within this block. Signals that somebody has chosen to ignore or to handle are left to them."""
    if threading.current_thread() is not threading.main_thread():  # Python takes signals in its main thread alone
        yield
        return
    found = {number: signal.getsignal(number) for number in STOPPING}
    taken = [number for number, handler in found.items() if handler in (signal.SIG_DFL, signal.default_int_handler)]
    try:
        for number in taken:
            signal.signal(number, _stop)
        yield
    finally:
        for number in taken:
            signal.signal(number, found[number])


@contextmanager
def held_back() -> Iterator[None]:
    """Hold signals back until the end of this block, which is short: all of its steps are taken, or none."""
    _held.n_blocks += 1
    try:
        yield
    finally:
        _held.n_blocks -= 1
    number = _held.number
    if number is not None and not _held.n_blocks:
        _held.number = None
        raise Stopped(number)


def ignore_stopping() -> None:
    """Ignore further signals that `stopping_in_order` takes, until the end of its block: the process is about to end."""
    for number in STOPPING:
        if signal.getsignal(number) is _stop:
            signal.signal(number, signal.SIG_IGN)
