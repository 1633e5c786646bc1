"""Have the chains mixed: split R-hat and effective sample size.

Gelman et al., Bayesian Data Analysis, third edition, sections 11.4 and 11.5; Geyer 1992 for where to cut the autocorrelations.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def split_r_hat(chains: Array) -> Array:
    """Potential scale reduction of each quantity, from chains [n_chains, n_samples, ...], each split in two. [...]

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
    """How many independent draws the chains [n_chains, n_samples, ...] are worth for the mean of each quantity. [...]

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
    """Each chain as two chains of half its length. [2 n_chains, n_samples // 2, ...]"""
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, half : 2 * half]])


def _autocovariance(chains: Array) -> Array:
    """At all lags, by fast Fourier transform. [n_chains, n_samples, ...]"""
    n_samples = chains.shape[1]
    centered = chains - chains.mean(axis=1, keepdims=True)
    transform = np.fft.rfft(centered, n=2 * n_samples, axis=1)
    return np.fft.irfft(np.abs(transform) ** 2, axis=1)[:, :n_samples] / n_samples
