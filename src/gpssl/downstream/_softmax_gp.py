"""Multinomial logistic regression in the dual: a softmax Gaussian process on the labeled rows, by Laplace's approximation.

A Bayesian logistic regression on features φ is a Gaussian process with the kernel φ(x)ᵀφ(y). Where features are many and labels few, the
work is on matrices of labels by labels, for many kernels at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dtrmm
from scipy.linalg.lapack import dpotri, dpotrs, dtrtri

from .._runtime.threads import map_on_threads
from ..data._arrays import row_blocks
from ._laplace import BLOCK_NUMBERS, WORTH_A_THREAD

Array = NDArray[np.float64]

MAX_STEPS = 100
TOLERANCE = 1e-6
"""Newton decrement, the squared distance to the mode in posterior standard deviations, at which to stop."""
LARGEST_SHIFT = 3.0
"""Largest step from the mode to the mean, in posterior standard deviations of a labeled row's logit; see `gpssl.downstream._laplace`."""
KEPT_NUMBERS = 2**20
"""Numbers in the curvature of all processes up to which it is kept with the posterior: 8 MB. Beyond, it is computed again when needed."""
TINY = np.finfo(float).tiny
ARRAYS = ("dual", "latent", "curvature_root", "log_evidence", "converged")


@dataclass(frozen=True)
class SoftmaxPosterior:
    """Posteriors of B softmax Gaussian processes with n labeled rows and K classes, one for each prior covariance C [B, n, n].

    K logits f_k ~ GP(0, C), independently; p(y = k | x) = softmax(f(x))_k. Only differences of logits count, so that two classes need a
    single latent function, f_1 − f_0 ~ GP(0, 2C). With L latent functions (L = K, or 1 for two classes) and W the negative Hessian of the
    log likelihood at the mode, the posterior at new rows with prior covariances c = C(x, rows) and C(x, x) is normal:

        mean = cᵀ a      covariance = C(x, x) − cᵀ (C + W⁻¹)⁻¹ c

    W = w (diag p − p pᵀ) for each row, so that (C + W⁻¹)⁻¹ has blocks δ_kl E_k − E_k S⁻¹ E_l with E_k = (C + (w p_k)⁻¹)⁻¹ and
    S = Σ_k E_k (Rasmussen and Williams, 2006, section 3.5): L + 1 inverses of n × n rather than one of Ln × Ln.
    """

    n_classes: int
    dual: Array
    """a of the posterior mean, which lies beyond the mode by the next order of the expansion. [B, L, n]"""
    latent: Array
    """f at the labeled rows, at the mode: where Newton's method may begin for much the same rows. [B, L, n]"""
    curvature_root: Array
    """Square root of the diagonal part of W. [B, L, n]"""
    log_evidence: Array
    """Laplace's approximation of log p(y | C). [B]"""
    converged: NDArray[np.bool_]
    """[B]"""
    curvature: Curvature | None = None
    """(C + W⁻¹)⁻¹, where it is small enough to be kept for predictions."""


def prior_factor(n_classes: int) -> float:
    """Return the factor from C to the prior covariance of a latent function: two for the difference of two logits."""
    return 2.0 if n_classes == 2 else 1.0


