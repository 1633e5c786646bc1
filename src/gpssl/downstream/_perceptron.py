"""The paper's head: a perceptron with one hidden layer; those of all drawn representations are trained at once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._runtime.threads import map_on_threads, one_blas_thread
from .._validation import check_draws, check_number, seed_from, unchanged_on_failure
from ..data._arrays import hash_rows, random_phases, row_blocks
from ..data._labels import encode_classes

Array = NDArray[np.float64]
Shapes = tuple[tuple[int, int], tuple[int, int]]

NUMBERS_AT_ONCE = 2**19
"""Draws times rows times hidden units that are computed together: enough to outweigh the calls, few enough to stay in cache."""


@dataclass(frozen=True)
class Perceptrons:
    """One trained perceptron for each of S drawn representations: p(x) = softmax(relu(z(x) A + a) B + b).

    A: `hidden_weights` [S, J, H], a: `hidden_bias` [S, 1, H], B: `output_weights` [S, H, K], b: `output_bias` [S, 1, K]. `losses` [S] are
    the lowest mean cross-entropies over the rows held out (over all rows where none could be), `epochs` [S] those that reached them.
    """

    classes: NDArray[Any]
    """The classes, sorted. [K]"""
    hidden_weights: Array
    hidden_bias: Array
    output_weights: Array
    output_bias: Array
    losses: Array
    epochs: NDArray[np.int64]

    def predict_proba(self, Z: Any) -> Array:
        """Return the probability of each class at each draw's features, Z [S, n, J]. [S, n, K]"""
        draws = np.asarray(Z, dtype=np.float64)
        n_draws, n_features, n_hidden = self.hidden_weights.shape
        if draws.ndim != 3 or draws.shape[0] != n_draws or draws.shape[2] != n_features:
            raise ValueError(f"These perceptrons take draws of shape [{n_draws}, n, {n_features}], got {list(draws.shape)}.")
        probabilities = np.empty((n_draws, draws.shape[1], len(self.classes)))

        def fill(rows: slice) -> None:
            hidden = np.maximum(draws[:, rows] @ self.hidden_weights + self.hidden_bias, 0.0)
            probabilities[:, rows] = softmax(hidden @ self.output_weights + self.output_bias, axis=2)

        map_on_threads(fill, list(row_blocks(draws.shape[1], max(1, NUMBERS_AT_ONCE // (n_draws * n_hidden)))))
        return probabilities

    def predict_proba_variance(self, Z: Array) -> None:
        """Return None: a perceptron has no posterior over its weights."""


class PerceptronClassifier(ClassifierMixin, BaseEstimator):
    """The paper's two-layer perceptron: one hidden layer of rectified units, softmax on top.

    Adam, on all training rows at a time, lowers

        Σ_n w_n (−log p(y_n | x_n)) / Σ_n w_n + (λ/2) (‖A‖² + ‖B‖²)        x standardized; A, B: the weights without the biases

    and the parameters with the lowest cross-entropy on rows held out are kept. Which rows are held out depends on their content, not on
    their order, and weight 2 is the row twice. Training needs PyTorch: pip install "gpssl[nn]".

    Parameters
    ----------
    hidden_units
        H, the width of the hidden layer.
    learning_rate, max_epochs
        Size of Adam's steps, and how many at most.
    weight_decay
        λ, the penalty on the weights.
    validation_fraction, patience
        Fraction of the distinct rows of each class that is held out, and steps without a lower loss on them after which training stops.
        No row of a class is held out where the fraction is less than one row. Where none is, all rows train, and the loss on them decides.
    random_state
        Seed of the initial weights and of the choice of rows to hold out.

    Attributes
    ----------
    perceptrons_
        The trained perceptron, in the form of a single draw.
    classes_, n_features_in_, feature_names_in_
        As everywhere in scikit-learn.
    """

    def __init__(
        self,
        hidden_units: int = 32,
        *,
        learning_rate: float = 0.05,
        weight_decay: float = 1e-3,
        max_epochs: int = 100,
        validation_fraction: float = 0.1,
        patience: int = 10,
        random_state: Any = None,
    ) -> None:
        self.hidden_units = hidden_units
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.max_epochs = max_epochs
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PerceptronClassifier:
        """Train on the rows of X with the classes y. Weight 2 is the row twice."""
        with unchanged_on_failure(self), one_blas_thread():
            rows, labels = validate_data(self, X, y, dtype=np.float64)
            self.perceptrons_ = self.fit_draws(rows[None], labels, sample_weight)
            self.classes_ = self.perceptrons_.classes
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class at each row. [n, K]"""
        check_is_fitted(self)
        return self.perceptrons_.predict_proba(validate_data(self, X, reset=False, dtype=np.float64)[None])[0]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row. [n]"""
        probabilities = self.predict_proba(X)
        return self.classes_[probabilities.argmax(axis=1)]

    def fit_draws(self, Z: Any, y: Any, sample_weight: Any = None) -> Perceptrons:
        """Train one perceptron for each draw of the representation, all at once; this estimator stays as it is.

        Z is [S, n, J], y the classes of the n rows. Every draw has initial weights of its own and stops on its own. It does not depend on
        the other draws, except that the rows to hold out are chosen by their content in the first.
        """
        self._check_parameters()
        draws, weight = check_draws(Z, y, sample_weight)
        classes, codes, used = encode_classes(y, weight)
        seed = seed_from(self.random_state)
        rows = arrange_rows(draws[:, used], codes, weight[used], float(self.validation_fraction), seed)
        return self._train(rows, classes, seed)

    def _check_parameters(self) -> None:
        for name in ("hidden_units", "max_epochs", "patience"):
            check_number(name, getattr(self, name), Integral, at_least=1)
        check_number("learning_rate", self.learning_rate, Real, above=0)
        check_number("weight_decay", self.weight_decay, Real, at_least=0)
        check_number("validation_fraction", self.validation_fraction, Real, at_least=0, below=1)

    def _train(self, rows: TrainingRows, classes: NDArray[Any], seed: int) -> Perceptrons:
        n_draws, n_rows, n_features = rows.inputs.shape
        shapes = ((n_features + 1, int(self.hidden_units)), (int(self.hidden_units) + 1, len(classes)))
        center, scale = _standardization(rows)

        def train(group: slice) -> tuple[Array, Array, NDArray[np.int64]]:
            start = np.stack([_initial_parameters(shapes, (seed, draw)) for draw in range(group.start, group.stop)])
            inputs = (rows.inputs[group] - center[group]) / scale[group]
            return self._minimize(Network(inputs, rows, start, shapes, float(self.weight_decay)))

        n_groups = 2 * math.ceil(n_draws * n_rows * self.hidden_units / (2 * NUMBERS_AT_ONCE))  # even, as most numbers of cores are
        with torch_on_one_thread():
            groups = map_on_threads(train, list(row_blocks(n_draws, math.ceil(n_draws / n_groups))))
        parameters, losses, epochs = (np.concatenate(parts) for parts in zip(*groups, strict=True))
        hidden, output = _matrices(parameters, shapes)
        # ((x − c)/d) A + a = x (A/d) + (a − c (A/d))
        weights = hidden[:, :-1] / scale.swapaxes(1, 2)
        return Perceptrons(classes, weights, hidden[:, -1:] - center @ weights, output[:, :-1], output[:, -1:], losses, epochs)

    def _minimize(self, network: Network) -> tuple[Array, Array, NDArray[np.int64]]:
        """Return the best parameters of each draw, their loss and their epoch. A draw that runs out of patience leaves the network."""
        best = network.parameters.numpy().astype(np.float64)
        lowest, epochs, draws = np.full(len(best), np.inf), np.zeros(len(best), np.int64), np.arange(len(best))
        for epoch in range(int(self.max_epochs) + 1):
            losses = network.losses()
            improved = losses < lowest[draws]
            lowest[draws[improved]], epochs[draws[improved]] = losses[improved], epoch
            best[draws[improved]] = network.parameters.numpy()[improved]
            patient = epoch - epochs[draws] < self.patience
            if not patient.any():
                break
            network.step(float(self.learning_rate), epoch + 1)
            if not patient.all():
                network.keep(patient)
                draws = draws[patient]
        return best, lowest, epochs


class TrainingRows(NamedTuple):
    """Labeled rows, each once, in an order that depends on their content alone; the training weight of those held out is zero."""

    inputs: Array
    labels: NDArray[np.intp]
    training_weight: Array
    validation_weight: Array


def arrange_rows(Z: Array, labels: NDArray[np.intp], weight: Array, validation_fraction: float, seed: int) -> TrainingRows:
    """Merge copies of a row into one with their weights added, and hold out the first rows of each class in a random order."""
    keys = np.column_stack([hash_rows(Z.swapaxes(0, 1).reshape(len(labels), -1), seed), labels.astype(np.uint64)])
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(random_phases(Z[0, first], seed), kind="stable")
    total, labels, first = np.bincount(inverse.ravel(), weights=weight)[order], labels[first][order], first[order]
    members = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    training = total.copy()
    training[np.concatenate([rows[: int(validation_fraction * len(rows))] for rows in members])] = 0.0
    validation = total - training if not training.all() else training
    return TrainingRows(Z[:, first], labels, training / training.sum(), validation / validation.sum())


def _standardization(rows: TrainingRows) -> tuple[Array, Array]:
    """Return mean and standard deviation of each input over the training rows; one in place of a standard deviation of zero. [S, 1, J]"""
    center = (rows.training_weight @ rows.inputs)[:, None]
    deviation = np.sqrt(rows.training_weight @ (rows.inputs - center) ** 2)[:, None]
    return center, np.where(deviation > 1e-12 * np.abs(center), deviation, 1.0)


def _initial_parameters(shapes: Shapes, seed: tuple[int, int]) -> Array:
    """Draw parameters uniform within ±√(6 / (inputs + outputs)) (Glorot and Bengio); biases too, to spread the hidden units' kinks. [P]"""
    uniform = np.random.default_rng(seed).uniform
    return np.concatenate([np.sqrt(6.0 / (m + n - 1)) * uniform(-1, 1, m * n) for m, n in shapes])


class Network:
    """The perceptrons of a group of draws in training, in single precision. Rows are columns, because thin products are faster so.

    h = relu(Ãᵀ x̃),  p = softmax(B̃ᵀ h̃)        x̃ and h̃ end with a 1; Ã: [S, J + 1, H] and B̃: [S, H + 1, K] with the bias
    δ = w (p − y),  ∂B̃ = h̃ δᵀ + λB,  ∂Ã = x̃ (B δ · 1[h > 0])ᵀ + λA,  together g
    m ← β₁m + (1 − β₁)g,  v ← β₂v + (1 − β₂)g²,  θ ← θ − η (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)
    """

    def __init__(self, inputs: Array, rows: TrainingRows, start: Array, shapes: Shapes, weight_decay: float) -> None:
        import torch

        self.shapes = shapes
        self.inputs, self.hidden = (torch.ones((len(inputs), m, inputs.shape[1]), dtype=torch.float32) for m, _ in shapes)
        self.inputs[:, :-1] = torch.from_numpy(inputs.swapaxes(1, 2))
        self.labels = torch.from_numpy(rows.labels)[None, None]
        self.targets = torch.nn.functional.one_hot(torch.from_numpy(rows.labels), shapes[1][1]).T.float()
        self.training_weight, self.validation_weight = (torch.from_numpy(weight).float() for weight in rows[2:])
        self.parameters = torch.from_numpy(start).float()
        self.first, self.second = torch.zeros_like(self.parameters), torch.zeros_like(self.parameters)
        self.decay = torch.cat([weight_decay * (torch.arange(m * n) < (m - 1) * n).float() for m, n in shapes])

    def losses(self) -> Array:
        """Return the mean cross-entropy over the rows held out, for each draw. [S]"""
        A, B = _matrices(self.parameters, self.shapes)
        self.hidden[:, :-1] = A.mT.bmm(self.inputs).relu_()
        self.probabilities = B.mT.bmm(self.hidden).softmax(1)
        of_labels = self.probabilities.gather(1, self.labels.expand(len(B), 1, -1))[:, 0]
        return -(of_labels.clamp_(min=1e-37).log_() @ self.validation_weight).numpy().astype(np.float64)

    def step(self, learning_rate: float, t: int) -> None:
        """Take Adam's step t from where `losses` was last called. β₁ = 0.9, β₂ = 0.999 and ε = 1e-8 are its authors'."""
        _, B = _matrices(self.parameters, self.shapes)
        delta = self.probabilities.sub_(self.targets).mul_(self.training_weight)
        back = B[:, :-1].bmm(delta).mul_(self.hidden[:, :-1].sign())
        gradient = self.parameters * self.decay
        for part, inputs, errors in zip(_matrices(gradient, self.shapes), (self.inputs, self.hidden), (back, delta), strict=True):
            part += inputs.bmm(errors.mT)
        self.first.lerp_(gradient, 0.1)
        self.second.lerp_(gradient.square_(), 0.001)
        size = (self.second / (1 - 0.999**t)).sqrt_().add_(1e-8)
        self.parameters.addcdiv_(self.first, size, value=-learning_rate / (1 - 0.9**t))

    def keep(self, draws: NDArray[np.bool_]) -> None:
        """Continue with these draws only."""
        for name in ("inputs", "parameters", "first", "second"):
            setattr(self, name, getattr(self, name)[draws])
        self.hidden = self.hidden[: len(self.inputs)]


def _matrices(parameters: Any, shapes: Shapes) -> tuple[Any, Any]:
    """Return views of the parameters as matrices, with the biases as last rows. [S, J + 1, H] and [S, H + 1, K]"""
    cut = shapes[0][0] * shapes[0][1]
    return parameters[:, :cut].reshape(-1, *shapes[0]), parameters[:, cut:].reshape(-1, *shapes[1])


@contextmanager
def torch_on_one_thread(user: str = "Training a perceptron") -> Iterator[None]:
    """Keep PyTorch on one thread: threads are for groups of draws, and within a product they could change the last digits."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(f'{user} needs PyTorch: pip install "gpssl[nn]".') from error
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
