"""Perceptrons of 100 draws at once, against scikit-learn's one by one."""

from __future__ import annotations

from functools import partial

from sklearn.neural_network import MLPClassifier

from gpssl.downstream import PerceptronClassifier

from .heads import comparison, fit_at_once, fit_one_by_one
from .measurement import alternate
from .report import Comparison

MORE = """\
All have one hidden layer of 32 units and Adam. `MLPClassifier` has its defaults (200 epochs, no early stopping), and then early stopping
and a learning rate of 0.05, as ours. PyTorch is imported before the clock starts."""


def compare(*, quick: bool) -> Comparison:
    """Compare time and accuracy."""
    sizes = (10, 100) if quick else (100, 200)
    default, stopping = "MLPClassifier((32,))", "MLPClassifier((32,), early_stopping=True, learning_rate_init=0.05)"
    ours = "PerceptronClassifier(32)"
    results = alternate(
        {
            default: partial(fit_one_by_one, MLPClassifier((32,), random_state=0), *sizes),
            stopping: partial(fit_one_by_one, MLPClassifier((32,), early_stopping=True, learning_rate_init=0.05, random_state=0), *sizes),
            ours: partial(fit_at_once, PerceptronClassifier(32, random_state=0), *sizes),
        }
    )
    return comparison("Perceptron heads", MORE, sizes, results, [(default, ours), (stopping, ours)])
