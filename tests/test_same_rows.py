"""The same rows in another form lead to the same representation: a few tables of each kind of `same_rows`; attacks try many."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import RBF, Matern

from gpssl import GPSSL
from gpssl.inference import Sampling
from gpssl.kernels import CategoryKernel, for_table
from same_rows import AGREEMENT, AGREEMENT_OF_SAMPLES, TABLES, Array, Trial, difference

BALANCED = np.eye(6)[np.arange(60) % 6]
CORNERS = np.array([[np.cos(angle), np.sin(angle)] for angle in 2 * np.pi * np.arange(12) / 12])
ORDERS = [np.random.default_rng(seed).permutation(60) for seed in range(4)]


@pytest.mark.parametrize("kind", TABLES)
def test_order_parts_and_weights_make_no_difference(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng([3, list(TABLES).index(kind)])
    assert Trial.of_kind(kind, rng).disagreements(rng, monkeypatch) == []


@pytest.mark.parametrize("inference", ["variational", "mode", Sampling(2, 50, 50)], ids=str)
@pytest.mark.parametrize("kernel", [None, RBF(1.0), Matern(1.0, nu=1.5), CategoryKernel()], ids=str)
def test_balanced_categories_in_any_order_learn_the_same(kernel: Any, inference: Any) -> None:
    """Two of five directions with the same eigenvalue are learned: the others could have been as well."""
    agreement = AGREEMENT_OF_SAMPLES if isinstance(inference, Sampling) else AGREEMENT
    with nullcontext() if not isinstance(inference, Sampling) else pytest.warns(ConvergenceWarning, match="have not mixed"):
        models = [GPSSL(2, kernel=kernel, inference=inference, random_state=0).fit(BALANCED[order]) for order in ORDERS]
    assert {(model.report_.n_tied, model.report_.n_left_out) for model in models} == {(2, 3)}
    for other in models[1:]:
        assert max(difference(models[0], other, BALANCED).values()) < agreement


@pytest.mark.parametrize("n_components", [1, 2, 3, 4])
def test_corners_of_a_polygon_in_any_order_learn_the_same(n_components: int) -> None:
    """Its directions come in pairs, one of which is cut where the dimensions are even in number."""
    rows = np.tile(CORNERS, (5, 1))
    models = [GPSSL(n_components, kernel=RBF(0.5), random_state=0).fit(rows[order]) for order in ORDERS]
    assert models[0].report_.n_left_out == n_components % 2
    for other in models[1:]:
        assert max(difference(models[0], other, rows).values()) < AGREEMENT


def test_one_balanced_column_of_categories_in_any_order_learns_the_same() -> None:
    frame = pd.DataFrame({"color": np.array(["red", "green", "blue", "gray"])[np.arange(60) % 4]})
    models = [GPSSL(2, kernel=for_table(frame.iloc[order]), random_state=0).fit(frame.iloc[order]) for order in ORDERS]
    for other in models[1:]:
        assert max(difference(models[0], other, frame).values()) < AGREEMENT


def test_moments_added_in_another_order_learn_the_same() -> None:
    first = GPSSL(2, random_state=0).fit(BALANCED)
    models = []
    for cuts in ([7, 19, 40], [30]):
        parts = np.split(BALANCED[ORDERS[len(cuts)]], cuts)
        model = GPSSL(2, kernel=first.kernel_, inducing=first.inducing_points_[::-1], random_state=0)
        for part in parts:
            model.partial_fit(part)
        models.append(model)
    assert max(difference(models[0], models[1], BALANCED).values()) < AGREEMENT
    assert max(difference(first.refit(n_components=3), models[0].refit(n_components=3), BALANCED).values()) < AGREEMENT


def test_ordinary_rows_have_no_ties() -> None:
    rows: Array = np.random.default_rng(0).standard_normal((60, 3))
    assert GPSSL(3, random_state=0).fit(rows).report_[-2:] == (0, 0)
