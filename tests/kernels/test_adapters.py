from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Kernel, Matern

from gpssl import GPSSL
from gpssl.kernels import CallableKernel, PrecomputedKernel, from_gpytorch

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of PyTorch, at import
    import gpytorch

Array = NDArray[np.float64]


def product(X: Any, Y: Any) -> Array:
    return np.asarray(X) @ np.asarray(Y).T + 1.0


def shared_letters(x: str, y: str) -> float:
    return 1.0 + sum(x.count(letter) * y.count(letter) for letter in set(x))


def square_norms(X: Any) -> Array:
    return (np.asarray(X) ** 2).sum(axis=1) + 1.0


def one_each(X: Any, Y: Any) -> Array:
    return np.ones(len(X)) * np.ndim(Y)


def sum_of_all(X: Any) -> Array:
    return np.array([np.sum(X)])


def with_lengthscale(kernel: Any, lengthscale: Any) -> Any:
    kernel.lengthscale = torch.tensor(lengthscale)
    return kernel


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (with_lengthscale(gpytorch.kernels.RBFKernel(), 0.5), RBF(0.5)),
        (with_lengthscale(gpytorch.kernels.RBFKernel(ard_num_dims=2), [0.5, 2.0]), RBF([0.5, 2.0])),
        (with_lengthscale(gpytorch.kernels.MaternKernel(nu=1.5), 0.5), Matern(0.5, nu=1.5)),
        (with_lengthscale(gpytorch.kernels.MaternKernel(nu=2.5, ard_num_dims=2), [0.5, 2.0]), Matern([0.5, 2.0], nu=2.5)),
    ],
    ids=["RBF", "RBF, ARD", "Matern 3/2", "Matern 5/2, ARD"],
)
def test_gpytorch_agrees_with_itself_and_with_scikit_learn(theirs: Any, ours: Kernel, circles: Array) -> None:
    kernel, X, Y = from_gpytorch(theirs), circles[:30], circles[30:50]
    np.testing.assert_allclose(kernel(X, Y), ours(X, Y), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(kernel(X), kernel(X, X))
    np.testing.assert_allclose(kernel.diag(X), np.ones(30))
    with torch.no_grad():
        own = theirs.double()(torch.tensor(X), torch.tensor(Y)).to_dense().numpy()
    np.testing.assert_allclose(kernel(X, Y), own, rtol=1e-12)
    for copy in (clone(kernel), pickle.loads(pickle.dumps(kernel))):
        np.testing.assert_array_equal(copy(X, Y), kernel(X, Y))


def test_gpytorch_kernel_that_is_passed_stays_as_it_is(circles: Array) -> None:
    theirs = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()).float()
    theirs.outputscale = 3.0
    kernel = from_gpytorch(theirs)
    assert theirs.training
    assert theirs.outputscale.dtype == torch.float32
    np.testing.assert_allclose(kernel.diag(circles[:4]), 3.0, rtol=1e-6)
    theirs.outputscale = 1.0
    np.testing.assert_allclose(kernel.diag(circles[:4]), 3.0, rtol=1e-6)


def test_gpssl_with_gpytorch_is_gpssl_with_the_same_kernel(circles: Array) -> None:
    kernel = from_gpytorch(with_lengthscale(gpytorch.kernels.RBFKernel(), 1.0))
    models = [GPSSL(2, kernel=k, inducing=circles[::10], random_state=0, residual_tolerance=1.0).fit(circles) for k in (kernel, RBF(1.0))]
    one, other = (np.abs(model.transform(circles)) for model in models)
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    longer = from_gpytorch(with_lengthscale(gpytorch.kernels.RBFKernel(), 2.0))
    refitted = GPSSL(2, kernel=longer, inducing=circles[::10], residual_tolerance=1.0, random_state=0).fit(circles)
    assert refitted.features_.fingerprint != models[0].features_.fingerprint


def test_what_is_no_kernel_of_gpytorch_raises_an_error() -> None:
    with pytest.raises(TypeError, match="takes a gpytorch"):
        from_gpytorch(RBF())
    with pytest.raises(ValueError, match="batch of parameters"):
        from_gpytorch(gpytorch.kernels.RBFKernel(batch_shape=torch.Size([2])))
    with pytest.raises(ValueError, match="gradient"):
        from_gpytorch(gpytorch.kernels.RBFKernel())(np.zeros((2, 2)), eval_gradient=True)


