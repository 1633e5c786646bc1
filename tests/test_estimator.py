from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import SkipTestWarning
from sklearn.gaussian_process import kernels as sk
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_html_repr
from sklearn.utils.estimator_checks import check_estimator
from threadpoolctl import threadpool_limits

from gpssl import GPSSL, MarginalizedClassifier, Moments
from gpssl.inference import Mode, Variational
from gpssl.kernels import NeighborRBF
from strings import SharedLetters

Array = NDArray[np.float64]


def assert_same(one: GPSSL, other: GPSSL, X: NDArray[Any], rtol: float = 1e-8) -> None:
    """The same posterior: means, standard deviations and objective."""
    mean = one.transform(X)
    np.testing.assert_allclose(other.transform(X), mean, rtol=rtol, atol=rtol * np.abs(mean).max())
    np.testing.assert_allclose(other.std(X), one.std(X), rtol=rtol)
    assert other.objective_ == pytest.approx(one.objective_, rel=rtol)


# scikit-learn's contract


def test_check_estimator_without_expected_failures() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        # Two of the checks fit five components to four distinct rows, and are told so.
        warnings.filterwarnings("ignore", "The kernel sees only 3 direction")
        results = check_estimator(GPSSL())
    assert {result["status"] for result in results} <= {"passed", "skipped"}
    assert sum(result["status"] == "passed" for result in results) > 45


def test_fit_does_not_change_constructor_arguments(circles: Array) -> None:
    kernel: sk.Kernel = 2.0 * NeighborRBF(20) + sk.WhiteKernel(0.1)
    inference = Variational(64)
    ssl = GPSSL(2, kernel=kernel, inference=inference, inducing=circles[:50], residual_tolerance=0.1)
    before = repr((kernel.get_params(), inference.get_params()))
    ssl.fit(circles)
    assert repr((kernel.get_params(), inference.get_params())) == before
    assert ssl.kernel is kernel
    assert ssl.inference is inference


def test_clone_and_pickle_round_trips(circles: Array) -> None:
    ssl = GPSSL(3, kernel=NeighborRBF(20), random_state=0).fit(circles)
    copy = pickle.loads(pickle.dumps(ssl))
    np.testing.assert_array_equal(copy.transform(circles), ssl.transform(circles))
    np.testing.assert_array_equal(copy.sample(circles[:5], 2), ssl.sample(circles[:5], 2))
    fresh = clone(ssl)
    assert not hasattr(fresh, "moments_")
    np.testing.assert_array_equal(fresh.fit(circles).transform(circles), ssl.transform(circles))


def test_same_seed_same_bytes(circles: Array) -> None:
    one, two = (GPSSL(3, random_state=7).fit(circles) for _ in range(2))
    assert one.transform(circles).tobytes() == two.transform(circles).tobytes()
    assert one.std(circles).tobytes() == two.std(circles).tobytes()


def test_fit_transform_equals_fit_then_transform(circles: Array) -> None:
    np.testing.assert_array_equal(GPSSL(3, random_state=0).fit_transform(circles), GPSSL(3, random_state=0).fit(circles).transform(circles))


def test_pandas_in_and_out(breast_cancer: Array) -> None:
    frame = pd.DataFrame(breast_cancer, columns=[f"c{i}" for i in range(30)])
    ssl = GPSSL(2, random_state=0).set_output(transform="pandas").fit(frame)
    out = ssl.transform(frame)
    assert list(out.columns) == list(ssl.get_feature_names_out()) == ["gpssl_1", "gpssl_2"]
    assert list(ssl.feature_names_in_) == list(frame.columns)
    assert ssl.std(frame).shape == (569, 2)
    assert ssl.draw_functions(3)(frame).shape == (3, 569, 2)


def test_works_in_pipelines_and_grid_search(breast_cancer: Array) -> None:
    y = np.arange(len(breast_cancer)) % 2
    pipeline = make_pipeline(StandardScaler(), GPSSL(2, random_state=0), LogisticRegression())
    grid = {"gpssl__n_components": [1, 2], "gpssl__kernel__neighborhood": [10, 20], "gpssl__inference__n_draws": [64]}
    pipeline.set_params(gpssl__kernel=NeighborRBF(), gpssl__inference=Variational())
    search = GridSearchCV(pipeline, grid, cv=2).fit(breast_cancer[:100], y[:100])
    assert search.best_params_["gpssl__n_components"] in (1, 2)


