"""Tables that are symmetric, balanced, repeated or ordinary, the same rows in other forms, and how far results differ."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.gaussian_process import kernels as sk
from sklearn.gaussian_process.kernels import Kernel

from gpssl import GPSSL
from gpssl import kernels as k
from gpssl.data import _rows as part_module
from gpssl.inference import Sampling
from gpssl.kernels._protocol import preparing_kernel, takes_missing_cells

Array = NDArray[np.float64]

AGREEMENT = 1e-8
"""How far results may differ, relative to their size where that is above one."""
AGREEMENT_OF_SAMPLES = 1e-6
"""The same for a sampled posterior, whose chains begin around a minimum that is known to about this."""
AMPLIFIED = 10 * np.finfo(float).eps
"""Rounding of sums over rows; whitening divides it by the smallest variance that an inducing point adds."""
AMPLIFIED_BY_CHAINS = 1e4
"""How far chains at low temperatures magnify that."""


# Tables


def one_hot(rng: np.random.Generator) -> Array:
    """Return indicators of one or two columns of categories, balanced or nearly so."""
    blocks = []
    n_rows = int(rng.integers(24, 120))
    for _ in range(int(rng.integers(1, 3))):
        n_levels = int(rng.integers(2, 8))
        levels = np.arange(n_rows) % n_levels
        if rng.random() < 0.3:
            levels[: int(rng.integers(1, 4))] = 0
        blocks.append(np.eye(n_levels)[rng.permutation(levels) if rng.random() < 0.5 else levels])
    return np.hstack(blocks)


def ordinal(rng: np.random.Generator) -> Array:
    """Return a few small whole numbers in each column, as many of each where the table is balanced."""
    n_levels, n_columns = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    if rng.random() < 0.5:
        design = np.array(list(product(range(n_levels), repeat=n_columns)), dtype=float)
        return np.tile(design, (int(rng.integers(1, 4)), 1))
    return rng.integers(0, n_levels, size=(int(rng.integers(30, 150)), n_columns)).astype(float)


def grid(rng: np.random.Generator) -> Array:
    """Return the points of a grid in one to three dimensions, with the same number of steps in each."""
    n_dimensions = int(rng.integers(1, 4))
    n_steps = int(rng.integers(2, {1: 40, 2: 10, 3: 5}[n_dimensions]))
    axis = np.linspace(-1.0, 1.0, n_steps) if rng.random() < 0.5 else np.arange(n_steps, dtype=float)
    return np.array(list(product(axis, repeat=n_dimensions)))


def reflected(rng: np.random.Generator) -> Array:
    """Return a cloud and its mirror images: in one axis, in all of them, or with the columns exchanged."""
    half = rng.standard_normal((int(rng.integers(8, 30)), 2))
    kind = int(rng.integers(3))
    if kind == 0:
        return np.vstack([half, -half])
    if kind == 1:
        return np.vstack([half * signs for signs in product([1.0, -1.0], repeat=2)])
    return np.vstack([half, half[:, ::-1]])


def polygon(rng: np.random.Generator) -> Array:
    """Return the corners of one or several concentric regular polygons."""
    n_corners = int(rng.integers(3, 13))
    angles = 2 * np.pi * np.arange(n_corners) / n_corners
    corners = np.column_stack([np.cos(angles), np.sin(angles)])
    corners = np.vstack([radius * corners for radius in range(1, int(rng.integers(2, 5)))])
    return np.repeat(corners, int(rng.integers(1, 4)), axis=0)


def simplex(rng: np.random.Generator) -> Array:
    """Return the corners of a regular simplex or a cross-polytope, several times."""
    n_dimensions = int(rng.integers(2, 9))
    corners = np.eye(n_dimensions) if rng.random() < 0.5 else np.vstack([np.eye(n_dimensions), -np.eye(n_dimensions)])
    return np.tile(corners, (int(rng.integers(2, 9)), 1))


def clusters(rng: np.random.Generator) -> Array:
    """Return copies of one cloud, equally far from each other."""
    cloud = rng.standard_normal((int(rng.integers(3, 12)), 2)) / 4
    n_clusters = int(rng.integers(2, 5))
    return np.vstack([np.hstack([cloud, np.tile(3.0 * row, (len(cloud), 1))]) for row in np.eye(n_clusters)])


def duplicated(rng: np.random.Generator) -> Array:
    """Return rows that occur several times."""
    rows = rng.standard_normal((int(rng.integers(5, 40)), int(rng.integers(1, 4)))).round(int(rng.integers(0, 3)))
    return rows[rng.integers(len(rows), size=int(rng.integers(40, 160)))]


def ordinary(rng: np.random.Generator) -> Array:
    """Return a cloud with correlated columns in units of their own."""
    n_columns = int(rng.integers(1, 7))
    cloud = rng.standard_normal((int(rng.integers(20, 160)), n_columns)) @ rng.standard_normal((n_columns, n_columns))
    return cloud * 10.0 ** rng.integers(-3, 4, size=n_columns)


def heavy_tailed(rng: np.random.Generator) -> Array:
    """Return a cloud with outlying rows."""
    return rng.standard_cauchy((int(rng.integers(30, 120)), int(rng.integers(1, 4))))


def with_gaps(rng: np.random.Generator) -> Array:
    """Return a table of one of the other kinds in which some cells are missing."""
    rows = [ordinal, duplicated, ordinary, grid][int(rng.integers(4))](rng)
    rows[rng.random(rows.shape) < 0.15] = np.nan
    return rows


def frame(rng: np.random.Generator) -> pd.DataFrame:
    """Return a data frame with balanced or random categories, ordered categories and numbers."""
    n_rows = int(rng.integers(24, 120))
    columns: dict[str, Any] = {}
    for place in range(int(rng.integers(1, 4))):
        n_levels = int(rng.integers(2, 6))
        codes = np.arange(n_rows) % n_levels if rng.random() < 0.6 else rng.integers(n_levels, size=n_rows)
        columns[f"category {place}"] = np.array(["red", "green", "blue", "gray", "pink"])[codes]
    if rng.random() < 0.4:
        grades = np.array(["low", "middle", "high"])[rng.permutation(np.arange(n_rows) % 3)]
        columns["grade"] = pd.Categorical(grades, ["low", "middle", "high"], ordered=True)
    if rng.random() < 0.6:
        columns["count"] = np.arange(n_rows) % int(rng.integers(2, 7)) * 1.0
    if rng.random() < 0.4:
        columns["amount"] = np.exp(3 * rng.standard_normal(n_rows)).round(2)
    if rng.random() < 0.3:
        columns["size"] = np.where(rng.random(n_rows) < 0.1, np.nan, rng.standard_normal(n_rows))
    return pd.DataFrame(columns)


TABLES: dict[str, Callable[[np.random.Generator], Any]] = {
    table.__name__: table
    for table in (
        *(one_hot, ordinal, grid, reflected, polygon, simplex, clusters),
        *(duplicated, ordinary, heavy_tailed, with_gaps, frame),
    )
}

FOR_NUMBERS: tuple[Callable[[], Kernel | None], ...] = (
    lambda: None,
    lambda: sk.RBF(1.0),
    lambda: sk.Matern(1.0, nu=1.5),
    lambda: k.NeighborRBF(5, reduce="median"),
    lambda: k.NeighborRBF(per_column=False),
    lambda: k.StandardizedKernel(),
    lambda: k.StandardizedKernel("laplace", scores=True),
    lambda: k.StandardizedKernel("linear"),
    lambda: k.CategoryKernel(),
    lambda: k.IncompleteRBF(),
    lambda: k.OrdinalKernel(),
    lambda: k.NeighborDiffusion(5),
    lambda: 0.5 * k.NeighborDiffusion(4) + 0.5 * k.NeighborRBF(),
    lambda: k.NeighborDiffusion(5, kernel=k.StandardizedKernel()),
    lambda: k.NearestNeighborGP(5),
    lambda: sk.RBF(0.7) + sk.WhiteKernel(0.1),
)


def kernels_for(kind: str) -> list[Callable[[], Kernel | None]]:
    """Return what makes each kernel that takes the rows of a kind of tables."""
    if kind == "frame":
        return [lambda: None, lambda: k.StandardizedKernel(), lambda: k.NeighborDiffusion(5, kernel=k.StandardizedKernel("laplace"))]
    if kind == "with_gaps":
        return [make for make in FOR_NUMBERS if isinstance(make(), k.IncompleteRBF | k.StandardizedKernel | k.CategoryKernel)]
    return list(FOR_NUMBERS)


# The same rows in other forms


class Form(NamedTuple):
    """Rows and weights from which the same must be learned as from others."""

    name: str
    X: Any
    weight: Array | None = None
    part_rows: int | None = None
    """Rows of a part; None for as many as usual."""


def taken(X: Any, places: NDArray[np.intp]) -> Any:
    """Return these rows of an array or a data frame."""
    return X.iloc[places].reset_index(drop=True) if isinstance(X, pd.DataFrame) else X[places]


def same_rows(X: Any, rng: np.random.Generator, *, lazy: bool) -> Iterator[tuple[Form, Form]]:
    """Yield pairs of forms: other orders, parts, partitions if the kernel takes `lazy` rows, and weights instead of repetitions."""
    import dask.array as da

    n_rows = len(X)
    plain = Form("as it is", X)
    order = rng.permutation(n_rows)
    yield plain, Form("in another order", taken(X, order))
    yield plain, Form("in small parts", taken(X, order), part_rows=int(rng.integers(1, max(2, n_rows // 2))))
    if lazy:
        cuts = np.diff(np.unique([0, n_rows, *rng.integers(1, n_rows, size=3)]))
        yield plain, Form("in Dask's partitions", da.from_array(X[order], chunks=(tuple(cuts.tolist()), (X.shape[1],))))
    weight = rng.integers(0, 4, size=n_rows).astype(float)
    if (weight > 0).sum() > 3:
        yield Form("repeated", taken(X, np.repeat(np.arange(n_rows), weight.astype(int)))), Form("weighted", X, weight)
    weight = rng.random(n_rows)
    yield (
        Form("with weights", X, weight),
        Form("with weights, in another order", taken(X, order), weight[order], int(rng.integers(1, n_rows))),
    )


def takes_lazy_rows(kernel: Kernel | None, X: Any) -> bool:
    """Return whether a kernel takes these rows in Dask's partitions: it works on vectors as they are."""
    return isinstance(X, np.ndarray) and (kernel is None or (preparing_kernel(kernel) is None and not takes_missing_cells(kernel)))


