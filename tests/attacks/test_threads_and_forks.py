"""One model in many threads and processes: the same bits as in one thread, no deadlock after a fork, and nothing that grows with its use.

Threads switch as often as Python lets them, so that what two of them must not do at once does happen. Processes are given a time: what
hangs fails.
"""

from __future__ import annotations

import gc
import hashlib
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from budget import generator, n_inputs
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from threadpoolctl import threadpool_limits

import gpssl
from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor
from gpssl._runtime.threads import n_blas_threads, one_blas_thread

N_THREADS = 8
SECONDS = 60
"""What a process may take before it counts as hanging."""

X, CLASSES = load_breast_cancer(return_X_y=True)
X.setflags(write=False)
LABELED = np.random.default_rng(0).permutation(len(X))[:40]
NEW = X[::3]


def _digest(values: Any) -> str:
    """Return a digest of all bits of one or more arrays."""
    arrays = values if isinstance(values, list | tuple) else [values]
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()


def _models() -> dict[str, Any]:
    classes, targets = np.full(len(X), -1), np.full(len(X), np.nan)
    classes[LABELED], targets[LABELED] = CLASSES[LABELED], X[LABELED, 3] + X[LABELED, 4]
    ssl = GPSSL(3, random_state=0).fit(X)
    pool = MarginalizedClassifier(random_state=0).fit(X, classes)
    return {
        "GPSSL": ssl,
        "pool": pool,
        "full": MarginalizedClassifier(GPSSL(3, random_state=0), n_draws=10, random_state=0).fit(X, classes),
        "regressor": MarginalizedRegressor(random_state=0).fit(X, targets),
    }


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return fitted models, and one that comes from a file."""
    made = _models()
    path = tmp_path_factory.mktemp("models") / "pool.gpssl"
    gpssl.save(made["pool"], path)
    return {**made, "from a file": gpssl.load(path)}


USES: dict[str, Callable[[Any, NDArray[np.float64]], Any]] = {
    "transform": lambda model, rows: model.transform(rows),
    "std": lambda model, rows: model.std(rows),
    "mean_and_std": lambda model, rows: model.mean_and_std(rows),
    "sample": lambda model, rows: model.sample(rows, 5, random_state=1),
    "draw_functions": lambda model, rows: model.draw_functions(4, random_state=2)(rows),
    "predict": lambda model, rows: model.predict(rows),
    "predict_proba": lambda model, rows: model.predict_proba(rows),
    "predict_proba_std": lambda model, rows: model.predict_proba_std(rows),
    "predict_std": lambda model, rows: model.predict_std(rows),
}


def _answers(model: Any, rows: NDArray[np.float64] = NEW) -> dict[str, str]:
    """Return a digest of what each method of a model answers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: _digest(use(model, rows)) for name, use in USES.items() if hasattr(model, name)}


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads switch after every few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def _at_once(work: Callable[[int], Any], n_threads: int = N_THREADS) -> list[Any]:
    """Let threads begin the same work at the same moment; return their results."""
    begin = threading.Barrier(n_threads)

    def start(number: int) -> Any:
        begin.wait(SECONDS)
        return work(number)

    with ThreadPoolExecutor(n_threads) as executor:
        return list(executor.map(start, range(n_threads)))


def _fresh(model: Any) -> Any:
    """Return a copy in which nothing has been computed lazily."""
    return pickle.loads(pickle.dumps(model))


def _answers_of(model: Any, rows: NDArray[np.float64], _: int) -> dict[str, str]:
    return _answers(model, rows)


def _ask(functions: Any, rows: list[NDArray[np.float64]], thread: int) -> Any:
    return functions(rows[thread])


def _answer_or_copy(model: Any, thread: int) -> dict[str, str]:
    """Use the model in every other thread, and a copy that is made meanwhile in the others."""
    return _answers(model if thread % 2 else _fresh(model), NEW[:20])


def _save_and_load(model: Any, path: Path) -> None:
    gpssl.save(model, path)
    gpssl.load(path)


