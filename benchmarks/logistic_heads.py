"""Bayesian logistic regressions of 100 draws at once, against scikit-learn's one by one."""

from __future__ import annotations

from functools import partial

from sklearn.linear_model import LogisticRegression

from gpssl.downstream import BayesianLogisticRegression

from .heads import comparison, fit_at_once, fit_one_by_one
from .measurement import alternate
from .report import Comparison

MORE = """\
With `prior_precision=1.0` the weights have the same prior as in `LogisticRegression(C=1)`; by default the precision of each head is found
by its evidence. In both cases the posterior's covariance and mean are computed besides the mode."""


def compare(*, quick: bool) -> Comparison:
    """Compare time and accuracy."""
    sizes = (10, 100) if quick else (100, 200)
    theirs, same, ours = "LogisticRegression(C=1)", "BayesianLogisticRegression(1.0)", "BayesianLogisticRegression()"
    results = alternate(
        {
            theirs: partial(fit_one_by_one, LogisticRegression(C=1.0, max_iter=1000), *sizes),
            same: partial(fit_at_once, BayesianLogisticRegression(1.0), *sizes),
            ours: partial(fit_at_once, BayesianLogisticRegression(), *sizes),
        }
    )
    return comparison("Logistic heads", MORE, sizes, results, [(theirs, same), (theirs, ours)])
