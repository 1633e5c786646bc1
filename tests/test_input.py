"""What is refused, with which sentence; what is odd and works; and that a call that fails loses nothing."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import kernels as sk

from gpssl import GPSSL, MarginalizedClassifier, RepresentationPool
from gpssl.inference import Mode, Sampling, Variational
from gpssl.kernels import IncompleteRBF, NeighborRBF, StandardizedKernel

Array = NDArray[np.float64]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components must be a whole number of at least 1"),
        ({"n_components": 2.5}, "n_components must be a whole number"),
        ({"n_components": True}, "n_components"),
        ({"temperature": -1.0}, 'temperature must be a number above 0 or "auto"'),
        ({"temperature": 0}, "temperature"),
        ({"temperature": np.nan}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"variance_weight": -1}, "variance_weight"),
        ({"covariance_weight": np.inf}, "covariance_weight"),
        ({"target_std": 0}, "target_std must be a number above 0, got 0"),
        ({"target_std": "wide"}, "target_std"),
        ({"epsilon": 0.0}, "epsilon must be a number above 0, got 0.0"),
        ({"epsilon": np.nan}, "epsilon"),
        ({"variance_loss": "positive"}, "variance_loss must be one of hinge, negative, got 'positive'"),
        ({"variance_loss": None}, "variance_loss"),
        ({"variance_loss": "negative"}, "no minimum at a temperature of 0.00222222: raise the temperature above"),
        ({"variance_loss": "negative", "inference": "mode"}, "no minimum"),
        ({"variance_loss": "negative", "inference": "sampling"}, "no minimum"),
        ({"temperature": np.array([0.1, 0.2])}, "temperature"),
        ({"n_components": 10**400}, "n_components"),
        ({"inducing": 0}, "inducing must be a whole number of at least 1"),
        ({"inducing": 50.0}, "inducing must be a whole number"),
        ({"inducing": "some"}, '"all"'),
        ({"inducing": np.zeros((3, 5))}, "2 features"),
        ({"max_inducing": 0}, "max_inducing"),
        ({"residual_tolerance": -1}, "residual_tolerance"),
        ({"inference": "guess"}, "variational, sampling, mode"),
        ({"inference": None}, "variational, sampling, mode"),
        ({"inference": Mode}, "variational, sampling, mode"),
        ({"inference": Variational(63)}, "power of two"),
        ({"inference": Variational(64.0)}, "power of two"),  # type: ignore[arg-type]
        ({"inference": Variational(max_iterations=0)}, "max_iterations must be a whole number of at least 1"),
        ({"inference": Sampling(n_samples=3)}, "n_samples must be a whole number of at least 4"),
        ({"kernel": sk.RBF(0.0)}, "not finite"),
        ({"kernel": sk.RBF(np.nan)}, "not finite"),
        ({"kernel": sk.WhiteKernel()}, "no two rows have anything in common"),
        ({"kernel": sk.RBF() * sk.WhiteKernel()}, "no two rows have anything in common"),
        ({"kernel": sk.PairwiseKernel(metric="sigmoid")}, "not positive semi-definite"),
        ({"kernel": sk.PairwiseKernel(metric="sigmoid", gamma=-1)}, "not positive semi-definite"),
        ({"kernel": sk.CompoundKernel([sk.RBF(), sk.RBF()])}, "CompoundKernel"),
        ({"kernel": sk.ConstantKernel()}, "nothing to learn"),
        ({"kernel": NeighborRBF(-3)}, "neighborhood must be a number above 0"),
    ],
)
def test_bad_parameters_get_a_sentence(circles: Array, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GPSSL(**{"n_components": 2, **parameters}).fit(circles)


def test_kernel_that_is_no_kernel_gets_a_sentence(circles: Array) -> None:
    with pytest.raises(TypeError, match="kernel must be a kernel object"):
        GPSSL(2, kernel="rbf").fit(circles)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[1.0, np.nan], [2.0, 3.0], [3.0, 1.0]]), "NaN"),
        (np.array([[1.0, np.inf], [2.0, 3.0], [3.0, 1.0]]), "infinity"),
        (np.ones((1, 2)), "minimum of 2"),
        (np.random.default_rng(0).standard_normal((4, 2)), "4 rows cannot show 5 uncorrelated dimensions"),
        (np.ones((50, 2)), "All rows look the same"),
        (np.zeros((50, 2)), "All rows look the same"),
        (np.empty((0, 2)), "0 sample"),
        (np.ones(5), "2D array"),
    ],
)
def test_bad_rows_get_a_sentence(X: Array, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GPSSL(5).fit(X)


def test_missing_cells_get_a_sentence_that_says_what_to_do() -> None:
    frame = pd.DataFrame({"a": [1.0, np.nan, 2.0, 4.0], "b": [1.0, 2.0, 3.0, 5.0]})
    with pytest.raises(ValueError, match=r"contains NaN.*IncompleteRBF.*for_table"):
        GPSSL(2).fit(frame.to_numpy())
    with pytest.raises(ValueError, match=r"contains NaN.*IncompleteRBF.*for_table"):
        GPSSL(2, kernel=NeighborRBF()).fit(frame)


def test_dates_with_a_kernel_for_numbers_get_a_sentence() -> None:
    frame = pd.DataFrame({"when": pd.date_range("2026-01-01", periods=20), "value": np.arange(20.0)})
    with pytest.raises(TypeError, match="works on numbers: encode such columns"):
        GPSSL(2, kernel=NeighborRBF()).fit(frame)


DATES = pd.DataFrame({"when": pd.date_range("2026-01-01", periods=20, tz="UTC"), "value": np.arange(20.0)})
LISTS = pd.DataFrame({"cells": [[1, 2], [3]] * 10, "value": np.arange(20.0)})
TEXTS = pd.DataFrame({"cells": ["a", "b"] * 10, "value": np.arange(20.0)})


@pytest.mark.parametrize("kernel", [NeighborRBF(), IncompleteRBF()], ids=str)
@pytest.mark.parametrize("frame", [DATES, LISTS, TEXTS], ids=["dates", "lists", "texts"])
def test_columns_that_are_no_numbers_get_a_sentence(frame: pd.DataFrame, kernel: sk.Kernel) -> None:
    with pytest.raises((ValueError, TypeError), match="works on numbers: encode such columns"):
        GPSSL(2, kernel=kernel).fit(frame)


@pytest.mark.parametrize("kernel", [NeighborRBF(), IncompleteRBF(), StandardizedKernel()], ids=str)
def test_complex_numbers_get_one_sentence(circles: Array, kernel: sk.Kernel) -> None:
    with pytest.raises(ValueError, match=r"^Complex data not supported: pass real and imaginary parts as columns of their own\.$"):
        GPSSL(2, kernel=kernel).fit(circles + 1j)
    with pytest.raises(ValueError, match="Complex data not supported"):
        GPSSL(2, kernel=kernel).fit(pd.DataFrame(circles).assign(other=1j))


@pytest.mark.parametrize("kernel", [None, NeighborRBF(), StandardizedKernel()], ids=str)
def test_columns_of_one_name_get_a_sentence(circles: Array, kernel: sk.Kernel | None) -> None:
    with pytest.raises(ValueError, match="Several columns are called 'twice': give each its own name"):
        GPSSL(2, kernel=kernel).fit(pd.DataFrame(circles, columns=["twice", "twice"]))


@pytest.mark.parametrize("model", [GPSSL(2), GPSSL(2, kernel=NeighborRBF()), RepresentationPool(), MarginalizedClassifier()], ids=repr)
def test_tables_of_arrow_get_a_sentence(model: Any) -> None:
    table = pa.table({"a": np.arange(9.0), "b": ["x", "y", "z"] * 3})
    with pytest.raises(TypeError, match=r"got Table of pyarrow: pass X\.to_pandas\(\), or the name of a file"):
        model.fit(table, np.arange(9) % 2)


def test_cells_of_several_numbers_get_a_sentence() -> None:
    frame = pl.DataFrame({"pair": [{"left": 0.0, "right": 1.0}] * 9, "size": np.arange(9.0)})
    with pytest.raises(TypeError, match="A cell of a table must be a number, text, a category or a date"):
        GPSSL(2).fit(frame)


def test_text_with_a_kernel_for_numbers_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="works on numbers: encode such columns"):
        GPSSL(2).fit([["red", "1"], ["green", "2"], ["blue", "3"]])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.full(450, -1.0), "[Nn]egative"),
        (np.zeros(450), "zero"),
        (np.full(450, 1 / 450), "A weight counts rows"),
        (np.full(450, np.nan), "NaN"),
        (np.full(450, 1e200), "scale them down"),
        (np.ones(3), "sample_weight.shape"),
    ],
)
def test_bad_weights_get_a_sentence(circles: Array, weight: Array, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GPSSL(2, kernel=sk.RBF(), inducing=circles[:20]).fit(circles, sample_weight=weight)


@pytest.mark.parametrize("method", ["transform", "std", "sample", "score", "draw_functions", "refit"])
def test_calling_before_fit_gets_a_sentence(circles: Array, method: str) -> None:
    arguments = () if method in ("draw_functions", "refit") else (circles,)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(GPSSL(), method)(*arguments)
    assert not hasattr(GPSSL(), "posterior_")


@pytest.mark.parametrize("method", ["transform", "std", "sample", "score", "partial_fit"])
def test_wrong_number_of_columns_gets_a_sentence(circles: Array, method: str) -> None:
    ssl = GPSSL(2, random_state=0).fit(circles)
    with pytest.raises(ValueError, match="X has 3 features, but GPSSL is expecting 2"):
        getattr(ssl, method)(np.zeros((4, 3)))
    assert ssl.transform(circles).shape == (450, 2), "a refused call must lose nothing"


@pytest.mark.parametrize("size", [1e-150, 1e-30, 1e30, 1e150])
def test_values_of_any_size(circles: Array, size: float) -> None:
    plain, scaled = GPSSL(2, random_state=0).fit(circles), GPSSL(2, random_state=0).fit(circles * size)
    assert np.isfinite(scaled.std(circles * size)).all()
    # The sample of rows is chosen by content, so the inducing points differ, and the representation a little.
    difference = np.abs(np.abs(scaled.transform(circles * size)) - np.abs(plain.transform(circles)))
    assert difference.max() < 0.2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fixed = GPSSL(2, kernel=sk.RBF(1.0), random_state=0)
        try:
            assert np.isfinite(fixed.fit(circles * size).std(circles)).all()
        except ValueError as error:
            assert "All rows look the same" in str(error)  # noqa: PT017  (either is right, a NaN is not)


def test_mixed_sizes_and_constant_columns(circles: Array) -> None:
    X = np.column_stack([circles * [1e-9, 1e9], np.full(450, 3.0), np.zeros(450)])
    ssl = GPSSL(2, random_state=0).fit(X)
    np.testing.assert_allclose(np.std(ssl.transform(X), axis=0), 1, atol=0.1)


def test_duplicated_rows_are_no_problem(circles: Array) -> None:
    ssl = GPSSL(2, random_state=0).fit(np.repeat(circles[:30], 20, axis=0))
    assert np.isfinite(ssl.transform(circles)).all()
    assert len(ssl.inducing_points_) <= 30


@pytest.mark.parametrize("bad", [np.ones((50, 2)), np.full((50, 2), np.nan), np.ones((50, 3))], ids=["equal", "NaN", "equal, wider"])
def test_a_fit_that_fails_loses_nothing(circles: Array, bad: Array) -> None:
    ssl = GPSSL(2, random_state=0).fit(circles)
    mean, std = ssl.transform(circles), ssl.std(circles)
    with pytest.raises(ValueError, match=r"All rows look the same|NaN"):
        ssl.fit(bad)
    np.testing.assert_array_equal(ssl.transform(circles), mean)
    np.testing.assert_array_equal(ssl.std(circles), std)
    with pytest.raises(ValueError, match=r"All rows look the same|NaN"):
        GPSSL(2).fit(bad)


def test_a_first_partial_fit_that_fails_leaves_an_unfitted_estimator(circles: Array) -> None:
    ssl = GPSSL(5, random_state=0)
    with pytest.raises(ValueError, match="first rows choose"):
        ssl.partial_fit(np.ones((3, 7)))
    ssl.partial_fit(circles)
    assert ssl.n_features_in_ == 2


def test_noise_that_differs_between_rows_is_no_problem(circles: Array) -> None:
    kernel = sk.RBF(1.0) + sk.WhiteKernel(0.1) * sk.DotProduct()
    ssl = GPSSL(2, kernel=kernel, random_state=0).fit(circles)
    nugget = 0.1 * sk.DotProduct().diag(circles)
    assert ssl.residual_ == pytest.approx(nugget.mean() / (1 + nugget).mean(), rel=0.01)


def test_partial_fit_warns_of_the_residual_too(circles: Array) -> None:
    ssl = GPSSL(2, kernel=sk.RBF(0.3), max_inducing=5, random_state=0).partial_fit(circles)
    with pytest.warns(UserWarning, match="5 inducing points leave"):
        ssl.transform(circles)


def test_first_rows_must_be_enough_for_what_they_choose(circles: Array) -> None:
    with pytest.raises(ValueError, match="first rows choose"):
        GPSSL(5).partial_fit(circles[:4])
    with pytest.raises(ValueError, match="first rows choose"):
        GPSSL(5, inducing=circles[:50]).partial_fit(circles[:1])
    GPSSL(5, kernel=sk.RBF(1.0), inducing=circles[:50]).partial_fit(circles[:1])