# Threads


@pytest.mark.parametrize("name", ["GPSSL", "pool", "full", "regressor", "from a file"])
@pytest.mark.usefixtures("restless")
def test_threads_get_the_bits_of_one_thread(name: str, models: dict[str, Any]) -> None:
    """From a fresh copy, whose lazy attributes all threads want at once, while BLAS has two threads of its own."""
    with threadpool_limits(2, user_api="blas"):
        expected = _answers(models[name])
        fresh = _fresh(models[name])
        assert all(found == expected for found in _at_once(lambda _: _answers(fresh)))


@pytest.mark.usefixtures("restless")
def test_a_posterior_that_is_not_yet_computed() -> None:
    """Every thread finds it missing after `partial_fit`, and all get the same one."""
    stream = GPSSL(3, random_state=0).partial_fit(X[:300]).partial_fit(X[300:])
    expected = _answers(_fresh(stream), NEW[:50])
    for _ in range(n_inputs(2)):
        fresh = _fresh(stream)
        assert all(found == expected for found in _at_once(partial(_answers_of, fresh, NEW[:50])))


@pytest.mark.usefixtures("restless")
def test_functions_that_get_to_know_rows_in_several_threads(models: dict[str, Any]) -> None:
    """Each thread asks for rows of its own and for some that others ask for: in the end there is one function through all of them."""
    rng = generator("functions in several threads")
    for _ in range(n_inputs(3)):
        functions = models["GPSSL"].draw_functions(3, random_state=int(rng.integers(2**31)))
        asked = [rng.permutation(len(X))[: rng.integers(5, 60)] for _ in range(N_THREADS)]
        found = _at_once(partial(_ask, functions, [X[places] for places in asked]))
        whole = functions(X)
        for places, values in zip(asked, found, strict=True):
            np.testing.assert_allclose(values, whole[:, places], rtol=0, atol=1e-8)
        copy = _fresh(functions)
        np.testing.assert_allclose(copy(X), whole, rtol=0, atol=1e-8)


