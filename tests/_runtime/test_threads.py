from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator

import pytest
from threadpoolctl import ThreadpoolController, threadpool_limits

from gpssl._runtime.threads import InOrder, map_in_order, map_on_threads, n_blas_threads, n_workers, one_blas_thread


def test_map_on_threads_keeps_order_and_passes_errors_on() -> None:
    parts = [slice(i, i + 1) for i in range(20)]
    assert map_on_threads(lambda part: part.start, parts) == list(range(20))
    with pytest.raises(ZeroDivisionError):
        map_on_threads(lambda part: 1 / (part.start - 7), parts)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_few_items_are_asked_for_at_a_time(n_threads: int) -> None:
    """Those that are worked on, and one more: a file is never read ahead of the work."""
    asked = 0

    def items() -> Iterator[int]:
        nonlocal asked
        for i in range(50):
            asked += 1
            yield i

    for done, result in enumerate(map_in_order(lambda i: i, items(), n_threads=n_threads)):
        assert result == done
        assert asked <= done + n_threads + 1


@pytest.mark.skipif(n_blas_threads() == 1, reason="BLAS has but one thread here")
def test_one_blas_thread_holds_for_all_until_the_last_one_leaves() -> None:
    """Two threads enter and leave in turn: the limit stays while one of them is inside, and nothing stays behind."""
    before = n_blas_threads()
    for _ in range(2):
        inside, leave = threading.Event(), threading.Event()

        def stay(inside: threading.Event = inside, leave: threading.Event = leave) -> None:
            with one_blas_thread():
                inside.set()
                leave.wait()

        other = threading.Thread(target=stay)
        with one_blas_thread():
            other.start()
            inside.wait()
        assert n_blas_threads() == 1
        leave.set()
        other.join()
        assert n_blas_threads() == before


def test_one_blas_thread_within_itself() -> None:
    with threadpool_limits(2):
        with one_blas_thread():
            with one_blas_thread():
                assert n_blas_threads() == 1
            assert n_blas_threads() == 1
        assert n_blas_threads() == 2


def test_what_belongs_to_a_thread_is_given_back_to_it() -> None:
    """OpenMP's limit does, and each thread gets its own back, whoever leaves last."""
    pools = ThreadpoolController().select(user_api="openmp")
    if not pools.info():
        pytest.skip("no OpenMP here")
    seen: list[list[int]] = []

    def threads() -> list[int]:
        return [pool["num_threads"] for pool in pools.info()]

    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        before = threads()
        with one_blas_thread():
            inside.set()
            leave.wait()
        seen.extend([before, threads()])

    before, other = threads(), threading.Thread(target=stay)
    with one_blas_thread():
        other.start()
        inside.wait()
    assert threads() == before
    leave.set()
    other.join()
    assert seen[0] == seen[1]


def test_results_are_used_in_order_while_the_caller_goes_on() -> None:
    used: list[int] = []

    def double(item: int) -> int:
        return 2 * item

    with InOrder(double, n_threads=3) as work:
        for item in range(20):
            work.add(item)
            used.extend(work.results(max_waiting=4))
            assert len(used) == max(0, item - 3)
        used.extend(work.results(max_waiting=0))
    assert used == list(range(0, 40, 2))


def test_work_that_fails_is_reported_and_the_rest_is_dropped() -> None:
    used: list[float] = []

    def invert(item: int) -> float:
        return 1 / (item - 2)

    def fail_at(item: int | None) -> None:
        with InOrder(invert, n_threads=2) as work:
            for other in range(5):
                if other == item:
                    raise KeyError
                work.add(other)
            used.extend(work.results(max_waiting=0))

    with pytest.raises(ZeroDivisionError):
        fail_at(None)
    assert used == [-0.5, -1.0]
    with pytest.raises(KeyError):
        fail_at(2)
    assert used == [-0.5, -1.0]


def test_the_limit_holds_in_threads_of_somebody_who_has_set_another() -> None:
    seen: list[int] = []

    def look() -> None:
        with one_blas_thread():
            seen.append(n_blas_threads())
        seen.append(n_blas_threads())

    with threadpool_limits(2, user_api="blas"):
        other = threading.Thread(target=look)
        other.start()
        other.join()
        assert seen == [1, 2]
        assert n_blas_threads() == 2


def test_work_is_spread_within_the_limit_but_not_by_those_who_do_it() -> None:
    with threadpool_limits(2, user_api="blas"):
        with one_blas_thread():
            assert n_workers() == 2
            assert (
                map_on_threads(lambda _: (n_workers(), threading.current_thread() is threading.main_thread()), [0, 1]) == [(1, False)] * 2
            )
        assert n_workers() == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_lifts_the_limit_of_threads_that_it_has_not() -> None:
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with one_blas_thread():
            inside.set()
            leave.wait()

    with threadpool_limits(2, user_api="blas"):
        other = threading.Thread(target=stay)
        other.start()
        inside.wait()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, from Python 3.12 on
            child = os.fork()
        if child == 0:
            os._exit(n_blas_threads())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
        assert n_blas_threads() == 1
        leave.set()
        other.join()
