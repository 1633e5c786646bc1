"""A pass over files that was killed goes on where it was, and ends with the same moments."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF

from gpssl import GPSSL
from gpssl.core import _moments
from gpssl.data import _rows as part_module

Array = NDArray[np.float64]

X = np.random.default_rng(0).standard_normal((3000, 3))

KILLED_AFTER = 6

FIT_AND_DIE = f"""
import os, signal, sys
from gpssl import GPSSL
from gpssl.core import _moments
from gpssl.data import _rows

_rows.PART_ROWS = (1, 200)
_moments.CHECKPOINT_SECONDS = 0.0
keep = _moments.Checkpoint.keep

def keep_and_die(self, moments, n_parts, *, finished=False):
    keep(self, moments, n_parts, finished=finished)
    if n_parts == {KILLED_AFTER}:
        os.kill(os.getpid(), signal.SIGKILL)

_moments.Checkpoint.keep = keep_and_die
GPSSL(2, max_inducing=40, residual_tolerance=0.5).fit(sys.argv[1], checkpoint=sys.argv[2])
"""


@pytest.fixture(autouse=True)
def small_parts_kept_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_module, "PART_ROWS", (1, 200))
    monkeypatch.setattr(_moments, "CHECKPOINT_SECONDS", 0.0)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    pd.DataFrame(X, columns=["a", "b", "c"]).to_parquet(path)
    return path


def model(**parameters: Any) -> GPSSL:
    return GPSSL(2, max_inducing=40, residual_tolerance=0.5, **parameters)


def count_parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of each part whose moments are computed from now on."""
    counted: list[int] = []
    original = _moments._moments_of_part

    def count(features: Any, part: Any) -> Any:
        counted.append(len(part.rows))
        return original(features, part)

    monkeypatch.setattr(_moments, "_moments_of_part", count)
    return counted


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal on this system")
def test_pass_killed_in_the_middle_goes_on_where_it_was(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The seed was nobody's choice, so it must be the killed pass's: inducing points are its own too."""
    kept = tmp_path / "pass.npz"
    killed = subprocess.run([sys.executable, "-c", FIT_AND_DIE, str(table), str(kept)], capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    counted = count_parts(monkeypatch)
    resumed = model().fit(table, checkpoint=kept)
    assert counted == [200] * (15 - KILLED_AFTER)
    assert not kept.exists()
    whole = model(kernel=resumed.kernel_, inducing=resumed.inducing_points_).fit(table)
    np.testing.assert_array_equal(resumed.moments_.second, whole.moments_.second)
    np.testing.assert_array_equal(resumed.moments_.first, whole.moments_.first)
    assert resumed.moments_.weight == whole.moments_.weight == len(X)


def interrupted(rows: Any, path: Path, weight: Array | None = None, **parameters: Any) -> None:
    """Fit until somebody interrupts it after three parts."""
    original = _moments.Checkpoint.keep

    def keep_and_stop(self: Any, moments: Any, n_parts: int, *, finished: bool = False) -> None:
        original(self, moments, n_parts, finished=finished)
        if n_parts == 3:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_moments.Checkpoint, "keep", keep_and_stop)
        with pytest.raises(KeyboardInterrupt):
            model(**parameters).fit(rows, sample_weight=weight, checkpoint=path)


@pytest.mark.parametrize("kind", ["csv", "memmap"])
def test_other_files_resume_too(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: Any = tmp_path / "rows.csv"
    if kind == "csv":
        pd.DataFrame(X, columns=["a", "b", "c"]).to_csv(rows, index=False)
    else:
        mapped: Any = np.memmap(tmp_path / "rows.dat", dtype=float, mode="w+", shape=X.shape)
        mapped[:] = X
        mapped.flush()
        rows = np.memmap(tmp_path / "rows.dat", dtype=float, mode="r", shape=X.shape)
    kept = tmp_path / "pass.npz"
    weight = np.random.default_rng(0).random(len(X))
    interrupted(rows, kept, weight, random_state=3)
    counted = count_parts(monkeypatch)
    resumed = model(random_state=3).fit(rows, sample_weight=weight, checkpoint=kept)
    assert 0 < sum(counted) < len(X)
    np.testing.assert_array_equal(resumed.moments_.second, model(random_state=3).fit(rows, sample_weight=weight).moments_.second)


def test_checkpoint_of_another_pass_is_refused_and_left_alone(table: Path, tmp_path: Path) -> None:
    kept = tmp_path / "pass.npz"
    interrupted(table, kept, random_state=0)
    content = kept.read_bytes()
    for changed in (model(random_state=1), model(random_state=0, kernel=RBF(2.0))):
        with pytest.raises(ValueError, match=r"another kernel, other inducing points or another random_state.*Delete it"):
            changed.fit(table, checkpoint=kept)
    with pytest.raises(ValueError, match="no checkpoint of a pass over these files"):
        model(random_state=0).fit(table, sample_weight=np.full(len(X), 2.0), checkpoint=kept)
    pd.DataFrame(X[::-1], columns=["a", "b", "c"]).to_parquet(table)
    with pytest.raises(ValueError, match="no checkpoint of a pass over these files, or they have changed"):
        model(random_state=0).fit(table, checkpoint=kept)
    assert kept.read_bytes() == content


def test_other_slice_of_the_same_file_is_refused(tmp_path: Path) -> None:
    mapped: Any = np.memmap(tmp_path / "rows.dat", dtype=float, mode="w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    kept, settings = tmp_path / "pass.npz", {"kernel": RBF(2.0), "inducing": X[:20], "random_state": 0}
    interrupted(mapped[:1500], kept, **settings)
    with pytest.raises(ValueError, match="no checkpoint of a pass over these files"):
        model(**settings).fit(mapped[1500:], checkpoint=kept)
    shifted: Any = np.memmap(tmp_path / "rows.dat", dtype=float, mode="r", shape=(1500, 3), offset=8 * 3 * 1500)
    with pytest.raises(ValueError, match="no checkpoint of a pass over these files"):
        model(**settings).fit(shifted, checkpoint=kept)


def test_finished_pass_is_kept_until_inference_is_done(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        def infer(self, *_: Any, **__: Any) -> Any:
            raise KeyboardInterrupt

    kept = tmp_path / "pass.npz"
    with pytest.raises(KeyboardInterrupt):
        model(random_state=0, inference=Failing()).fit(table, checkpoint=kept)
    counted = count_parts(monkeypatch)
    model(random_state=0).fit(table, checkpoint=kept)
    assert counted == []
    assert not kept.exists()


def test_progress_of_a_resumed_pass_counts_what_was_done(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    interrupted(table, tmp_path / "pass.npz", random_state=0)
    capsys.readouterr()
    model(random_state=0, verbose=True).fit(table, checkpoint=tmp_path / "pass.npz")
    assert "moments: 3,000 of 3,000 rows" in capsys.readouterr().err


def test_what_is_no_checkpoint_gets_a_sentence(table: Path, tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("not to be lost")
    with pytest.raises(ValueError, match="not a checkpoint of gpssl"):
        model().fit(table, checkpoint=other)
    assert other.read_text() == "not to be lost"
    with pytest.raises(ValueError, match="A checkpoint is for rows in files"):
        model().fit(X, checkpoint=tmp_path / "pass.npz")
    with pytest.raises(FileNotFoundError, match="folder"):
        model().fit(table, checkpoint=tmp_path / "absent" / "pass.npz")


def test_nothing_is_left_behind(table: Path, tmp_path: Path) -> None:
    model().fit(table, checkpoint=tmp_path / "pass.npz")
    assert list(tmp_path.iterdir()) == [table]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"n_parts": 4}, "sums up other rows"),
        ({"n_parts": 99}, "sums up other rows"),
        ({"weight": 700.0}, "sums up other rows"),
        ({"n_parts": -1}, "not a checkpoint of gpssl, or is damaged"),
        ({"n_parts": 2.5}, "not a checkpoint of gpssl, or is damaged"),
        ({"seed": 2**40}, "not a checkpoint of gpssl, or is damaged"),
        ({"seed": "none"}, "not a checkpoint of gpssl, or is damaged"),
        ({"rows": 3}, "not a checkpoint of gpssl, or is damaged"),
        ({"first": np.ones(3)}, "not a checkpoint of gpssl, or is damaged"),
        ({"second": -np.eye(40)}, "not a checkpoint of gpssl, or is damaged"),
    ],
    ids=str,
)
def test_checkpoint_that_somebody_changed_is_refused(changes: dict[str, Any], match: str, table: Path, tmp_path: Path) -> None:
    kept = tmp_path / "pass.npz"
    interrupted(table, kept, random_state=0)
    with np.load(kept) as archive:
        content = {name: archive[name] for name in archive.files}
    np.savez(kept, **{**content, **changes})
    with pytest.raises(ValueError, match=match):
        model(random_state=0).fit(table, checkpoint=kept)
