"""Three million flights, end to end: from the path of a Parquet file to the representation of every row."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import dask.dataframe as dd
import numpy as np
from pyarrow.parquet import ParquetFile, write_table

from gpssl import GPSSL
from gpssl.data import TableFiles
from gpssl.kernels import NeighborRBF

from .data import residual_accepted
from .measurement import in_fresh_process, peak_in_megabytes, seconds_of
from .real_tables import find_table, not_run
from .report import Comparison, Finding

FILE = "flights_3m/flights-3m.parquet"
TITLE = "Three million flights"
NUMBERS = ["delay", "distance"]
QUICK_ROWS = 50_000

SETTING = """\
Flights in the United States from January to June 2001: date, delay, distance, origin, destination. `GPSSL(5, random_state=0)` is fitted
from the path of the Parquet file, and all rows are transformed; one run. `TableFiles` reads the two columns that hold numbers; no
value is missing. Through Dask, hour of the day and day of the week are made of the date besides (four columns), on Dask's threads. Delays
have outlying rows, which stretch the default kernel until few inducing points carry it all; `NeighborRBF(reduce="median")`, which the
documentation names for such tables, needs all that it may have. Memory is the peak of the whole process, imports included, and with
it the array of representations."""


class EndToEnd(NamedTuple):
    """What a fit and a transform took, and what came of them."""

    n_rows: int
    n_columns: int
    fit: float
    transform: float
    megabytes: float
    note: str


def numbers_of_file(path: Path) -> Any:
    """Return the columns that hold numbers, as they are."""
    return TableFiles(path, columns=NUMBERS)


def numbers_through_dask(path: Path) -> Any:
    """Return the same columns, and numbers made of the date."""
    frame = dd.read_parquet(path, columns=["date", *NUMBERS], split_row_groups=True)
    date = frame["date"].dt
    return frame.assign(hour=date.hour + date.minute / 60, weekday=date.dayofweek).drop(columns="date").astype(np.float64)


WAYS: dict[str, tuple[Callable[[Path], Any], NeighborRBF]] = {
    "`TableFiles(path, columns=…)`, defaults": (numbers_of_file, NeighborRBF()),
    '`TableFiles(path, columns=…)`, `reduce="median"`': (numbers_of_file, NeighborRBF(reduce="median")),
    "`dask.dataframe.read_parquet(path)`, defaults": (numbers_through_dask, NeighborRBF()),
}


def run_end_to_end(path: Path, way: str) -> EndToEnd:
    """Open, fit, transform."""
    read, kernel = WAYS[way]
    model = GPSSL(5, kernel=kernel, random_state=0)
    representation: list[Any] = []
    with residual_accepted(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The kernel sees only", category=UserWarning)  # said in the table
        fit = seconds_of(lambda: model.fit(read(path)))
        transform = seconds_of(lambda: representation.append(np.asarray(model.transform(read(path)))))
    note = f"{len(model.inducing_points_)} inducing points leave {model.residual_:.1g} of the prior variance open"
    note += f"; the kernel sees {len(model.eigenvalues_)} directions"
    return EndToEnd(len(representation[0]), model.n_features_in_, fit, transform, peak_in_megabytes(), note)


def write_beginning(path: Path, out: Path) -> None:
    """Write the first rows into a small file."""
    write_table(ParquetFile(path).read_row_group(0).slice(0, QUICK_ROWS), out)


def compare(*, quick: bool) -> Comparison:
    """Run both ways to read the file, if it is there."""
    path = find_table(FILE)
    if path is None:
        return not_run(TITLE, SETTING, FILE)
    with TemporaryDirectory() as folder:
        if quick:
            in_fresh_process("first flights", partial(write_beginning, path, Path(folder) / "flights.parquet"))
            path = Path(folder) / "flights.parquet"
        runs = {name: in_fresh_process(f"flights, {name}", partial(run_end_to_end, path, name)) for name in WAYS}
    findings = [
        Finding(f"{name}: completes end to end", f"{run.n_rows:,} rows in {run.fit + run.transform:.3g} s, {run.megabytes:.0f} MB", True)
        for name, run in runs.items()
    ]
    header = ("", "rows", "columns", "fit, s", "rows a second", "transform, s", "rows a second", "peak memory in all, MB", "")
    return Comparison(TITLE, SETTING, header, [_row(name, run) for name, run in runs.items()], findings)


def _row(name: str, run: EndToEnd) -> tuple[str, ...]:
    times = [cell for seconds in (run.fit, run.transform) for cell in (f"{seconds:.3g}", f"{run.n_rows / seconds:,.0f}")]
    return name, f"{run.n_rows:,}", str(run.n_columns), *times, f"{run.megabytes:,.0f}", run.note
