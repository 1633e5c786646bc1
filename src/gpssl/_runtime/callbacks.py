"""Callbacks that watch a fit, by scikit-learn's protocol, which it has from version 1.9 on. With older versions nothing is reported.

Nothing else in the library knows which of the two it is. A fit is a tree of tasks; callbacks are told when each begins and ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:
    CallbackSupportMixin, with_callbacks = object, None


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
        with_callbacks(_nothing)(estimator)


def _nothing(estimator: Any) -> None:
    """Do nothing, so that `with_callbacks` only cleans up. A decorated `fit` would make warnings point to a line of scikit-learn."""
