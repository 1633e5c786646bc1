"""What GPSSL learns on the paper's circles and on a table: the panels of the paper's Figure 2, and two small tables.

Run with `make demo`, or `python -m gpssl.experiments.demo --output FOLDER`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.gaussian_process.kernels import Kernel

from .. import GPSSL
from ..datasets import QUADRANT_ROWS, quadrant_circles
from ..kernels import NeighborRBF
from ..plots import Grid, plot_maps

Array = NDArray[np.float64]

HALF_WIDTH = 2.0
QUADRANTS = ("top right", "top left", "bottom left", "bottom right")


def main() -> None:
    """Fit, print, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("results/demo"), help="folder for the pictures")
    output: Path = parser.parse_args().output
    output.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    _show_circles(output)
    _show_breast_cancer()
    print(f"\nDone in {time.perf_counter() - started:.1f} s.")


def _show_circles(output: Path) -> None:
    X, circle = quadrant_circles()
    # A short lengthscale, as the paper selects on validation labels: with a long one the functions cannot tell the quadrants apart.
    ssl = _fit("Concentric circles", X, NeighborRBF(neighborhood=50))
    print("\n  Average standard deviation on the circles, by quadrant (the prior's is 1):")
    for name, n_rows, angle in zip(QUADRANTS, QUADRANT_ROWS, (0, 1, 2, 3), strict=True):
        arc = _arc(angle)
        print(f"    {name:14s} {n_rows:4d} training rows   {ssl.std(arc).mean():.3f}")
    corners = HALF_WIDTH * np.array([[1, 1], [-1, 1], [-1, -1], [1, -1]])
    print(f"    {'far corners':14s} {0:4d} training rows   {ssl.std(corners).mean():.3f}")
    distance = np.linalg.norm(ssl.transform(X) - ssl.transform(np.zeros((1, 2))), axis=1)
    print("\n  Median distance of the mean representation to that of the origin:")
    for number, name in enumerate(("inner circle", "outer circle")):
        print(f"    {name:14s} {np.median(distance[circle == number]):.2f}")
    for path in _draw_figure_2(ssl, X, output):
        print(f"  wrote {path}")


def _show_breast_cancer() -> None:
    data = load_breast_cancer()
    ssl = _fit("Breast cancer (569 rows, 30 columns, no labels used)", data.data)
    representation = ssl.transform(data.data)
    print("\n  Each dimension, and the column that it correlates with most:")
    for j, values in enumerate(representation.T):
        correlations = np.array([np.corrcoef(values, column)[0, 1] for column in data.data.T])
        best = int(np.abs(correlations).argmax())
        name = data.feature_names[best]
        print(f"    {ssl.get_feature_names_out()[j]}   eigenvalue {ssl.eigenvalues_[j]:.4f}   {name} ({correlations[best]:+.2f})")
    spread = data.data.std(axis=0)
    print("\n  Average standard deviation (the prior's is 1):")
    print(f"    at the training rows                          {ssl.std(data.data).mean():.3f}")
    print(f"    at the same rows, shifted by 20 deviations    {ssl.std(data.data + 20 * spread).mean():.3f}")


def _fit(title: str, X: Array, kernel: Kernel | None = None) -> GPSSL:
    """Fit, with the defaults but for the kernel, and print what was found."""
    started = time.perf_counter()
    ssl = GPSSL(n_components=5, kernel=kernel, random_state=0).fit(X)
    seconds = time.perf_counter() - started
    print(f"\n{title}")
    print("=" * len(title))
    rows = (
        ("rows × columns", f"{X.shape[0]} × {X.shape[1]}"),
        ("inducing points", f"{len(ssl.inducing_points_)}"),
        ("prior variance left open", f"{ssl.residual_:.1e}"),
        ("temperature (1 / rows)", f"{ssl.temperature_:.2e}"),
        ("objective", f"{ssl.objective_:.4f}"),
        ("iterations", f"{ssl.report_.n_iterations}"),
        ("seconds to fit", f"{seconds:.2f}"),
    )
    for name, value in rows:
        print(f"  {name:26s} {value:>12s}")
    return ssl


def _arc(quadrant: int) -> Array:
    """Points on both circles within a quadrant."""
    angles = (quadrant + np.linspace(0.05, 0.95, 30)) * np.pi / 2
    arc = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.vstack([0.5 * arc, arc])


def _draw_figure_2(ssl: GPSSL, X: Array, output: Path) -> list[Path]:
    """The panels of the paper's Figure 2."""
    grid = Grid.between((-HALF_WIDTH, -HALF_WIDTH), (HALF_WIDTH, HALF_WIDTH))
    mean, std = ssl.transform(grid.points), ssl.std(grid.points)
    distance = np.linalg.norm(mean - ssl.transform(np.zeros((1, 2))), axis=1, keepdims=True)
    average = std.mean(axis=1, keepdims=True)
    dimensions = [f"dimension {j + 1}" for j in range(mean.shape[1])]
    pictures = {
        "mean.png": plot_maps(mean, grid, X, titles=dimensions, label="mean", diverging=True),
        "std.png": plot_maps(std, grid, X, titles=dimensions, label="standard deviation"),
        "distance_to_reference.png": plot_maps(distance, grid, X, titles=["distance to (0, 0)"], label="distance"),
        "average_std.png": plot_maps(average, grid, X, titles=["average over dimensions"], label="standard deviation"),
    }
    for name, axes in pictures.items():
        axes[0].figure.savefig(output / name)
    return [output / name for name in pictures]


if __name__ == "__main__":
    main()
