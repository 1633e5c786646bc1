"""A model that was saved and loaded is the same model: its results to the last bit, and what it can still learn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import make_column_selector
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import kernels as sk
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import gpssl
from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor, RepresentationPool
from gpssl import kernels as k
from gpssl.baselines import GPPrior
from gpssl.downstream import BayesianLogisticRegression, PerceptronClassifier
from gpssl.inference import Mode, Sampling, Variational
from gpssl.io import ModelFileError, OutsideTrainingRangeWarning
from gpssl.io._encoding import Decoder, Encoder
from gpssl.io._stored_classes import FORMS
from kinds_of_rows import KINDS, Kind

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
X_NEW = RNG.standard_normal((7, 3))
Y = np.where(np.arange(60) < 24, (X[:, 0] > 0).astype(int), -1)
TARGET = np.where(np.arange(60) < 24, X[:, 0] + 0.1 * RNG.standard_normal(60), np.nan)

STORABLE = [name for name in KINDS if name not in ("from_gpytorch", "CallableKernel")]


def small(**parameters: Any) -> GPSSL:
    return GPSSL(**{"n_components": 2, "max_inducing": 15, "residual_tolerance": 0.9, "random_state": 0, **parameters})


def round_trip(model: Any, folder: Path, **more: Any) -> Any:
    gpssl.save(model, folder / "model.gpssl", **more)
    return gpssl.load(folder / "model.gpssl")


def assert_same_representation(one: Any, other: Any, rows: Any) -> None:
    np.testing.assert_array_equal(one.transform(rows), other.transform(rows))
    np.testing.assert_array_equal(one.std(rows), other.std(rows))
    np.testing.assert_array_equal(one.draw_functions(3)(rows), other.draw_functions(3)(rows))
    np.testing.assert_array_equal(one.sample(rows, 2, random_state=5), other.sample(rows, 2, random_state=5))
    assert set(vars(one)) == set(vars(other)) - {"card_"}


def test_the_objective_comes_back(tmp_path: Path) -> None:
    model = small(target_std=0.5, epsilon=1e-3).fit(X)
    again = round_trip(model, tmp_path)
    negative = round_trip(model.refit(variance_loss="negative", temperature=100.0), tmp_path)
    assert (again.target_std, again.epsilon, again.variance_loss, negative.variance_loss) == (0.5, 1e-3, "hinge", "negative")
    assert negative.score(X) == pytest.approx(-negative.objective_, rel=1e-6)
    assert again.score(X) == model.score(X) != model.refit(target_std=1.0).score(X)
    np.testing.assert_array_equal(again.refit(temperature=0.01).transform(X), model.refit(temperature=0.01).transform(X))


def fitted(kind: Kind, model: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rows, few inducing points
        return model.fit(kind.table(kind.training))


@pytest.mark.parametrize("name", STORABLE)
def test_every_kernel_and_its_rows_come_back(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    model = fitted(kind, small(kernel=kind.kernel, inference="mode"))
    again = round_trip(model, tmp_path)
    further = kind.table(kind.training[:12])
    assert_same_representation(model, again, further)
    # The parameters too: the same model can be fitted anew.
    np.testing.assert_array_equal(fitted(kind, clone(again)).transform(further), model.transform(further))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refitted, refitted_again = model.refit(temperature=0.1), again.refit(temperature=0.1)
        np.testing.assert_array_equal(refitted.transform(further), refitted_again.transform(further))
        learned, relearned = model.partial_fit(further).transform(further), again.partial_fit(further).transform(further)
        np.testing.assert_array_equal(learned, relearned)


@pytest.mark.parametrize(
    "name", ["NeighborRBF", "for_table", "TfidfKernel", "WeisfeilerLehmanKernel", "NodeMatern", "diffusion of a table"]
)
def test_fingerprint_is_that_of_the_same_kernel_and_points(name: str, tmp_path: Path) -> None:
    """A second model, built on the loaded kernel and points, has moments that add to the first one's."""
    kind = KINDS[name]
    model = fitted(kind, small(kernel=kind.kernel, inference="mode"))
    again = round_trip(model, tmp_path)
    second = fitted(kind, small(kernel=again.kernel_, inducing=again.inducing_points_, inference="mode"))
    assert (model.moments_ + second.moments_).weight == 2 * len(kind.training)