@pytest.mark.usefixtures("restless")
def test_functions_that_outgrow_their_memory_in_several_threads(models: dict[str, Any]) -> None:
    """Some threads ask for few rows, one for more than are remembered: what anybody was told stays true."""
    rng = generator("functions that outgrow their memory")
    many = np.repeat(X, 4, axis=0) + 0.1 * X.std(axis=0) * rng.standard_normal((4 * len(X), X.shape[1]))
    for _ in range(n_inputs(1)):
        functions = models["GPSSL"].draw_functions(2, random_state=int(rng.integers(2**31)))
        asked = [many if thread == 0 else many[rng.permutation(len(many))[:300]] for thread in range(N_THREADS)]
        found = _at_once(partial(_ask, functions, asked))
        for rows, values in zip(asked, found, strict=True):
            np.testing.assert_allclose(functions(rows), values, rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", ["GPSSL", "pool", "full", "from a file"])
@pytest.mark.usefixtures("restless")
def test_a_model_is_pickled_while_it_is_used(name: str, models: dict[str, Any]) -> None:
    """Lazy attributes appear while another thread copies them: the copy is whole."""
    expected = _answers(models[name], NEW[:20])
    for _ in range(n_inputs(3)):
        fresh = _fresh(models[name])
        found = _at_once(partial(_answer_or_copy, fresh))
        assert all(answers == expected for answers in found)


@pytest.mark.usefixtures("restless")
def test_functions_are_pickled_while_they_get_to_know_rows(models: dict[str, Any]) -> None:
    """A copy knows rows and noise that belong together: of rows that neither has seen, both say the same in the same order."""
    functions = models["GPSSL"].draw_functions(2, random_state=3)
    copies = _at_once(lambda thread: _fresh(functions) if thread % 2 else functions(X[20 * thread : 20 * thread + 40]))[1::2]
    for copy in copies:
        n_known = len(copy._known)
        expected = models["GPSSL"].draw_functions(2, random_state=3)
        expected._rng.standard_normal((n_known, 6))
        np.testing.assert_array_equal(copy._rng.standard_normal(6), expected._rng.standard_normal(6))


# Processes


def _in_child(work: Callable[[], bool]) -> int:
    """Fork, do the work in the child, and return its exit code: 0 where the work returned True, −14 where it hung."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, from Python 3.12 on
        child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(SECONDS)
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


@needs_fork
@pytest.mark.usefixtures("restless")
def test_a_fork_beside_busy_threads(models: dict[str, Any]) -> None:
    """Whatever the other threads held and limited when the process was forked, the child answers, with all its BLAS threads."""
    with threadpool_limits(2, user_api="blas"):
        n_threads = n_blas_threads()
        functions = models["GPSSL"].draw_functions(2, random_state=1)
        expected = {name: _answers(models[name], NEW[:20]) for name in ("GPSSL", "pool")}
        stop = threading.Event()

        def keep_busy(thread: int) -> None:
            number = 0
            while not stop.is_set():
                functions(X[(7 * number + 60 * thread) % 500 :][:3])
                models["pool"].predict_proba(NEW[:5])
                with one_blas_thread():
                    number += 1

        def answers_as_before() -> bool:
            functions(X[500:510])
            return n_blas_threads() == n_threads and all(_answers(models[name], NEW[:20]) == expected[name] for name in expected)

        busy = [threading.Thread(target=keep_busy, args=(thread,)) for thread in range(3)]
        for thread in busy:
            thread.start()
        try:
            assert [_in_child(answers_as_before) for _ in range(n_inputs(4))] == [0] * n_inputs(4)
        finally:
            stop.set()
            for thread in busy:
                thread.join()
        assert n_blas_threads() == n_threads


@pytest.mark.parametrize("method", [pytest.param("fork", marks=needs_fork), "spawn"])
def test_answers_in_other_processes(method: str, models: dict[str, Any]) -> None:
    """In processes that are forked, or begin anew and read the model from a pickle."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with multiprocessing.get_context(method).Pool(1) as pool:
            found = pool.map_async(_answers, models.values()).get(SECONDS)
    assert found == [_answers(model) for model in models.values()]


def test_answers_in_loky(models: dict[str, Any]) -> None:
    names = list(models)
    found = joblib.Parallel(n_jobs=2, timeout=SECONDS)(joblib.delayed(_answers)(models[name]) for name in names)
    assert found == [_answers(models[name]) for name in names]
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor().shutdown(wait=True)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol_of_pickle(protocol: int, models: dict[str, Any]) -> None:
    for model in models.values():
        assert _answers(pickle.loads(pickle.dumps(model, protocol))) == _answers(model)
    functions = models["GPSSL"].draw_functions(2, random_state=1)
    functions(X[:10])
    copy = pickle.loads(pickle.dumps(functions, protocol))
    np.testing.assert_array_equal(copy(X[5:30]), functions(X[5:30]))


def test_cloudpickle(models: dict[str, Any]) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    for model in models.values():
        assert _answers(pickle.loads(cloudpickle.dumps(model))) == _answers(model)


# Bits that depend on the number of threads, or on the hashes of strings

WHOLE_FITS = """
import hashlib, json, sys, warnings
import numpy as np, pandas as pd
import gpssl
sys.path[:0] = sys.argv[1:]
import test_threads_and_forks as attack
warnings.simplefilter("ignore")
found = {name: attack._answers(model) for name, model in attack._models().items()}
table = attack._mixed_table()
labeled = gpssl.label(table, "kind")
found["label"] = [repr(labeled.expectation), repr(labeled.members), repr(labeled.importance), labeled.frame().to_csv(float_format=None)]
functions = attack.GPSSL(2, random_state=0).fit(attack.X).draw_functions(2, random_state=1)
many = np.concatenate([attack.X * factor for factor in (1.0, 1.01, 1.02, 1.03)])
found["beyond"] = attack._digest([functions(attack.X[:40]), functions(many), functions.one_row_at_a_time(attack.X)])
print(json.dumps(found, sort_keys=True))
"""


def _mixed_table(n_rows: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size, color = np.round(rng.normal(size=n_rows), 3), rng.choice(["red", "green", "blue"], n_rows)
    table = pd.DataFrame({"size": size, "color": color, "gap": np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(size=n_rows))})
    kind = np.where(size + (color == "red") + 0.3 * rng.normal(size=n_rows) > 0.3, "oak", "elm")
    return table.assign(kind=pd.Series(kind).where(np.arange(n_rows) < 40))


def test_bits_do_not_depend_on_threads_or_on_the_hashes_of_strings() -> None:
    """Of whole fits and of `gpssl.label`, each in a process of its own."""
    found = {}
    for n_threads, seed in (("1", "0"), ("2", "1"), ("8", "random")):
        settings = {"OPENBLAS_NUM_THREADS": n_threads, "OMP_NUM_THREADS": n_threads, "MKL_NUM_THREADS": n_threads, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", WHOLE_FITS, *sys.path]
        run = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, timeout=4 * SECONDS)
        assert run.returncode == 0, run.stderr
        found[n_threads, seed] = json.loads(run.stdout)
    first, *others = found.values()
    for other in others:
        assert other == first


# Nothing grows with use


def _open_files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _use(name: str, models: dict[str, Any], folder: Path) -> Callable[[int], object]:
    """Return one call of what is used again and again."""
    ssl, pool = models["GPSSL"], models["pool"]
    stream = GPSSL(2, inducing=X[:20], random_state=0, residual_tolerance=1.0).partial_fit(X[:100])
    gpssl.save(ssl, folder / "model.gpssl")
    pd.DataFrame({"a": X[:10, 0], "b": ["oak", "elm"] * 5}).to_csv(folder / "table.csv", index=False)
    functions = ssl.draw_functions(2, random_state=1)
    uses: dict[str, Callable[[int], object]] = {
        "partial_fit": lambda i: stream.partial_fit(X[i % 500 : i % 500 + 2]),
        "transform": lambda i: ssl.transform(X[i % 500 : i % 500 + 2]),
        "predict": lambda i: pool.predict(X[i % 500 : i % 500 + 2]),
        "draws": lambda i: ssl.draw_functions(2, random_state=i)(X[i % 500 : i % 500 + 2]),
        "known rows": lambda i: functions(X[i % 20 : i % 20 + 2]),
        "save and load": lambda _: _save_and_load(ssl, folder / "model.gpssl"),
        "open_table": lambda _: gpssl.data.open_table(folder / "table.csv").sample(),
    }
    return uses[name]


CALLS = {"partial_fit": 600, "transform": 600, "predict": 150, "draws": 300, "known rows": 300, "save and load": 30, "open_table": 60}
"""How often each is called by default. A call that keeps what it made keeps it each time, so that fewer of the slow ones do."""
LARGEST_GROWTH = 200
"""Bytes of Python objects that a call may add, on average, after the first calls: less than the smallest array."""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc here")
@pytest.mark.parametrize("name", CALLS)
def test_nothing_grows_with_use(name: str, models: dict[str, Any], tmp_path: Path) -> None:
    use = _use(name, models, tmp_path)
    n_calls = n_inputs(CALLS[name])
    for i in range(n_calls // 2):
        use(i)
    files, threads, resident = _open_files(), threading.active_count(), _resident()
    for i in range(n_calls // 2):
        use(i)
    assert _open_files() <= files
    assert threading.active_count() <= threads
    assert _resident() - resident < 30e6  # what the allocator keeps; a leak of an array each time is more in ten rounds of an attack
    traced = max(20, n_calls // 10)
    tracemalloc.start()
    try:
        for i in range(traced):
            use(i)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for i in range(traced):
            use(i)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < LARGEST_GROWTH * traced + 20_000, f"{grown / traced:.0f} bytes for each call of {name}"
