from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import RBF, DotProduct
from threadpoolctl import threadpool_limits

from gpssl import GPSSL
from gpssl.core._features import Features
from gpssl.core._moments import Moments, Spectrum, check_enough_directions, moments_for_all, moments_of_rows
from gpssl.data import Part, Rows
from gpssl.data._arrays import row_blocks
from gpssl.data._rows import SliceableRows

Array = NDArray[np.float64]

X = np.random.default_rng(0).standard_normal((200, 3))
FEATURES = Features.build(RBF(1.5), X[:12])


class InParts(Rows):
    """Rows in parts of any size."""

    def __init__(self, X: Array, weight: Array | None, size: int) -> None:
        super().__init__(weight)
        self.X, self.size = X, size

    def parts(self) -> Iterator[Part]:
        for block in row_blocks(len(self.X), self.size):
            rows = self.X[block]
            yield Part(rows, self.weight_of(block.start, len(rows)))


def moments(rows: Array, weight: Array | None = None, part_rows: int = 64) -> Moments:
    return moments_of_rows(FEATURES, InParts(rows, weight, part_rows))


def assert_equal(one: Moments, other: Moments, rtol: float = 1e-12) -> None:
    for name in ("weight", "first", "second", "diagonal"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, err_msg=name)


def test_moments_are_the_sums_they_say_they_are() -> None:
    weight = np.random.default_rng(1).random(len(X))
    first, second, diagonal = np.zeros(12), np.zeros((12, 12)), 0.0
    for x, w in zip(X, weight, strict=True):
        k = FEATURES.kernel(x[None], FEATURES.points)[0]
        first += w * k
        second += w * np.outer(k, k)
        diagonal += w * FEATURES.kernel(x[None])[0, 0]
    assert_equal(moments(X, weight), Moments(weight.sum(), first, second, diagonal, FEATURES.fingerprint))


def test_covariance_is_that_of_the_whitened_features() -> None:
    whitened = FEATURES.whiten(FEATURES.columns(X).T)
    covariance, residual = moments(X).covariance(FEATURES)
    np.testing.assert_allclose(covariance, np.cov(whitened), atol=1e-10)
    assert residual == pytest.approx(float(np.mean(1 - (whitened**2).sum(axis=0))), abs=1e-9)


@given(st.lists(st.integers(0, 200), max_size=6), st.integers(1, 64), st.integers(0, 2**31))
@settings(max_examples=25)
def test_moments_add_over_any_split_in_any_order(cuts: list[int], part_rows: int, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(X))
    parts = [part for part in np.split(X[order], sorted(cuts)) if len(part) > 0]
    total = moments(parts[0], part_rows=part_rows)
    for part in parts[1:]:
        total = total + moments(part, part_rows=part_rows)
    assert_equal(total, moments(X))


@given(st.lists(st.integers(0, 3), min_size=200, max_size=200).filter(any))
@settings(max_examples=20)
def test_weights_count_as_repetitions(weights: list[int]) -> None:
    weight = np.array(weights)
    assert_equal(moments(X, weight.astype(float)), moments(np.repeat(X, weight, axis=0)))


@given(st.integers(2, 200), st.integers(0, 2**31))
@settings(max_examples=25)
def test_covariance_is_positive_semi_definite(n_rows: int, seed: int) -> None:
    rows = np.random.default_rng(seed).standard_normal((n_rows, 3)) * 10 ** np.random.default_rng(seed).uniform(-3, 3)
    covariance, residual = moments(rows).covariance(FEATURES)
    eigenvalues = np.linalg.eigvalsh(covariance)
    assert eigenvalues[0] > -1e-9
    assert residual >= 0


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    rows = np.random.default_rng(2).standard_normal((3000, 3))
    with threadpool_limits(1):
        one = moments(rows, part_rows=100)
    with threadpool_limits(2):
        two = moments(rows, part_rows=100)
    np.testing.assert_array_equal(one.second, two.second)
    np.testing.assert_array_equal(one.first, two.first)


def test_file_gives_back_every_bit(tmp_path: Path) -> None:
    original = moments(X)
    original.save(tmp_path / "site.moments")
    loaded = Moments.load(tmp_path / "site.moments")
    np.testing.assert_array_equal(loaded.second, original.second)
    np.testing.assert_array_equal(loaded.first, original.first)
    assert (loaded.weight, loaded.diagonal, loaded.fingerprint) == (original.weight, original.diagonal, original.fingerprint)


