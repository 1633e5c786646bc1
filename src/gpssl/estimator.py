"""GPSSL, the estimator. `fit` is a straight line: rows, kernel and inducing points, features, moments, spectrum, inference, posterior."""

from __future__ import annotations

from numbers import Integral, Real
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ._runtime.progress import SILENT, CallbackSupport, Progress, Task, announce, fitting
from ._runtime.threads import one_blas_thread
from ._validation import NumberedDimensionsMixin, check_number, seed_from, unchanged_on_failure
from .core._checked_rows import (
    check_enough_first_rows,
    check_inducing_points,
    check_kernel,
    check_new_rows,
    check_rows,
    copy_columns,
    kernel_for,
    set_input_tags,
)
from .core._draws import FunctionDraws
from .core._features import Features, check_residual, inducing_limits, n_candidates, nugget_of_rows, points_from_rows
from .core._moments import Checkpoint, Moments, Spectrum, check_enough_directions, moments_of_rows
from .core._objective import EPSILON, TARGET, Objective, VarianceForm
from .core._posterior import Posterior, warn_if_mean_is_zero
from .data._rows import Rows
from .inference import Inference, inference_method
from .kernels._protocol import depends_on_rows, resolve_kernel

Array = NDArray[np.float64]

REFITTABLE = (
    *("n_components", "temperature", "variance_weight", "covariance_weight", "target_std", "epsilon", "variance_loss"),
    *("inference", "random_state", "verbose"),
)
"""Parameters that only inference depends on, so that `refit` can change them without the data."""
REPORTED_STEPS = 100
"""Steps of which callbacks hear, at most, during a pass over many rows."""