def test_html_and_text_representations() -> None:
    ssl = GPSSL(3, kernel=NeighborRBF(20))
    assert "neighborhood=20" in repr(ssl)
    assert "GPSSL" in estimator_html_repr(ssl)


def test_progress_on_request(circles: Array, capsys: pytest.CaptureFixture[str]) -> None:
    GPSSL(2, random_state=0, verbose=True).fit(circles)
    error = capsys.readouterr().err
    assert "inducing points" in error
    assert "450 of 450 rows" in error
    assert "objective" in error
    GPSSL(2, random_state=0).fit(circles)
    assert capsys.readouterr() == ("", "")


# The same answer however the rows come


@pytest.mark.parametrize("n_blocks", [1, 7, 64])
def test_chunks_do_not_matter(circles: Array, n_blocks: int) -> None:
    whole = GPSSL(5, random_state=0).fit(circles)
    parts = GPSSL(5, kernel=whole.kernel_, inducing=whole.inducing_points_, random_state=0)
    for part in np.array_split(circles, n_blocks):
        parts.partial_fit(part)
    assert_same(whole, parts, circles)


def test_order_of_rows_does_not_matter(circles: Array, breast_cancer: Array) -> None:
    for X in (circles, breast_cancer):
        order = np.random.default_rng(0).permutation(len(X))
        assert_same(GPSSL(5, random_state=0).fit(X), GPSSL(5, random_state=0).fit(X[order]), X)


def test_number_of_threads_does_not_matter(circles: Array, breast_cancer: Array) -> None:
    for X in (circles, breast_cancer):
        fits = []
        for n_threads in (1, 2):
            with threadpool_limits(n_threads):
                fits.append(GPSSL(5, random_state=0).fit(X))
        assert_same(fits[0], fits[1], X)
        np.testing.assert_array_equal(fits[0].transform(X), fits[1].transform(X))


@pytest.mark.parametrize("seed", range(3))
def test_weights_count_as_repetitions(circles: Array, seed: int) -> None:
    weight = np.random.default_rng(seed).integers(0, 4, size=len(circles))
    weighted = GPSSL(5, random_state=0).fit(circles, sample_weight=weight)
    repeated = GPSSL(5, random_state=0).fit(np.repeat(circles, weight, axis=0))
    assert weighted.temperature_ == repeated.temperature_ == 1 / weight.sum()
    assert_same(weighted, repeated, circles)


