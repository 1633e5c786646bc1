"""Limit BLAS to one thread, and spread work over as many threads as BLAS would use. Results do not depend on their number."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import Any, Generic, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _thread_pools() -> ThreadpoolController:
    """Return the BLAS libraries of this process. Finding them takes longer than a small fit, so that the result is kept."""
    return ThreadpoolController()


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

    def __enter__(self) -> None:
        with self._lock:
            limiter = _thread_pools().limit(limits=1)
            if self._users == 0:
                self._found = limiter._original_info
            self._users += 1
            self._limiters().append(limiter.__enter__())

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._users -= 1
            limiter = self._limiters().pop()
            limiter._original_info = [self._give_back(*pools) for pools in zip(self._found, limiter._original_info, strict=True)]
            limiter.__exit__(*exception)

    def _give_back(self, found: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
        """Return what to restore for one pool. OpenMP's limit belongs to the thread, so that each limiter restores its own."""
        if own["user_api"] == "openmp":
            return own
        return {**own, "num_threads": 1} if self._users else found

    def _limiters(self) -> list[Any]:
        """Return the limiters of this thread, the innermost last."""
        if not hasattr(self._own, "limiters"):
            self._own.limiters = []
        return self._own.limiters


_ONE_BLAS_THREAD = _OneBlasThread()


def one_blas_thread() -> _OneBlasThread:
    """Return a context with one BLAS thread, for small matrices: there a second thread gains nothing and changes the last digits."""
    return _ONE_BLAS_THREAD


def n_blas_threads() -> int:
    """Return the number of threads that BLAS would use now."""
    return max((pool["num_threads"] for pool in _thread_pools().info() if pool["user_api"] == "blas"), default=1)


class InOrder(Generic[Item, Result]):
    """Apply a function to items on threads while the caller goes on, and use the results in the order of the items.

    Within `with`, `add` starts the work on an item, and uses results where more than `max_waiting` items are under way. What is still
    under way is used at the end, or dropped where the block fails.
    """

    def __init__(self, function: Callable[[Item], Result], use: Callable[[Result], Any], *, n_threads: int, max_waiting: int) -> None:
        self._function, self._use = function, use
        self._executor = ThreadPoolExecutor(n_threads)
        self._max_waiting = max_waiting
        self._pending: deque[Future[Result]] = deque()

    def add(self, item: Item) -> None:
        """Start the work on an item."""
        self._pending.append(self._executor.submit(self._function, item))
        while len(self._pending) > self._max_waiting:
            self._use(self._pending.popleft().result())

    def __enter__(self) -> InOrder[Item, Result]:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            while kind is None and self._pending:
                self._use(self._pending.popleft().result())
        finally:
            self._executor.shutdown(cancel_futures=True)


def map_on_threads(function: Callable[[Item], Result], blocks: Sequence[Item]) -> list[Result]:
    """Apply `function` to each block, on as many threads as BLAS would use, with BLAS limited to one thread in each.

    The result does not depend on the number of threads: each block is computed by one thread from start to end.
    """
    return list(map_in_order(function, blocks, n_threads=min(n_blas_threads(), len(blocks))))


def map_in_order(function: Callable[[Item], Result], items: Iterable[Item], *, n_threads: int) -> Iterator[Result]:
    """Apply `function` to items that come one after the other and need not fit in memory together, on threads.

    The results come in the order of the items. At most one item is read ahead of those that are being worked on.
    """
    with one_blas_thread():
        if n_threads <= 1:
            yield from map(function, items)
            return
        pending: deque[Future[Result]] = deque()
        waiting = iter(items)
        executor = ThreadPoolExecutor(n_threads)
        try:
            pending.extend(executor.submit(function, item) for item in islice(waiting, n_threads + 1))
            while pending:
                yield pending.popleft().result()
                pending.extend(executor.submit(function, item) for item in islice(waiting, 1))
        finally:
            executor.shutdown(cancel_futures=True)
