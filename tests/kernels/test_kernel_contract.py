"""Properties of every kernel of the library, for each kind of row."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.base import clone

from gpssl import GPSSL, MarginalizedClassifier
from gpssl.data._arrays import as_object_rows
from gpssl.data._frames import header_of
from gpssl.data._rows import SliceableRows
from gpssl.kernels._protocol import block_kernel, preparing_kernel, resolve_kernel
from kinds_of_rows import KINDS, Kind

Array = NDArray[np.float64]

NAMES = pytest.mark.parametrize("name", KINDS)


def rows_of(kind: Kind, X: Any) -> NDArray[Any]:
    """Return the rows as the library passes them to the kernel."""
    preparing = preparing_kernel(kind.kernel)
    if preparing is None:
        return np.asarray(X) if kind.kernel.requires_vector_input else as_object_rows(X)
    return preparing.prepare(X)


def concrete(kind: Kind) -> Any:
    """Return the kernel as it is after `fit`."""
    X = kind.table(kind.training)
    rows = SliceableRows(rows_of(kind, X), checked=True)
    rows.header = header_of(X)
    return resolve_kernel(kind.kernel, rows, 0)


@NAMES
@given(data=st.data())
@settings(max_examples=8)
def test_symmetric_positive_semi_definite_and_the_same_in_blocks(name: str, data: st.DataObject) -> None:
    kind = KINDS[name]
    kernel = concrete(kind)
    one = data.draw(st.lists(kind.row, min_size=1, max_size=8))
    other = data.draw(st.lists(kind.row, min_size=1, max_size=8))
    X, Y, both = (rows_of(kind, kind.table(rows)) for rows in (one, other, one + other))
    whole = kernel(both)
    assert np.isfinite(whole).all()
    np.testing.assert_allclose(whole, whole.T, rtol=0, atol=1e-12)
    assert np.linalg.eigvalsh(whole)[0] >= -1e-10 * np.trace(whole)
    np.testing.assert_allclose(kernel.diag(both), whole.diagonal(), atol=1e-10)
    np.testing.assert_allclose(kernel(X, Y), whole[: len(one), len(one) :], atol=1e-10)
    out = np.empty((len(one), len(other)))
    block_kernel(kernel, Y)(X, out)
    np.testing.assert_allclose(out, kernel(X, Y), atol=1e-10)


@NAMES
def test_copies_give_the_same_values(name: str) -> None:
    kind = KINDS[name]
    rows = rows_of(kind, kind.table(kind.training))
    kernel = concrete(kind)
    values = kernel(rows)
    for copy in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        np.testing.assert_array_equal(copy(rows), values)
    assert clone(kind.kernel) is not kind.kernel
    assert repr(clone(kind.kernel)) == repr(kind.kernel)


@NAMES
def test_tells_the_training_rows_apart(name: str) -> None:
    """A kernel that is constant, or zero between all rows, would pass the other tests."""
    kind = KINDS[name]
    values = concrete(kind)(rows_of(kind, kind.table(kind.training)), rows_of(kind, kind.table(kind.training)))
    off_diagonal = values[~np.eye(len(values), dtype=bool)]
    assert off_diagonal.std() > 0.01
    assert (off_diagonal > 0.01).any()


@NAMES
@pytest.mark.filterwarnings("ignore:.*inducing points leave:UserWarning")
@pytest.mark.filterwarnings("ignore:The kernel sees only:UserWarning")
def test_carries_the_whole_way_from_rows_to_predictions(name: str) -> None:
    kind = KINDS[name]
    X, new = kind.table(kind.training), kind.table(kind.training[:7])
    ssl = GPSSL(2, kernel=kind.kernel, random_state=0).fit(X)
    mean, std = ssl.transform(new), ssl.std(new)
    assert mean.shape == std.shape == (7, 2)
    np.testing.assert_allclose(ssl.transform(X)[:7], mean, atol=1e-9)
    draws = ssl.sample(new, 2000, random_state=0)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=5 * std.max() / np.sqrt(2000))
    np.testing.assert_allclose(draws.std(axis=0), std, atol=0.1 * std.max())
    y = np.arange(len(kind.training)) % 2
    few = np.where(np.arange(len(y)) < 20, y, -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        clf = MarginalizedClassifier(GPSSL(2, kernel=kind.kernel), n_draws=50, random_state=0).fit(X, few)
    assert clf.predict_proba(new).shape == (7, 2)
    assert clf.score(X, y) > 0.7


@pytest.mark.parametrize("name", [name for name in KINDS if name != "PairKernel"])  # pairs are positions, which the order changes
def test_order_of_rows_and_weights_make_no_difference(name: str) -> None:
    """For the kernel, too, a row of weight 2 is the row twice."""
    kind = KINDS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        order = np.random.default_rng(0).permutation(len(kind.training))
        weight = np.where(np.arange(len(order)) < 10, 2.0, 1.0)
        shuffled = [kind.training[place] for place in order] + [kind.training[place] for place in order if place < 10]
        weighted = GPSSL(2, kernel=kind.kernel, random_state=0).fit(kind.table(kind.training), sample_weight=weight)
        repeated = GPSSL(2, kernel=kind.kernel, random_state=0).fit(kind.table(shuffled))
    new = kind.table(kind.training[:9])
    np.testing.assert_allclose(weighted.transform(new), repeated.transform(new), atol=1e-6)
