"""The models of which every release leaves a file in `tests/models`, and what they answer.

At a release, `python tests/released_models.py` writes the files of the version that is installed, once; they are never written again.
Beside each lies an `.npz` with rows and with the answers that the model gave before it was saved.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import gpssl
from gpssl import GPSSL, MarginalizedClassifier, MarginalizedRegressor
from gpssl.kernels import for_table

FOLDER = Path(__file__).parent / "models"
N_ROWS, N_LABELED = 40, 16

Answers = dict[str, NDArray[Any]]


def numbers() -> NDArray[np.float64]:
    """Two clouds, rounded so that files are small."""
    rng = np.random.default_rng(0)
    return np.round(rng.standard_normal((N_ROWS, 3)) + 2 * (np.arange(N_ROWS) % 2)[:, None], 2)


def mixed() -> pd.DataFrame:
    """Numbers with gaps, and text."""
    rows = numbers()
    gaps = np.where(np.arange(N_ROWS) % 7 == 3, np.nan, rows[:, 1])
    towns = np.where(rows[:, 2] > 1, "Bern", np.where(rows[:, 2] > 0, "Ulm", "Kyōto"))
    return frame_of({"size": rows[:, 0], "weight": gaps, "town": towns})


def frame_of(columns: Answers) -> pd.DataFrame:
    """As it is stored beside the model."""
    return pd.DataFrame({name: columns[name] for name in ("size", "weight", "town")}).astype({"town": object})


def representation(**parameters: Any) -> GPSSL:
    """A small one."""
    return GPSSL(2, max_inducing=10, residual_tolerance=0.9, random_state=0, **parameters)


def answers(name: str, model: Any, rows: Any) -> Answers:
    """What a model says about rows."""
    if name == "numbers":
        return {"mean": model.transform(rows), "std": model.std(rows), "draws": model.draw_functions(3)(rows)}
    if name == "mixed":
        return {"proba": model.predict_proba(rows), "proba_std": model.predict_proba_std(rows)}
    return {"mean": model.predict(rows), "std": model.predict_std(rows), "interval": model.predict_interval(rows)}


def write() -> None:
    """The files of this version."""
    X, frame = numbers(), mixed()
    labels = [("high" if row[0] > 1 else "low") if place < N_LABELED else None for place, row in enumerate(X)]
    targets = np.where(np.arange(N_ROWS) < N_LABELED, X[:, 0] + X[:, 1], np.nan)
    models = {
        "numbers": (representation().fit(X), X, {"rows": X}),
        "mixed": (
            MarginalizedClassifier(representation(kernel=for_table(frame)), n_draws=5, random_state=0).fit(frame, labels),
            frame,
            {name: frame[name].to_numpy().astype("U" if name == "town" else float) for name in frame},
        ),
        "regressor": (MarginalizedRegressor(representation(), n_draws=5, random_state=0).fit(X, targets), X, {"rows": X}),
    }
    for name, (model, rows, stored) in models.items():
        path = FOLDER / f"gpssl-{gpssl.__version__}-{name}.gpssl"
        if path.exists():
            raise FileExistsError(f"{path} is there already, and stays as it is.")
        gpssl.save(model, path, trained_on=rows)
        known: dict[str, Any] = {**stored, **{f"answer_{key}": value for key, value in answers(name, model, rows).items()}}
        np.savez_compressed(path.with_suffix(".npz"), **known)


if __name__ == "__main__":
    write()