@pytest.mark.parametrize(
    "kernel",
    [
        2.0 * sk.RBF(0.7) + sk.WhiteKernel(0.1),
        sk.Matern([1.0, 2.0, 3.0], nu=1.5),
        sk.Matern(nu=np.inf),
        sk.RationalQuadratic() ** 2.0,
        sk.DotProduct() + sk.ConstantKernel(0.5),
        sk.ExpSineSquared(periodicity=7.0) * sk.RBF(),
    ],
    ids=str,
)
def test_kernels_of_scikit_learn_come_back(kernel: sk.Kernel, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = small(kernel=kernel, inference="mode").fit(X)
    again = round_trip(model, tmp_path)
    assert again.kernel_ == model.kernel_
    assert_same_representation(model, again, X_NEW)


@pytest.mark.parametrize("inference", ["variational", "mode", Variational(n_draws=32), Sampling(2, 50, 100), Mode()], ids=str)
def test_every_kind_of_inference_comes_back(inference: Any, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = small(inference=inference).fit(X)
    again = round_trip(model, tmp_path)
    assert_same_representation(model, again, X_NEW)
    assert again.report_ == model.report_
    assert again.objective_ == model.objective_
    assert again.score(X) == model.score(X)
    assert (again.residual_, again.temperature_) == (model.residual_, model.temperature_)


@pytest.mark.parametrize(
    "inducing", [X[:9], X[:9].astype(np.float32), X[:9].tolist(), pd.DataFrame(X[:9]), "all", 8], ids=lambda value: type(value).__name__
)
def test_given_inducing_points_come_back(inducing: Any, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = small(inducing=inducing).fit(X)
        again = round_trip(model, tmp_path)
        assert_same_representation(model, again, X_NEW)
        np.testing.assert_array_equal(clone(again).fit(X).transform(X_NEW), model.transform(X_NEW))


def test_model_saved_between_batches_goes_on(tmp_path: Path) -> None:
    model = small().partial_fit(X[:30])
    again = round_trip(model, tmp_path)
    np.testing.assert_array_equal(again.partial_fit(X[30:]).transform(X_NEW), model.partial_fit(X[30:]).transform(X_NEW))


def test_prior_comes_back(tmp_path: Path) -> None:
    prior = GPPrior(2, max_inducing=10, random_state=0).fit(X)
    assert_same_representation(prior, round_trip(prior, tmp_path), X_NEW)


def test_random_states_come_back_where_they_were(tmp_path: Path) -> None:
    model = small(random_state=np.random.RandomState(3)).fit(X)
    again = round_trip(model, tmp_path)
    assert_same_representation(model, again, X_NEW)
    assert again.random_state.randint(10**9) == model.random_state.randint(10**9)


def test_output_stays_a_data_frame(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = small().set_output(transform="pandas").fit(frame)
    again = round_trip(model, tmp_path)
    pd.testing.assert_frame_equal(again.transform(frame), model.transform(frame))
    with pytest.raises(ValueError, match="feature names"):
        again.transform(frame.rename(columns={"a": "z"}))


CLASSIFIERS = {
    "default": MarginalizedClassifier(small(), n_draws=7, random_state=1),
    "mean": MarginalizedClassifier(small(), n_draws=None),
    "sampled head": MarginalizedClassifier(small(), BayesianLogisticRegression(predictive="sampled", random_state=0), n_draws=5),
    "perceptron": MarginalizedClassifier(small(), PerceptronClassifier(4, max_epochs=5, random_state=0), n_draws=5),
    "clones": MarginalizedClassifier(small(), LogisticRegression(), n_draws=4),
    "clones of a pipeline": MarginalizedClassifier(small(), make_pipeline(StandardScaler(), LogisticRegression()), n_draws=4),
    "prior": MarginalizedClassifier(GPPrior(2, max_inducing=10), n_draws=5, random_state=0),
    "frozen": MarginalizedClassifier(FrozenEstimator(small().fit(X)), n_draws=5, random_state=0),
    "sampled posterior": MarginalizedClassifier(small(inference=Sampling(4, 200, 400), temperature=0.1), n_draws=5, random_state=0),
    "no Fourier features": MarginalizedClassifier(small(kernel=k.NeighborDiffusion(5)), n_draws=5, random_state=0),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_come_back(name: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = clone(CLASSIFIERS[name]).fit(X, Y)
    again = round_trip(model, tmp_path)
    np.testing.assert_array_equal(again.predict_proba(X_NEW), model.predict_proba(X_NEW))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.predict_uncertainty(X_NEW).total, model.predict_uncertainty(X_NEW).total)
    np.testing.assert_array_equal(again.predict_proba_std(X_NEW), model.predict_proba_std(X_NEW))
    assert set(vars(again)) == set(vars(model)) | {"card_"}
    if name != "mean":
        assert again.functions_._features is again.representation_.posterior_.features
        # Called as they are, the functions go on drawing where they stopped.
        np.testing.assert_array_equal(again.functions_(X_NEW), model.functions_(X_NEW))
        with pytest.raises(ValueError, match="FunctionDraws is expecting"):
            again.functions_(X_NEW[:, :1])


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [2.0, 3.0], [10, 20]], ids=str)
def test_classes_of_any_kind_come_back(labels: list[Any], tmp_path: Path) -> None:
    y = np.array([None if label < 0 else labels[label] for label in Y], dtype=object)
    model = MarginalizedClassifier(small(), n_draws=3, random_state=0).fit(X, y)
    again = round_trip(model, tmp_path)
    assert again.classes_.dtype == model.classes_.dtype
    assert again.predict(X_NEW).tolist() == model.predict(X_NEW).tolist()


@pytest.mark.parametrize("head", [None, Ridge(), BayesianRidge(), LinearRegression()], ids=str)
@pytest.mark.parametrize("n_draws", [6, None])
def test_regressors_come_back(head: Any, n_draws: int | None, tmp_path: Path) -> None:
    model = MarginalizedRegressor(small(), head, n_draws=n_draws, random_state=0).fit(X, TARGET)
    again = round_trip(model, tmp_path)
    np.testing.assert_array_equal(again.predict(X_NEW), model.predict(X_NEW))
    np.testing.assert_array_equal(again.predict_interval(X_NEW), model.predict_interval(X_NEW))
    np.testing.assert_array_equal(again.predict_std(X), model.predict_std(X))


def test_classifier_of_a_mixed_frame_comes_back(tmp_path: Path) -> None:
    kind = KINDS["for_table"]
    frame, y = kind.table(kind.training), np.arange(len(kind.training)) % 2
    model = MarginalizedClassifier(small(kernel=kind.kernel), n_draws=5, random_state=0).fit(frame, y)
    again = round_trip(model, tmp_path, trained_on=frame)
    np.testing.assert_array_equal(again.predict_proba(frame), model.predict_proba(frame))
    shuffled = frame[["grade", "size", "color"]]
    np.testing.assert_array_equal(again.representation_.kernel_.prepare(shuffled), model.representation_.kernel_.prepare(shuffled))


def test_another_process_gets_the_same_bits(tmp_path: Path) -> None:
    model = MarginalizedClassifier(small(), n_draws=5, random_state=0).fit(X, Y)
    gpssl.save(model, tmp_path / "model.gpssl")
    np.save(tmp_path / "rows.npy", X_NEW)
    code = "import numpy, gpssl; numpy.save('p.npy', gpssl.load('model.gpssl').predict_proba(numpy.load('rows.npy')))"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), model.predict_proba(X_NEW))


# What a file holds


def test_saving_twice_gives_the_same_arrays_and_replaces_the_file(tmp_path: Path) -> None:
    model = small().fit(X)
    gpssl.save(model, tmp_path / "model.gpssl", notes={"time": 1})
    gpssl.save(model, tmp_path / "model.gpssl", notes={"time": 2})
    assert [path.name for path in tmp_path.iterdir()] == ["model.gpssl"]
    assert gpssl.read_card(tmp_path / "model.gpssl").notes == {"time": 2}


def test_failed_saving_leaves_the_older_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = small().fit(X)
    gpssl.save(model, tmp_path / "model.gpssl")
    content = (tmp_path / "model.gpssl").read_bytes()

    def full(_: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        gpssl.save(model, tmp_path / "model.gpssl")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [content]
    with pytest.raises(FileNotFoundError, match="no folder"):
        gpssl.save(model, tmp_path / "absent" / "model.gpssl")


def test_model_of_zeros_is_no_bomb(tmp_path: Path) -> None:
    """Arrays that compress too well are stored as they are, so that the limit on sizes never hits a file of ours."""
    kernel = k.PrecomputedKernel(np.eye(400))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = small(kernel=kernel, inducing=5, inference="mode").fit(np.arange(400)[:, None])
    again = round_trip(model, tmp_path)
    np.testing.assert_array_equal(again.kernel_.gram, kernel.gram)


def test_parts_are_shared_as_they_were(tmp_path: Path) -> None:
    model = MarginalizedClassifier(FrozenEstimator(small().fit(X)), n_draws=3).fit(X, Y)
    again = round_trip(model, tmp_path)
    assert again.representation_.estimator is again.representation.estimator
    assert again.representation_.features_ is again.functions_._features
    assert again.representation_.kernel_ is again.representation_.features_.kernel


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | hnp.from_dtype(np.dtype("f8")) | hnp.from_dtype(np.dtype("f4")),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_values_come_back_with_type_and_bits(value: Any) -> None:
    encoder = Encoder(FORMS)
    text = json.dumps(encoder.encode(value), allow_nan=False)
    again = Decoder(FORMS, encoder.arrays.__getitem__).decode(json.loads(text))
    assert type(again) is type(value)
    assert repr(again) == repr(value)


# What cannot be saved


def unsaveable(model: Any, folder: Path, rows: Any, match: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rows)
    with pytest.raises(ModelFileError, match=match):
        gpssl.save(model, folder / "model.gpssl")
    assert list(folder.iterdir()) == []


NAMES_OF_GPSSL = """
BayesianLinearRegression BayesianLogisticRegression CategoryKernel ClassifierClones ColumnKernel DiffusionKernel DrawnWeights
Features FunctionDraws GPPrior GPSSL GaussianWeights GroupKernel IncompleteRBF KnownRows LabelledGraph Laplace LinearHeads
LogisticHeads MarginalizedClassifier MarginalizedRegressor MismatchKernel Mode ModeReport Moments NearestNeighborGP
NearestNeighborKernel NeighborDiffusion NeighborRBF NodeDiffusion NodeMatern Objective OptimisationReport OrdinalKernel PairKernel
PerceptronClassifier Perceptrons PointWeights Posterior PrecomputedKernel RandomWalkKernel RegressorClones Sampling SamplingReport
ShortestPathKernel Spectrum SpectrumKernel SubsequenceKernel TfidfKernel Variational WeisfeilerLehmanKernel
"""
NAMES_OF_SCIKIT_LEARN = """
BayesianRidge ConstantKernel DotProduct ExpSineSquared Exponentiation FrozenEstimator LinearRegression LogisticRegression Matern
Pipeline Product RBF RationalQuadratic Ridge StandardScaler Sum TfidfTransformer TfidfVectorizer WhiteKernel make_column_selector
"""


def test_names_in_files_stay_when_classes_are_renamed() -> None:
    names = {f"gpssl.{name}" for name in NAMES_OF_GPSSL.split()} | {f"sklearn.{name}" for name in NAMES_OF_SCIKIT_LEARN.split()}
    names |= {"numpy.RandomState", "scipy.csr_array"}
    assert [name for name in names if name not in FORMS] == []
    assert [name for name in names if FORMS.name_of(FORMS[name].kind) != name] == []


@pytest.mark.parametrize("name", ["from_gpytorch", "CallableKernel"])
def test_kernels_that_are_code_are_refused(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    unsaveable(
        small(kernel=kind.kernel), tmp_path, kind.table(kind.training), "model\\.kernel is .* no code. Use a kernel of gpssl.kernels"
    )


def test_columns_chosen_by_a_function_of_ones_own_are_refused_with_advice(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = small(kernel=k.ColumnKernel([("all", k.NeighborRBF(), lambda header: list(header.columns))]))
    unsaveable(model, tmp_path, frame, r"function .*lambda.*set_params\(kernel=model.kernel_\)")
    assert_same_representation(model, round_trip(model.set_params(kernel=model.kernel_), tmp_path), frame)
    selector = make_column_selector(dtype_include=np.number)
    chosen = small(kernel=k.ColumnKernel([("all", k.NeighborRBF(), selector)])).fit(frame)
    np.testing.assert_array_equal(clone(round_trip(chosen, tmp_path)).fit(frame).transform(frame), chosen.transform(frame))


def test_other_heads_and_other_models_are_refused(tmp_path: Path) -> None:
    model = MarginalizedClassifier(small(), KNeighborsClassifier(3), n_draws=2).fit(X, Y)
    with pytest.raises(ModelFileError, match=r"KNeighborsClassifier.*head of gpssl.downstream"):
        gpssl.save(model, tmp_path / "model.gpssl")
    with pytest.raises(TypeError, match=r"one of GPSSL.*Of a pipeline, save the step"):
        gpssl.save(make_pipeline(StandardScaler(), small()).fit(X), tmp_path / "model.gpssl")
    with pytest.raises(NotFittedError):
        gpssl.save(small(), tmp_path / "model.gpssl")
    with pytest.raises(NotFittedError):
        gpssl.save(MarginalizedClassifier(), tmp_path / "model.gpssl")
    assert list(tmp_path.iterdir()) == []


def test_vectorizer_with_a_function_is_refused_and_a_plain_one_comes_back(tmp_path: Path) -> None:
    kind = KINDS["TfidfKernel"]
    unsaveable(
        small(kernel=k.TfidfKernel(TfidfVectorizer(tokenizer=str.split, token_pattern=None))), tmp_path, kind.training, "function str.split"
    )
    files = [str(path) for path in sorted(Path(__file__).parent.glob("*.py"))]
    unsaveable(small(kernel=k.TfidfKernel(TfidfVectorizer(input="filename"))), tmp_path, files, "a vectorizer that reads files")
    model = fitted(kind, small(kernel=k.TfidfKernel(TfidfVectorizer(ngram_range=(1, 2), dtype=np.float32))))
    assert_same_representation(model, round_trip(model, tmp_path), kind.training[:5])


def test_sparse_graph_of_nodes_comes_back(tmp_path: Path) -> None:
    ring = np.roll(np.eye(30), 1, axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = small(kernel=k.NodeDiffusion(csr_array(ring + ring.T))).fit(np.arange(30))
    assert_same_representation(model, round_trip(model, tmp_path), np.arange(7))


# Pools


@pytest.fixture
def mixed_table() -> Any:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"])
    frame.loc[5:9, "b"] = np.nan
    return frame.assign(kind=np.where(frame["a"] > 0, "up", "down"))


@pytest.mark.parametrize("kind", [MarginalizedClassifier, MarginalizedRegressor])
def test_the_default_pool_comes_back_to_the_last_bit(kind: Any, mixed_table: Any, tmp_path: Path) -> None:
    is_known = np.arange(len(mixed_table)) < 40
    target = (mixed_table["a"] + mixed_table["c"]).to_numpy()
    y = np.where(is_known, target > 0, -1).astype(int) if kind is MarginalizedClassifier else np.where(is_known, target, np.nan)
    model = kind(random_state=0).fit(mixed_table, y)
    loaded = round_trip(model, tmp_path, trained_on=mixed_table)
    np.testing.assert_array_equal(loaded.predict(mixed_table), model.predict(mixed_table))
    np.testing.assert_array_equal(loaded.draw_weights_, model.draw_weights_)
    assert loaded.members_ == model.members_
    if kind is MarginalizedClassifier:
        np.testing.assert_array_equal(loaded.predict_proba_std(mixed_table), model.predict_proba_std(mixed_table))
    else:
        np.testing.assert_array_equal(loaded.predict_interval(mixed_table), model.predict_interval(mixed_table))
    with pytest.warns(OutsideTrainingRangeWarning):
        loaded.predict(mixed_table.assign(c=100.0))


def test_pools_of_draws_means_and_frozen_models_come_back(tmp_path: Path) -> None:
    X, y = load_wine(return_X_y=True)
    frozen = FrozenEstimator(GPSSL(2, random_state=3).fit(X))
    pool = RepresentationPool([("draws", GPSSL(2)), ("kernel", GPSSL(2), "kernel"), ("prior", GPPrior(2)), ("frozen", frozen, "kernel")])
    for n_draws in (5, None):
        few = np.where(np.arange(len(y)) % 5 == 0, y, -1)
        members = pool if n_draws else RepresentationPool([("mean", GPSSL(2)), ("kernel", GPSSL(2), "kernel")])
        model = MarginalizedClassifier(members, n_draws=n_draws, random_state=0).fit(X, few)
        np.testing.assert_array_equal(round_trip(model, tmp_path).predict_proba(X), model.predict_proba(X))


def test_a_pool_alone_comes_back(tmp_path: Path) -> None:
    X, y = load_wine(return_X_y=True)
    pool = RepresentationPool([("columns", k.StandardizedKernel("linear"))], random_state=0).fit(X)
    again = round_trip(pool, tmp_path)
    one, other = (MarginalizedClassifier(FrozenEstimator(given), random_state=0).fit(X, y) for given in (pool, again))
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_representations_of_scikit_learn_come_back(tmp_path: Path) -> None:
    members = [("scaled", StandardScaler()), ("piped", make_pipeline(StandardScaler(), small())), ("mean", small())]
    for representation in (make_pipeline(StandardScaler(), small()), StandardScaler(), RepresentationPool(members)):
        model = MarginalizedClassifier(representation, n_draws=None, random_state=0).fit(X, Y)
        again = round_trip(model, tmp_path)
        np.testing.assert_array_equal(again.predict_proba(X_NEW), model.predict_proba(X_NEW))
