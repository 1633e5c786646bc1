"""`gpssl embed` of a large CSV file: seconds and peak memory, of this code and of another checkout, taking turns."""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from .measurement import MAXRSS_BYTES, Run, alternate, describe_seconds, in_fresh_process, largest_peak, median_seconds
from .report import Comparison, Finding

OTHER = "GPSSL_OTHER_CHECKOUT"
"""The environment variable that names the folder of another checkout of this repository."""
TARGET_RATIO = 4.0
MAX_INDUCING = 100
BLOCK_ROWS = 100_000
PROJECT = Path(__file__).resolve().parents[1]

SETTING = """\
A CSV file of {n_rows:,} rows and 12 columns: numbers, whole numbers, categories, dates and truth values, some with gaps. Seconds are
those of the whole command `gpssl embed table.csv --max-inducing {max_inducing}`, with the start of Python and all imports, in a process
of its own; memory is the peak of that process. The other checkout is the folder that the environment variable {other}
names{commit}."""


def write_mixed_csv(path: Path, n_rows: int) -> None:
    """Write the table, block by block: each block has its own seed."""
    for block, first in enumerate(range(0, n_rows, BLOCK_ROWS)):
        frame = mixed_frame(min(BLOCK_ROWS, n_rows - first), seed=block)
        frame.to_csv(path, index=False, mode="a" if block else "w", header=block == 0)


def mixed_frame(n_rows: int, seed: int) -> pd.DataFrame:
    """Make 12 columns of several kinds, some of which follow a hidden number."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=n_rows)
    frame = pd.DataFrame(
        {
            "temperature": (20 + 5 * hidden + rng.normal(size=n_rows)).round(3),
            "pressure": (1000 + 10 * hidden + rng.normal(size=n_rows)).round(2),
            "amount": rng.lognormal(3, 1, n_rows).round(2),
            "rate": rng.random(n_rows).round(6),
            "age": pd.array(rng.integers(18, 95, n_rows), dtype="Int64"),
            "visits": rng.poisson(4, n_rows),
            "score": np.rint(500 + 80 * hidden + 20 * rng.normal(size=n_rows)).astype(int),
            "city": np.array([f"city {place}" for place in range(40)])[rng.integers(0, 40, n_rows)],
            "color": np.array(["red", "green", "blue", "gray", "white"])[rng.integers(0, 5, n_rows)],
            "member": np.where(rng.random(n_rows) < 0.3, "yes", "no"),
            "day": (np.datetime64("2020-01-01") + rng.integers(0, 1500, n_rows)).astype(str),
            "kind": np.where(hidden > 0.5, "high", np.where(hidden < -0.5, "low", "middle")),
        }
    )
    for name, share in (("amount", 0.05), ("age", 0.02), ("color", 0.04), ("day", 0.01)):
        frame.loc[rng.random(n_rows) < share, name] = None
    return frame


def run_embed(table: Path, checkout: Path) -> Run:
    """Run the command with the code of a checkout; the peak of memory is that of the only child of this process."""
    command = [sys.executable, "-c", "from gpssl.cli import app; app()", "embed", str(table), "-o", str(table.with_name("out.csv"))]
    command += ["--max-inducing", str(MAX_INDUCING), "--force"]
    started = time.perf_counter()
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(checkout / "src")}, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - started
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Run(seconds, usage.ru_maxrss * MAXRSS_BYTES / 1e6, f"{usage.ru_utime + usage.ru_stime:.1f} s of the cores")


def compare(*, quick: bool, n_rows: int | None = None) -> Comparison:
    """Compare this code with that of the other checkout, if one is named."""
    n_rows = n_rows or (20_000 if quick else 1_000_000)
    checkouts = {"this code": PROJECT} | ({"the other": Path(os.environ[OTHER])} if os.environ.get(OTHER) else {})
    with TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        in_fresh_process(f"writing {n_rows:,} rows", partial(write_mixed_csv, table, n_rows))
        runs = alternate({name: partial(run_embed, table, checkout) for name, checkout in checkouts.items()})
    rows: list[tuple[str, ...]] = [
        (name, describe_seconds([run.seconds for run in group]), f"{largest_peak(group):,.0f}", group[0].note)
        for name, group in runs.items()
    ]
    return Comparison(
        title="A large CSV file",
        setting=SETTING.format(n_rows=n_rows, max_inducing=MAX_INDUCING, other=OTHER, commit=_commit_of(checkouts.get("the other"))),
        header=("", "seconds (range)", "peak memory, MB", "first run"),
        rows=rows,
        findings=_findings(runs) if "the other" in runs else [],
    )


def _commit_of(checkout: Path | None) -> str:
    """Return which commit is checked out there, in words."""
    if checkout is None:
        return ""
    command = ["git", "-C", str(checkout), "log", "-1", "--format=%h of %cs"]
    return f": commit {subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()}"


def _findings(runs: dict[str, list[Run]]) -> list[Finding]:
    this, other = runs["this code"], runs["the other"]
    ratio = median_seconds(other) / median_seconds(this)
    ratios = [b.seconds / a.seconds for a, b in zip(this, other, strict=True)]
    peak, limit = largest_peak(this), median(run.megabytes for run in other)
    return [
        Finding(
            f"at least {TARGET_RATIO:g} times as fast as the other",
            f"{ratio:.2f} (pairs: {min(ratios):.2f} to {max(ratios):.2f})",
            ratio >= TARGET_RATIO,
        ),
        Finding("no higher a peak of memory", f"{peak:,.0f} MB against {limit:,.0f} MB", peak <= limit),
    ]


def main() -> None:
    """Run this comparison alone, and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.embed_csv", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--other", help=f"a folder with another checkout; by default what {OTHER} names")
    arguments = parser.parse_args()
    if arguments.other:
        os.environ[OTHER] = arguments.other
    result = compare(quick=False, n_rows=arguments.rows)
    print(result.setting, *(" | ".join(row) for row in (result.header, *result.rows)), *result.findings, sep="\n")


if __name__ == "__main__":
    from benchmarks import embed_csv  # by its own name, under which a fresh process finds its functions

    embed_csv.main()
