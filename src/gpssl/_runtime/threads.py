"""Threads: BLAS held to one, and work spread over as many as BLAS would use, with results that do not depend on their number."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _thread_pools() -> ThreadpoolController:
    """The BLAS libraries of this process; finding them takes longer than many a fit spends on anything else."""
    return ThreadpoolController()


class _OneBlasThread:
    """The limit belongs to the process, not to the thread that asks for it: it holds from the first one in to the last one out.

    A limiter of threadpoolctl gives back what it found when it was made, and lets one thread at a time set limits. Of two that overlap in
    two threads, the first to leave would lift the limit, and the second would put it back for good. So every limiter gives back one thread,
    but that of the last one out, which gives back what the first one in found. What a limiter gives back is not public: a test watches it.
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
        """What to restore of one pool. OpenMP's limit belongs to the thread, so there each limiter is right by itself."""
        if own["user_api"] == "openmp":
            return own
        return {**own, "num_threads": 1} if self._users else found

    def _limiters(self) -> list[Any]:
        """Those of this thread, the innermost last."""
        if not hasattr(self._own, "limiters"):
            self._own.limiters = []
        return self._own.limiters


_ONE_BLAS_THREAD = _OneBlasThread()


def one_blas_thread() -> _OneBlasThread:
    """For work on small matrices: a second thread brings nothing there, waits for a busy core, and changes the last digits."""
    return _ONE_BLAS_THREAD


def n_blas_threads() -> int:
    """How many threads BLAS would use now."""
    return max((pool["num_threads"] for pool in _thread_pools().info() if pool["user_api"] == "blas"), default=1)


def map_on_threads(function: Callable[[slice], Result], parts: Sequence[slice]) -> list[Result]:
    """`function` of each part, on as many threads as BLAS would use, with BLAS held to one thread in each.

    The result does not depend on the number of threads: each part is computed by one thread from start to end.
    """
    return list(map_in_order(function, parts, n_threads=min(n_blas_threads(), len(parts))))


def map_in_order(function: Callable[[Item], Result], items: Iterable[Item], *, n_threads: int) -> Iterator[Result]:
    """As `map_on_threads`, for items that come one after the other and need not fit in memory together.

    The results come in the order of the items. No more than one item beyond those that are being worked on is asked for.
    """
    with one_blas_thread():
        if n_threads <= 1:
            yield from map(function, items)
            return
        pending: deque[Future[Result]] = deque()
        waiting = iter(items)
        with ThreadPoolExecutor(n_threads) as executor:
            try:
                pending.extend(executor.submit(function, item) for item in islice(waiting, n_threads + 1))
                while pending:
                    yield pending.popleft().result()
                    pending.extend(executor.submit(function, item) for item in islice(waiting, 1))
            finally:
                for future in pending:
                    future.cancel()