def test_dimensions_that_share_directions_do_not_depend_on_the_order_of_rows(circles: Array) -> None:
    """With more dimensions than directions worth having the objective has many minima of nearly the same value."""
    fits = [GPSSL(10, random_state=0).fit(rows) for rows in (circles, circles[np.random.default_rng(0).permutation(450)])]
    assert fits[0].report_.start == "shared"
    np.testing.assert_allclose(fits[1].transform(circles), fits[0].transform(circles), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(fits[1].std(circles), fits[0].std(circles), rtol=1e-8)


@given(st.lists(st.integers(1, 449), min_size=1, max_size=5, unique=True))
@settings(max_examples=10)
def test_partial_fit_in_any_split_equals_fit(cuts: list[int]) -> None:
    from gpssl.datasets import quadrant_circles

    X = quadrant_circles()[0]
    whole = GPSSL(3, random_state=0).fit(X)
    parts = GPSSL(3, kernel=whole.kernel_, inducing=whole.inducing_points_, random_state=0)
    for part in np.split(X, sorted(cuts)):
        parts.partial_fit(part)
    assert_same(whole, parts, X)


@given(st.floats(1e-8, 1e8), st.floats(-1e3, 1e3))
@settings(max_examples=10)
def test_units_and_origin_do_not_matter(scale: float, shift: float) -> None:
    from gpssl.datasets import quadrant_circles

    X = quadrant_circles()[0]
    moved = (X + shift) * scale
    kernel = sk.RBF(0.8)
    one = GPSSL(3, kernel=kernel, inducing=X[::5], random_state=0).fit(X)
    other = GPSSL(3, kernel=sk.RBF(0.8 * scale), inducing=moved[::5], random_state=0).fit(moved)
    np.testing.assert_allclose(other.std(moved), one.std(X), rtol=1e-5)
    np.testing.assert_allclose(np.abs(other.transform(moved)), np.abs(one.transform(X)), atol=1e-4)


def test_partial_fit_after_use_learns_more(circles: Array) -> None:
    ssl = GPSSL(2, kernel=sk.RBF(1.0), inducing=circles[::3], random_state=0).partial_fit(circles[:225])
    early = ssl.transform(circles)
    late = ssl.partial_fit(circles[225:]).transform(circles)
    assert not np.allclose(early, late)
    assert_same(GPSSL(2, kernel=sk.RBF(1.0), inducing=circles[::3], random_state=0).fit(circles), ssl, circles)


def test_two_sites_share_moments_and_no_rows(circles: Array, tmp_path: Path) -> None:
    """Fit at one site, send kernel and inducing points to another, add what comes back."""
    here = GPSSL(3, random_state=0).fit(circles)
    there = GPSSL(3, kernel=here.kernel_, inducing=here.inducing_points_, random_state=0).fit(circles[:100] * 0.9)
    there.moments_.save(tmp_path / "there.npz")
    both = here.refit(moments=here.moments_ + Moments.load(tmp_path / "there.npz"))
    rows = np.vstack([circles, circles[:100] * 0.9])
    together = GPSSL(3, kernel=here.kernel_, inducing=here.inducing_points_, random_state=0).fit(rows)
    assert_same(together, both, circles)


# Refitting


def test_refit_equals_fit_and_leaves_the_original_alone(circles: Array) -> None:
    ssl = GPSSL(5, random_state=0).fit(circles)
    before = ssl.transform(circles)
    changes: dict[str, Any]
    for changes in (
        {"n_components": 2},
        {"temperature": 0.01},
        {"variance_weight": 20.0, "covariance_weight": 5.0},
        {"target_std": 0.5, "epsilon": 1e-3},
        {"inference": "mode"},
    ):
        refitted = ssl.refit(**changes)
        fitted = GPSSL(random_state=0).set_params(**changes).fit(circles)
        assert_same(fitted, refitted, circles)
        assert refitted.get_params()["n_components"] == changes.get("n_components", 5)
    np.testing.assert_array_equal(ssl.transform(circles), before)


def test_refit_says_what_it_cannot_change(circles: Array) -> None:
    ssl = GPSSL(2, random_state=0).fit(circles)
    with pytest.raises(ValueError, match="cannot change kernel"):
        ssl.refit(kernel=sk.RBF())
    with pytest.raises(ValueError, match="n_components must be a whole number"):
        ssl.refit(n_components=0)


# The constants of the variance loss


@pytest.mark.parametrize("inference", ["variational", "mode"])
@pytest.mark.parametrize("temperature", [1 / 450, 0.05])
def test_target_std_scales_the_representation(circles: Array, inference: str, temperature: float) -> None:
    """With f = γ g: ℓ_var(f; γ, ε) = γ ℓ_var(g; 1, ε/γ²) and ℓ_cov(f) = γ⁴ ℓ_cov(g), while g has the kernel k/γ²."""
    target, epsilon = 3.0, 1e-2
    settings: dict[str, Any] = {"residual_tolerance": 0.1, "temperature": temperature, "inference": inference, "random_state": 0}
    scaled: dict[str, Any] = {"variance_weight": 50 * target, "covariance_weight": 10 * target**4, "epsilon": epsilon / target**2}
    wide = GPSSL(3, kernel=sk.RBF(0.5), target_std=target, epsilon=epsilon, **settings).fit(circles)
    unit = GPSSL(3, kernel=target**-2 * sk.RBF(0.5), **scaled, **settings).fit(circles)
    assert wide.objective_ == pytest.approx(unit.objective_, rel=1e-8)
    np.testing.assert_allclose(wide.transform(circles), target * unit.transform(circles), atol=1e-6)
    np.testing.assert_allclose(wide.std(circles), target * unit.std(circles), atol=1e-6)
    assert wide.score(circles) == pytest.approx(unit.score(circles), rel=1e-8)


def test_at_low_temperature_every_dimension_has_the_target_std(circles: Array) -> None:
    for target in (1.0, 2.0, 5.0):
        mean = GPSSL(3, temperature=1e-5, target_std=target, random_state=0).fit_transform(circles)
        np.testing.assert_allclose(mean.std(axis=0, ddof=1), target, rtol=0.1)


def test_a_large_epsilon_counts_as_spread(circles: Array) -> None:
    """At the mode C_jj + ε = γ²."""
    mean = GPSSL(2, epsilon=0.36, inference="mode", random_state=0).fit_transform(circles)
    np.testing.assert_allclose(mean.std(axis=0, ddof=1), 0.8, rtol=1e-3)


# Means that say nothing

NOTHING = "lower the temperature, or use draws"


def test_at_temperature_1_the_mean_is_zero_and_says_so(circles: Array) -> None:
    ssl = GPSSL(5, temperature=1.0, random_state=0).fit(circles)
    with pytest.warns(UserWarning, match=NOTHING) as caught:
        assert (ssl.transform(circles) == 0).all()
    assert (len(caught), caught[0].filename) == (1, __file__)
    with pytest.warns(UserWarning, match=NOTHING):
        mean, std = ssl.mean_and_std(circles)
    assert (mean == 0).all()
    assert (std > 0).all()


def test_draws_at_temperature_1_need_no_warning(circles: Array) -> None:
    y = (np.hypot(*circles.T) > 0.75).astype(int)
    ssl = GPSSL(5, temperature=1.0, random_state=0).fit(circles)
    assert np.ptp(ssl.sample(circles, 2), axis=1).min() > 0.1
    assert ssl.std(circles).min() > 0
    assert MarginalizedClassifier(ssl, n_draws=20, random_state=0).fit(circles, y).score(circles, y) > 0.9
    with pytest.warns(UserWarning, match=NOTHING):
        model = MarginalizedClassifier(ssl, n_draws=None, random_state=0).fit(circles, y)
    with pytest.warns(UserWarning, match=NOTHING):
        np.testing.assert_allclose(model.predict_proba(circles), np.tile(np.bincount(y) / len(y), (len(y), 1)), atol=0.02)


# Score


def test_score_on_the_training_rows_is_the_negative_objective(circles: Array) -> None:
    for temperature in (1.0, 1 / 450):
        ssl = GPSSL(3, temperature=temperature, random_state=0).fit(circles)
        assert -ssl.score(circles) == pytest.approx(ssl.objective_, rel=0.01)
    mode = GPSSL(3, inference="mode", random_state=0).fit(circles)
    assert -mode.score(circles) == pytest.approx(mode.objective_, rel=0.01)


def test_score_on_new_rows_prefers_rows_of_the_same_kind(circles: Array) -> None:
    from gpssl.datasets import quadrant_circles

    ssl = GPSSL(3, random_state=0).fit(circles)
    similar = quadrant_circles(seed=1)[0]
    assert ssl.score(similar) > ssl.score(similar * 0.2)


# Kernels


ALL_KERNELS = [
    sk.RBF(0.8),
    sk.RBF([0.8, 1.2]),
    sk.Matern(1.0, nu=0.5),
    sk.Matern(1.0, nu=1.5),
    sk.Matern(1.0, nu=2.5),
    sk.RationalQuadratic(1.0, 0.5),
    sk.DotProduct(1.0) ** 3,
    sk.ConstantKernel(2.0) * sk.RBF(0.8),
    sk.RBF(0.8) + sk.WhiteKernel(0.1),
    sk.RBF(0.5) * sk.Matern(2.0) + sk.ConstantKernel(0.5),
    sk.PairwiseKernel(metric="laplacian", gamma=0.5),
    sk.PairwiseKernel(metric="rbf", gamma=0.5),
    sk.PairwiseKernel(metric="polynomial", gamma=0.5),
    sk.Exponentiation(sk.RationalQuadratic(), 2),
    2.0 * NeighborRBF(20) + sk.WhiteKernel(0.1),
]


@pytest.mark.parametrize("kernel", ALL_KERNELS, ids=str)
def test_every_kernel_of_scikit_learn_works(kernel: sk.Kernel, circles: Array) -> None:
    ssl = GPSSL(2, kernel=kernel, inducing=circles[::2], residual_tolerance=0.2, random_state=0).fit(circles)
    mean, std = ssl.transform(circles), ssl.std(circles)
    assert np.isfinite(mean).all()
    assert (std > 0).all()
    # Unit variance in each dimension, little correlation: what the losses ask for.
    covariance = np.cov(mean.T)
    assert (np.sqrt(covariance.diagonal()) > 0.8).all()
    assert abs(covariance[0, 1]) < 0.2


def test_periodic_kernel_in_one_column() -> None:
    X = np.sort(np.random.default_rng(0).uniform(0, 10, 200))[:, None]
    ssl = GPSSL(2, kernel=sk.ExpSineSquared(1.0, 2.0), random_state=0).fit(X)
    np.testing.assert_allclose(ssl.transform(X + 2.0), ssl.transform(X), atol=1e-6)


def test_strings_with_a_kernel_for_strings() -> None:
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("ab" if i % 2 else "cd"), size=6)) for i in range(80)]
    ssl = GPSSL(2, kernel=SharedLetters(), random_state=0).fit(words)
    mean = ssl.transform(words)
    assert mean.shape == (80, 2)
    kinds = np.arange(80) % 2
    assert abs(np.corrcoef(mean[:, 0], kinds)[0, 1]) > 0.95
    functions = ssl.draw_functions(4)
    np.testing.assert_allclose(functions(words[3:5]), functions(words)[:, 3:5], atol=1e-6)


