"""One timed fit of GPSSL on the latent table."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike
from sklearn.gaussian_process.kernels import RBF

from gpssl import GPSSL

from .data import WARM_UP_ROWS, latent_table, residual_accepted
from .measurement import Run, measure


def fit_gpssl(n_rows: int, *, lengthscale: float | None, inducing: int | None = None, dtype: DTypeLike = np.float64) -> Run:
    """Fit GPSSL with this lengthscale, or with one that it finds."""
    kernel = None if lengthscale is None else RBF(lengthscale, length_scale_bounds="fixed")
    model = GPSSL(5, kernel=kernel, inducing=inducing, random_state=0)
    with residual_accepted():
        model.fit(latent_table(WARM_UP_ROWS, dtype=dtype))
        X = latent_table(n_rows, dtype=dtype)
        run = measure(lambda: model.fit(X))
    note = f"{len(model.inducing_points_)} inducing points leave {model.residual_:.1g} of the prior variance open"
    return run._replace(note=note)
