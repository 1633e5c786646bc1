"""The parameters of the estimator: which values they may have, and what the defaults and names among them stand for."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import InputTags

from .inference import METHODS, Inference
from .kernels import NeighborRBF, depends_on_rows, leaves
from .moments import Spectrum
from .objective import Objective
from .validation import check_number

REFITTABLE = (
    "n_components",
    "temperature",
    "variance_weight",
    "covariance_weight",
    "inference",
    "random_state",
    "verbose",
)
"""What inference alone depends on, so that it can change without the data."""


def kernel_of(kernel: Kernel | None) -> Kernel:
    """The kernel, or the default."""
    return NeighborRBF() if kernel is None else kernel


def describe_rows(tags: InputTags, kernel: Any) -> None:
    """Which rows an estimator with this kernel takes, also for what is no kernel, which is told the user at `fit`."""
    tags.two_d_array = bool(getattr(kernel_of(kernel), "requires_vector_input", True))
    tags.allow_nan = isinstance(kernel, Kernel) and any(getattr(leaf, "takes_gaps", False) for leaf in leaves(kernel))
    tags.sparse = tags.two_d_array and not tags.allow_nan


def method_of(inference: str | Inference) -> Inference:
    """The method of inference, by name or as it is."""
    return METHODS[inference]() if isinstance(inference, str) else inference


def objective_of(estimator: Any, total_weight: float) -> Objective:
    """The objective with the estimator's weights; the automatic temperature is one over the number of rows."""
    temperature = 1 / total_weight if isinstance(estimator.temperature, str) else float(estimator.temperature)
    return Objective(float(estimator.variance_weight), float(estimator.covariance_weight), temperature)


def chooses_points(estimator: Any) -> bool:
    """Whether inducing points are chosen from the rows, rather than given."""
    return estimator.inducing is None or isinstance(estimator.inducing, Integral | str)


def check_first_batch(estimator: Any, n_rows: int | None) -> None:
    """Enough rows to begin a stream with, unless nothing is to be chosen from them."""
    chosen_from_rows = chooses_points(estimator) or depends_on_rows(kernel_of(estimator.kernel))
    if chosen_from_rows and n_rows is not None and n_rows < max(2, estimator.n_components):
        raise ValueError(
            f"The first batch chooses lengthscale and inducing points and has n_samples={n_rows}, too few for {estimator.n_components} "
            "components. Begin with a larger batch, or pass both a concrete kernel and inducing points to the constructor."
        )


def check_spectrum(spectrum: Spectrum, total_weight: float, n_components: int) -> None:
    """Whether the rows, and what the kernel sees in them, are enough for so many components."""
    if total_weight < n_components:
        raise ValueError(
            f"{total_weight:g} rows cannot show {n_components} uncorrelated dimensions. Give more rows, or lower n_components."
        )
    if spectrum.rank < n_components:
        warnings.warn(
            f"The kernel sees only {spectrum.rank} direction(s) in these rows, too few for {n_components} uncorrelated "
            "dimensions. Lower n_components, or choose a kernel that sees more.",
            UserWarning,
            stacklevel=4,
        )


def inducing_limits(estimator: Any, n_rows: int | None) -> tuple[int, float]:
    """How many inducing points at most, and the residual at which to stop before."""
    if estimator.inducing is None:
        return int(estimator.max_inducing), float(estimator.residual_tolerance)
    if not isinstance(estimator.inducing, str):
        return int(estimator.inducing), 0.0
    if n_rows is None:
        raise ValueError('inducing="all" needs to know the number of rows, which these files or partitions do not tell: give a number.')
    return n_rows, 0.0


def check_changes(changes: dict[str, Any]) -> None:
    """A sentence for what `refit` cannot change."""
    unknown = sorted(set(changes) - set(REFITTABLE))
    if unknown:
        raise ValueError(
            f"refit cannot change {', '.join(unknown)}: that needs the data again. Use "
            f"clone(ssl).set_params(...).fit(X) instead, or change one of {', '.join(REFITTABLE)}."
        )


def check_parameters(estimator: BaseEstimator) -> None:
    """A sentence for the first parameter that has no meaning."""
    check_number("n_components", estimator.n_components, Integral, at_least=1)
    check_number("max_inducing", estimator.max_inducing, Integral, at_least=1)
    check_number("residual_tolerance", estimator.residual_tolerance, Real, at_least=0)
    check_number("variance_weight", estimator.variance_weight, Real, at_least=0)
    check_number("covariance_weight", estimator.covariance_weight, Real, at_least=0)
    if not isinstance(estimator.temperature, str) or estimator.temperature != "auto":
        check_number("temperature", estimator.temperature, Real, above=0, otherwise='or "auto"')
    if isinstance(estimator.inducing, Real):
        check_number("inducing", estimator.inducing, Integral, at_least=1)
    elif isinstance(estimator.inducing, str) and estimator.inducing != "all":
        raise ValueError(f'inducing must be None, a whole number, "all" or rows, got {estimator.inducing!r}.')
    known = estimator.inference in METHODS if isinstance(estimator.inference, str) else hasattr(estimator.inference, "infer")
    if not known or isinstance(estimator.inference, type):
        raise ValueError(f"inference must be one of {', '.join(METHODS)} or an object of gpssl.inference, got {estimator.inference!r}.")
    if not isinstance(kernel_of(estimator.kernel), Kernel):
        raise TypeError(f"kernel must be a kernel object such as sklearn.gaussian_process.kernels.RBF(), got {estimator.kernel!r}.")
