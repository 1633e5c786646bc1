"""The paper's algorithm, written in GPyTorch, on the paper's circles."""

from __future__ import annotations

import time
from functools import partial
from statistics import median

import numpy as np

from gpssl import GPSSL
from gpssl.core._posterior import GaussianWeights
from gpssl.datasets import quadrant_circles

from .measurement import REPEATS, describe_seconds, in_fresh_process
from .monte_carlo import Array, Estimate, Solution, objective
from .report import Comparison, Finding

TARGET_RATIO = 20
N_COMPONENTS = 5
LEARNING_RATES = (0.03, 0.1)
N_SAMPLES = 16_384
WARM_UP_ROWS = (30, 10, 5, 0)

SETTING = """\
The paper's circles: 450 rows, five dimensions, temperature 1/N. GPyTorch has the whitened `VariationalStrategy` with a
`CholeskyVariationalDistribution` for each of five independent GPs, at the {n_points} inducing points and with the lengthscales
that GPSSL chose, and takes {n_steps} steps of Adam, each on ten joint samples of the representations at all rows, in float64.
GPSSL has its defaults, and finds lengthscales and inducing points within its time. Learning rates of 0.03 and 0.1 are tried
once each and the better one is run twice more, in turn with GPSSL: the time compared is that of the better one alone. All
objectives are measured by the same brute force, {n_samples:,} joint samples at all rows; ± is the standard error."""


def fit_gpssl() -> Solution:
    """Fit GPSSL with its defaults."""
    GPSSL(N_COMPONENTS, random_state=0).fit(quadrant_circles(WARM_UP_ROWS)[0])
    X, _ = quadrant_circles()
    started = time.perf_counter()
    model = GPSSL(N_COMPONENTS, random_state=0).fit(X)
    seconds = time.perf_counter() - started
    mean, root = whitened_distribution(model)
    return Solution(seconds, model.kernel_.length_scale, model.inducing_points_, model.jitter_, mean, root)


def whitened_distribution(model: GPSSL) -> tuple[Array, Array]:
    """Compute means [J, M] and roots [J, M, M] of v = Q w + (I − QQᵀ) ξ, with w ~ N(m, s²) and ξ ~ N(0, I).

    I + Q (diag(s) − I) Qᵀ is a root of the covariance of v: it is s along the learned directions and 1 along the others.
    """
    basis, weights = model.posterior_.basis, model.posterior_.weights
    assert isinstance(weights, GaussianWeights)
    roots = [np.eye(len(basis)) + (basis * (std - 1)) @ basis.T for std in weights.std]
    return weights.mean @ basis.T, np.array(roots)


def fit_gpytorch(start: Solution, learning_rate: float, n_steps: int) -> Solution:
    """Run the paper's algorithm at the inducing points and with the kernel of `start`."""
    from . import gpytorch_fit  # no torch in the processes of the other measurements

    return gpytorch_fit.fit(
        quadrant_circles()[0],
        start.points,
        start.lengthscale,
        n_components=N_COMPONENTS,
        learning_rate=learning_rate,
        n_steps=n_steps,
    )


def measure_objective(solution: Solution) -> Estimate:
    """Measure the objective of a solution by brute force."""
    X, _ = quadrant_circles()
    return in_fresh_process("brute-force objective", partial(objective, X, solution, N_SAMPLES))


def compare(*, quick: bool) -> Comparison:
    """Compare times and objectives."""
    n_steps = 10 if quick else 300
    ours = [in_fresh_process("GPSSL on the circles", fit_gpssl)]
    jobs = {rate: partial(fit_gpytorch, ours[0], rate, n_steps) for rate in LEARNING_RATES}
    theirs = {rate: [in_fresh_process(f"GPyTorch, learning rate {rate}", job)] for rate, job in jobs.items()}
    objectives = {rate: measure_objective(runs[0]) for rate, runs in theirs.items()}
    best = min(LEARNING_RATES, key=lambda rate: objectives[rate].value)
    for _ in range(REPEATS - 1):
        theirs[best].append(in_fresh_process(f"GPyTorch, learning rate {best}, again", jobs[best]))
        ours.append(in_fresh_process("GPSSL on the circles, again", fit_gpssl))
    our_objective = measure_objective(ours[0])
    rows = [_row(f"GPyTorch, learning rate {rate}", theirs[rate], objectives[rate]) for rate in LEARNING_RATES]
    return Comparison(
        title="The paper's algorithm",
        setting=SETTING.format(n_points=len(ours[0].points), n_steps=n_steps, n_samples=N_SAMPLES),
        header=("fit", "seconds (range)", "objective (lower is better)"),
        rows=[*rows, _row("`GPSSL(5)`", ours, our_objective)],
        findings=_findings(_median(theirs[best]) / _median(ours), objectives[best], our_objective),
    )


def _row(name: str, solutions: list[Solution], value: Estimate) -> tuple[str, ...]:
    return name, describe_seconds([solution.seconds for solution in solutions]), str(value)


def _median(solutions: list[Solution]) -> float:
    return median(solution.seconds for solution in solutions)


def _findings(ratio: float, theirs: Estimate, ours: Estimate) -> list[Finding]:
    tolerance = 2 * float(np.hypot(theirs.error, ours.error))
    return [
        Finding(f"at least {TARGET_RATIO}× the speed", f"{ratio:.3g}× the speed", ratio >= TARGET_RATIO),
        Finding(
            "an objective at least as good (within two standard errors)",
            f"{ours} against {theirs}",
            ours.value <= theirs.value + tolerance,
        ),
    ]
