"""Which columns matter: against scikit-learn, and against what is known of linear functions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpssl.evaluation import hold_out_classes
from gpssl.evaluation._importance import ShuffledColumns, class_losses, dimension_importance, squared_errors


def test_importance_is_that_of_scikit_learn() -> None:
    X, y = load_wine(return_X_y=True, as_frame=True)
    names = np.array(["a", "b", "c"])[y]
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(X, names)
    shuffled = ShuffledColumns(X, names, class_losses(np.unique(names)), n_repeats=60, seed=0)
    shuffled.watch(model, np.arange(len(y)))
    found = {one.name: one.increase for one in shuffled.importance()}
    expected = permutation_importance(model, X, names, scoring="neg_log_loss", n_repeats=60, random_state=1)
    error = expected.importances_std * np.sqrt(2 / 60)
    for name, mean, deviation in zip(X.columns, expected.importances_mean, error, strict=True):
        assert found[name] == pytest.approx(mean, abs=4 * deviation), name


def test_importance_for_numbers_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X @ np.array([3.0, 1.0, 0.0]) + rng.normal(0, 0.1, 200)
    model = Ridge().fit(X, y)
    shuffled = ShuffledColumns(X, y, squared_errors, n_repeats=60)
    shuffled.watch(model, np.arange(200))
    found = {one.name: one.increase for one in shuffled.importance()}
    expected = permutation_importance(model, X, y, scoring="neg_mean_squared_error", n_repeats=60, random_state=1)
    for place, (mean, deviation) in enumerate(zip(expected.importances_mean, expected.importances_std, strict=True)):
        assert found[f"column {place + 1}"] == pytest.approx(mean, abs=4 * deviation * np.sqrt(2 / 60) + 1e-9)


def test_importance_comes_from_models_that_have_not_seen_the_labels() -> None:
    """A column of noise that a model learns by heart matters to what it has seen, not to labels that are held out."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"noise": np.arange(80.0), "more": rng.normal(size=80)})
    y = rng.choice(["a", "b"], 80)
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(20, random_state=0)
    held_out, seen = (ShuffledColumns(X, y, class_losses(np.unique(y)), n_repeats=5) for _ in range(2))
    hold_out_classes(model, X, y, watch=held_out.watch)
    seen.watch(model.fit(X, y), np.arange(80))
    assert max(one.increase for one in seen.importance()) > 0.3
    assert max(one.increase for one in held_out.importance()) < 0.1


def test_folds_add_up_to_all_rows() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.choice(["a", "b", "c"], 60)
    model = LogisticRegression().fit(X, y)
    whole, parts = (ShuffledColumns(X, y, class_losses(np.unique(y)), n_repeats=2, seed=3) for _ in range(2))
    whole.watch(model, np.arange(60))
    for part in np.array_split(rng.permutation(60), 7):
        parts.watch(model, part)
    assert [one.name for one in whole.importance()] == [one.name for one in parts.importance()]
    for one, other in zip(whole.importance(), parts.importance(), strict=True):
        assert one.increase == pytest.approx(other.increase)


def test_dimension_of_independent_columns_is_shared_by_variance() -> None:
    """T_dj of a linear function is w_d² Var x_d / Σ_e w_e² Var x_e."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(1500, 3)) * [1.0, 2.0, 3.0], columns=["a", "b", "c"])
    weights = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, -1.0]])
    names, found = dimension_importance(lambda shown: shown.to_numpy() @ weights, rows)
    parts = weights**2 * np.array([1.0, 4.0, 9.0])[:, None]
    assert names == ["a", "b", "c"]
    np.testing.assert_allclose(found, parts / parts.sum(axis=0), atol=0.05)
