from __future__ import annotations

import io
import pickle
import subprocess
import sys
import textwrap
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import row_files
from gpssl import GPSSL, MarginalizedClassifier
from gpssl._runtime.progress import SILENT
from gpssl.baselines import GPPrior
from gpssl.data._rows import Part, Rows, SliceableRows
from gpssl.downstream import RepresentationSearch
from gpssl.inference import Sampling

Array = NDArray[np.float64]

needs_protocol = pytest.mark.skipif(find_spec("sklearn.callback") is None, reason="scikit-learn has callbacks from version 1.9 on")


class Listener:
    """Notes what it hears; asks to stop at the end of a task of the name `stop_at`."""

    def __init__(self, stop_at: str | None = None) -> None:
        self.stop_at = stop_at
        self.heard: list[tuple[str, str]] = []
        self.open: list[Any] = []
        self.seen: dict[str, Any] = {}

    def setup(self, estimator: Any, context: Any) -> None:
        self.heard.append(("setup", context.task_name))

    def teardown(self, estimator: Any, context: Any) -> None:
        self.heard.append(("teardown", context.task_name))

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        self.heard.append(("begin", context.task_name))
        if self.open:
            assert context.parent is self.open[-1]
        self.open.append(context)

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, X: Any = None, y: Any = None, metadata: Any = None, fitted_estimator: Any = None
    ) -> bool:
        assert self.open.pop() is context
        self.heard.append(("end", context.task_name))
        self.seen[context.task_name] = {"X": X, "y": y, "metadata": metadata, "fitted": fitted_estimator, "context": context}
        return context.task_name == self.stop_at

    def count(self, name: str) -> int:
        return Counter(self.heard)["end", name]

    @property
    def tasks(self) -> list[str]:
        """In the order in which they ended."""
        return list(dict.fromkeys(name for what, name in self.heard if what == "end"))


class ListenerToAll(Listener):
    """Hears of sub-estimators too."""

    max_propagation_depth = None


@needs_protocol
def test_tasks_of_a_fit_in_order(breast_cancer: Array) -> None:
    listener = Listener()
    weight = np.ones(len(breast_cancer))
    ssl = GPSSL(2, random_state=0).set_callbacks(listener).fit(breast_cancer, sample_weight=weight)
    assert listener.heard[:2] == [("setup", "fit"), ("begin", "fit")]
    assert listener.heard[-2:] == [("end", "fit"), ("teardown", "fit")]
    assert listener.tasks == ["inducing points", "rows", "moments", "iteration", "variational inference", "fit"]
    assert listener.open == []
    assert listener.count("rows") == 100
    # As in scikit-learn, the last iteration to begin is the one that was not needed.
    assert listener.count("iteration") >= ssl.report_.n_iterations + 1
    at_end = listener.seen["fit"]
    assert at_end["X"] is breast_cancer
    assert at_end["y"] is None
    assert at_end["metadata"]["sample_weight"] is weight
    np.testing.assert_array_equal(at_end["fitted"].transform(breast_cancer), ssl.transform(breast_cancer))
    assert listener.seen["iteration"]["X"] is breast_cancer
    assert listener.seen["iteration"]["fitted"] is None


