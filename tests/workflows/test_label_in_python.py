"""`gpssl.label` on a data frame as people have it: categories, dates, gaps, a label that is a category, an index of names."""

from __future__ import annotations

import numpy as np
import pandas as pd

import gpssl
from gpssl import MarginalizedClassifier


def _patients(n_rows: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    sick = rng.integers(2, size=n_rows)
    days = rng.integers(300, size=n_rows) + 200 * sick
    frame = pd.DataFrame(
        {
            "pressure": sick + 0.4 * rng.normal(size=n_rows),
            "ward": pd.Categorical(np.array(["north", "south"])[(sick + (rng.random(n_rows) < 0.2)) % 2]),
            "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(days, unit="D"),
            "sugar": np.where(rng.random(n_rows) < 0.3, np.nan, sick + rng.normal(size=n_rows)),
        },
        index=[f"patient {place}" for place in range(n_rows)],
    )
    states = pd.Series(np.array(["well", "sick"])[sick], index=frame.index).where(np.arange(n_rows) < 80, None)
    return frame.assign(state=states.astype("category"))


def test_predictions_expectation_and_model_come_back_with_the_index() -> None:
    patients = _patients()
    before = patients.copy(deep=True)
    result = gpssl.label(patients, target="state", max_risk=0.2)
    found = result.frame()
    assert found.index.equals(patients.index)
    assert list(found.columns) == ["state_predicted", "state_probability", "state_std", "state_abstain"]
    assert found["state_predicted"].notna().tolist() == patients["state"].isna().tolist()
    assert (result.n_labeled, result.n_predicted) == (80, 40)
    assert 0 <= result.expectation.risk < 0.3
    predicted = result.model.predict(patients.drop(columns="state"))
    assert predicted[80:].tolist() == found["state_predicted"][80:].tolist()
    pd.testing.assert_frame_equal(patients, before)


def test_the_same_frame_goes_straight_into_an_estimator() -> None:
    patients = _patients()
    rows, labels = patients.drop(columns="state"), patients["state"]
    model = MarginalizedClassifier(random_state=0).fit(rows, labels)
    assert model.n_labeled_ == 80
    assert model.score(rows, labels) > 0.8
