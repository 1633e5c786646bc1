"""Report the progress of long passes: how much is done, how fast, and how much time is left."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

SECONDS_BETWEEN = 0.1
"""Time between two reports of the same task."""


class Progress:
    """A line on standard error that counts rows or steps, at most ten times a second; `total` is None where it is not known.

    On a terminal the line is rewritten in place; elsewhere (a log file, a notebook's log) a new line is printed
    every two seconds or more, so that a log stays readable. Silent when `enabled` is false. `listener` is told of every advance.

    Within `shown_by` nothing is printed, and a display of the caller's, such as a bar, is told instead.
    """

    def __init__(
        self,
        task: str,
        total: int | None,
        *,
        enabled: bool = False,
        unit: str = "rows",
        stream: TextIO | None = None,
        listener: Callable[[int], None] | None = None,
    ) -> None:
        self.task = task
        self.total = total
        self.enabled = enabled
        self.unit = unit
        self.stream = stream if stream is not None else sys.stderr
        self.listener = listener
        self.done = self._skipped = 0
        self.finished = False
        self._display = _display.get()
        self._started = self._shown = time.perf_counter()
        self._lock = threading.Lock()

    @property
    def is_watched(self) -> bool:
        """Whether progress is shown or listened to."""
        return self._is_shown or self.listener is not None

    @property
    def _is_shown(self) -> bool:
        return self.enabled or self._display is not None

    def advance(self, count: int) -> None:
        """Count so many more as done. Several threads may call this."""
        if not self.is_watched:
            return
        with self._lock:
            if self.listener:
                self.listener(count)
            self.done += count
            now = time.perf_counter()
            if not self._is_shown or now - self._shown < self._interval(now):
                return
            self._shown = now
            if self._display:
                self._display(self)
            else:
                self._write(now, end="\r" if self.stream.isatty() else "\n")

    def _interval(self, now: float) -> float:
        """Return the time between two lines: in a log, a twentieth of the time since the start, so that a long run's log stays short."""
        at_once = self._display or self.stream.isatty()
        return SECONDS_BETWEEN if at_once else max(2.0, 0.05 * (now - self._started))

    def skip(self, count: int) -> None:
        """Count so many as done before, which do not count for the speed."""
        if self.listener:
            self.listener(count)
        self.done += count
        self._skipped += count

    def finish(self) -> None:
        """Print the final count."""
        self.finished = True
        if self._display:
            self._display(self)
        elif self.enabled:
            self._write(time.perf_counter(), end="\n")

    def _write(self, now: float, *, end: str) -> None:
        seconds = max(now - self._started, 1e-9)
        rate = (self.done - self._skipped) / seconds
        text = f"{self.task}: {self.done:,} {self.unit}, {_number(rate)} {self.unit}/s"
        if self.total is not None:
            left = (self.total - self.done) / rate if rate > 0 else float("inf")
            text = f"{self.task}: {self.done:,} of {self.total:,} {self.unit}, {_number(rate)} {self.unit}/s, {_duration(left)} left"
        print(f"{text:<79}", end=end, file=self.stream, flush=True)


def _number(rate: float) -> str:
    """Format a rate, without decimals where it is large."""
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def _duration(seconds: float) -> str:
    """Format a duration in seconds, or in minutes from three on."""
    return f"{seconds:.0f} s" if seconds < 180 else f"{seconds / 60:.0f} min"


Display = Callable[[Progress], None]
"""Shows how far a task is. It is called with the same object repeatedly, and once more when the task is finished."""

_display: ContextVar[Display | None] = ContextVar("display", default=None)


@contextmanager
def shown_by(display: Display) -> Iterator[None]:
    """Let `display` show all progress within this block, whether or not it is verbose."""
    token = _display.set(display)
    try:
        yield
    finally:
        _display.reset(token)


def announce(message: str, *, enabled: bool) -> None:
    """Print one line about a finished step."""
    if enabled and _display.get() is None:
        print(message, file=sys.stderr, flush=True)


def percent(share: float, digits: int = 1) -> str:
    """Format a share as a percentage, with a space before the sign.

    >>> percent(0.056), percent(0.95, 0)
    ('5.6 %', '95 %')
    """
    return f"{100 * share:.{digits}f} %"
