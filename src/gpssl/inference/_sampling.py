"""The exact generalized posterior, by elliptical slice sampling."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from .._runtime.progress import SILENT, Progress, Steps, Task
from .._validation import check_number
from ..core._moments import Spectrum, Ties
from ..core._objective import Objective, represented_covariance
from ..core._posterior import DrawnWeights
from ._variational import Variational

Array = NDArray[np.float64]


def split_r_hat(chains: Array) -> Array:
    """Return the potential scale reduction of each quantity, from chains [n_chains, n_samples, ...], each split in two. [...]

    R̂ = sqrt(((n − 1)/n · W + B/n) / W),      W = mean of the within-chain variances,      B/n = variance of the chain means
    """
    halves = _split(chains)
    n_samples = halves.shape[1]
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    total = (n_samples - 1) / n_samples * within + between
    constant = total <= 0
    return np.where(constant, 1.0, np.sqrt(total / np.where(constant, 1.0, within)))


def effective_sample_size(chains: Array) -> Array:
    """Return how many independent draws the chains [n_chains, n_samples, ...] are worth for the mean of each quantity. [...]

    n_eff = m n / (1 + 2 Σ_t ρ_t),      ρ_t = 1 − (W − mean autocovariance at lag t) / (W (n − 1)/n + B/n)

    The sum runs over pairs ρ_2t + ρ_2t+1 while they are positive, made monotone.
    """
    halves = _split(chains)
    n_chains, n_samples = halves.shape[:2]
    covariance = _autocovariance(halves).mean(axis=0)
    within = covariance[0] * n_samples / (n_samples - 1)
    total = covariance[0] + halves.mean(axis=1).var(axis=0, ddof=1)
    safe_total = np.where(total > 0, total, 1.0)
    correlation = 1 - (within - covariance) / safe_total
    correlation[0] = 1.0
    even = n_samples - n_samples % 2
    pairs = correlation[:even:2] + correlation[1:even:2]
    positive = np.cumprod(pairs > 0, axis=0)
    monotone = np.minimum.accumulate(pairs, axis=0) * positive
    time = -1 + 2 * monotone.sum(axis=0)
    n_total = n_chains * n_samples
    return np.where(total > 0, n_total / np.maximum(time, 1 / np.log10(n_total)), n_total)


def _split(chains: Array) -> Array:
    """Split each chain into two of half its length. [2 n_chains, n_samples // 2, ...]"""
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, half : 2 * half]])


def _autocovariance(chains: Array) -> Array:
    """Return the autocovariance at all lags, by fast Fourier transform. [n_chains, n_samples, ...]"""
    n_samples = chains.shape[1]
    centered = chains - chains.mean(axis=1, keepdims=True)
    transform = np.fft.rfft(centered, n=2 * n_samples, axis=1)
    return np.fft.irfft(np.abs(transform) ** 2, axis=1)[:, :n_samples] / n_samples


MIXED_R_HAT = 1.05
STORED_DRAWS = 1000
LEAST_SAMPLES = 4
WIDENING = 1.2


class SamplingReport(NamedTuple):
    """How well the chains mixed."""

    r_hat: float
    """Largest split R-hat over the loss and all weights; near 1 when the chains agree."""
    effective_sample_size: float
    """Smallest effective sample size over the loss and all weights."""
    loss_r_hat: float
    """Split R-hat of the loss alone, which no relabeling or rotation of the dimensions changes."""
    loss_effective_sample_size: float
    n_tied: int = 0
    """Leading directions that the rows do not tell from others, because their eigenvalues are the same: see `gpssl.core.Spectrum.ties`."""
    n_left_out: int = 0
    """Equals of theirs that are not among the leading directions, and could have been as well."""


class Sampling(BaseEstimator):
    """Draws from p̃(v) ∝ N(v; 0, I) exp(−ℓ(C(v))/τ), the minimizer of the objective over *all* distributions.

    Elliptical slice sampling (Murray, Adams and MacKay 2010), all chains at once. The ellipses are those of the variational solution,
    widened a little, rather than the prior's: p̃ is rewritten as a normal density times a correction, which is exact, and the
    steps have the size of the posterior instead of the prior.

    The posterior does not change when dimensions swap or change sign. At low temperature the chains stay at the copy that they
    start from, which is what gives the dimensions a meaning; at high temperature they visit all copies and the means vanish.

    Parameters
    ----------
    n_chains, n_warmup, n_samples
        Chains, steps thrown away and steps kept of each. A thousand draws, evenly spaced, are stored.
    """

    def __init__(self, n_chains: int = 8, n_warmup: int = 500, n_samples: int = 1000) -> None:
        self.n_chains = n_chains
        self.n_warmup = n_warmup
        self.n_samples = n_samples

    def infer(
        self, spectrum: Spectrum, objective: Objective, n_components: int, seed: int, *, verbose: bool = False, task: Task = SILENT
    ) -> tuple[DrawnWeights, float, SamplingReport]:
        """Return draws of the weights, their mean loss, and how well the chains mixed."""
        for name, least in (("n_chains", 1), ("n_warmup", 1), ("n_samples", LEAST_SAMPLES)):
            check_number(name, getattr(self, name), Integral, at_least=least)
        guide, _, _ = Variational().infer(spectrum, objective, n_components, seed)
        center, width = guide.mean, WIDENING * guide.std

        def loss(weights: Array) -> Array:
            return objective.loss(represented_covariance(weights, spectrum))

        def log_correction(standard: Array) -> Array:
            weights = center + width * standard
            prior = -0.5 * (weights**2).sum(axis=(-2, -1))
            ellipse = -0.5 * (standard**2).sum(axis=(-2, -1))
            return prior - loss(weights) / objective.temperature - ellipse

        rng = np.random.default_rng(seed)
        basis = spectrum.basis[:, : spectrum.rank]
        start = _standard_normal(rng, (self.n_chains, *center.shape), basis) / WIDENING
        n_steps = self.n_warmup + self.n_samples
        with task.steps("sampling", "step", n_steps) as steps:
            progress = Progress("sampling", n_steps, unit="steps", enabled=verbose, listener=steps.listener)
            standard = elliptical_slice_samples(log_correction, start, self.n_warmup, self.n_samples, rng, progress, steps, basis)
        weights = center + width * standard
        losses = np.stack([loss(chain) for chain in weights])
        report = _report(weights, losses, spectrum.ties(n_components))
        stored = weights.reshape(-1, *center.shape)
        kept = np.linspace(0, len(stored) - 1, min(STORED_DRAWS, len(stored))).astype(int)
        return DrawnWeights(stored[kept]), float(losses.mean()), report