# Kinds of rows


def test_frame_with_inducing_points_from_an_array(breast_cancer: Array) -> None:
    frame = pd.DataFrame(breast_cancer, columns=[f"c{i}" for i in range(30)])
    ssl = GPSSL(2, random_state=0).fit(frame)
    again = GPSSL(2, kernel=ssl.kernel_, inducing=ssl.inducing_points_, random_state=0).fit(frame)
    np.testing.assert_allclose(again.transform(frame), ssl.transform(frame), atol=1e-7)


def test_parameters_changed_after_fit_do_not_matter_before_the_next(circles: Array) -> None:
    ssl = GPSSL(2, random_state=0).set_output(transform="pandas").fit(circles)
    ssl.set_params(n_components=3, temperature=5.0)
    assert ssl.transform(circles).shape == (450, 2)
    assert ssl.temperature_ == 1 / 450


class Word:
    """A row that is an object of its own class, with a default repr."""

    def __init__(self, text: str) -> None:
        self.text = text


class SharedLettersOfWords(SharedLetters):
    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Array:
        return super().__call__([x.text for x in X], None if Y is None else [y.text for y in Y])


def test_objects_survive_pickling() -> None:
    rng = np.random.default_rng(0)
    words = [Word("".join(rng.choice(list("abcd"), size=6))) for _ in range(60)]
    ssl = GPSSL(2, kernel=SharedLettersOfWords(), random_state=0).fit(words)
    copy = pickle.loads(pickle.dumps(ssl))
    assert copy.residual_ == ssl.residual_
    np.testing.assert_array_equal(copy.refit().transform(words), ssl.transform(words))


def test_frame_of_one_text_column_with_a_kernel_for_strings() -> None:
    words = ["aab", "abb", "ccd", "cdd", "acd", "bbb"] * 5
    frame = pd.DataFrame({"text": words})
    ssl = GPSSL(2, kernel=SharedLetters(), random_state=0)
    np.testing.assert_allclose(ssl.fit(frame).transform(frame), clone(ssl).fit(words).transform(words), atol=1e-8)


def test_too_few_directions_are_reported() -> None:
    X = np.random.default_rng(0).standard_normal((100, 2))
    with pytest.warns(UserWarning, match="sees only 2 direction"):
        ssl = GPSSL(4, kernel=sk.DotProduct(), random_state=0).fit(X)
    assert np.isfinite(ssl.transform(X)).all()


def test_inference_objects_are_accepted(circles: Array) -> None:
    assert GPSSL(2, inference=Mode(), random_state=0).fit(circles).transform(circles).shape == (450, 2)
