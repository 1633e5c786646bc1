"""Limit BLAS to one thread, and spread work over as many threads as BLAS would use. Results do not depend on their number."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, Generic, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _thread_pools() -> ThreadpoolController:
    """Return the BLAS libraries of this process. Finding them takes longer than a small fit, so that the result is kept."""
    return ThreadpoolController()


def _take_control() -> None:
    """Let this thread set limits. From threadpoolctl 3.8 on, those of a thread are ignored while another one has set some."""
    for library in _thread_pools().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


class _OneBlasThread:
    """Limits BLAS to one thread in the whole process, from the first thread that enters to the last one that leaves.

    A limiter of threadpoolctl restores what it found when it was made. Of two that overlap in two threads, the first to leave would lift
    the limit, and the second would restore it for good. So every limiter restores one thread, but the last one restores what the first one
    found. What a limiter restores is a private attribute of threadpoolctl: a test fails if that changes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._found: list[dict[str, Any]] = []
        self._own = threading.local()
        if hasattr(os, "register_at_fork"):
            # Not while a thread changes the limit, of which the child would know one half; and the child has this thread only.
            os.register_at_fork(before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._forget_other_threads)

    def __enter__(self) -> None:
        if self._limiters():  # within itself, which costs nothing
            self._limiters().append(None)
            return
        with self._lock:
            _take_control()
            limiter = _thread_pools().limit(limits=1)
            if self._users == 0:
                self._found = limiter._original_info
            self._users += 1
            self._limiters().append(limiter.__enter__())

    def __exit__(self, *exception: object) -> None:
        limiter = self._limiters().pop()
        if limiter is None:
            return
        with self._lock:
            self._users -= 1
            limiter._original_info = [self._give_back(*pools) for pools in zip(self._found, limiter._original_info, strict=True)]
            limiter.__exit__(*exception)

    def pools(self) -> list[dict[str, Any]]:
        """Return the thread pools as they are without the limit."""
        with self._lock:
            return self._found if self._users else _thread_pools().info()

    def _give_back(self, found: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
        """Return what to restore for one pool. OpenMP's limit belongs to the thread, so that each limiter restores its own."""
        if own["user_api"] == "openmp":
            return own
        return {**own, "num_threads": 1} if self._users else found

    def _forget_other_threads(self) -> None:
        """Lift, in a child process, the limit that threads of its parent have set, which are not here to lift it."""
        others, self._users = self._users > bool(self._limiters()), int(bool(self._limiters()))
        if others and not self._users:
            limiter = _thread_pools().limit(limits=None)
            limiter._original_info = [self._give_back(*pools) for pools in zip(self._found, limiter._original_info, strict=True)]
            limiter.restore_original_limits()
        self._lock.release()

    def _limiters(self) -> list[Any]:
        """Return the limiter of this thread, then None for each time that the thread has entered again."""
        if not hasattr(self._own, "limiters"):
            self._own.limiters = []
        return self._own.limiters


_ONE_BLAS_THREAD = _OneBlasThread()


def one_blas_thread() -> _OneBlasThread:
    """Return a context with one BLAS thread: more would change the last digits, and gain nothing for small matrices.

    The threads of `map_on_threads` and `map_in_order` are not limited by it.
    """
    return _ONE_BLAS_THREAD


def n_blas_threads() -> int:
    """Return the number of threads that BLAS would use now."""
    return max((pool["num_threads"] for pool in _thread_pools().info() if pool["user_api"] == "blas"), default=1)


_own = threading.local()


def n_workers() -> int:
    """Return how many threads to spread work over: as many as BLAS would use without `one_blas_thread`, but one in such a thread itself."""
    if getattr(_own, "is_worker", False):
        return 1
    return max((pool["num_threads"] for pool in _ONE_BLAS_THREAD.pools() if pool["user_api"] == "blas"), default=1)


def _become_worker() -> None:
    _own.is_worker = True


class InOrder(Generic[Item, Result]):
    """Apply a function to items on threads while the caller goes on. What is still under way at the end of the block is dropped."""

    def __init__(self, function: Callable[[Item], Result], n_threads: int) -> None:
        self._function = function
        self._executor = ThreadPoolExecutor(n_threads, initializer=_become_worker)
        self._pending: deque[Future[Result]] = deque()

    def add(self, item: Item) -> None:
        """Start the work on an item."""
        self._pending.append(self._executor.submit(self._function, item))

    def results(self, *, max_waiting: int) -> Iterator[Result]:
        """Yield results in the order of the items, while more than `max_waiting` items are under way."""
        while len(self._pending) > max_waiting:
            yield self._pending.popleft().result()

    def __enter__(self) -> InOrder[Item, Result]:
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown(cancel_futures=True)


def map_on_threads(function: Callable[[Item], Result], blocks: Sequence[Item]) -> list[Result]:
    """Apply `function` to each block, on as many threads as BLAS would use, with BLAS limited to one thread in each.

    The result does not depend on the number of threads: each block is computed by one thread from start to end.
    """
    return list(map_in_order(function, blocks, n_threads=min(n_workers(), len(blocks))))


def map_in_order(function: Callable[[Item], Result], items: Iterable[Item], *, n_threads: int) -> Iterator[Result]:
    """Apply `function` to items that come one after the other and need not fit in memory together, on threads.

    The results come in the order of the items. At most one item is read ahead of those that are being worked on.
    """
    with one_blas_thread():
        if n_threads <= 1:
            yield from map(function, items)
            return
        with InOrder(function, n_threads) as work:
            for item in items:
                work.add(item)
                yield from work.results(max_waiting=n_threads)
            yield from work.results(max_waiting=0)
