"""Workers that die, partitions that fail, memory that runs out: the answer of the rows in memory, or one sentence, and never a hang.

A fault is put into the workers by name: the function that works on one stage of a fit ends its process at the first call. What has
happened is kept in files, because the process that it happened to is gone.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from budget import generator, n_inputs
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF

from gpssl import GPSSL
from row_files import FRAME, N_ROWS, X, assert_same_posterior, model

dask = pytest.importorskip("dask")
import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402

distributed = pytest.importorskip("distributed")

Array = NDArray[np.float64]

SECONDS = 120
"""What takes longer hangs."""
N_PARTITIONS = 10
FAILING = 4
"""The partition with a fault."""
SETTINGS = {
    "distributed.worker.daemon": True,
    "distributed.worker.multiprocessing-method": "forkserver",  # a worker that died is replaced quickly
    "distributed.admin.log-format": "%(message)s",
    "logging.distributed": "error",
    # A few megabytes of rows and summaries are as much as a worker keeps in memory: the rest is on disk.
    "distributed.worker.memory.target": 1e-3,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two worker processes, each with a nanny that starts another when it dies."""
    with (
        dask.config.set(SETTINGS),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, memory_limit="1 GiB", dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def _in_time(client: Any) -> Iterator[None]:
    """Begin with two workers, and end a test that hangs."""
    client.wait_for_workers(2, timeout=SECONDS)

    def give_up(*_: object) -> None:
        raise TimeoutError(f"Nothing came of it in {SECONDS} seconds.")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _failing_rows(happen: Callable[[], None], times: int, folder: Path) -> Any:
    """Return the rows of the table, of which one partition lets something happen the first times that it is read."""

    def load(i: int) -> Array:
        happened = len(list(folder.iterdir()))
        if i == FAILING and happened < times:
            (folder / str(happened)).touch()
            happen()
        return X[500 * i : 500 * (i + 1)]

    return da.concatenate([da.from_delayed(dask.delayed(load)(i), (500, 4), dtype=float) for i in range(N_PARTITIONS)])


def _fail() -> None:
    raise OSError("The disk is away")


def _die() -> None:
    os._exit(1)


def _be_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _as_a_cluster_has_them(kind: str) -> Any:
    rows = {"array": lambda: da.from_array(X, chunks=(500, 4)), "frame": lambda: dd.from_pandas(FRAME, npartitions=N_PARTITIONS)}
    return rows[kind]()


def _kill_at_first_call(client: Any, module: str, name: str, marker: Path) -> None:
    """Let the first worker that calls a function die of it."""

    def install(module: str, name: str, marker: str) -> None:
        import functools
        import importlib

        owner: Any = importlib.import_module(module)
        *path, last = name.split(".")
        for part in path:
            owner = getattr(owner, part)
        work = getattr(owner, last)

        @functools.wraps(work)
        def work_or_die(*values: Any, **options: Any) -> Any:
            if not os.path.exists(marker):
                open(marker, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            return work(*values, **options)

        setattr(owner, last, work_or_die)

    client.run(install, module, name, str(marker))


STAGES = {
    "sample": ("gpssl.data._rows", "_sample_of_part"),
    "farthest rows": ("gpssl.kernels.vectors", "_OutlyingRows.farthest"),
    "moments": ("gpssl.core._moments", "_moments_of_part"),
    "combination": ("gpssl.data._dask", "_combine_all"),
}


@pytest.mark.parametrize(("stage", "kind"), [*((stage, "array") for stage in STAGES), ("moments", "frame")])
def test_a_worker_dies_in_any_stage_of_a_fit(stage: str, kind: str, client: Any, reference: GPSSL, tmp_path: Path) -> None:
    _kill_at_first_call(client, *STAGES[stage], tmp_path / "died")
    fitted = model().fit(_as_a_cluster_has_them(kind))
    assert (tmp_path / "died").exists()
    assert fitted.moments_.weight == N_ROWS
    assert_same_posterior(fitted, reference)


@pytest.mark.parametrize("method", ["transform", "sample"])
def test_a_worker_dies_while_results_are_computed(method: str, client: Any, reference: GPSSL, tmp_path: Path) -> None:
    use = getattr(reference, method)
    lazy = use(_as_a_cluster_has_them("array"))
    _kill_at_first_call(client, "gpssl.data._dask", "_evaluate", tmp_path / "died")
    found = lazy.compute()
    assert (tmp_path / "died").exists()
    some = lazy[..., :100, :].compute(scheduler="synchronous")
    np.testing.assert_allclose(found[..., :100, :], some, rtol=0, atol=1e-8)
    if method == "transform":
        np.testing.assert_allclose(found, reference.transform(X), rtol=0, atol=1e-8)


def test_a_worker_dies_while_rows_are_counted_for_their_weights(tmp_path: Path) -> None:
    """And while somebody watches the progress."""

    def die_once(part: Any, marker: str = str(tmp_path / "died")) -> Any:
        if len(part) and part["a"].iloc[0] == FRAME["a"].iloc[2000] and not os.path.exists(marker):
            open(marker, "w").close()
            os._exit(1)
        return part

    weight = np.random.default_rng(1).integers(0, 3, size=N_ROWS).astype(float)
    frame = _as_a_cluster_has_them("frame").map_partitions(die_once, meta=FRAME[:0])
    fitted = model(verbose=True).fit(frame, sample_weight=weight)
    assert (tmp_path / "died").exists()
    assert_same_posterior(fitted, model().fit(X, sample_weight=weight))


def test_workers_are_killed_at_random_moments(client: Any, reference: GPSSL) -> None:
    rng = generator("workers killed at random")
    for _ in range(n_inputs(2)):
        client.wait_for_workers(2, timeout=SECONDS)
        victim = int(rng.choice(sorted(client.run(os.getpid).values())))
        killer = threading.Timer(float(rng.uniform(0.0, 0.4)), os.kill, [victim, signal.SIGKILL])
        killer.start()
        fitted = model().fit(_as_a_cluster_has_them("array"))
        killer.join()
        assert fitted.moments_.weight == N_ROWS
        assert_same_posterior(fitted, reference)


# Partitions that fail


@contextmanager
def _repeated(where: str, rows: Callable[[], Any]) -> Iterator[Any]:
    """Yield rows whose tasks Dask is told to repeat, when they are made or when they are used."""
    with dask.annotate(retries=2):
        made = rows()
        if where == "in use":
            yield made
            return
    yield made


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("where", ["when made", "in use"])
def test_a_partition_that_fails_twice_and_is_repeated(where: str, verbose: bool, reference: GPSSL, tmp_path: Path) -> None:
    with _repeated(where, lambda: _failing_rows(_fail, 2, tmp_path)) as rows:
        fitted = model(verbose=verbose).fit(rows)
    assert len(list(tmp_path.iterdir())) == 2
    assert_same_posterior(fitted, reference)


def test_a_lazy_result_that_fails_twice_and_is_repeated(reference: GPSSL, tmp_path: Path) -> None:
    found = reference.transform(_failing_rows(_fail, 2, tmp_path)).compute(retries=2)
    np.testing.assert_allclose(found, reference.transform(X), rtol=0, atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("verbose", [False, True])
def test_a_partition_that_always_fails_is_named(verbose: bool, weighted: bool, tmp_path: Path) -> None:
    new = model(verbose=verbose)
    sentence = rf"^Dask could not compute partition {FAILING} of the rows: OSError: The disk is away\. .*dask\.annotate\(retries=3\)"
    with pytest.raises(RuntimeError, match=sentence) as caught:
        new.fit(_failing_rows(_fail, 10**6, tmp_path), sample_weight=np.ones(N_ROWS) if weighted else None)
    assert isinstance(caught.value.__cause__, OSError)
    assert vars(new) == vars(model(verbose=verbose))


def test_a_partition_of_a_frame_that_always_fails_is_named() -> None:
    """Also where its rows are counted first."""

    def fail(part: Any) -> Any:
        if len(part) and part["a"].iloc[0] == FRAME["a"].iloc[500 * FAILING]:
            raise OSError("The disk is away")
        return part

    frame = _as_a_cluster_has_them("frame").map_partitions(fail, meta=FRAME[:0])
    for weight in (None, np.ones(N_ROWS)):
        new = model()
        with pytest.raises(RuntimeError, match=rf"^Dask could not compute partition {FAILING} of the rows: OSError"):
            new.fit(frame, sample_weight=weight)
        assert vars(new) == vars(model())


def test_a_failure_leaves_a_fitted_model_as_it_was(reference: GPSSL, tmp_path: Path) -> None:
    """Also one that comes late, in the pass of the moments, and in rows that are added."""
    fitted = model().fit(X)
    before = fitted.transform(X[:50])
    for learn in (fitted.fit, fitted.partial_fit):
        with pytest.raises(RuntimeError, match=f"partition {FAILING}"):
            learn(_failing_rows(_fail, 10**6, tmp_path))
        np.testing.assert_array_equal(fitted.transform(X[:50]), before)
    assert_same_posterior(fitted, reference)


@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_a_partition_that_fails_on_this_machine(scheduler: str, tmp_path: Path) -> None:
    new = model()
    with (
        dask.config.set(scheduler=scheduler),
        pytest.raises(RuntimeError, match=r"^Dask could not compute a partition.*The disk is away\.$"),
    ):
        new.fit(_failing_rows(_fail, 10**6, tmp_path))
    assert vars(new) == vars(model())


@pytest.mark.parametrize("end", [_die, _be_killed])
def test_a_partition_that_ends_every_worker_is_an_error(end: Callable[[], None], client: Any, tmp_path: Path) -> None:
    client.cluster.scheduler.allowed_failures = 0  # the first is enough: the rest is Dask's patience
    new = model()
    try:
        with pytest.raises(RuntimeError, match=r"^Workers died again and again while they computed partition \d of the rows"):
            new.fit(_failing_rows(end, 10**6, tmp_path))
    finally:
        client.cluster.scheduler.allowed_failures = 3
    assert vars(new) == vars(model())


def test_what_is_wrong_with_the_rows_is_said_as_without_a_cluster(reference: GPSSL) -> None:
    broken = X.copy()
    broken[1234, 2] = np.nan
    rows = da.from_array(broken, chunks=(500, 4))
    with pytest.raises(ValueError, match=r"(?s)^In partition 2 \(rows 1,000 to 1,499\).*row 1,234, column 2"):
        model().fit(rows)
    with pytest.raises(ValueError, match=r"(?s)^In partition 2 .*NaN"):
        reference.transform(rows).compute()


# Memory


def test_rows_that_do_not_fit_in_memory_are_spilled(client: Any, reference: GPSSL) -> None:
    rows = client.persist(da.from_array(X, chunks=(100, 4)))
    wide = client.persist(da.random.default_rng(0).standard_normal((8000, 100), chunks=(1000, 100)))
    distributed.wait([rows, wide])

    def n_spilled(dask_worker: Any) -> int:
        return len(dask_worker.data.disk)

    assert sum(client.run(n_spilled).values()) > 0
    fitted = model().fit(rows)
    assert_same_posterior(fitted, reference)
    np.testing.assert_allclose(fitted.transform(rows).compute(), reference.transform(X), rtol=0, atol=1e-8)
    smooth = model(kernel=RBF(50.0))
    of_wide, in_memory = clone(smooth).fit(wide), smooth.fit(wide.compute())
    np.testing.assert_array_equal(of_wide.inducing_points_, in_memory.inducing_points_)
    some = wide[:100].compute()
    np.testing.assert_allclose(of_wide.transform(some), in_memory.transform(some), rtol=0, atol=1e-8)