def test_files_that_are_none_get_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "text.npz"
    path.write_text("no moments")
    with pytest.raises(ValueError, match="not a file written by"):
        Moments.load(path)
    whole = tmp_path / "whole.npz"
    moments(X).save(whole)
    for content in (b"", whole.read_bytes()[:500]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="damaged"):
            Moments.load(path)
    np.savez(path, version=1)
    with pytest.raises(ValueError, match="damaged"):
        Moments.load(path)
    with pytest.raises(FileNotFoundError):
        Moments.load(tmp_path / "absent.npz")
    np.savez(tmp_path / "newer.npz", version=99)
    with pytest.raises(ValueError, match="newer version"):
        Moments.load(tmp_path / "newer.npz")


def test_moments_of_different_features_do_not_add() -> None:
    other = Features.build(RBF(1.5), X[:11])
    with pytest.raises(ValueError, match="different kernels or inducing points"):
        moments(X) + moments_of_rows(other, SliceableRows(X))


def test_overflow_gets_a_sentence() -> None:
    features = Features.build(DotProduct(), X[:5] * 1e100)
    with pytest.raises(ValueError, match="Scale the columns"):
        moments_of_rows(features, SliceableRows(X * 1e100))


def test_spectrum_is_that_of_the_covariance_and_has_fixed_signs() -> None:
    covariance, residual = moments(X).covariance(FEATURES)
    spectrum = Spectrum.of(moments(X), FEATURES)
    basis = spectrum.basis[:, : spectrum.rank]
    np.testing.assert_allclose(covariance @ basis, basis * spectrum.eigenvalues, atol=1e-12)
    assert spectrum.residual == residual
    tail = np.linalg.eigvalsh(covariance)[::-1][spectrum.rank :]
    assert spectrum.tail_sum == pytest.approx(tail.sum(), abs=1e-12)
    functions = FEATURES.factor @ basis
    assert (functions[np.abs(functions).argmax(axis=0), np.arange(spectrum.rank)] > 0).all()


def test_directions_of_equal_eigenvalues_follow_from_the_inducing_points_in_any_order() -> None:
    rows = np.eye(6)[np.arange(60) % 6]
    functions = []
    for order in (np.arange(6), np.array([4, 2, 0, 5, 1, 3])):
        features = Features.build(RBF(1.0), np.eye(6)[order])
        spectrum = Spectrum.of(moments_of_rows(features, SliceableRows(rows)), features)
        assert np.ptp(spectrum.eigenvalues) == 0
        basis = spectrum.basis[:, : spectrum.rank]
        np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-12)
        covariance, _ = moments_of_rows(features, SliceableRows(rows)).covariance(features)
        np.testing.assert_allclose(covariance @ basis, basis * spectrum.eigenvalues, atol=1e-12)
        functions.append(features.project(np.eye(6), basis))
    np.testing.assert_allclose(functions[0], functions[1], atol=1e-12)


def test_ties_count_equal_directions_among_the_leading_ones_and_beyond() -> None:
    spectrum = Spectrum(np.array([3.0, 2.0, 2.0, 2.0, 1.0]), np.eye(5), 0.0, 0.0, 0.0)
    assert [spectrum.ties(n) for n in (1, 2, 3, 4, 5, 9)] == [(0, 0), (1, 2), (2, 1), (3, 0), (3, 0), (3, 0)]


def test_one_pass_gives_the_moments_of_several_kernels() -> None:
    others = [FEATURES, Features.build(RBF(0.7), X[:5]), Features.build(DotProduct(), X[:4])]
    rows = InParts(X, np.linspace(0.5, 2.0, len(X)), 64)
    found = moments_for_all(others, rows)
    for features, each in zip(others, found, strict=True):
        assert_equal(each, moments_of_rows(features, rows))
        assert each.fingerprint == features.fingerprint
    overflowing = Features.build(DotProduct(), X[:5] * 1e100)
    with pytest.raises(ValueError, match="Scale the columns"):
        moments_for_all([FEATURES, overflowing], SliceableRows(X * 1e100))


def test_covariance_is_for_these_features_and_more_than_one_row() -> None:
    with pytest.raises(ValueError, match="another kernel or other inducing points"):
        moments(X).covariance(Features.build(RBF(1.5), X[:11]))
    for rows, weight in ((X[:1], None), (X[:2], np.array([0.5, 0.5])), (X[:3], np.full(3, 0.1))):
        with pytest.raises(ValueError, match="One row is too few"):
            moments(rows, weight).covariance(FEATURES)
    covariance, residual = moments(X[:2], np.array([0.5, 0.6])).covariance(FEATURES)
    assert np.isfinite(covariance).all()
    assert residual >= 0


def test_rows_that_look_the_same_teach_nothing() -> None:
    with pytest.raises(ValueError, match="All rows look the same to the kernel"):
        Spectrum.of(moments(np.repeat(X[:1], 50, axis=0)), FEATURES)
    nearly = np.repeat(X[:1], 50, axis=0) + 1e-3 * np.random.default_rng(0).normal(size=(50, 3))
    assert Spectrum.of(moments(nearly), FEATURES).rank >= 1


