from __future__ import annotations

import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF

from gpssl import GPSSL
from gpssl._runtime.progress import Progress
from gpssl.core._moments import Spectrum
from gpssl.core._objective import EPSILON, ExpectedVarianceLoss, Objective, kl_divergence, represented_covariance
from gpssl.inference import Mode, Sampling, Variational, inference_method
from gpssl.inference._mode import equalizing, shared_mode, spectral_mode
from gpssl.inference._sampling import LEAST_SAMPLES, effective_sample_size, elliptical_slice_samples, split_r_hat
from gpssl.inference._variational import ROUGH_ITERATIONS, STALLED_ERROR, Minimum, _warn_if_stalled

Array = NDArray[np.float64]

FALLING = Spectrum(np.power(0.3, np.arange(8.0)), np.eye(8), residual=1e-4, tail_sum=0.0, tail_sum_of_squares=0.0)
FLAT = Spectrum(np.linspace(0.12, 0.08, 12), np.eye(12), residual=1e-4, tail_sum=0.0, tail_sum_of_squares=0.0)
SPECTRA = pytest.mark.parametrize("spectrum", [FALLING, FLAT], ids=["falling", "flat"])
TEMPERATURES = pytest.mark.parametrize("temperature", [1.0, 0.1, 0.01, 1e-4, 1e-6])


@SPECTRA
@TEMPERATURES
@pytest.mark.parametrize("n_components", [1, 3, 6])
def test_variational_minimum_is_not_moved_by_rounding(spectrum: Spectrum, temperature: float, n_components: int) -> None:
    """Moments that agree to 15 digits must give representations that agree to 8."""
    objective = Objective(50, 10, temperature)
    weights, value, report = Variational().infer(spectrum, objective, n_components, seed=0)
    assert report.error < 1e-6
    noise = 1 + 1e-15 * np.random.default_rng(0).standard_normal(spectrum.rank)
    moved = Spectrum(spectrum.eigenvalues * noise, spectrum.basis, spectrum.residual, 0.0, 0.0)
    other, other_value, _ = Variational().infer(moved, objective, n_components, seed=0)
    scale = np.abs(weights.mean).max() + 1
    np.testing.assert_allclose(other.mean, weights.mean, rtol=1e-8, atol=1e-8 * scale)
    np.testing.assert_allclose(other.std, weights.std, rtol=1e-8)
    assert other_value == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize(
    ("decay", "n_directions", "n_components", "temperature"), [(0.3, 8, 5, 0.03), (0.5, 10, 8, 0.03), (0.5, 10, 8, 0.06)]
)
def test_rounding_does_not_decide_on_the_way_through_a_valley(
    decay: float, n_directions: int, n_components: int, temperature: float
) -> None:
    """Spectra for which the descent with all means free takes about as many steps as it may."""
    means = []
    for seed in range(4):
        noise = 1 + 1e-15 * np.random.default_rng(seed).standard_normal(n_directions)
        spectrum = Spectrum(np.power(decay, np.arange(n_directions)) * noise, np.eye(n_directions), 1e-4, 0.0, 0.0)
        means.append(Variational().infer(spectrum, Objective(50, 10, temperature), n_components, seed=0)[0].mean)
    np.testing.assert_allclose(means[1:], [means[0]] * 3, rtol=1e-8, atol=1e-8 * np.abs(means).max())


@pytest.mark.parametrize("variance", [0.1, 0.01])
def test_one_dimension_at_a_very_low_temperature(variance: float) -> None:
    X = np.random.default_rng(0).standard_normal((30, 2))
    assert GPSSL(1, kernel=variance * RBF(1.0), temperature=1e-7, random_state=0).fit(X).report_.error < 1e-6


@SPECTRA
@TEMPERATURES
@pytest.mark.parametrize("n_components", [3, pytest.param(8, marks=pytest.mark.slow)])
def test_variational_minimum_is_no_worse_than_from_a_random_start(spectrum: Spectrum, temperature: float, n_components: int) -> None:
    """All means free, plain L-BFGS. Within two per cent: one that sharing directions has to gain, one that the draws may flatter."""
    objective = Objective(50, 10, temperature)
    variance = ExpectedVarianceLoss(spectrum, np.arange(n_components), 512, seed=1)
    _, value, _ = Variational().infer(spectrum, objective, n_components, seed=0)
    shape = (n_components, spectrum.rank)

    def free(point: Array) -> tuple[float, Array]:
        mean, std = point[0], np.exp(point[1])
        value, by_mean, by_std = objective.expected(mean, std, spectrum, variance)
        return value, np.stack([by_mean, by_std * std])

    mean = np.random.default_rng(0).standard_normal(shape) / np.sqrt(spectrum.eigenvalues) / 2
    assert value <= _minimum_of(free, np.stack([mean, np.full(shape, np.log(0.5))]), 300) * 1.02 + 1e-6