class GPSSL(CallbackSupport, NumberedDimensionsMixin, TransformerMixin, BaseEstimator):
    """Gaussian process self-supervised learning: a distribution over representations, from unlabeled rows.

    Each of J representation dimensions is a function with a Gaussian process prior. A loss that asks for spread in every dimension and
    for no correlation between dimensions turns the prior into a generalized posterior; the kernel takes the place of positive pairs.
    `transform` is the posterior mean, `std` its standard deviation, `draw_functions` gives functions drawn from it.

    Parameters
    ----------
    n_components
        J, the number of representation dimensions.
    kernel
        Any kernel of `sklearn.gaussian_process.kernels` or `gpssl.kernels`, or one of your own that follows the same protocol. None is
        `NeighborRBF(neighborhood=10)`, or `for_table(X)` for a data frame with text, categories, dates or gaps.
    inducing
        Which rows carry the functions. By default as many as it takes to bring the residual variance below `residual_tolerance`, at most
        `max_inducing`; an integer for at most that many; "all" for every row that adds something, which is exact; or the rows themselves.
    residual_tolerance
        Fraction of the prior variance at the training rows that the inducing points may leave open.
    max_inducing
        Limit on the number of inducing points when `inducing` is None.
    temperature
        τ, the weight of the divergence from the prior. Low values make draws agree on what the data show; at high values they stay as
        diverse as the prior. "auto" is one over the number of rows. It matters more than any other parameter: select it on
        validation labels where there are any.
    variance_weight, covariance_weight
        c_V and c_C, the weights of the two losses.
    target_std
        γ, the standard deviation over the rows below which the variance loss pulls a dimension apart; 1 suits kernels of variance 1.
    epsilon
        ε, which the variance loss adds to the variance of each dimension before the square root; it keeps that differentiable at zero.
    variance_loss
        "hinge", VICReg's max(0, γ − sqrt(Var + ε)); or "negative", −Var, with which the paper's proposition 1 compares kernel PCA.
        That one has a minimum only above a temperature of 2·variance_weight·eigenvalues_[0]/n_components, and its posterior mean is
        zero: close to that temperature draws are multiples of the first kernel principal component, and the mode there is that component.
    inference
        "variational", "sampling" or "mode"; or an object from `gpssl.inference` with settings of its own.
    random_state
        Seed for the quasi-random draws, for the sample of rows that stands for a large table, and for drawn functions.
    verbose
        Whether to report progress on standard error.

    Attributes
    ----------
    kernel_
        The concrete kernel.
    inducing_points_
        The inducing points. [M, …]
    residual_
        Fraction of the prior variance at the training rows that the inducing points leave open; a warning says where it is too much.
    jitter_
        What was added to the diagonal of the inducing points' kernel matrix, relative to its mean.
    moments_
        The sums over the rows that inference needs; they add, and hold no rows.
    temperature_
        τ as used.
    eigenvalues_
        Spectrum of the feature covariance: how many directions the kernel sees in the rows.
    objective_
        The minimum of the objective (for sampling, the mean loss).
    report_
        How inference went; also `n_tied`, how many of the J leading directions have equals that rows such as balanced categories do not
        tell from them, and `n_left_out`, how many equals are not among the J: then `transform` is one of many equally good representations.
    posterior_
        The posterior itself.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from gpssl import GPSSL
    >>> X, _ = load_breast_cancer(return_X_y=True)
    >>> ssl = GPSSL(n_components=5, random_state=0).fit(X)
    >>> ssl.transform(X).shape, ssl.std(X).shape
    ((569, 5), (569, 5))
    >>> functions = ssl.draw_functions(100)
    >>> functions(X[:10]).shape
    (100, 10, 5)
    """

    def __init__(
        self,
        n_components: int = 5,
        *,
        kernel: Kernel | None = None,
        inducing: int | str | Any | None = None,
        residual_tolerance: float = 1e-4,
        max_inducing: int = 512,
        temperature: float | Literal["auto"] = "auto",
        variance_weight: float = 50.0,
        covariance_weight: float = 10.0,
        target_std: float = TARGET,
        epsilon: float = EPSILON,
        variance_loss: VarianceForm = "hinge",
        inference: str | Inference = "variational",
        random_state: Any = None,
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.inducing = inducing
        self.residual_tolerance = residual_tolerance
        self.max_inducing = max_inducing
        self.temperature = temperature
        self.variance_weight = variance_weight
        self.covariance_weight = covariance_weight
        self.target_std = target_std
        self.epsilon = epsilon
        self.variance_loss = variance_loss
        self.inference = inference
        self.random_state = random_state
        self.verbose = verbose

    # Learning

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, checkpoint: str | PathLike[str] | None = None) -> GPSSL:
        """Learn from unlabeled rows; `y` is ignored. Weight 2 is the row twice.

        Besides arrays and data frames, X may be sparse, a `numpy.memmap`, a path to Parquet or CSV files or a `gpssl.data.TableFiles`, a
        Dask array or data frame, AnnData or its X: these are read in parts, and never held as a whole. With `checkpoint`, a file name, a
        pass over files leaves its moments there as it goes; after an interruption, the same call goes on from them. Callbacks of
        scikit-learn hear of the choice of inducing points, the pass over the rows and the steps of inference, which they can stop.
        """
        self._check_parameters()
        with fitting(self, 3, X, y, sample_weight) as task, unchanged_on_failure(self):
            kernel = kernel_for(self.kernel, X, sample_weight)
            rows = check_rows(self, X, kernel, reset=True, min_rows=2, sample_weight=sample_weight)
            kept = None if checkpoint is None else Checkpoint(checkpoint, rows)
            resumed_seed = kept.seed if kept and self.random_state is None else None
            self._seed = seed_from(self.random_state) if resumed_seed is None else resumed_seed
            with task.subtask("inducing points"):
                self._build_features(rows, kernel)
            self.moments_ = self._sum_moments(rows, kept, task)
            self._forget_posterior()
            self._infer(task)
            if kept:
                kept.forget()
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GPSSL:
        """Learn from more rows, exactly: after any number of calls the moments are those of all rows together.

        The first call chooses kernel and inducing points from its rows, unless they are given. The posterior is
        computed when it is next needed, so that many calls with few rows cost no more than one with all of them.
        """
        self._check_parameters()
        first = not hasattr(self, "moments_")
        with unchanged_on_failure(self):
            kernel = kernel_for(self.kernel, X, sample_weight) if first else self.kernel_
            rows = check_rows(self, X, kernel, reset=first, sample_weight=sample_weight)
            if first:
                self._check_first_rows(rows.n_rows, kernel)
                self._seed = seed_from(self.random_state)
                self._build_features(rows, kernel)
            moments = self._sum_moments(rows)
            self.moments_ = moments if first else self.moments_ + moments
            self._forget_posterior()
        return self

    def refit(self, *, moments: Moments | None = None, **changes: Any) -> GPSSL:
        """Return a new estimator with other parameters, from the stored moments, without the data and a second pass.

        `changes` may be n_components, temperature, variance_weight, covariance_weight, target_std, epsilon, variance_loss, inference,
        random_state and verbose; `moments` replaces the stored moments, for example by their sum with another site's. This estimator
        stays as it is.
        """
        check_is_fitted(self, "moments_")
        unknown = sorted(set(changes) - set(REFITTABLE))
        if unknown:
            raise ValueError(
                f"refit cannot change {', '.join(unknown)}: that needs the data again. Use "
                f"clone(ssl).set_params(...).fit(X) instead, or change one of {', '.join(REFITTABLE)}."
            )
        other = clone(self).set_params(**changes)
        other._check_parameters()
        copy_columns(self, other)
        for name in ("kernel_", "features_", "moments_", "_seed", "_nugget"):
            setattr(other, name, getattr(self, name))
        if "random_state" in changes:
            other._seed = seed_from(other.random_state)
        if moments is not None:
            if not isinstance(moments, Moments):
                raise TypeError(f"moments must be Moments, such as another model's moments_, got {type(moments).__name__}.")
            other.moments_ = moments
        else:
            other._spectrum = self._find_spectrum()
        other._infer()
        return other

    # Using what was learned

    def transform(self, X: Any) -> Any:
        """Return the posterior mean of the representation at each row. [n, J]

        Rows may come as in `fit`. Here and in `std` and draws, Dask gives lazy Dask arrays, all others NumPy arrays. At high temperatures
        the mean is zero, of which a warning tells: draws differ from row to row even then.
        """
        mean = self._posterior_for_use().mean
        warn_if_mean_is_zero(self._posterior, stacklevel=4)  # scikit-learn wraps transform
        return check_new_rows(self, X, self.kernel_).map(mean, (None, self._n_features_out))

    def std(self, X: Any) -> Any:
        """Return the posterior standard deviation of the representation at each row. [n, J]"""
        std = self._posterior_for_use().std
        return check_new_rows(self, X, self.kernel_).map(std, (None, self._n_features_out))

    def mean_and_std(self, X: Any) -> tuple[Any, Any]:
        """Return `transform` and `std` of the same rows, which are read and compared with the inducing points once. [n, J] each"""
        both = self._posterior_for_use().mean_and_std
        warn_if_mean_is_zero(self._posterior, stacklevel=3)
        mean, std = check_new_rows(self, X, self.kernel_).map(both, (2, None, self._n_features_out))
        return mean, std

    def kernel_features(self, X: Any) -> Any:
        """Return features φ(x) whose inner products are the posterior kernel, the mean of (1/J) Σ_j f_j(x) f_j(y). [n, M]

        A head on them uses all that was learned at once, without draws: see `gpssl.core.Posterior.kernel_weights`.
        """
        features = self._posterior_for_use().kernel_features
        return check_new_rows(self, X, self.kernel_).map(features, (None, self.features_.n_points))

    def sample(self, X: Any, n_draws: int = 1, random_state: Any = None) -> Any:
        """Draw the representation jointly over the rows. [S, n, J]

        The first index is the function: `sample(X, 100)` is `draw_functions(100)(X)`.
        """
        return self.draw_functions(n_draws, random_state)(check_new_rows(self, X, self.kernel_))

    def draw_functions(self, n_draws: int = 1, random_state: Any = None) -> FunctionDraws:
        """Draw functions from the posterior: call the result with rows, as often as you like. [S, n, J]

        Without a random state the estimator's own is used: the same draws for the same rows in the same order of calls. To see one
        set of functions at several sets of rows, keep the result and call it with each.
        """
        posterior = self._posterior_for_use()
        check_number("n_draws", n_draws, Integral, at_least=1)
        seed = self._seed if random_state is None else seed_from(random_state)
        functions = posterior.draw_functions(int(n_draws), seed)
        copy_columns(self, functions)
        return functions

    def score(self, X: Any, y: Any = None) -> float:
        """Return the negative objective with the losses of these rows: higher is better.

        −(E[ℓ] + τ·KL), with ℓ from the covariance of the representations over the rows of X. Comparable between models of the same weights,
        temperature and number of components. For a sampled posterior, whose divergence from the prior is not known, it is −E[ℓ].
        """
        posterior = self._posterior_for_use()
        moments = self._sum_moments(check_new_rows(self, X, self.kernel_))
        if moments.weight < 2:
            raise ValueError("score needs at least 2 rows: it measures their covariance.")
        covariance, residual = moments.covariance(self.features_)
        rotated = self._spectrum.basis.T @ covariance @ self._spectrum.basis
        loss = posterior.weights.expected_loss(rotated, residual, self._fitted_objective)
        return -(loss + self.temperature_ * posterior.weights.divergence())

    # What was learned

    @property
    def posterior_(self) -> Posterior:
        """The posterior, computed at the first access."""
        if not hasattr(self, "moments_"):
            raise AttributeError("posterior_ appears after fit or partial_fit.")
        if not hasattr(self, "_posterior"):
            self._infer()
        return self._posterior

    @property
    def inducing_points_(self) -> NDArray[Any]:
        """The inducing points."""
        return self.features_.points

    @property
    def jitter_(self) -> float:
        """The jitter of the inducing points' kernel matrix."""
        return self.features_.jitter

    @property
    def residual_(self) -> float:
        """The fraction of the prior variance that the inducing points leave open."""
        return self._find_spectrum().residual * self.moments_.weight / self.moments_.diagonal

    @property
    def temperature_(self) -> float:
        """τ as used."""
        self.posterior_  # noqa: B018  (sets the objective)
        return self._fitted_objective.temperature

    @property
    def eigenvalues_(self) -> Array:
        """The spectrum of the feature covariance."""
        return self._find_spectrum().eigenvalues

    @property
    def _n_features_out(self) -> int:
        return len(self.posterior_.weights.mean)

    # Steps of fitting

    def _build_features(self, rows: Rows, kernel: Kernel) -> None:
        """Resolve the kernel, choose inducing points from the rows unless they are given, and build the features."""
        if self._chooses_points:  # draw the largest sample first: the kernel's smaller ones are its beginning
            n_points, tolerance = inducing_limits(self.inducing, rows.n_rows, int(self.max_inducing), float(self.residual_tolerance))
            rows.sample(n_candidates(n_points), self._seed)
        self.kernel_ = resolve_kernel(kernel, rows, self._seed)
        if self._chooses_points:
            points = points_from_rows(self.kernel_, rows, n_points, tolerance, self._seed)
        else:
            points = check_inducing_points(self.inducing, rows.n_columns, kernel)
        with one_blas_thread():
            self.features_ = Features.build(self.kernel_, points)
            self._nugget = float(nugget_of_rows(self.kernel_, points).mean())
        announce(f"{self.features_.n_points} inducing points", enabled=bool(self.verbose))

    @property
    def _chooses_points(self) -> bool:
        """Whether inducing points are chosen from the rows, rather than given."""
        return self.inducing is None or isinstance(self.inducing, Integral | str)

    def _sum_moments(self, rows: Rows, checkpoint: Checkpoint | None = None, task: Task = SILENT) -> Moments:
        if checkpoint:
            checkpoint.start(self._seed, self.features_)
        with task.steps("moments", "rows", rows.n_rows, at_most=REPORTED_STEPS) as steps:
            progress = Progress("moments", rows.n_rows, enabled=bool(self.verbose), listener=steps.listener)
            return moments_of_rows(self.features_, rows, progress=progress, keeper=checkpoint)

    def _infer(self, task: Task = SILENT) -> None:
        """Find the spectrum of the moments, infer the weights along its directions, and keep the posterior."""
        n_rows, n_components = self.moments_.weight, int(self.n_components)
        with one_blas_thread():
            spectrum = self._find_spectrum()
            check_enough_directions(n_components, n_rows, spectrum.rank)
            self._fitted_objective = self._objective(self._temperature_for(n_rows))
            weights, self.objective_, self.report_ = inference_method(self.inference).infer(
                spectrum, self._fitted_objective, n_components, self._seed, verbose=bool(self.verbose), task=task
            )
        self._posterior = Posterior(self.features_, spectrum.basis[:, : weights.mean.shape[1]], weights)
        own = self._nugget * n_rows / self.moments_.diagonal
        check_residual(self.residual_, own, float(self.residual_tolerance), self.features_.n_points)
        announce(f"objective {self.objective_:.6g}; {self.report_}", enabled=bool(self.verbose))

    def _temperature_for(self, n_rows: float) -> float:
        return 1 / n_rows if isinstance(self.temperature, str) else float(self.temperature)

    def _objective(self, temperature: float) -> Objective:
        """Return the objective. Raise ValueError where the parameters describe none."""
        weights = self.variance_weight, self.covariance_weight
        return Objective.checked(*weights, temperature, self.target_std, self.epsilon, self.variance_loss)

    def _find_spectrum(self) -> Spectrum:
        """Return the spectrum of the moments, which all refits share."""
        if not hasattr(self, "_spectrum"):
            with one_blas_thread():
                self._spectrum = Spectrum.of(self.moments_, self.features_)
        return self._spectrum

    def _forget_posterior(self) -> None:
        for name in ("_posterior", "_spectrum", "_fitted_objective", "objective_", "report_", "card_"):
            self.__dict__.pop(name, None)

    def _posterior_for_use(self) -> Posterior:
        check_is_fitted(self, "moments_")
        return self.posterior_

    # Checks

    def _check_parameters(self) -> None:
        """Raise ValueError or TypeError for the first parameter that has no meaning."""
        check_number("n_components", self.n_components, Integral, at_least=1)
        check_number("max_inducing", self.max_inducing, Integral, at_least=1)
        check_number("residual_tolerance", self.residual_tolerance, Real, at_least=0)
        self._objective(temperature=1.0)
        if not isinstance(self.temperature, str) or self.temperature != "auto":
            check_number("temperature", self.temperature, Real, above=0, otherwise='or "auto"')
        if isinstance(self.inducing, Real):
            check_number("inducing", self.inducing, Integral, at_least=1)
        elif isinstance(self.inducing, str) and self.inducing != "all":
            raise ValueError(f'inducing must be None, a whole number, "all" or rows, got {self.inducing!r}.')
        inference_method(self.inference)
        check_kernel(self.kernel)

    def _check_first_rows(self, n_rows: int | None, kernel: Kernel) -> None:
        """Raise ValueError where kernel or inducing points are chosen from these rows, and these are too few for that."""
        if self._chooses_points or depends_on_rows(kernel):
            check_enough_first_rows(n_rows, self.n_components)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        set_input_tags(tags.input_tags, self.kernel)
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