def test_directions_are_as_many_as_components() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_enough_directions(3, 3.0, 3)
        check_enough_directions(3, 4.0, 7)
    with pytest.raises(ValueError, match=r"2\.5 rows cannot show 3 uncorrelated dimensions"):
        check_enough_directions(3, 2.5, 9)
    with pytest.warns(UserWarning, match=r"only 2 direction\(s\) in these rows, too few for 3"):
        check_enough_directions(3, 3.0, 2)


def test_learned_directions_are_those_above_a_millionth_of_the_largest() -> None:
    """With a linear kernel the eigenvalues are the variances of orthogonal columns, and each direction explains all of one."""
    scales = np.array([1.0, 0.1, 2e-3, 0.5e-3])
    rows = np.vstack([np.eye(4), -np.eye(4)]) * scales * np.sqrt(7 / 2)  # variances are the squares of the scales
    features = Features.build(DotProduct(sigma_0=0.0), np.eye(4))
    spectrum = Spectrum.of(moments_of_rows(features, SliceableRows(rows)), features)
    np.testing.assert_allclose(spectrum.eigenvalues, scales[:3] ** 2, rtol=1e-6)
    assert spectrum.rank == 3
    assert spectrum.tail_sum == pytest.approx(scales[3] ** 2, rel=1e-6)
    assert spectrum.tail_sum_of_squares == pytest.approx(scales[3] ** 4, rel=1e-6)


# Files that somebody changed


def damaged(path: Path, **changes: Any) -> Path:
    """A file of moments with other arrays in it."""
    moments(X).save(path)
    with np.load(path) as archive:
        content = {name: archive[name] for name in archive.files}
    np.savez_compressed(path, **{name: value for name, value in {**content, **changes}.items() if value is not None})
    return path


SECOND = 1e5 * np.eye(12)


@pytest.mark.parametrize(
    "changes",
    [
        *[{"weight": value} for value in (-1.0, np.nan, np.inf, 1e30, np.ones(2), "three", None, True)],
        *[{"diagonal": value} for value in (-1.0, np.nan, np.array([1.0]))],
        *[{"first": value} for value in (np.ones(3), np.full(12, np.nan), np.ones((12, 1)), np.ones(12, dtype=int), np.full(12, 1e200))],
        *[
            {"second": value}
            for value in (-SECOND, SECOND[:5], np.full((12, 12), np.inf), SECOND.astype("f4"), SECOND + 1e5 * np.eye(12, k=3))
        ],
        *[{"version": value} for value in (np.nan, "1", np.ones(3))],
        *[{"fingerprint": value} for value in (3.0, np.array(["a", "b"]), None)],
    ],
    ids=str,
)
def test_moments_that_no_rows_have_get_a_sentence(changes: dict[str, Any], tmp_path: Path) -> None:
    path = damaged(tmp_path / "bad.npz", **changes)
    with pytest.raises(ValueError, match=r"bad.npz is not a file written by Moments.save, or is damaged: ") as caught:
        Moments.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shape", ["(10000000000,)", "(100000, 100000)", "(-1,)", "(" * 200, "(6,", "None"])
def test_headers_that_claim_more_than_there_is_are_refused(shape: str, tmp_path: Path) -> None:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode() + b"\n"
    with zipfile.ZipFile(damaged(tmp_path / "bad.npz", first=None), "a") as archive:
        archive.writestr("first.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(88))
    with pytest.raises(ValueError, match="damaged: "):
        Moments.load(tmp_path / "bad.npz")


def test_bombs_are_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = damaged(tmp_path / "bad.npz", second=np.zeros((4000, 4000)))
    monkeypatch.setattr(zipfile.ZipFile, "read", lambda *_: pytest.fail("read"))
    with pytest.raises(ValueError, match="claims to be far larger than it can be"):
        Moments.load(path)


def test_moments_beyond_what_the_kernel_allows_are_not_learned_from() -> None:
    model = GPSSL(2, kernel=RBF(1.0), inducing=X[:11], residual_tolerance=0.9, inference="mode").fit(X)
    known = model.moments_
    for changes in ({"second": 1e6 * known.second}, {"diagonal": 1e-6}):
        with pytest.raises(ValueError, match="These moments are damaged"):
            model.refit(moments=replace(known, **changes))
    forged = Moments(known.weight, known.first[:3], known.second[:3, :3], known.diagonal, known.fingerprint)
    with pytest.raises(ValueError, match="belong to another kernel"):
        model.refit(moments=forged)
    with pytest.raises(ValueError, match="belong to different kernels"):
        known + forged
