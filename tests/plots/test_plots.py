"""Pictures show the numbers that they are of."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import EllipseCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from gpssl import GPSSL, MarginalizedClassifier
from gpssl.datasets import quadrant_circles
from gpssl.evaluation._calibration import ReliabilityCurve, expected_calibration_error, reliability_curve
from gpssl.evaluation._selective import RiskCoverageCurve, aurc, risk_coverage_curve
from gpssl.kernels import NeighborRBF
from gpssl.plots import (
    Grid,
    plot_maps,
    plot_pairs,
    plot_probabilities,
    plot_reliability,
    plot_representation,
    plot_residuals,
    plot_risk_coverage,
    plot_spectrum,
    plot_uncertainty,
)
from pictures import legend_texts, render

Array = NDArray[np.float64]

LABELS = quadrant_circles()[1]
GRID = Grid.between((-2.0, -1.0), (2.0, 3.0), n_points=9)


@pytest.fixture(scope="module")
def ssl(circles: Array) -> GPSSL:
    return GPSSL(3, kernel=NeighborRBF(20), random_state=0).fit(circles)


@pytest.fixture(scope="module")
def classifiers(ssl: GPSSL, circles: Array) -> dict[str, MarginalizedClassifier]:
    y = few_labels()
    return {
        "mean": MarginalizedClassifier(FrozenEstimator(ssl), n_draws=None).fit(circles, y),
        "full": MarginalizedClassifier(FrozenEstimator(ssl), n_draws=5, random_state=0).fit(circles, y),
    }


def few_labels() -> NDArray[np.intp]:
    return np.where(np.arange(len(LABELS)) % 15 == 0, LABELS, -1)


def predictions(seed: int) -> tuple[NDArray[np.intp], Array]:
    """Labels and probabilities of three classes."""
    rng = np.random.default_rng(seed)
    return rng.integers(3, size=80), rng.dirichlet(np.ones(3), size=80)


def risk_curves(n: int) -> dict[str, RiskCoverageCurve]:
    return {f"method {seed}": risk_coverage_curve(*predictions(seed)) for seed in range(n)}


def reliability_curves(n: int) -> dict[str, ReliabilityCurve]:
    return {f"method {seed}": reliability_curve(*predictions(seed)) for seed in range(n)}


def image(ax: Any) -> Array:
    """The values of a map, one for each place of the grid. [n²]"""
    return np.asarray(ax.images[0].get_array()).ravel()


# Grids and maps


def test_grid_covers_the_rectangle_and_its_pixels_are_centered_on_the_points() -> None:
    grid = Grid.between((0.0, 10.0), (2.0, 14.0), n_points=3)
    np.testing.assert_array_equal(grid.points[:4], [[0, 10], [1, 10], [2, 10], [0, 12]])
    assert grid.extent == (-0.5, 2.5, 9.0, 15.0)


def test_grid_around_rows_has_them_inside_even_when_a_column_is_constant() -> None:
    rows = np.array([[0.0, 5.0], [4.0, 5.0]])
    grid = Grid.around(rows, n_points=5)
    assert grid.low == (-1.0, 4.0)
    assert grid.high == (5.0, 6.0)


def test_maps_show_each_column_at_its_place_with_one_scale() -> None:
    values = np.column_stack([GRID.points[:, 0], 2 * GRID.points[:, 1]])
    axes = plot_maps(values, GRID, titles=["first", "second"], label="value")
    assert [ax.get_title() for ax in axes] == ["first", "second"]
    for ax, column in zip(axes, values.T, strict=True):
        np.testing.assert_array_equal(image(ax), column)
        assert ax.images[0].get_clim() == (-2.0, 6.0)
        assert ax.images[0].origin == "lower"
        assert ax.get_xlim() == (-2.0, 2.0)
        assert ax.get_ylim() == (-1.0, 3.0)
    assert axes[0].figure.axes[-1].get_ylabel() == "value"
    render(axes[0])


def test_diverging_colors_part_at_zero() -> None:
    values = GRID.points[:, 1:]
    assert plot_maps(values, GRID, titles=["a"], label="b", diverging=True)[0].images[0].get_clim() == (-3.0, 3.0)


def test_maps_have_one_title_for_each_column() -> None:
    with pytest.raises(ValueError, match=r"81 points of the grid, 1 titles\], got shape \(81, 2\)"):
        plot_maps(GRID.points, GRID, titles=["only one"], label="value")


# Representations


def test_representation_is_mean_above_standard_deviation_with_the_rows_on_top(ssl: GPSSL, circles: Array) -> None:
    axes = plot_representation(ssl, circles, grid=GRID)
    assert axes.shape == (2, 3)
    mean, std = ssl.transform(GRID.points), ssl.std(GRID.points)
    for j in range(3):
        np.testing.assert_array_equal(image(axes[0, j]), mean[:, j])
        np.testing.assert_array_equal(image(axes[1, j]), std[:, j])
        np.testing.assert_array_equal(axes[1, j].collections[0].get_offsets(), circles)
    low, high = axes[0, 0].images[0].get_clim()
    assert -low == high == np.abs(mean).max()
    assert {ax.get_ylabel() for ax in axes[0, 0].figure.axes} >= {"mean", "standard deviation"}
    render(axes[0, 0])


def test_representation_shows_the_dimensions_that_are_asked_for(ssl: GPSSL, circles: Array) -> None:
    axes = plot_representation(ssl, circles, grid=GRID, dimensions=[2])
    np.testing.assert_array_equal(image(axes[0, 0]), ssl.transform(GRID.points)[:, 2])
    assert axes[0, 0].get_title() == "dimension 3"


def test_data_frames_keep_the_names_of_their_columns(circles: Array) -> None:
    frame = pd.DataFrame(circles, columns=["east", "north"])
    ssl = GPSSL(2, kernel=NeighborRBF(20), random_state=0).fit(frame)
    axes = plot_representation(ssl.set_output(transform="pandas"), frame, grid=GRID)  # scikit-learn warns of names that are missing
    places = pd.DataFrame(GRID.points, columns=frame.columns)
    np.testing.assert_array_equal(image(axes[0, 0]), np.asarray(ssl.transform(places))[:, 0])
    assert plot_pairs(ssl, frame).shape == (1, 1)


def test_pairs_are_a_triangle_of_means_with_ellipses_of_one_standard_deviation(ssl: GPSSL, circles: Array) -> None:
    axes = plot_pairs(ssl, circles, n_ellipses=7)
    assert axes.shape == (2, 2)
    assert axes[0, 1] is None
    mean, std = ssl.transform(circles), ssl.std(circles)
    ellipses, points = axes[1, 0].collections
    np.testing.assert_array_equal(points.get_offsets(), mean[:, [0, 2]])
    assert isinstance(ellipses, EllipseCollection)
    centers = np.asarray(ellipses.get_offsets())
    rows = [int(np.flatnonzero((mean[:, [0, 2]] == center).all(axis=1))[0]) for center in centers]
    assert len(rows) == 7
    np.testing.assert_allclose(np.asarray(ellipses.get_widths(), dtype=float), 2 * std[rows, 0])
    np.testing.assert_allclose(np.asarray(ellipses.get_heights(), dtype=float), 2 * std[rows, 2])
    assert axes[1, 0].get_xlabel() == "dimension 1"
    assert axes[1, 0].get_ylabel() == "dimension 3"
    render(axes[0, 0])


def test_pairs_widen_their_axes_for_the_ellipses(ssl: GPSSL, circles: Array) -> None:
    (ax,) = plot_pairs(ssl, circles, dimensions=[0, 1], n_ellipses=len(circles)).flat
    mean, std = ssl.transform(circles), ssl.std(circles)
    left, right = ax.get_xlim()
    assert left <= (mean - std)[:, 0].min()
    assert right >= (mean + std)[:, 0].max()


def test_the_same_seed_chooses_the_same_ellipses(ssl: GPSSL, circles: Array) -> None:
    first, again, other = (plot_pairs(ssl, circles, random_state=seed)[0, 0].collections[0].get_offsets() for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_pairs_name_the_classes_and_gray_rows_without_label(ssl: GPSSL, circles: Array) -> None:
    labels = np.where(LABELS == 1, "outer", "inner").astype(object)
    labels[::10] = None
    axes = plot_pairs(ssl, circles, labels)
    assert legend_texts(axes[0, 0].get_legend()) == ["no label", "inner", "outer"]
    outer = axes[0, 0].collections[-1]
    np.testing.assert_array_equal(outer.get_offsets(), ssl.transform(circles)[labels == "outer", :2])
    render(axes[0, 0])


def test_pairs_refuse_what_cannot_be_read(ssl: GPSSL, circles: Array) -> None:
    with pytest.raises(ValueError, match="two dimensions"):
        plot_pairs(ssl, circles, dimensions=[1])
    with pytest.raises(ValueError, match="0 to 2, got"):
        plot_pairs(ssl, circles, dimensions=[0, 3])
    with pytest.raises(ValueError, match="at most 10 with dimensions="):
        plot_pairs(ssl.refit(n_components=11), circles)
    with pytest.raises(ValueError, match="450 rows and 3 labels"):
        plot_pairs(ssl, circles, [0, 1, 0])
    with pytest.raises(ValueError, match="at most 20"):
        plot_pairs(ssl, circles, np.arange(len(circles)) // 10)


# Curves


def test_risk_coverage_lines_are_the_curves_with_their_area_in_the_legend() -> None:
    curves = risk_curves(3)
    ax = plot_risk_coverage(curves)
    for line, curve in zip(ax.lines, curves.values(), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), curve.coverage)
        np.testing.assert_array_equal(line.get_ydata(), curve.risk)
    assert legend_texts(ax.get_legend()) == [f"method {seed} (AURC {aurc(*predictions(seed)):.3f})" for seed in range(3)]
    assert ax.get_xlabel() == "coverage (share of rows predicted)"
    assert ax.get_ylabel() == "risk (error rate among them)"
    render(ax)


def test_no_two_of_many_methods_look_the_same() -> None:
    ax = plot_risk_coverage(risk_curves(28))
    assert len({(line.get_color(), line.get_linestyle()) for line in ax.lines}) == 28


@pytest.mark.parametrize(("n_methods", "covers"), [(6, True), (7, False)])
def test_names_of_many_methods_cover_no_curve(n_methods: int, covers: bool) -> None:
    ax = plot_risk_coverage(risk_curves(n_methods))
    figure, legend = ax.get_figure(root=True), ax.get_legend()
    assert figure is not None
    assert legend is not None
    figure.draw_without_rendering()
    assert ax.get_window_extent().overlaps(legend.get_window_extent()) == covers
    assert legend.get_window_extent().x1 <= figure.bbox.x1


def test_reliability_shows_accuracy_and_share_with_the_error_in_the_legend() -> None:
    curves = reliability_curves(2)
    ax = plot_reliability(curves)
    diagonal, *lines = ax.lines
    np.testing.assert_array_equal(diagonal.get_xydata(), [[0, 0], [1, 1]])
    for line, markers, curve in zip(lines, ax.collections, curves.values(), strict=True):
        np.testing.assert_array_equal(line.get_xydata(), np.column_stack([curve.certainty, curve.accuracy]))
        sizes = np.asarray(markers.get_sizes())  # type: ignore[attr-defined]
        np.testing.assert_allclose(sizes / sizes.sum(), curve.share)
    expected = [f"method {seed} (ECE {expected_calibration_error(*predictions(seed)):.3f})" for seed in range(2)]
    assert legend_texts(ax.get_legend()) == ["accuracy = certainty", *expected]
    render(ax)


# Predictions


def test_probabilities_are_those_of_the_positive_class_on_the_grid(classifiers: dict[str, MarginalizedClassifier], circles: Array) -> None:
    axes = plot_probabilities(classifiers, circles, few_labels(), positive=0, grid=GRID)
    assert axes.shape == (2, 2)
    for (top, bottom), (name, classifier) in zip(axes.T, classifiers.items(), strict=True):
        assert top.get_title() == name
        np.testing.assert_array_equal(image(top), classifier.predict_proba(GRID.points)[:, 0])
        np.testing.assert_array_equal(image(bottom), classifier.predict_proba_std(GRID.points)[:, 0])
    assert {ax.images[0].get_clim() for ax in axes[0]} == {(0.0, 1.0)}
    assert {ax.images[0].get_clim() for ax in axes[1]} == {(0.0, max(image(ax).max() for ax in axes[1]))}
    crosses = [np.asarray(marks.get_offsets()) for marks in axes[1, 0].collections]
    for label, places in enumerate(crosses):
        np.testing.assert_array_equal(places, circles[few_labels() == label])
    figure = axes[0, 0].figure
    assert legend_texts(figure.legends[0]) == ["class 0", "class 1"]
    assert "probability of class 0" in {ax.get_ylabel() for ax in figure.axes}
    render(axes[0, 0])


def test_the_positive_class_is_the_last_unless_given(classifiers: dict[str, MarginalizedClassifier], circles: Array) -> None:
    mean = classifiers["mean"]
    axes = plot_probabilities({"mean": mean}, circles, few_labels(), grid=GRID)
    np.testing.assert_array_equal(image(axes[0, 0]), mean.predict_proba(GRID.points)[:, 1])
    with pytest.raises(ValueError, match="mean knows no class 2"):
        plot_probabilities(classifiers, circles, few_labels(), positive=2, grid=GRID)


def test_uncertainty_is_the_sum_of_its_parts(classifiers: dict[str, MarginalizedClassifier], circles: Array) -> None:
    total, head, representation = plot_uncertainty(classifiers["full"], circles, grid=GRID)
    np.testing.assert_array_equal(image(total), classifiers["full"].predict_uncertainty(GRID.points).total)
    np.testing.assert_allclose(image(total), image(head) + image(representation))
    render(total)


# What holds for all


def single_panels(ssl: GPSSL, X: Array, ax: Any) -> dict[str, Callable[[], Any]]:
    return {
        "risk_coverage": lambda: plot_risk_coverage(risk_curves(2), ax),
        "reliability": lambda: plot_reliability(reliability_curves(2), ax),
        "spectrum": lambda: plot_spectrum(ssl, ax),
        "residuals": lambda: plot_residuals(ssl, X, ax),
    }


def maps(ssl: GPSSL, X: Any) -> dict[str, Callable[[], Any]]:
    return {
        "representation": lambda: plot_representation(ssl, X),
        "probabilities": lambda: plot_probabilities({"any": None}, X, [0, 1]),
        "uncertainty": lambda: plot_uncertainty(MarginalizedClassifier(ssl), X),
        "maps": lambda: plot_maps(GRID.points, GRID, X, titles=["a", "b"], label="c"),
    }


@pytest.mark.parametrize("name", ["risk_coverage", "reliability", "spectrum", "residuals"])
def test_given_axes_are_used_and_returned(name: str, ssl: GPSSL, circles: Array) -> None:
    left, right = Figure(layout="constrained").subplots(1, 2)
    assert single_panels(ssl, circles, right)[name]() is right
    assert right.lines
    assert not left.lines
    render(right)


@pytest.mark.parametrize("name", ["representation", "probabilities", "uncertainty", "maps"])
@pytest.mark.parametrize("shape", [(2, 3), (2,), (0, 2)])
def test_maps_refuse_rows_that_are_not_in_the_plane(name: str, shape: tuple[int, ...], ssl: GPSSL) -> None:
    with pytest.raises(ValueError, match="needs rows with two columns, got shape"):
        maps(ssl, np.zeros(shape))[name]()


@pytest.mark.parametrize(
    "plot", [lambda: plot_risk_coverage({}), lambda: plot_reliability({}), lambda: plot_probabilities({}, np.zeros((2, 2)), [0, 1])]
)
def test_nothing_to_draw_is_a_sentence(plot: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        plot()


def test_missing_matplotlib_is_a_sentence_that_names_the_extra(monkeypatch: pytest.MonkeyPatch, ssl: GPSSL) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r'pip install "gpssl\[cli\]"'):
        plot_spectrum(ssl)


def test_importing_the_pictures_needs_no_matplotlib_and_pyplot_sees_them() -> None:
    script = """
import sys
import gpssl.plots
assert "matplotlib" not in sys.modules
grid = gpssl.plots.Grid.between((0.0, 0.0), (1.0, 1.0), 3)
axes = gpssl.plots.plot_maps(grid.points, grid, titles=["a", "b"], label="c")
import matplotlib.pyplot as plt
assert plt.gcf() is axes[0].figure
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_curves_without_names_get_a_sentence() -> None:
    with pytest.raises(TypeError, match="Pass names with what they stand for"):
        plot_risk_coverage(risk_coverage_curve([0, 1], [0.1, 0.9]))  # type: ignore[arg-type]
