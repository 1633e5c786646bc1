"""Report how far a long task is: a line on standard error, and callbacks that watch a fit by scikit-learn's protocol.

scikit-learn has callbacks from version 1.9 on. With older versions they hear nothing; no other module knows which of the two it is.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:
    CallbackSupportMixin, with_callbacks = object, None

Item = TypeVar("Item")

SECONDS_BETWEEN = 0.1
"""Time between two reports of the same task."""


class Progress:
    """A line on standard error that counts rows or steps, at most ten times a second; `total` is None where it is not known.

    On a terminal the line is rewritten in place; elsewhere (a log file, a notebook's log) a new line is printed
    every two seconds or more, so that a log stays readable. Silent when `enabled` is false. `listener` is told of every advance.

    Within `shown_by` nothing is printed, and a display of the caller's, such as a bar, is told instead.
    """

    def __init__(
        self, task: str, total: int | None, *, enabled: bool = False, unit: str = "rows", listener: Callable[[int], None] | None = None
    ) -> None:
        self.task, self.total, self.unit = task, total, unit
        self.enabled = enabled
        self.stream = sys.stderr
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

    def each(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items, count each as done when the caller asks for the next one, and finish after the last."""
        for item in items:
            yield item
            self.advance(1)
        self.finish()

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


# Callbacks. A fit is a tree of tasks; they are told when each begins and ends.


class CallbackSupport(CallbackSupportMixin):
    """An estimator with `set_callbacks`, where scikit-learn has callbacks."""


@dataclass(frozen=True)
class Task:
    """A part of a fit. Without a context it is not reported."""

    context: Any = None
    """scikit-learn's context, which knows the callbacks and the tasks around this one."""
    estimator: Any = None
    data: Mapping[str, Any] = field(default_factory=dict)
    """X, y and metadata, for callbacks that ask for them."""

    @contextmanager
    def subtask(self, name: str, max_subtasks: int | None = 0) -> Iterator[Task]:
        """Run the block as a task within this one, with at most `max_subtasks` of its own; None where their number is not known."""
        task = self.begin(name, max_subtasks)
        yield task
        task.end()

    @contextmanager
    def steps(self, name: str, step: str, total: int | None = None, *, at_most: int | None = None) -> Iterator[Steps]:
        """Run the block as a task of consecutive steps: `total` of them, or `at_most` longer ones if `total` is more."""
        n_steps = total if total is None or at_most is None else min(total, at_most)
        with self.subtask(name, n_steps) as task:
            steps = Steps(task, step, total, n_steps)
            yield steps
            steps.close()

    @contextmanager
    def fit_of(self, estimator: Any, name: str) -> Iterator[None]:
        """Run the fit of another estimator as a task within this one. Callbacks that are meant for both are told of its tasks too."""
        with ExitStack() as stack:
            task = Task() if self.context is None else Task(self.context.subcontext(task_name=name), self.estimator, self.data)
            if task.context and isinstance(estimator, CallbackSupportMixin):  # FrozenEstimator only passes its attributes on
                stack.enter_context(task.context.propagate_callback_context(estimator))
            task.tell_begin()
            yield
            task.end()

    def begin(self, name: str, max_subtasks: int | None = 0) -> Task:
        """Begin a task within this one, which the caller ends."""
        if self.context is None:
            return self
        task = Task(self.context.subcontext(task_name=name, max_subtasks=max_subtasks), self.estimator, self.data)
        task.tell_begin()
        return task

    def tell_begin(self) -> None:
        """Tell the callbacks that it has begun."""
        if self.context is not None:
            self.context.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def end(self, **fitted: Any) -> bool:
        """Tell the callbacks that it has ended. Return whether one of them asks to stop the consecutive tasks of which this is one."""
        return self.context is not None and bool(self.context.call_on_fit_task_end(estimator=self.estimator, **self.data, **fitted))


class Steps:
    """Consecutive subtasks, each of which begins where the one before ends."""

    def __init__(self, task: Task, name: str, total: int | None, n_steps: int | None) -> None:
        self.task, self.name = task, name
        self.total, self.n_steps = total, n_steps
        self.stopped = False
        """Whether a callback has asked to stop here."""
        self._count = self._n_ended = 0
        self._open: Task | None = task.begin(name)

    @property
    def listener(self) -> Callable[[int], None] | None:
        """`advance`, or None where there are no callbacks to tell."""
        return None if self.task.context is None else self.advance

    def advance(self, count: int = 1) -> None:
        """Count so many more of `total` as done. Where the total is not known, count one step, unless nothing was done."""
        self._count += count
        due = self._n_ended + (count > 0)
        if self.total is not None and self.n_steps is not None:
            due = min(self._count * self.n_steps // self.total, self.n_steps)
        while self._n_ended < due:
            self._end()
            if self._n_ended != self.n_steps:
                self._open = self.task.begin(self.name)

    def close(self) -> None:
        """End the step that was begun last, in which nothing more is to be done."""
        if self._open is not None:
            self._end()

    def _end(self) -> None:
        if self._open is not None:
            self.stopped |= self._open.end()
        self._open = None
        self._n_ended += 1


SILENT = Task()
"""A task that is not reported."""


@contextmanager
def fitting(estimator: CallbackSupport, n_tasks: int, X: Any, y: Any = None, sample_weight: Any = None) -> Iterator[Task]:
    """Run the fit of an estimator as a task of at most `n_tasks` others; at its end, callbacks can ask for the fitted estimator."""
    if with_callbacks is None or not hasattr(estimator, "_skl_callbacks"):  # none was set
        yield SILENT
        return
    try:
        context = estimator._init_callback_context(max_subtasks=n_tasks)
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        task = Task(context, estimator, {"X": X, "y": y, "metadata": metadata})
        task.tell_begin()
        yield task
        task.end(reconstruction_attributes={})  # none are missing: the estimator is fitted
    finally:
        # Decorating nothing only cleans up. A decorated `fit` would make warnings point to a line of scikit-learn.
        with_callbacks(lambda _: None)(estimator)