def elliptical_slice_samples(
    log_likelihood: Callable[[Array], Array],
    start: Array,
    n_warmup: int,
    n_samples: int,
    rng: np.random.Generator,
    progress: Progress,
    steps: Steps | None = None,
    basis: Array | None = None,
) -> Array:
    """Draw chains from N(x; 0, I)·likelihood(x), shorter ones where a callback asks to stop. [n_chains, n_samples, ...]

    With the `basis` of the directions that x goes along, chains turn as these do: see `_standard_normal`.
    """
    state, level = start, log_likelihood(start)
    samples = np.empty((len(start), n_samples, *start.shape[1:]))
    for step in range(-n_warmup, n_samples):
        state, level = _elliptical_slice_step(log_likelihood, state, level, rng, basis)
        if step >= 0:
            samples[:, step] = state
        progress.advance(1)
        if steps and steps.stopped and step + 1 >= LEAST_SAMPLES:
            samples = samples[:, : step + 1]
            break
    progress.finish()
    return samples


def _standard_normal(rng: np.random.Generator, shape: tuple[int, ...], basis: Array | None) -> Array:
    """Draw independent normal numbers along the directions that are the columns of an orthonormal basis [M, r]. [..., r]

    They are drawn for the inducing points and turned: where eigenvalues nearly coincide, rounding decides on the directions, but hardly on
    the functions that are drawn like this.
    """
    return rng.standard_normal(shape) if basis is None else rng.standard_normal((*shape[:-1], len(basis))) @ basis


def _elliptical_slice_step(
    log_likelihood: Callable[[Array], Array], state: Array, level: Array, rng: np.random.Generator, basis: Array | None
) -> tuple[Array, Array]:
    """Move every chain by one step: shrink the bracket of angles on the ellipse until a point lies above the slice.

    x' = x cos θ + ν sin θ,      ν ~ N(0, I)
    """
    n_chains = len(state)
    other = _standard_normal(rng, state.shape, basis)
    threshold = level + np.log1p(-rng.random(n_chains))
    angle = rng.uniform(0, 2 * np.pi, n_chains)
    lower, upper = angle - 2 * np.pi, angle.copy()
    new_state, new_level = state.copy(), level.copy()
    open_chains = np.arange(n_chains)
    while len(open_chains) > 0:
        theta = angle[open_chains].reshape(-1, *[1] * (state.ndim - 1))
        proposal = state[open_chains] * np.cos(theta) + other[open_chains] * np.sin(theta)
        proposed = log_likelihood(proposal)
        above = proposed > threshold[open_chains]
        new_state[open_chains[above]], new_level[open_chains[above]] = proposal[above], proposed[above]
        open_chains = open_chains[~above]
        behind = angle[open_chains] < 0
        lower[open_chains[behind]] = angle[open_chains[behind]]
        upper[open_chains[~behind]] = angle[open_chains[~behind]]
        angle[open_chains] = rng.uniform(lower[open_chains], upper[open_chains])
        # A bracket that has shrunk to rounding error holds the current state, which lies above the slice.
        open_chains = open_chains[upper[open_chains] - lower[open_chains] > 1e-14]
    return new_state, new_level


def _report(weights: Array, losses: Array, ties: Ties) -> SamplingReport:
    quantities = [*weights.swapaxes(0, 2).swapaxes(1, 2), losses[..., None]]  # one dimension at a time, to spare memory
    r_hat = np.concatenate([split_r_hat(values) for values in quantities])
    size = np.concatenate([effective_sample_size(values) for values in quantities])
    report = SamplingReport(float(r_hat.max()), float(size.min()), float(r_hat[-1]), float(size[-1]), *ties)
    if report.r_hat > MIXED_R_HAT:
        warnings.warn(
            f"The chains have not mixed: split R-hat {report.r_hat:.2f}, effective sample size {report.effective_sample_size:.0f}. "
            "Take more samples with inference=Sampling(n_samples=...), or raise the temperature.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return report
