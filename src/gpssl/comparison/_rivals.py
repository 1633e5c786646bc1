"""The methods of the paper's comparison, on the rows of a person's own table: mixed columns, gaps and all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import Kernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from experiments.methods import TABLES, Model

from ..baselines._gp_prior import GPPrior
from ..baselines._kernel_pca import KernelPCA
from ..baselines._vicreg import VICReg
from ..downstream._classifier import MarginalizedClassifier
from ..downstream._regressor import MarginalizedRegressor
from ..estimator import GPSSL
from ..workflows._settings import RESIDUAL_TOLERANCE, Settings

TEMPERATURES = ("auto", 0.1, 1.0)
MANY_COLUMNS = 100
"""Beyond this, a posterior over the weights of all columns takes long, and cross-validation chooses the penalty."""
MOST_LEVELS = 50
"""Of a category that get a column of their own, the most frequent ones."""
MOST_FOLDS, MAX_ITERATIONS = 3, 2000
"""Of logistic regression."""

RAW, FULL, MEAN, PRIOR = "columns themselves", "GPSSL-full", "GPSSL-mean", "GP prior"


@dataclass(frozen=True)
class Rows:
    """The rows that representations are learned from, and a kernel for them."""

    rows: Any
    kernel: Kernel
    settings: Settings
    regression: bool

    @property
    def n_components(self) -> int:
        """J."""
        return self.settings.n_components or 5

    @cached_property
    def posteriors(self) -> dict[Any, GPSSL]:
        """GPSSL at each temperature, after one pass over the rows: its mean and its draws are of the same functions."""
        base = GPSSL(
            self.n_components,
            kernel=self.kernel,
            residual_tolerance=RESIDUAL_TOLERANCE,
            max_inducing=self.settings.max_inducing,
            random_state=self.settings.seed,
        ).partial_fit(self.rows)
        return {value: base.refit(temperature=value) for value in TEMPERATURES}

    def model(self, settings: dict[str, Any], representation: Any, *, n_draws: int | None, head: Any = None) -> Model:
        """Heads still to be trained, on a representation that is fitted."""
        kind = MarginalizedRegressor if self.regression else MarginalizedClassifier
        return Model(settings, kind(FrozenEstimator(representation), head, n_draws=n_draws, random_state=self.settings.seed))


class PenalizedLogisticRegression(ClassifierMixin, BaseEstimator):
    """Logistic regression whose penalty is chosen by cross-validation, of as many folds as the smallest class has rows, three at most.

    Where a class has a single row there is nothing to choose by, and the penalty is scikit-learn's default.
    """

    def fit(self, X: Any, y: Any) -> PenalizedLogisticRegression:
        """Train."""
        n_folds = min(MOST_FOLDS, int(np.unique(y, return_counts=True)[1].min()))
        if n_folds < 2:
            self.model_ = LogisticRegression(max_iter=MAX_ITERATIONS).fit(X, y)
        else:
            penalties = np.logspace(-3, 3, 7)
            self.model_ = LogisticRegressionCV(Cs=penalties, cv=n_folds, max_iter=MAX_ITERATIONS).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> Any:
        """Probability of each class. [n, K]"""
        return self.model_.predict_proba(X)


def _raw(rows: Rows) -> list[Model]:
    encoder = numbers_from(rows.rows).fit(rows.rows)
    n_columns = encoder.transform(rows.rows[:1]).shape[1]
    head = PenalizedLogisticRegression() if n_columns > MANY_COLUMNS and not rows.regression else None
    return [rows.model({}, encoder, n_draws=None, head=head)]


def _kernel_pca(rows: Rows) -> list[Model]:
    components = KernelPCA(rows.n_components, kernel=rows.kernel, random_state=rows.settings.seed).fit(rows.rows)
    return [rows.model({}, components, n_draws=None)]


def _vicreg(rows: Rows) -> list[Model]:
    """With the paper's grid of settings."""
    encoder = numbers_from(rows.rows).fit(rows.rows)
    networks = VICReg(rows.n_components, random_state=rows.settings.seed).fit_grid(encoder.transform(rows.rows), TABLES.vicreg)
    return [
        rows.model(dict(settings), make_pipeline(encoder, network), n_draws=None)
        for settings, network in zip(TABLES.vicreg, networks, strict=True)
    ]


def _gp_prior(rows: Rows) -> list[Model]:
    seed, limit = rows.settings.seed, rows.settings.max_inducing
    prior = GPPrior(rows.n_components, kernel=rows.kernel, residual_tolerance=RESIDUAL_TOLERANCE, max_inducing=limit, random_state=seed)
    return [rows.model({}, prior.fit(rows.rows), n_draws=rows.settings.n_draws)]


def _gpssl(rows: Rows, n_draws: int | None) -> list[Model]:
    return [rows.model({"temperature": value}, posterior, n_draws=n_draws) for value, posterior in rows.posteriors.items()]


def _gpssl_mean(rows: Rows) -> list[Model]:
    return _gpssl(rows, None)


def _gpssl_full(rows: Rows) -> list[Model]:
    return _gpssl(rows, rows.settings.n_draws)


RIVALS: dict[str, Callable[[Rows], list[Model]]] = {
    RAW: _raw,
    "kernel PCA": _kernel_pca,
    "VICReg": _vicreg,
    PRIOR: _gp_prior,
    MEAN: _gpssl_mean,
    FULL: _gpssl_full,
}
"""Each gives its candidates, of which labels choose; the first is the default."""


def numbers_from(rows: Any) -> Any:
    """Steps that make columns of comparable size: a column for each category; means in the place of gaps, and a column that tells them."""
    scaled = make_pipeline(SimpleImputer(keep_empty_features=True, add_indicator=True), StandardScaler())
    if not hasattr(rows, "columns"):
        return scaled
    categories = [name for name in rows.columns if rows[name].dtype == object or rows[name].dtype.name == "category"]
    dates = [name for name in rows.columns if rows[name].dtype.kind == "M"]
    numbers = [name for name in rows.columns if name not in {*categories, *dates}]
    one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_LEVELS, sparse_output=False)
    return make_column_transformer(
        (scaled, numbers),
        (make_pipeline(FunctionTransformer(_seconds), scaled), dates),
        (make_pipeline(SimpleImputer(missing_values=None, strategy="constant", fill_value="(missing)"), one_hot), categories),
    )


def _seconds(dates: Any) -> Any:
    """Since 1970, NaN where there is none."""
    from ..data._encoding import encode_table

    return encode_table(dates)
