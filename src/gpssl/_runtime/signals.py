"""End in an orderly way when a signal asks the process to stop.

The process ends within the signal's handler. An exception raised there would come up anywhere in any library, and some of these places lose
it, or print it and go on.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

STOPPING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What a person, a scheduler and a terminal that is closed send."""

End = Callable[[int], NoReturn]
"""Ends the process, and is told the number of the signal."""


class _Held(threading.local):
    """Signals that have come while steps are under way that belong together: in the main thread, which alone takes signals."""

    n_blocks = 0
    number: int | None = None


_held = _Held()
_end: End | None = None


def end_when_stopped(end: End) -> None:
    """Call `end` when a signal asks this process to stop. Signals that somebody has chosen to ignore or to handle are left to them."""
    global _end
    _end = end
    for number in STOPPING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _stop)


def ignore_stopping() -> None:
    """Ignore further signals that `end_when_stopped` takes: the process is about to end."""
    for number in STOPPING:
        if signal.getsignal(number) is _stop:
            signal.signal(number, _ignore)


@contextmanager
def held_back() -> Iterator[None]:
    """Hold signals back until the end of this block, which is short: all of its steps are taken, or none."""
    _held.n_blocks += 1
    try:
        yield
    finally:
        _held.n_blocks -= 1
        if _held.number is not None:
            _stop(_held.number, None)


def _stop(number: int, _frame: FrameType | None) -> None:
    if _held.n_blocks:
        _held.number = number
    elif _end is not None:
        _end(number)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    pass