def _minimum_of(function: Callable[[Array], tuple[float, Array]], start: Array, max_iterations: int) -> float:
    def flat(point: Array) -> tuple[float, Array]:
        value, gradient = function(point.reshape(start.shape))
        return value, gradient.ravel()

    return float(minimize(flat, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": max_iterations}).fun)


def test_high_temperature_gives_the_prior() -> None:
    weights, _, _ = Variational().infer(FLAT, Objective(50, 10, 1e5), 3, seed=0)
    np.testing.assert_allclose(weights.mean, 0, atol=1e-3)
    np.testing.assert_allclose(weights.std, 1, atol=1e-3)


@pytest.mark.parametrize(
    ("weights", "n_components"), [((0, 10), 4), ((0, 10), 14), ((50, 0), 4), ((500, 100), 4), ((1, 1), 1), ((1, 1), 14)]
)
@pytest.mark.parametrize("temperature", [1e3, 1.0, 1e-3])
def test_any_weights_give_a_minimum(weights: tuple[float, float], temperature: float, n_components: int) -> None:
    """Without a variance loss, without a covariance loss, with more dimensions than directions: no warning, nothing but numbers."""
    objective = Objective(*weights, temperature)
    found, value, report = Variational().infer(FLAT, objective, n_components, seed=0)
    assert np.isfinite(found.mean).all()
    assert (found.std > 0).all()
    assert report.error < 1e-2
    variance = ExpectedVarianceLoss(FLAT, np.arange(n_components) % FLAT.rank, 4096, seed=3)
    prior = objective.expected(np.zeros_like(found.mean), np.ones_like(found.std), FLAT, variance).value
    assert value <= prior * 1.05 + 1e-9  # the draws that judge the minimum are good for a few per cent where it is flat


@SPECTRA
@pytest.mark.parametrize("n_components", [3, 6])
def test_mean_that_is_zero_up_to_rounding_is_zero(spectrum: Spectrum, n_components: int) -> None:
    weights, _, report = Variational().infer(spectrum, Objective(50, 10, 5.0), n_components, seed=0)
    assert report.error < 1e-6
    assert (weights.mean == 0).all()


def test_dimensions_that_learn_nothing_have_a_mean_of_zero_and_the_others_keep_theirs() -> None:
    """A temperature at which the last dimension has let go of its direction, and the others have not."""
    weights, _, _ = Variational().infer(FALLING, Objective(50, 10, 0.5), 4, seed=0)
    size = (np.abs(weights.mean) / weights.std).max(axis=1)
    assert (size[:3] > 1).all()
    assert (weights.mean[3] == 0).all()


def test_no_losses_give_the_prior_exactly() -> None:
    weights, value, _ = Variational().infer(FLAT, Objective(0, 0, 1.0), 3, seed=0)
    assert (weights.mean == 0).all()
    np.testing.assert_allclose(weights.std, 1, rtol=1e-7)
    assert value == pytest.approx(0, abs=1e-10)


@SPECTRA
@TEMPERATURES
def test_spectral_mode_is_the_minimum_along_each_direction(spectrum: Spectrum, temperature: float) -> None:
    objective = Objective(50, 10, temperature)
    weights = spectral_mode(spectrum, objective, 3).weights(spectrum.rank)
    for j in range(3):

        def density(size: float, j: int = j) -> float:
            changed = weights.copy()
            changed[j, j] = size
            return float(objective.loss(represented_covariance(changed, spectrum)) + temperature / 2 * (changed**2).sum())

        # A grid, then a search around its best point: the hinge makes the function nonconvex.
        grid = np.linspace(0, 1.5 / np.sqrt(spectrum.eigenvalues[j]), 400)
        best = grid[np.argmin([density(size) for size in grid])]
        width = grid[1]
        found = minimize_scalar(density, bounds=(max(0.0, best - width), best + width), method="bounded", options={"xatol": 1e-10})
        assert density(weights[j, j]) <= found.fun + 1e-9


@given(st.lists(st.floats(0, 10), min_size=1, max_size=12))
def test_equalizing_rotation_is_orthogonal_and_equalizes(eigenvalues: list[float]) -> None:
    falling = np.array(sorted(eigenvalues, reverse=True))
    rotation = equalizing(falling)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(len(falling)), atol=1e-13)
    np.testing.assert_allclose((rotation * falling @ rotation.T).diagonal(), falling.mean(), atol=1e-12)


@pytest.mark.parametrize("n_components", [2, 5, 8, 11])
@pytest.mark.parametrize("weights", [(50, 10), (5, 30), (50, 0), (0, 10)])
@SPECTRA
@TEMPERATURES
def test_shared_mode_is_the_minimum_among_equal_variances(
    spectrum: Spectrum, temperature: float, weights: tuple[float, float], n_components: int
) -> None:
    """The function drawn has equal variances and the value it should have, and no other energies nearby or far are better."""
    objective = Objective(*weights, temperature)
    mixing, scale = shared_mode(spectrum, objective, n_components)
    eigenvalues = spectrum.eigenvalues[: len(scale)]

    def reduced(energies: Array) -> float:
        variance = energies.sum() / n_components
        deviation = np.sqrt(variance + spectrum.residual + EPSILON)
        covariance = (energies**2).sum() / n_components - variance**2
        loss = objective.variance_weight * max(0.0, 1 - deviation) + objective.covariance_weight * covariance
        return float(loss + temperature / 2 * (energies / eigenvalues).sum())

    energies = scale**2 * eigenvalues
    mode = mixing * scale
    covariance = represented_covariance(np.pad(mode, ((0, 0), (0, spectrum.rank - len(scale)))), spectrum)
    np.testing.assert_allclose(covariance.diagonal(), energies.sum() / n_components + spectrum.residual, atol=1e-10)
    value = float(objective.loss(covariance) + temperature / 2 * (mode**2).sum())
    assert value == pytest.approx(reduced(energies), abs=1e-9)
    rng = np.random.default_rng(0)
    largest = n_components * (1 - spectrum.residual - EPSILON)
    for _ in range(50):
        for size in (1e-3, 0.1, 1.0):
            other = np.abs(energies + size * rng.standard_normal(len(energies)))
            other *= min(1.0, largest / other.sum())
            assert reduced(other) >= value - 1e-9


@SPECTRA
@TEMPERATURES
@pytest.mark.parametrize("n_components", [3, 8])
def test_mode_is_no_worse_than_from_random_starts(spectrum: Spectrum, temperature: float, n_components: int) -> None:
    """All weights free; the hinge's kink is left to L-BFGS, which reaches it closely enough for two per cent."""
    objective = Objective(50, 10, temperature)
    _, value, _ = Mode().infer(spectrum, objective, n_components, seed=0)
    certain = ExpectedVarianceLoss(spectrum, np.arange(n_components), 64, seed=0)

    def smoothed(weights: Array) -> tuple[float, Array]:
        expected = objective.expected(weights, np.full_like(weights, 1e-3), spectrum, certain)
        constant = objective.temperature * kl_divergence(np.zeros_like(weights), np.full_like(weights, 1e-3)).value
        return expected.value - constant, expected.by_mean

    for seed in range(2):
        start = np.random.default_rng(seed).standard_normal((n_components, spectrum.rank)) / np.sqrt(spectrum.eigenvalues) / 2
        assert value <= _minimum_of(smoothed, start, 500) * 1.02 + 1e-6


@SPECTRA
@TEMPERATURES
def test_mode_is_no_worse_than_any_draw_or_start(spectrum: Spectrum, temperature: float) -> None:
    objective = Objective(50, 10, temperature)
    point, value, _ = Mode().infer(spectrum, objective, 3, seed=0)
    assert (point.mean[:, spectrum.rank :] == 0).all()
    covariance = represented_covariance(point.mean, spectrum)
    assert value == pytest.approx(float(objective.loss(covariance)) + temperature / 2 * (point.mean**2).sum(), rel=1e-12)
    rng = np.random.default_rng(0)
    for size in (0.0, 1e-3, 1e-1, 1.0):
        near = point.mean + size * rng.standard_normal((200, *point.mean.shape))
        density = objective.loss(represented_covariance(near, spectrum)) + temperature / 2 * (near**2).sum(axis=(1, 2))
        assert density.min() >= value * 0.99 - 1e-9


@pytest.mark.parametrize("inference", ["mode", "variational"])
def test_one_dimension_is_the_first_kernel_principal_component(circles: Array, circle_kernel: RBF, inference: str) -> None:
    ssl = GPSSL(1, kernel=circle_kernel, inducing="all", inference=inference, random_state=0).fit(circles)
    component = KernelPCA(1, kernel=circle_kernel).fit_transform(circles)[:, 0]
    assert abs(np.corrcoef(ssl.transform(circles)[:, 0], component)[0, 1]) > 0.9999


@pytest.mark.parametrize("inducing", ["all", "rows"])
def test_at_low_temperature_the_mean_spans_the_leading_kernel_principal_components(
    circles: Array, circle_kernel: RBF, inducing: str
) -> None:
    ssl = GPSSL(4, kernel=circle_kernel, inducing=circles if inducing == "rows" else "all", temperature=1e-4, random_state=0).fit(circles)
    components = KernelPCA(4, kernel=circle_kernel).fit_transform(circles)
    mean = ssl.transform(circles)
    bases = [np.linalg.qr(values - values.mean(axis=0))[0] for values in (mean, components)]
    cosines = np.linalg.svd(bases[0].T @ bases[1], compute_uv=False)
    assert cosines.min() > 0.9999


def test_elliptical_slice_sampling_of_a_normal_likelihood_gives_the_normal_posterior() -> None:
    """N(x; 0, I) N(x; 2, 0.5²): mean 1.6, variance 0.2 in each coordinate."""
    rng = np.random.default_rng(0)
    samples = elliptical_slice_samples(
        lambda x: -0.5 * (((x - 2) / 0.5) ** 2).sum(axis=-1), np.zeros((50, 3)), 100, 2000, rng, Progress("", 2100, enabled=False)
    )
    size = effective_sample_size(samples)
    error = np.sqrt(0.2 / size)
    assert (np.abs(samples.mean(axis=(0, 1)) - 1.6) < 4 * error).all()
    np.testing.assert_allclose(samples.var(axis=(0, 1)), 0.2, rtol=0.05)


def test_sampling_agrees_with_importance_sampling() -> None:
    """At weights that leave the posterior close to the prior, where importance sampling from the prior works."""
    objective = Objective(5, 1, 1.0)
    weights, mean_loss, report = Sampling(n_chains=20, n_samples=1000).infer(FLAT, objective, 2, seed=0)
    assert report.r_hat < 1.05
    assert report.loss_effective_sample_size > 1000
    prior = np.random.default_rng(1).standard_normal((400_000, 2, 12))
    losses = objective.loss(represented_covariance(prior, FLAT))
    importance = np.exp(-losses)
    importance /= importance.sum()
    expected_loss = importance @ losses
    spread = np.sqrt(importance @ (losses - expected_loss) ** 2)
    assert mean_loss == pytest.approx(expected_loss, abs=4 * spread / np.sqrt(report.loss_effective_sample_size))
    squares = np.einsum("s,sja->ja", importance, prior**2)
    np.testing.assert_allclose((weights.draws**2).mean(axis=0), squares, atol=5 * np.sqrt(2 / 1000))


@pytest.mark.slow
def test_sampled_loss_is_below_what_the_best_normal_distribution_reaches() -> None:
    """The exact posterior minimizes E[ℓ] + τ KL over all distributions, so −τ log Z, its minimum, bounds the variational value.

    log Z by annealed importance: d log Z / dβ = −E_β[ℓ], integrated over the inverse temperature β from 0 to 1/τ.
    """
    temperature = 0.5
    _, variational_value, _ = Variational().infer(FLAT, Objective(5, 1, temperature), 2, seed=0)
    nodes, node_weights = np.polynomial.legendre.leggauss(8)
    betas = (nodes + 1) / 2 / temperature
    losses = [Sampling(n_chains=20, n_samples=500).infer(FLAT, Objective(5, 1, 1 / beta), 2, seed=1)[1] for beta in betas]
    exact_minimum = temperature * float(node_weights / 2 / temperature @ losses)
    assert 0.5 * variational_value < exact_minimum < variational_value


def test_unmixed_chains_are_reported(circles: Array) -> None:
    with pytest.warns(ConvergenceWarning, match="have not mixed"):
        ssl = GPSSL(5, inference=Sampling(n_chains=4, n_warmup=5, n_samples=20), random_state=0).fit(circles)
    assert ssl.report_.r_hat > 1.05


def test_sampling_carries_through_the_estimator(circles: Array) -> None:
    sampling = Sampling(n_chains=8, n_samples=500)
    ssl = GPSSL(2, temperature=1.0, variance_weight=5, covariance_weight=1, inference=sampling, random_state=0).fit(circles)
    assert ssl.transform(circles).shape == ssl.std(circles).shape == (450, 2)
    assert ssl.report_.r_hat < 1.05
    assert np.isfinite(ssl.score(circles))


@given(st.floats(-0.5, 0.95), st.integers(0, 100))
@settings(max_examples=15)
def test_effective_sample_size_of_an_autoregression(correlation: float, seed: int) -> None:
    """n (1 − φ) / (1 + φ) for x_t = φ x_{t−1} + noise."""
    rng = np.random.default_rng(seed)
    chains = np.empty((8, 4000))
    chains[:, 0] = rng.standard_normal(8)
    for t in range(1, 4000):
        chains[:, t] = correlation * chains[:, t - 1] + np.sqrt(1 - correlation**2) * rng.standard_normal(8)
    expected = 8 * 4000 * (1 - correlation) / (1 + correlation)
    assert float(effective_sample_size(chains)) == pytest.approx(expected, rel=0.4)
    assert float(split_r_hat(chains)) == pytest.approx(1, abs=0.03)


def test_r_hat_sees_chains_that_disagree_and_chains_that_drift() -> None:
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((4, 1000))
    assert split_r_hat(noise + np.arange(4)[:, None]) > 1.5
    assert split_r_hat(noise + np.linspace(0, 5, 1000)) > 1.2
    assert split_r_hat(np.ones((4, 1000))) == 1


@pytest.mark.parametrize("stops_after", [1, LEAST_SAMPLES, 7])
def test_chains_that_are_asked_to_stop_have_the_samples_so_far_and_a_few_at_least(stops_after: int) -> None:
    """What they have is the beginning of the longer chains."""

    def sampled(steps: Any) -> Array:
        rng = np.random.default_rng(0)
        progress = Progress("", 15, enabled=False)
        return elliptical_slice_samples(lambda x: -0.5 * (x**2).sum(axis=-1), np.zeros((2, 3)), 5, 10, rng, progress, steps)

    class Stopping(SimpleNamespace):
        asked = 0

        @property
        def stopped(self) -> bool:
            self.asked += 1
            return self.asked > 5 + stops_after - 1

    whole = sampled(None)
    assert whole.shape == (2, 10, 3)
    part = sampled(Stopping())
    np.testing.assert_array_equal(part, whole[:, : max(LEAST_SAMPLES, stops_after)])


def test_methods_of_inference_have_names() -> None:
    for name, method in (("variational", Variational), ("sampling", Sampling), ("mode", Mode)):
        assert type(inference_method(name)) is method
    own = Sampling(2, 3, 4)
    assert inference_method(own) is own
    for wrong in ("map", Variational, 3, None):
        with pytest.raises(ValueError, match="must be one of variational, sampling, mode or an object of"):
            inference_method(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("n_draws", [0, -2, 3, 12, 2.0, "4"])
def test_draws_are_a_power_of_two(n_draws: Any) -> None:
    with pytest.raises(ValueError, match="n_draws must be a power of two, got"):
        Variational(n_draws).infer(FALLING, Objective(50, 10, 0.1), 2, seed=0)
    Variational(4, precise=False).infer(FALLING, Objective(50, 10, 0.1), 2, seed=0)
    with pytest.raises(ValueError, match="max_iterations"):
        Variational(4, 0).infer(FALLING, Objective(50, 10, 0.1), 2, seed=0)


@SPECTRA
def test_a_rough_minimum_is_found_in_few_steps_and_is_nearly_as_good(spectrum: Spectrum) -> None:
    objective = Objective(50, 10, 0.01)
    _, value, report = Variational().infer(spectrum, objective, 3, seed=0)
    weights, rough, rough_report = Variational(precise=False).infer(spectrum, objective, 3, seed=0)
    assert rough_report.n_iterations <= ROUGH_ITERATIONS < report.n_iterations
    assert rough == pytest.approx(value, rel=0.05)
    assert np.isfinite(weights.mean).all()
    one = Variational(precise=False, max_iterations=1).infer(spectrum, objective, 3, seed=0)[2]
    assert one.n_iterations <= 1


@pytest.mark.parametrize(("error", "stalls"), [(0.0, False), (0.99 * STALLED_ERROR, False), (1.01 * STALLED_ERROR, True), (np.nan, True)])
def test_a_descent_that_has_not_ended_is_told(error: float, stalls: bool) -> None:
    nothing = np.zeros((1, 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _warn_if_stalled(Minimum(nothing, nothing, 0.0, 1, error, nothing))
    assert [each.category for each in caught] == [ConvergenceWarning] * stalls
