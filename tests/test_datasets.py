"""The data sets of the package: what the circles look like, and that the breast cancer table needs no folder."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest
from numpy.typing import NDArray

from command import refused
from gpssl import datasets
from gpssl.datasets import even_circles, load_breast_cancer, load_sms_spam, quadrant_circles, write_example

Array = NDArray[np.float64]


def test_breast_cancer_is_always_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPSSL_DATA", raising=False)
    table = load_breast_cancer()
    assert table.X.shape == (569, 30)
    assert Counter(table.y.tolist()) == {"benign": 357, "malignant": 212}
    assert table.columns[0] == "mean radius"
    assert table.groups is None


MESSAGES = b"ham\tsee you at lunch\nspam\tWIN cash: call 0900\nham\tok\tthen\n"


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive in the place of the one on the network, and an empty folder for downloads."""
    path = tmp_path / "messages.zip"
    with ZipFile(path, "w") as file:
        file.writestr("SMSSpamCollection", MESSAGES)
    monkeypatch.delenv("GPSSL_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "downloads"))
    monkeypatch.setattr(datasets, "_SMS_SPAM_ARCHIVE", path.as_uri())
    monkeypatch.setattr(datasets, "_SMS_SPAM_SHA256", hashlib.sha256(MESSAGES).hexdigest())
    return path


def test_messages_are_downloaded_once_and_written_as_a_table(archive: Path, tmp_path: Path) -> None:
    assert load_sms_spam().y.tolist() == ["ham", "spam", "ham"]
    archive.unlink()
    messages = load_sms_spam()
    assert messages.texts == ("see you at lunch", "WIN cash: call 0900", "ok\tthen")
    written = write_example("sms_spam", tmp_path / "messages.csv", n_labels=2)
    assert written == (tmp_path / "messages.csv", 3, 1, "label", 2)
    assert (tmp_path / "messages.csv").read_text().splitlines()[0] == "message,label"


def test_messages_of_the_folder_are_taken_first(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive.unlink()
    (tmp_path / "folder" / "sms_spam").mkdir(parents=True)
    (tmp_path / "folder" / "sms_spam" / "SMSSpamCollection").write_bytes(MESSAGES)
    monkeypatch.setenv("GPSSL_DATA", str(tmp_path / "folder"))
    assert len(load_sms_spam().texts) == 3
    (tmp_path / "folder" / "sms_spam" / "SMSSpamCollection").write_bytes(MESSAGES + b"ham\tchanged\n")
    with pytest.raises(ValueError, match="is not the SMS Spam Collection that this version knows: remove it"):
        load_sms_spam()


def test_a_download_that_fails_is_a_sentence(archive: Path, tmp_path: Path) -> None:
    archive.write_bytes(b"not an archive")
    assert "Download it by hand" in refused("datasets", "sms_spam", "-o", tmp_path / "messages.csv")
    assert not (tmp_path / "messages.csv").exists()
    assert not (tmp_path / "downloads" / "sms_spam" / "SMSSpamCollection").exists()


def quadrants(X: Array) -> list[int]:
    """Rows in each quadrant, counter-clockwise from the top right."""
    angle = np.arctan2(X[:, 1], X[:, 0]) % (2 * np.pi)
    return np.bincount((angle // (np.pi / 2)).astype(int), minlength=4).tolist()


def test_quadrants_of_the_circles() -> None:
    X, circle = quadrant_circles()
    assert X.shape == (450, 2)
    assert set(circle) == {0, 1}
    # Noise carries some rows over the axes: of those near an axis, none from farther than three standard deviations of it.
    top_right, top_left, bottom_left, bottom_right = quadrants(X)
    assert abs(top_right - 300) < 60
    assert abs(top_left - 100) < 60
    assert abs(bottom_left - 50) < 40
    assert bottom_right < 60
    assert not ((X[:, 0] > 0.7) & (X[:, 1] < -0.7)).any()
    even, _ = even_circles(4000, seed=1)
    np.testing.assert_allclose(quadrants(even), 1000, atol=4 * np.sqrt(4000 * 0.25 * 0.75))


def test_radii_and_noise_of_the_circles() -> None:
    X, circle = even_circles(20_000, seed=0)
    squared = (X**2).sum(axis=1)
    for number, radius in enumerate((0.5, 1.0)):
        own = squared[circle == number]
        # |r e + 0.2 ε|² has mean r² + 2·0.2² and variance 4 r² 0.2² + 4·0.2⁴.
        error = np.sqrt((4 * radius**2 * 0.04 + 4 * 0.04**2) / len(own))
        assert abs(own.mean() - radius**2 - 0.08) < 4 * error
        np.testing.assert_allclose(own.std(), error * np.sqrt(len(own)), rtol=0.05)
    assert abs(circle.mean() - 0.5) < 4 * 0.5 / np.sqrt(len(circle))


def test_noise_around_the_circle_has_standard_deviation_0_2() -> None:
    generator = np.random.default_rng(3)
    same, n_rows = np.random.default_rng(3), 20_000
    quadrant = generator.integers(4, size=n_rows)
    same.integers(4, size=n_rows)
    X, circle = even_circles(n_rows, seed=3)
    np.testing.assert_array_equal(circle, same.integers(2, size=n_rows))
    angle = (quadrant + same.random(n_rows)) * np.pi / 2
    noise = X - np.array([0.5, 1.0])[circle, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    assert abs(noise.std() - 0.2) < 4 * 0.2 / np.sqrt(2 * noise.size)
    assert abs(np.corrcoef(noise.T)[0, 1]) < 4 / np.sqrt(n_rows)


def test_circles_are_the_same_for_the_same_seed() -> None:
    np.testing.assert_array_equal(quadrant_circles(seed=4)[0], quadrant_circles(seed=4)[0])
    assert not np.array_equal(quadrant_circles(seed=4)[0], quadrant_circles(seed=5)[0])
    assert quadrants(quadrant_circles((0, 0, 0, 2000), seed=0)[0])[3] > 1500
