"""The protocol of kernels: which methods are found in a kernel, and what happens without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.gaussian_process import kernels as sk

from gpssl import GPSSL
from gpssl.data._rows import SliceableRows
from gpssl.kernels import CategoryKernel, ColumnKernel, IncompleteRBF, NeighborDiffusion, NeighborRBF, NodeDiffusion, SpectrumKernel
from gpssl.kernels._protocol import (
    PreparingKernel,
    SelfDescribingKernel,
    block_kernel,
    depends_on_rows,
    kernel_diagonal,
    preparing_kernel,
    resolve_kernel,
    takes_missing_cells,
    takes_tables,
    takes_vectors,
)

Array = NDArray[np.float64]


class Scaled(sk.RBF):
    """A user's kernel that takes its lengthscale from the rows, unless it has one; it has none of the other methods."""

    def __init__(self, length_scale: float | None = None) -> None:
        self.length_scale = length_scale

    @property
    def hyperparameter_length_scale(self) -> sk.Hyperparameter:
        return sk.Hyperparameter("length_scale", "numeric", "fixed")

    @property
    def is_resolved(self) -> bool:
        return self.length_scale is not None

    def resolve(self, rows: Any, *, seed: int) -> Scaled:
        return Scaled(float(rows.sample(100, seed).rows.std()) if self.length_scale is None else self.length_scale)


class AlwaysScaled(sk.RBF):
    """A user's kernel with `resolve` alone."""

    def resolve(self, rows: Any, *, seed: int) -> sk.RBF:
        return sk.RBF(float(rows.sample(100, seed).rows.std()))


def test_resolution_reaches_into_sums_products_and_powers(circles: Array) -> None:
    kernel = (2.0 * NeighborRBF(per_column=False) + sk.WhiteKernel(0.1)) ** 2
    resolved = resolve_kernel(kernel, SliceableRows(circles), seed=0)
    inner = NeighborRBF(per_column=False).resolve(circles)
    expected = (2.0 * inner + sk.WhiteKernel(0.1)) ** 2
    np.testing.assert_allclose(resolved(circles[:20]), expected(circles[:20]))
    assert isinstance(kernel.kernel.k1.k2, NeighborRBF), "the kernel that was passed must not change"


@pytest.mark.parametrize("kernel", [sk.RBF(), 2.0 * sk.RBF() + sk.WhiteKernel(), sk.RBF() ** 2, sk.CompoundKernel([sk.RBF()])], ids=str)
def test_kernel_of_scikit_learn_needs_none_of_the_methods(kernel: sk.Kernel) -> None:
    assert preparing_kernel(kernel) is None
    assert not depends_on_rows(kernel)
    assert not isinstance(kernel, SelfDescribingKernel)
    assert takes_vectors(kernel)
    assert not takes_missing_cells(kernel)
    assert not takes_tables(kernel)


def test_own_kernel_with_resolve_alone(circles: Array) -> None:
    assert depends_on_rows(3.0 * AlwaysScaled())
    fitted = GPSSL(2, kernel=3.0 * AlwaysScaled(), random_state=0).fit(circles).kernel_
    assert type(fitted.k2) is sk.RBF
    assert fitted.k2.length_scale == pytest.approx(circles.std(), rel=0.2)


def test_own_kernel_that_may_be_resolved_already(circles: Array) -> None:
    assert depends_on_rows(Scaled() + sk.WhiteKernel())
    assert not depends_on_rows(Scaled(2.0) + sk.WhiteKernel())
    resolved = resolve_kernel(Scaled() + sk.WhiteKernel(), SliceableRows(circles), seed=0)
    assert not depends_on_rows(resolved)
    assert resolved.k1.length_scale == pytest.approx(circles.std(), rel=0.2)


def test_kind_of_row_comes_from_the_leaves() -> None:
    table = ColumnKernel([("a", CategoryKernel(), [0])])
    assert preparing_kernel(2.0 * table + sk.WhiteKernel()) is not None
    assert preparing_kernel(NeighborDiffusion(kernel=table)) == table
    assert takes_tables(2.0 * NeighborDiffusion(kernel=table) + sk.WhiteKernel())
    assert not takes_tables(IncompleteRBF())
    assert takes_missing_cells(2.0 * IncompleteRBF() + sk.WhiteKernel())
    assert takes_missing_cells(table)
    assert not takes_vectors(NeighborDiffusion(kernel=SpectrumKernel()))
    assert isinstance(preparing_kernel(table * CategoryKernel()), PreparingKernel), "kernels for tables can be multiplied"
    with pytest.raises(ValueError, match=r"SpectrumKernel.*different kinds of rows"):
        preparing_kernel(table + SpectrumKernel())


def test_object_that_is_no_kernel_is_left_to_fit_to_report() -> None:
    assert takes_vectors("rbf")
    assert not takes_missing_cells("rbf")
    with pytest.raises(TypeError, match="kernel must be a kernel object"):
        GPSSL(kernel="rbf").fit(np.eye(3))


def test_kernel_of_nodes_describes_its_graph() -> None:
    import networkx as nx

    one, other = NodeDiffusion(nx.path_graph(3)), NodeDiffusion(nx.path_graph(4))
    assert isinstance(one, SelfDescribingKernel)
    assert repr(one) == repr(other)
    assert one.describe() != other.describe()


KERNELS = [
    sk.RBF(0.7),
    sk.RBF([0.5, 2.0]),
    sk.ConstantKernel(3.0) * sk.RBF(0.7),
    sk.RBF(0.7) * sk.ConstantKernel(3.0),
    sk.ConstantKernel(3.0) * sk.ConstantKernel(2.0),
    sk.Matern(1.0, nu=1.5),
    sk.RationalQuadratic(),
    sk.DotProduct() ** 2,
    sk.RBF(1.0) + sk.WhiteKernel(0.3),
    sk.PairwiseKernel(metric="laplacian"),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("shift", [0.0, 1e3, 1e6])
def test_block_evaluation_equals_the_kernel(kernel: sk.Kernel, shift: float, circles: Array) -> None:
    """The same holds far from the origin, where inner products of rows that are not centered have no digits left."""
    X, points = circles[:50] + shift, circles[60:90] + shift
    out = np.full((50, 30), np.nan)
    block_kernel(kernel, points)(X, out)
    np.testing.assert_allclose(out, kernel(X, points), rtol=1e-8, atol=1e-10)


def test_block_evaluation_falls_back_for_rows_far_from_all_points(circles: Array) -> None:
    X = np.vstack([circles[:5], [[1e150, -1e150]]])
    out = np.empty((6, 10))
    block_kernel(sk.RBF(1.0), circles[:10])(X, out)
    np.testing.assert_allclose(out, sk.RBF(1.0)(X, circles[:10]), atol=1e-12)
    assert (out[5] == 0).all()


def test_diagonal_is_checked() -> None:
    X = np.ones((3, 2))
    with pytest.raises(ValueError, match="CompoundKernel"):
        kernel_diagonal(sk.CompoundKernel([sk.RBF(), sk.RBF()]), X)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        kernel_diagonal(sk.PairwiseKernel(metric="sigmoid", gamma=-1.0), X)
