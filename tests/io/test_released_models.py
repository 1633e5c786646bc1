"""Files that released versions wrote go on being read, and the models in them go on giving the same answers."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import gpssl
from released_models import FOLDER, answers, frame_of

FILES = sorted(FOLDER.glob("*.gpssl"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_model_of_a_release_gives_the_same_answers(path: Path) -> None:
    name = path.stem.split("-")[-1]
    with np.load(path.with_suffix(".npz"), allow_pickle=False) as archive:
        stored = {key: archive[key] for key in archive.files}
    rows = frame_of(stored) if name == "mixed" else stored["rows"]
    model = gpssl.load(path)
    # The file holds every bit; that of results depends on the libraries for linear algebra.
    for key, answer in answers(name, model, rows).items():
        np.testing.assert_allclose(answer, stored[f"answer_{key}"], rtol=1e-8, atol=1e-9, err_msg=key)
    assert model.card_.versions["gpssl"] == path.stem.split("-")[1]
    assert model.card_.n_rows == len(rows)
    if name != "numbers":  # functions in files of 0.1.0 refer to the model that they were drawn from
        assert model.functions_.n_features_in_ == model.n_features_in_


def test_this_version_has_its_files() -> None:
    version = re.search(r'^version = "(.*)"', (FOLDER.parents[1] / "pyproject.toml").read_text(), flags=re.MULTILINE)
    assert version is not None
    names = {path.name for path in FOLDER.iterdir()}
    expected = {f"gpssl-{version[1]}-{name}.{ending}" for name in ("numbers", "mixed", "regressor") for ending in ("gpssl", "npz")}
    assert expected <= names, "Run python tests/released_models.py, once for each version, before its release."
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 100_000 * (len(FILES) / 3)