def test_functions_as_kernels(circles: Array) -> None:
    X, Y = circles[:10], circles[10:15]
    for kernel in (CallableKernel(product), CallableKernel(product, diagonal=square_norms)):
        np.testing.assert_array_equal(kernel(X, Y), product(X, Y))
        np.testing.assert_allclose(kernel.diag(X), kernel(X).diagonal())
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(clone(kernel)))(X), kernel(X))
    assert CallableKernel(product).requires_vector_input
    with pytest.warns(UserWarning, match="sees only 2 direction"):
        assert GPSSL(4, kernel=CallableKernel(product), random_state=0).fit(circles).transform(X).shape == (10, 4)


def test_functions_of_two_objects_as_kernels() -> None:
    words = ["abc", "abd", "xyz", "xyw", "kkk"]
    kernel = CallableKernel(shared_letters, vectors=False, elementwise=True)
    assert kernel(words)[0, 1] == 3
    np.testing.assert_array_equal(kernel.diag(words), kernel(words).diagonal())
    assert GPSSL(2, kernel=kernel, random_state=0).fit(words).transform(words).shape == (5, 2)


def test_functions_of_the_wrong_shape_raise_an_error() -> None:
    X = np.ones((3, 2))
    with pytest.raises(ValueError, match=r"function of CallableKernel returns shape \[3\] where \[3, 3\]"):
        CallableKernel(one_each)(X)
    with pytest.raises(ValueError, match=r"diagonal of CallableKernel returns shape \[1\] where \[3\]"):
        CallableKernel(product, diagonal=sum_of_all).diag(X)


@pytest.mark.parametrize("shape", ["[n]", "[n, 1]"])
def test_gram_matrix_gives_what_its_kernel_gives(circles: Array, shape: str) -> None:
    X, chosen = circles[:150], np.arange(0, 150, 3)
    rows = np.arange(150) if shape == "[n]" else np.arange(150)[:, None]
    settings: dict[str, Any] = {"random_state": 0, "residual_tolerance": 1.0}
    direct = GPSSL(2, kernel=RBF(1.0), inducing=X[chosen], **settings).fit(X)
    precomputed = GPSSL(2, kernel=PrecomputedKernel(RBF(1.0)(X)), inducing=rows[chosen], **settings).fit(rows)
    np.testing.assert_allclose(np.abs(precomputed.transform(rows)), np.abs(direct.transform(X)), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(precomputed.std(rows), direct.std(X), rtol=1e-4)
    assert GPSSL(2, kernel=PrecomputedKernel(RBF(1.0)(X)), random_state=0).fit(rows).sample(rows[:3], 2).shape == (2, 3, 2)


def test_gram_matrix_clones_and_pickles() -> None:
    kernel = PrecomputedKernel(np.array([[2.0, 1.0], [1.0, 1.0]]))
    np.testing.assert_array_equal(kernel([1, 0], [0]), [[1.0], [2.0]])
    np.testing.assert_array_equal(kernel.diag([0, 1, 1]), [2.0, 1.0, 1.0])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clone(kernel)))([0, 1]), kernel([0, 1]))
    assert clone(kernel) == kernel


@pytest.mark.parametrize(
    ("gram", "message"),
    [
        (np.ones((2, 3)), "square"),
        ([[1.0, np.nan], [np.nan, 1.0]], "not finite"),
        ([[1.0, 0.5], [0.0, 1.0]], "not symmetric"),
        ([[1.0, 2.0], [2.0, 1.0]], "smallest eigenvalue is -1"),
    ],
)
def test_bad_gram_matrices_raise_an_error(gram: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PrecomputedKernel(gram)([0, 1])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0, 5], "Row 5 is outside the Gram matrix, which has 2 rows"),
        ([-1], "Row -1"),
        ([0.5], "whole"),
        ([[0, 1]], "whole"),
        (["a"], "whole"),
    ],
)
def test_bad_positions_raise_an_error(rows: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PrecomputedKernel(np.eye(2)).prepare(rows)