@needs_protocol
@pytest.mark.parametrize(
    "inference", ["variational", "mode", Sampling(n_chains=4, n_warmup=20, n_samples=30)], ids=["variational", "mode", "sampling"]
)
def test_results_are_the_same_to_the_bit(inference: Any, flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, _ = flowers
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so few samples
        models = [GPSSL(2, inference=inference, random_state=0) for _ in range(2)]
        models[0].fit(X)
        models[1].set_callbacks(Listener()).fit(X)
    assert models[0].transform(X).tobytes() == models[1].transform(X).tobytes()
    assert models[0].std(X).tobytes() == models[1].std(X).tobytes()
    assert models[0].report_ == models[1].report_


@needs_protocol
def test_sampling_tells_how_many_steps_there_will_be_and_stops_when_asked(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, _ = flowers
    method = Sampling(n_chains=4, n_warmup=20, n_samples=30)
    whole, stopped = Listener(), Listener(stop_at="step")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        GPSSL(2, inference=method, random_state=0).set_callbacks(whole).fit(X)
        ssl = GPSSL(2, inference=method, random_state=0).set_callbacks(stopped).fit(X)
    assert whole.seen["sampling"]["context"].max_subtasks == whole.count("step") == 50
    assert 20 + 4 <= stopped.count("step") <= 20 + 5  # after the warm-up, as many as diagnostics need
    assert np.isfinite(ssl.std(X)).all()


@needs_protocol
def test_descent_stops_when_asked(breast_cancer: Array) -> None:
    listener = Listener(stop_at="iteration")
    whole = GPSSL(5, random_state=0).fit(breast_cancer)
    ssl = GPSSL(5, random_state=0).set_callbacks(listener).fit(breast_cancer)
    assert ssl.report_.n_iterations <= 3 < whole.report_.n_iterations  # one from the start, one after each failure of Newton's steps
    assert np.isfinite(ssl.transform(breast_cancer)).all()


@needs_protocol
def test_the_pass_over_the_rows_goes_on_to_the_end_whatever_is_asked(breast_cancer: Array) -> None:
    """Moments of some of the rows would be a model of some of the rows."""
    ssl = GPSSL(2, random_state=0).set_callbacks(Listener(stop_at="rows")).fit(breast_cancer)
    assert ssl.moments_.weight == len(breast_cancer)


@needs_protocol
@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("name", ["parquet", "csv"])
def test_rows_in_files(name: str, tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame(row_files.X, columns=[f"c{i}" for i in range(row_files.X.shape[1])])
    path = tmp_path / f"rows.{name}"
    frame.to_parquet(path) if name == "parquet" else frame.to_csv(path, index=False)
    listener = Listener()
    row_files.model().set_callbacks(listener).fit(path)
    assert listener.seen["moments"]["context"].max_subtasks == listener.count("rows") == 100


@needs_protocol
@pytest.mark.usefixtures("small_parts")
def test_each_part_is_a_task_where_the_number_of_rows_is_not_known() -> None:
    class Uncounted(Rows):
        n_columns = row_files.X.shape[1]

        def parts(self) -> Iterator[Part]:
            return SliceableRows(row_files.X).parts()

    listener = Listener()
    row_files.model().set_callbacks(listener).fit(Uncounted())
    assert listener.seen["moments"]["context"].max_subtasks is None
    assert listener.count("rows") >= len(list(Uncounted().parts())) > len(row_files.X) / 300


@needs_protocol
def test_chunks_of_dask(reference: GPSSL) -> None:
    array = pytest.importorskip("dask.array")
    listener = Listener()
    ssl = row_files.model().set_callbacks(listener).fit(array.from_array(row_files.X, chunks=(200, -1)))
    assert listener.count("rows") == 100
    np.testing.assert_allclose(ssl.transform(row_files.X), reference.transform(row_files.X), atol=1e-8)


@needs_protocol
def test_callbacks_are_cloned_with_the_estimator_and_nothing_of_a_fit_stays_behind(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, _ = flowers
    listener = Listener()
    ssl = clone(GPSSL(2, random_state=0).set_callbacks(listener)).fit(X)
    assert listener.count("fit") == 1
    assert not [name for name in vars(ssl) if "callback" in name and name != "_skl_callbacks"]
    ssl.set_callbacks()
    copy = pickle.loads(pickle.dumps(ssl))
    np.testing.assert_array_equal(copy.transform(X), ssl.transform(X))
    ssl.refit(n_components=3)
    assert listener.count("fit") == 1


@needs_protocol
def test_a_failed_fit_leaves_the_estimator_as_it_was_and_tells_the_callback(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, _ = flowers
    listener = Listener()
    ssl = GPSSL(2, random_state=0).fit(X).set_callbacks(listener)
    before = ssl.transform(X)
    with pytest.raises(ValueError, match="NaN"):
        ssl.fit(np.full_like(X, np.nan))
    assert listener.heard[-1] == ("teardown", "fit")
    np.testing.assert_array_equal(ssl.transform(X), before)
    assert "_callback_fit_ctx" not in vars(ssl)


@needs_protocol
def test_an_error_in_a_callback_is_the_user_s_to_see(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    class Interrupts(Listener):
        def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
            if context.task_name == "iteration":
                raise KeyboardInterrupt
            super().on_fit_task_begin(estimator, context)

    ssl = GPSSL(2, random_state=0).set_callbacks(Interrupts())
    with pytest.raises(KeyboardInterrupt):
        ssl.fit(flowers[0])
    assert not hasattr(ssl, "moments_")


@needs_protocol
def test_classifier_has_two_tasks_and_the_representation_s_are_the_first_one_s(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    alone, both = Listener(), ListenerToAll()
    models = [MarginalizedClassifier(GPSSL(2), random_state=0).set_callbacks(listener).fit(X, few) for listener in (alone, both)]
    assert alone.tasks == ["representation", "heads", "fit"]
    assert alone.seen["fit"]["y"] is few
    assert both.tasks == ["inducing points", "rows", "moments", "iteration", "variational inference", "fit", "heads"]
    assert both.count("fit") == 2
    assert both.open == alone.open == []
    plain = MarginalizedClassifier(GPSSL(2), random_state=0).fit(X, few)
    for model in models:
        np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
        assert "_skl_callbacks" not in vars(model.representation_)


@needs_protocol
@pytest.mark.parametrize("kind", ["frozen", "prior"])
def test_representations_without_callbacks_are_one_task(kind: str, flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    representation = FrozenEstimator(GPSSL(2, random_state=0).fit(X)) if kind == "frozen" else GPPrior(2, random_state=0)
    listener = ListenerToAll()
    MarginalizedClassifier(representation, random_state=0).set_callbacks(listener).fit(X, few)
    assert listener.tasks == ["representation", "heads", "fit"]


@needs_protocol
def test_search_counts_candidates(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    X, few = flowers
    listener = Listener()
    grid = {"temperature": ["auto", 1.0], "n_components": [2, 3], "kernel": [RBF(1.0)]}
    search = RepresentationSearch(MarginalizedClassifier(GPSSL(), n_draws=10), grid, random_state=0).set_callbacks(listener)
    search.fit(X, few)
    n_trials = 4 + (int(search.cv_results_["precise"].sum()) if not search.cv_results_["precise"].all() else 0)
    assert listener.count("candidate") == listener.seen["candidates"]["context"].max_subtasks == n_trials
    assert listener.tasks == ["candidate", "candidates", "best estimator", "fit"]


@needs_protocol
def test_pipelines_pass_callbacks_on(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    listener = ListenerToAll()
    make_pipeline(StandardScaler(), GPSSL(2, random_state=0)).set_callbacks(listener).fit(flowers[0])
    assert {"moments", "variational inference"} <= set(listener.tasks)


@needs_protocol
def test_progress_bar(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    pytest.importorskip("rich")
    from sklearn.callback import ProgressBar

    shown = io.StringIO()
    with redirect_stdout(shown):
        GPSSL(2, random_state=0).set_callbacks(ProgressBar()).fit(flowers[0])
    lines = shown.getvalue().splitlines()
    assert [line.split("━")[0].strip() for line in lines if "100%" in line] == [
        "GPSSL - fit",
        "GPSSL - moments #1",
        "GPSSL - variational inference #2",
    ]


def test_silence_where_nobody_listens() -> None:
    """The same calls, as often as anybody likes."""
    with SILENT.steps("sampling", "step", 3) as steps, SILENT.subtask("another") as task:
        for _ in range(10):
            steps.advance()
        assert steps.listener is None
        assert not steps.stopped
        assert task is SILENT
    with SILENT.fit_of(object(), "nothing"):
        pass


def test_without_the_protocol_there_are_no_callbacks_and_the_results_are_the_same(flowers: tuple[Array, NDArray[np.intp]]) -> None:
    """In a process in which scikit-learn's module is hidden while the library looks for it, as if it were an older version."""
    code = """
        import sys, sklearn, sklearn.preprocessing
        found = sys.modules.get("sklearn.callback")
        sys.modules["sklearn.callback"] = None
        import gpssl._runtime.progress
        if found is None:
            del sys.modules["sklearn.callback"]
        else:
            sys.modules["sklearn.callback"] = found
        from sklearn.datasets import load_iris
        from gpssl import GPSSL, MarginalizedClassifier
        X, y = load_iris(return_X_y=True)
        assert not hasattr(GPSSL, "set_callbacks") and not hasattr(MarginalizedClassifier, "set_callbacks")
        ssl = GPSSL(2, random_state=0).fit(X)
        MarginalizedClassifier(GPSSL(2), n_draws=3, random_state=0).fit(X, y)
        sys.stdout.buffer.write(ssl.transform(X).tobytes())
    """
    result = subprocess.run([sys.executable, "-W", "error", "-c", textwrap.dedent(code)], capture_output=True, check=True)
    assert result.stdout == GPSSL(2, random_state=0).fit(flowers[0]).transform(flowers[0]).tobytes()