class Learned(NamedTuple):
    """What a fit led to, or the error that it ended with."""

    model: GPSSL | None
    error: str = ""
    unsure: bool = False
    """Whether a warning said that the optimizer had not come to an end."""


def learned(form: Form, model: GPSSL, monkeypatch: pytest.MonkeyPatch) -> Learned:
    """Fit a model to rows in this form."""
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if form.part_rows is not None:
            patch.setattr(part_module, "MIN_PARTS", 10**6)
            patch.setattr(part_module, "MIN_ROWS", form.part_rows)
            patch.setattr(part_module, "PART_ROWS", (1, form.part_rows))
        try:
            fitted = model.fit(form.X, sample_weight=form.weight)
        except ValueError as error:
            return Learned(None, str(error))
    return Learned(fitted, unsure=any("may depend on the seed" in str(warning.message) for warning in caught))


class Trial(NamedTuple):
    """A table, and a model with which to learn from it."""

    X: Any
    model: Callable[[], GPSSL]
    kernel: Kernel | None

    @classmethod
    def of_kind(cls, kind: str, rng: np.random.Generator) -> Trial:
        """Return a random table of this kind, and a random model for it."""
        X, makers = TABLES[kind](rng), kernels_for(kind)
        make = makers[int(rng.integers(len(makers)))]
        inference: Any = rng.choice(["variational", "mode", "sampling"], p=[0.75, 0.125, 0.125])
        if inference == "sampling":
            inference = Sampling(n_chains=2, n_warmup=50, n_samples=50)
        settings: dict[str, Any] = {
            "n_components": int(rng.integers(1, 6)),
            "temperature": ["auto", "auto", 1e-3, 0.1][int(rng.integers(4))],
            "inducing": [None, None, None, 12][int(rng.integers(4))],
            "inference": inference if isinstance(inference, Sampling) else str(inference),
        }
        return cls(X, lambda: GPSSL(kernel=make(), random_state=0, **settings), make())

    def disagreements(self, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        """Return where the same rows in different forms lead to different results."""
        found = []
        for one, other in same_rows(self.X, rng, lazy=takes_lazy_rows(self.kernel, self.X)):
            first, second = (learned(form, self.model(), monkeypatch) for form in (one, other))
            if first.model is None or second.model is None:
                found += [] if first.error == second.error else [f"{other.name}: {first.error!r} and {second.error!r}"]
            elif not (first.unsure or second.unsure):
                apart = difference(first.model, second.model, self.X)
                if max(apart.values()) > allowed(first.model):
                    found.append(f"{other.name}: {apart}, {first.model.report_}")
        return found


def allowed(model: GPSSL) -> float:
    """Return how far results of the same rows may differ: more where inducing points nearly coincide or a minimum is not sharp."""
    pivots = model.features_.factor.diagonal() ** 2
    rounding = AMPLIFIED * float((model.features_.factor**2).sum(axis=1).mean() / pivots.min())
    if isinstance(model.inference, Sampling):
        return max(AGREEMENT_OF_SAMPLES, AMPLIFIED_BY_CHAINS * rounding)
    return max(AGREEMENT, rounding, getattr(model.report_, "error", 0.0))


def difference(one: GPSSL, other: GPSSL, X: Any) -> dict[str, float]:
    """Return how far kernel, eigenvalues, means and standard deviations of two models differ on the rows of X."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a mean of zero is one that both have
        means, stds = zip(*(model.mean_and_std(X) for model in (one, other)), strict=True)
        kernels = [np.asarray(model.kernel_(one.inducing_points_, one.inducing_points_)) for model in (one, other)]
    if one.inducing_points_.shape != other.inducing_points_.shape:
        return {"inducing points": np.inf}
    # Of the eigenvalues, the last one may be just above or just below the share that is learned.
    n_learned = min(len(one.eigenvalues_), len(other.eigenvalues_))
    eigenvalues = [model.eigenvalues_[:n_learned] for model in (one, other)]
    pairs = {"kernel": kernels, "eigenvalues": eigenvalues, "mean": means, "std": stds}
    return {name: _apart(*pair) for name, pair in pairs.items()}


def _apart(one: Array, other: Array) -> float:
    if one.shape != other.shape:
        return float("inf")
    size = max(1.0, float(np.abs(one).max(initial=0.0)))
    return float(np.abs(one - other).max(initial=0.0)) / size