def fit_softmax_gps(covariances: Array, one_hot: Array, weight: Array, start: Array | None = None) -> SoftmaxPosterior:
    """Return the posterior for each prior covariance C [B, n, n], from indicators of classes [K, n] and weights of rows [n].

    Newton's method begins at f = 0, or a step from `start` [B, L, n] where ψ is larger there. ψ is concave: both lead to the same mode.
    """
    n_gps, n_rows, _ = covariances.shape
    n_latent = 1 if len(one_hot) == 2 else len(one_hot)
    at_a_time = max(1, BLOCK_NUMBERS // (2 * n_latent * n_rows**2))
    # Parts do not depend on the number of threads, so neither does the result.
    size = at_a_time if n_gps * n_latent * n_rows**2 < WORTH_A_THREAD else min(at_a_time, -(-n_gps // 2))
    blocks = list(row_blocks(n_gps, max(1, size)))
    keeps = n_gps * (n_latent + 1) * n_rows**2 <= KEPT_NUMBERS

    def fit(block: slice) -> SoftmaxPosterior:
        return _Newton(covariances[block], one_hot, weight).run(None if start is None else start[block], keeps=keeps)

    return _joined(map_on_threads(fit, blocks))


def _joined(parts: list[SoftmaxPosterior]) -> SoftmaxPosterior:
    """Join the posteriors of consecutive parts of the processes."""
    arrays: dict[str, Any] = {name: np.concatenate([part[name] for part in map(vars, parts)]) for name in ARRAYS}
    curvatures = [part.curvature for part in parts if part.curvature is not None]
    return SoftmaxPosterior(parts[0].n_classes, **arrays, curvature=Curvature.joined(curvatures) if curvatures else None)


class _Newton:
    """Newton's method on  ψ(f) = Σ_n w_n log p(y_n | f_n) − ½ Σ_l f_lᵀ C⁻¹ f_l,  with f = C a, for B covariances at once.

    step       a ← b − (C + W⁻¹)⁻¹ C b,      b = W f + w (y − p)
    evidence   log p(y | C) ≈ ψ(f) − ½ log |I + C W|
    mean       a − ½ (t − (C + W⁻¹)⁻¹ C t),  t_nk = w_n p_k (q_k − Σ_l p_l q_l),  q_k = (e_k − p)ᵀ Cov(f_n) (e_k − p)

    The last line is the next order in 1/n, as in `gpssl.downstream._laplace`.
    """

    def __init__(self, covariances: Array, one_hot: Array, weight: Array) -> None:
        self.n_classes = len(one_hot)
        self.C = prior_factor(self.n_classes) * covariances
        self.is_binary = self.n_classes == 2
        self.labels = one_hot[1:] if self.is_binary else one_hot
        self.weight = weight

    def run(self, start: Array | None = None, *, keeps: bool = False) -> SoftmaxPosterior:
        """Step until the decrement is below the tolerance for all processes; those that are done stay where they are.

        `keeps` says whether the curvature is kept with the result.
        """
        n_gps, n_rows, _ = self.C.shape
        a = np.zeros((n_gps, len(self.labels), n_rows))
        if start is not None:
            # Of a start only f is taken: it varies little with the rows that have a label, whereas C a is sensitive to a.
            led = self._newton_point(self.C, start)
            is_better = self._objective(self.C, led) > self._objective(self.C, a)
            a[is_better] = led[is_better]
        active = np.arange(n_gps)
        for _ in range(MAX_STEPS):
            some, C = a[active], self.C if len(active) == n_gps else self.C[active]
            step = self._newton_point(C, some @ C) - some
            decrement = (step * (step @ C)).sum(axis=(1, 2))
            a[active] = self._move(C, some, step)
            active = active[decrement > TOLERANCE]
            if len(active) == 0:
                break
        converged = np.ones(n_gps, dtype=bool)
        converged[active] = False
        return self._posterior(a, converged, keeps=keeps)

    def _likelihood(self, f: Array) -> tuple[Array, Array]:
        """Return the log likelihood [B] and the probabilities of the classes that have a latent function [B, L, n]."""
        if self.is_binary:
            log_total = np.logaddexp(0.0, f)
            return ((f * self.labels - log_total) * self.weight).sum(axis=(1, 2)), np.exp(f - log_total)
        shifted = f - f.max(axis=1, keepdims=True)
        log_proba = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        return (log_proba * self.labels * self.weight).sum(axis=(1, 2)), np.exp(log_proba)

    def _curvature_times(self, p: Array, f: Array) -> Array:
        """Return W f. [B, L, n]"""
        if self.is_binary:
            return self.weight * p * (1 - p) * f
        return self.weight * p * (f - (p * f).sum(axis=1, keepdims=True))

    def _root_of_curvature(self, p: Array) -> Array:
        """Return the square root of the diagonal part of W, which is all of it for two classes. [B, L, n]"""
        return np.sqrt(np.maximum(self.weight * (p * (1 - p) if self.is_binary else p), TINY))

    def _newton_point(self, C: Array, f: Array) -> Array:
        """Return the a where a full step from f leads."""
        _, p = self._likelihood(f)
        b = self._curvature_times(p, f) + self.weight * (self.labels - p)
        image = b @ C
        root = self._root_of_curvature(p)
        shifted = _shifted(C, root)
        if self.is_binary:
            return b - root * _solved(_factored(shifted), root * image)
        return b - _structured(root[..., None] * _inverse(_factored(shifted)) * root[..., None, :], image)

    def _move(self, C: Array, a: Array, step: Array) -> Array:
        """Return a + t step, with t halved for the processes whose ψ would fall."""
        before, size = self._objective(C, a), np.ones(len(a))
        for _ in range(30):
            moved = a + size[:, None, None] * step
            falls = self._objective(C, moved) < before - 1e-10 * (1 + np.abs(before))
            if not falls.any():
                break
            size[falls] /= 2
        return moved

    def _objective(self, C: Array, a: Array) -> Array:
        f = a @ C
        return self._likelihood(f)[0] - 0.5 * (a * f).sum(axis=(1, 2))

    def _posterior(self, mode: Array, converged: NDArray[np.bool_], *, keeps: bool) -> SoftmaxPosterior:
        f = mode @ self.C
        likelihood, p = self._likelihood(f)
        root = self._root_of_curvature(p)
        factor = _factored(_shifted(self.C, root))
        curvature = Curvature.of_factor(factor, root)
        # |I + C W| = Π_k |I + C w p_k| |S| / Π w, since W is a diagonal part less one of rank n.
        log_volume = 2 * np.log(np.diagonal(factor, axis1=2, axis2=3)).sum(axis=(1, 2))
        if curvature.root is not None:
            log_volume += np.linalg.slogdet(curvature.blocks.sum(axis=1))[1] - np.log(self.weight).sum()
        evidence = likelihood - 0.5 * (mode * f).sum(axis=(1, 2)) - 0.5 * log_volume
        mean = mode + self._shift(p, curvature)
        return SoftmaxPosterior(self.n_classes, mean, f, root, evidence, converged, curvature if keeps else None)

    def _shift(self, p: Array, curvature: Curvature) -> Array:
        """Return −½ (t − (C + W⁻¹)⁻¹ C t), from the mode to the mean. [B, L, n]"""
        prior = np.diagonal(self.C, axis1=1, axis2=2)[:, None]
        if curvature.root is None:
            own = prior - np.stack([curvature.squares(place, C) for place, C in enumerate(self.C)])[:, None]
            third = self.weight * p * (1 - p) * (1 - 2 * p) * own
            spread = own
        else:
            projected = self.C[:, None] @ curvature.blocks
            own = prior - (projected * self.C[:, None]).sum(axis=3)
            shared = np.swapaxes(projected @ curvature.root.swapaxes(1, 2)[:, None], 1, 2)
            covariance = shared @ shared.swapaxes(2, 3) + np.swapaxes(own, 1, 2)[..., None] * np.eye(own.shape[1])
            spread = np.diagonal(covariance, axis1=2, axis2=3).swapaxes(1, 2)
            third = self.weight * _third_derivative(p.swapaxes(1, 2), covariance).swapaxes(1, 2)
        shift = -0.5 * (third - curvature.times(third @ self.C))
        moved = np.abs(shift @ self.C) / np.sqrt(np.maximum(spread, TINY))
        largest = moved.max(axis=(1, 2), keepdims=True)
        return shift * np.minimum(1.0, LARGEST_SHIFT / np.maximum(largest, LARGEST_SHIFT))


@dataclass(frozen=True)
class Curvature:
    """(C + W⁻¹)⁻¹ in its blocks δ_kl E_k − E_k S⁻¹ E_l, for B covariances C."""

    blocks: Array
    """E_k; for two classes, where there is one block, an upper triangular G with G Gᵀ = E: half of the work. [B, L, n, n]"""
    root: Array | None
    """R with RᵀR = S⁻¹; None for two classes. [B, n, n]"""

    @classmethod
    def of(cls, C: Array, curvature_root: Array) -> Curvature:
        """Return the blocks from the square root of the diagonal part of W."""
        return cls.of_factor(_factored(_shifted(C, curvature_root)), curvature_root)

    @classmethod
    def of_factor(cls, factor: Array, curvature_root: Array) -> Curvature:
        """Return the blocks from the Cholesky factors of I + D^½ C D^½ too. [B, L, n, n]"""
        if factor.shape[1] == 1:
            return cls(curvature_root[..., None] * _transposed_inverse(factor), None)
        inverse = curvature_root[..., None] * _inverse(factor) * curvature_root[..., None, :]
        total = inverse.sum(axis=1)
        return cls(inverse, np.linalg.inv(np.linalg.cholesky((total + total.swapaxes(1, 2)) / 2)))

    @classmethod
    def joined(cls, parts: list[Curvature]) -> Curvature:
        """Join the blocks of consecutive covariances."""
        roots = [part.root for part in parts if part.root is not None]
        return cls(np.concatenate([part.blocks for part in parts]), np.concatenate(roots) if roots else None)

    def take(self, place: int) -> Curvature:
        """Return the blocks of one covariance, as the only one."""
        return Curvature(self.blocks[place : place + 1], None if self.root is None else self.root[place : place + 1])

    def squares(self, index: int, c: Array) -> Array:
        """Return cᵀ E c = |Gᵀ c|² for each row of c, where there is one block. [n]"""
        # LAPACK sees the same bytes transposed: a lower triangular Gᵀ, and the rows of c as columns.
        projected = dtrmm(1.0, self.blocks[index, 0].T, c.T, lower=1)
        return np.einsum("mn,mn->n", projected, projected)

    def times(self, z: Array) -> Array:
        """Return (C + W⁻¹)⁻¹ z for z [B, L, n]. [B, L, n]"""
        if self.root is None:
            return ((z[..., None, :] @ self.blocks) @ self.blocks.swapaxes(2, 3))[..., 0, :]
        return _structured(self.blocks, z, self.root)

    def logit_covariance(self, index: int, c: Array, own: Array) -> Array:
        """Return the posterior covariance of the latent functions at new rows, from prior covariances c [n, n labeled] and variances [n].

        C(x, x) − cᵀ (C + W⁻¹)⁻¹ c. [n, L, L]
        """
        if self.root is None:
            return (own - self.squares(index, c))[:, None, None]
        projected = c @ self.blocks[index]
        left = own[:, None] - np.einsum("lnm,nm->nl", projected, c)
        shared = np.ascontiguousarray((projected @ self.root[index].T).swapaxes(0, 1))
        return left[:, :, None] * np.eye(len(projected)) + shared @ shared.swapaxes(1, 2)


def _third_derivative(p: Array, covariance: Array) -> Array:
    """Return p_k (q_k − Σ_l p_l q_l) with q_k = (e_k − p)ᵀ S (e_k − p), for p [..., K] and S [..., K, K]. [..., K]"""
    along = (covariance @ p[..., None])[..., 0]
    q = np.diagonal(covariance, axis1=-2, axis2=-1) - 2 * along + (p * along).sum(axis=-1, keepdims=True)
    return p * (q - (p * q).sum(axis=-1, keepdims=True))


def _shifted(C: Array, root: Array) -> Array:
    """Return I + D^½ C D^½ for each latent function. [B, L, n, n]"""
    shifted: Array = root[..., None] * C[:, None]
    shifted *= root[..., None, :]
    diagonal = np.arange(C.shape[1])
    shifted[..., diagonal, diagonal] += 1.0
    return shifted


def _factored(matrices: Array) -> Array:
    """Return F with F Fᵀ = A, lower triangular, for each A. [..., n, n]"""
    return np.asarray(np.linalg.cholesky(matrices), dtype=np.float64)


def _solved(factor: Array, right: Array) -> Array:
    """Return A⁻¹ b for each A = F Fᵀ, F lower triangular, and b [..., n]. LAPACK sees the same bytes as an upper factor. [..., n]"""
    solved = np.empty_like(right)
    for place in np.ndindex(*right.shape[:-1]):
        solved[place] = dpotrs(factor[place].T, right[place], lower=0)[0]
    return solved


def _transposed_inverse(factor: Array) -> Array:
    """Return F⁻ᵀ, upper triangular, for each lower triangular F. [..., n, n]"""
    inverse = np.empty_like(factor)
    for place in np.ndindex(*factor.shape[:-2]):
        inverse[place] = dtrtri(factor[place].T, lower=0)[0]
    return inverse


def _inverse(factor: Array) -> Array:
    """Return A⁻¹ for each A = F Fᵀ, F lower triangular: half of the work of an inverse that knows of no symmetry. [..., n, n]"""
    inverse = np.empty_like(factor)
    for place in np.ndindex(*factor.shape[:-2]):
        upper = np.triu(dpotri(factor[place].T, lower=0)[0])
        inverse[place] = upper + np.triu(upper, 1).T
    return inverse


def _structured(inverse: Array, image: Array, root: Array | None = None) -> Array:
    """Return (C + W⁻¹)⁻¹ z for z [B, L, n], from the blocks δ_kl E_k − E_k S⁻¹ E_l; for one latent function there is only E. [B, L, n]"""
    own = (inverse @ image[..., None])[..., 0]
    if inverse.shape[1] == 1:
        return own
    total = own.sum(axis=1)[..., None]
    shared = np.linalg.solve(inverse.sum(axis=1), total) if root is None else root.swapaxes(1, 2) @ (root @ total)
    return own - (inverse @ shared[:, None])[..., 0]


def probit(mean: Array, covariance: Array) -> Array:
    """Return p_k ∝ 1 / Σ_l exp(−(μ_k − μ_l) / sqrt(1 + π/8 Var(η_k − η_l))) for η ~ N(μ, Σ), μ [n, L] and Σ [n, L, L]. [n, K]

    This is MacKay's probit correction (1992) for two classes, applied to each pair of classes (Lu, Ie and Sha, 2020).
    """
    if mean.shape[1] == 1:
        second = 1 / (1 + np.exp(-mean[:, 0] / np.sqrt(1 + np.pi / 8 * np.maximum(covariance[:, 0, 0], 0.0))))
        return np.column_stack([1 - second, second])
    own = np.diagonal(covariance, axis1=1, axis2=2)
    variance = own[:, :, None] + own[:, None, :] - 2 * covariance
    difference = (mean[:, None, :] - mean[:, :, None]) / np.sqrt(1 + np.pi / 8 * np.maximum(variance, 0.0))
    largest = difference.max(axis=2, keepdims=True)
    proba = np.exp(-largest[..., 0]) / np.exp(difference - largest).sum(axis=2)
    return proba / proba.sum(axis=1, keepdims=True)
