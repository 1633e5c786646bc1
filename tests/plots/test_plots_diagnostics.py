"""Pictures of the spectrum and of what inducing points leave open show the numbers that they are of."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from gpssl import GPSSL
from gpssl.kernels import NeighborRBF
from gpssl.plots import plot_residuals, plot_spectrum
from pictures import legend_texts, render

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def ssl(circles: Array) -> GPSSL:
    return GPSSL(3, kernel=NeighborRBF(20), random_state=0).fit(circles)


def test_spectrum_marks_the_first_directions_and_the_residual(ssl: GPSSL) -> None:
    ax = plot_spectrum(ssl)
    first, others, residual = ax.lines
    assert ax.get_yscale() == "log"
    np.testing.assert_array_equal(np.append(first.get_ydata(), others.get_ydata()), ssl.eigenvalues_)
    np.testing.assert_array_equal(first.get_xdata(), [1, 2, 3])
    np.testing.assert_allclose(np.asarray(residual.get_ydata(), dtype=float), ssl._spectrum.residual)
    render(ax)


def test_residuals_are_those_of_the_kernel_matrices(circles: Array) -> None:
    ssl = GPSSL(3, kernel=3.0 * RBF(0.5), inducing=20, residual_tolerance=0.2, random_state=0).fit(circles)
    X = 1.5 * circles[:40]
    U = ssl.inducing_points_
    cross = ssl.kernel_(X, U)
    open_variance = 3.0 - np.diag(cross @ np.linalg.solve(ssl.kernel_(U, U) + 3.0 * ssl.jitter_ * np.eye(len(U)), cross.T))
    shares = open_variance / 3.0
    ax = plot_residuals(ssl, X)
    curve, mean, tolerance = ax.lines
    np.testing.assert_allclose(np.asarray(curve.get_xdata())[1:], np.sort(shares), rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(np.asarray(curve.get_ydata())[1:], np.arange(1, 41) / 40)
    np.testing.assert_allclose(np.asarray(mean.get_xdata(), dtype=float), shares.mean())
    np.testing.assert_allclose(np.asarray(tolerance.get_xdata(), dtype=float), 0.2)
    above = f"{np.mean(shares > 0.2):.0%}"
    assert legend_texts(ax.get_legend())[2] == f"tolerance 0.2 ({above} above)"
    render(ax)


def test_all_prior_variance_is_open_far_from_the_rows(ssl: GPSSL) -> None:
    ax = plot_residuals(ssl, np.array([[100.0, 100.0], [-100.0, 50.0]]))
    np.testing.assert_allclose(np.asarray(ax.lines[0].get_xdata(), dtype=float), 1.0)
    render(ax)


def test_white_noise_is_open_at_every_row(circles: Array) -> None:
    ssl = GPSSL(2, kernel=RBF(0.5) + WhiteKernel(0.25), random_state=0).fit(circles)
    shares = np.asarray(plot_residuals(ssl, ssl.inducing_points_).lines[0].get_xdata())
    np.testing.assert_allclose(shares, 0.25 / 1.25, atol=1e-6)
