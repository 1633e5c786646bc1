"""What the variational family leaves out: weights of different dimensions that depend on each other."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator

from gpssl import GPSSL, MarginalizedClassifier
from gpssl.core._objective import Objective, kl_divergence, represented_covariance
from gpssl.inference import Sampling

Array = NDArray[np.float64]


def test_a_joint_normal_distribution_has_a_lower_objective(circles: Array) -> None:
    """Dimension 1 along direction 2 and dimension 2 along direction 1 turn the plane of both if they change together, with opposite signs.

    A rotation adds no covariance between the two, so that they may be much wider if they are correlated by r; the divergence grows by
    −½ log(1 − r²).
    """
    ssl = GPSSL(2, random_state=0).fit(circles)
    spectrum, mean, std = ssl._find_spectrum(), ssl.posterior_.weights.mean, ssl.posterior_.weights.std  # type: ignore[attr-defined]
    objective = Objective(50, 10, ssl.temperature_)

    def values(change: Array, draws: Array) -> Array:
        correlation, wider, noise = np.tanh(change[2]), std.copy(), draws.copy()
        wider[[0, 1], [1, 0]] *= np.exp(change[:2])
        noise[:, 0, 1] = correlation * draws[:, 1, 0] + np.sqrt(1 - correlation**2) * draws[:, 0, 1]
        divergence = kl_divergence(mean, wider).value - 0.5 * np.log1p(-(correlation**2))
        return objective.loss(represented_covariance(mean + wider * noise, spectrum)) + objective.temperature * divergence

    few = np.random.default_rng(0).standard_normal((8192, *mean.shape))
    best = minimize(lambda change: values(change, few).mean(), [1.0, 1.0, -1.0], method="Nelder-Mead").x
    many = np.random.default_rng(1).standard_normal((100_000, *mean.shape))
    independent, joint = (values(change, many) for change in (np.zeros(3), best))
    print(f"independent {independent.mean():.4f}, joint {joint.mean():.4f}, correlation {np.tanh(best[2]):.3f}")
    assert independent.mean() == pytest.approx(ssl.objective_, rel=0.01)
    assert joint.mean() < 0.9 * independent.mean()


@pytest.mark.slow
def test_the_exact_posterior_has_wider_weights_and_nearly_the_same_predictions(circles: Array) -> None:
    """The chains turn slowly in the plane of both dimensions and have not mixed along it, but agree on the third direction."""
    y = (np.hypot(*circles.T) > np.median(np.hypot(*circles.T))).astype(int)
    few = np.where(np.random.default_rng(0).random(len(y)) < 0.2, y, -1)
    variational = GPSSL(2, random_state=0).fit(circles)
    with pytest.warns(ConvergenceWarning, match="have not mixed"):
        exact = variational.refit(inference=Sampling(n_chains=32, n_warmup=2000, n_samples=8000))
    normal, drawn = variational.posterior_.weights, exact.posterior_.weights
    widths = [(normal.mean**2 + normal.std**2)[:, 2].mean(), (drawn.draws**2).mean(axis=0)[:, 2].mean()]  # type: ignore[attr-defined]
    models = [
        MarginalizedClassifier(FrozenEstimator(ssl), weighting="equal", random_state=0).fit(circles, few) for ssl in (variational, exact)
    ]
    one, other = (model.predict_proba(circles)[:, 1] for model in models)
    difference = np.abs(one - other).mean()
    print(f"third direction: E v² {widths[0]:.2f} variational, {widths[1]:.2f} exact; probabilities differ by {difference:.3f}")
    assert widths[0] < 0.5 < 1.0 < widths[1]
    assert difference < 0.03
    assert exact.report_.loss_r_hat < 1.01
