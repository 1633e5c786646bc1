"""What the uncertainty of a representation is worth in decisions: the paper's section 3.3.1 on the circles, and a table with few labels.

Run with `python -m gpssl.experiments.decisions --output FOLDER`.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.frozen import FrozenEstimator

from .. import GPSSL, MarginalizedClassifier
from ..calibration import expected_calibration_error, log_loss, reliability_curve
from ..datasets import even_circles, quadrant_circles
from ..kernels import NeighborRBF
from ..plots import Grid, plot_probabilities, plot_reliability, plot_risk_coverage
from ..progress import Progress
from ..selective import augrc, aurc, predict_or_abstain, risk_controlled_threshold, risk_coverage_curve

Array = NDArray[np.float64]

METHODS = ("GPSSL-mean", "GPSSL-full", "GP-prior")
SCORES = {"AURC": aurc, "AUGRC": augrc, "log loss": log_loss, "ECE": expected_calibration_error}
NEIGHBORHOODS = (10, 20, 50)
PRIOR_TEMPERATURE = 1e6
"""So high that the losses do not count, and the posterior is the prior."""

N_LABELLED, N_TEST = 50, 500


def main() -> None:
    """Compare, print, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("results/decisions"), help="folder for the pictures")
    parser.add_argument("--seeds", type=int, default=20, help="samples of the circles and of the labels")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    for neighborhood in NEIGHBORHOODS:
        _compare_on_circles(neighborhood, arguments.seeds)
    _draw_circles(arguments.output)
    _hold_a_risk(arguments.seeds)
    print(f"\nDone in {time.perf_counter() - started:.0f} s.")


def fit_methods(ssl: GPSSL, X: Array, y: NDArray[np.intp], seed: int) -> dict[str, MarginalizedClassifier]:
    """The three methods, with the same heads on the same labelled rows; GP-prior is GPSSL-full without having learnt."""
    prior = ssl.refit(temperature=PRIOR_TEMPERATURE)
    representations = ((ssl, None), (ssl, 100), (prior, 100))
    return {
        name: MarginalizedClassifier(FrozenEstimator(representation), n_draws=n_draws, random_state=seed).fit(X, y)
        for name, (representation, n_draws) in zip(METHODS, representations, strict=True)
    }


def _compare_on_circles(neighborhood: int, n_seeds: int) -> None:
    progress = Progress("circles", n_seeds, enabled=sys.stderr.isatty(), unit="samples")
    values = []
    for seed in range(n_seeds):
        X, _ = quadrant_circles(seed=seed)
        ssl = GPSSL(5, kernel=NeighborRBF(neighborhood), random_state=0).fit(X)
        X_test, y_test = even_circles(N_TEST, seed=200 + seed)
        classifiers = fit_methods(ssl, *even_circles(N_LABELLED, seed=100 + seed), seed)
        probabilities = [classifier.predict_proba(X_test) for classifier in classifiers.values()]
        values.append([[1 - (p.argmax(axis=1) == y_test).mean(), *(score(y_test, p) for score in SCORES.values())] for p in probabilities])
        progress.advance(1)
    _print_comparison(
        f"Circles, neighborhood {neighborhood}: {N_LABELLED} labelled rows, {N_TEST} test rows, {n_seeds} samples", np.array(values)
    )


def _print_comparison(title: str, values: Array) -> None:
    """Means over samples for each method and score, and differences between methods, paired. `values`: [samples, methods, scores]"""
    print(f"\n{title}\n{'=' * len(title)}")
    print(" " * 28 + "".join(f"{name:>18s}" for name in ("error", *SCORES)))
    for method, means in zip(METHODS, values.mean(axis=0), strict=True):
        print(f"  {method:26s}" + "".join(f"{mean:18.4f}" for mean in means))
    for other in (0, 2):
        difference = values[:, 1] - values[:, other]
        errors = difference.std(axis=0, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.full(values.shape[2], np.nan)
        cells = "".join(f"{mean:+9.4f} ± {error:.4f}" for mean, error in zip(difference.mean(axis=0), errors, strict=True))
        print(f"  {'full − ' + METHODS[other].split('-')[1]:26s}" + cells)


def _draw_circles(output: Path) -> None:
    """The paper's figures on one sample: probabilities over the plane, risk against coverage, reliability."""
    X, _ = quadrant_circles()
    ssl = GPSSL(5, kernel=NeighborRBF(20), random_state=0).fit(X)
    X_labelled, y_labelled = even_circles(N_LABELLED, seed=100)
    X_test, y_test = even_circles(N_TEST, seed=200)
    classifiers = fit_methods(ssl, X_labelled, y_labelled, seed=0)
    probabilities = {name: classifier.predict_proba(X_test) for name, classifier in classifiers.items()}
    grid = Grid.between((-3, -3), (3, 3), n_points=61)
    pictures = {
        "probabilities.png": plot_probabilities(classifiers, X_labelled, y_labelled, grid=grid)[0, 0],
        "risk_coverage.png": plot_risk_coverage({name: risk_coverage_curve(y_test, p) for name, p in probabilities.items()}),
        "reliability.png": plot_reliability({name: reliability_curve(y_test, p, n_bins=10) for name, p in probabilities.items()}),
    }
    print()
    for name, axes in pictures.items():
        axes.figure.savefig(output / name)
        print(f"  wrote {output / name}")


def _hold_a_risk(n_seeds: int, max_risk: float = 0.05, confidence: float = 0.95) -> None:
    """Breast cancer with 60 labels: a threshold from 200 other rows that holds an error rate, and how it does on the rest.

    Splits above are those where the error among the rows that were kept exceeds the limit; the promise is about their share. Splits without
    are those where no threshold was found.
    """
    X, y = load_breast_cancer(return_X_y=True)
    outcomes: dict[str, list[tuple[float, float, float]]] = {name: [] for name in METHODS}
    ssl = GPSSL(5, random_state=0).fit(X)
    for seed in range(n_seeds):
        train, calibration, test = np.split(np.random.default_rng(seed).permutation(len(y)), [60, 260])
        for name, classifier in fit_methods(ssl, X[train], y[train], seed).items():
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "No threshold holds")  # counted below
                threshold = risk_controlled_threshold(y[calibration], classifier.predict_proba(X[calibration]), max_risk, confidence)
            predicted = predict_or_abstain(classifier, X[test], threshold)
            kept = ~np.ma.getmaskarray(predicted)
            risk = float((predicted.data[kept] != y[test][kept]).mean()) if kept.any() else 0.0
            outcomes[name].append((classifier.score(X[test], y[test]), float(kept.mean()), risk))
    title = f"Breast cancer, 60 labels: at most {max_risk:.0%} errors with confidence {confidence:.0%}, {n_seeds} splits"
    print(f"\n{title}\n{'=' * len(title)}")
    print(f"  {'':14s}{'accuracy':>12s}{'coverage':>12s}{'error kept':>12s}{'splits above':>15s}{'splits without':>16s}")
    for name, rows in outcomes.items():
        accuracy, coverage, risk = np.array(rows).T
        above, without = (risk > max_risk).sum(), (coverage == 0).sum()
        print(f"  {name:14s}{accuracy.mean():12.4f}{coverage.mean():12.3f}{risk.mean():12.4f}{above:15d}{without:16d}")


if __name__ == "__main__":
    main()
