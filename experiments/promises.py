"""How often `gpssl label --max-risk 0.1` breaks its promises, on rows of populations that are known.

In each simulation a table of 400 rows is drawn, of which some have a label; the whole of `gpssl.label` is run on it, and the errors among
the predictions that it keeps are counted. On average, at most 10 % of what is kept may be wrong, where a table of which nothing is kept
has no error. With 95 % confidence, more than 10 % may be wrong in at most 5 % of the tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import gpssl
from gpssl.comparison import split_seed
from gpssl.workflows._given_labels import empty_labels
from gpssl.workflows._row_checksums import row_checksums, row_names

from .ledger import Record, Task
from .plan import Plan
from .populations import CHOSEN, POPULATIONS, Drawn
from .tables import table

MAX_RISK, N_ROWS = 0.1, 400
N_DRAWS = 10


class Setting(NamedTuple):
    """How tables are labeled, and the name of the table of results."""

    name: str
    n_labels: int
    confidence: str
    is_pool: bool
    most_splits: int
    """Tables of each population, at the most: the pool takes ten times as long as one representation."""


SETTINGS = {
    "on average, 60 labels": Setting("promises on average", 60, "average", False, 10**6),
    "on average, 60 labels, pool": Setting("promises of the pool", 60, "average", True, 10),
    "95 % confidence, 200 labels": Setting("promises with confidence", 200, "0.95", False, 10**6),
}


def load(data: str) -> str:
    """Return the name of a population, whose rows are drawn in each task."""
    return data


def tasks(plan: Plan) -> list[Task]:
    """Return all settings for all draws of all populations."""
    data = plan.choose(tuple(POPULATIONS), quick=("normal", CHOSEN))
    return [
        Task(name, split, method)
        for split in range(plan.splits)
        for name in data
        for method, setting in SETTINGS.items()
        if split < setting.most_splits and not (plan.quick and setting.is_pool)
    ]


def run(task: Task, plan: Plan) -> Record:
    """Draw a table, label it, and count the errors among what is kept."""
    setting = SETTINGS[task.method]
    drawn = POPULATIONS[task.data](np.random.default_rng([split_seed(plan.seed, task.split), setting.n_labels]), N_ROWS)
    truth = np.array([f"class {code}" for code in drawn.y], dtype=object)
    labeled = drawn.y[drawn.order[: setting.n_labels]]
    if np.ptp(labeled) == 0:  # `label` refuses labels of one class, so that nothing is kept
        others = drawn.y[drawn.order[setting.n_labels :]]
        return {"rows": len(others), "kept": 0, "wrong": 0, "error": float((others != labeled[0]).mean())}
    options: dict[str, Any] = {} if setting.is_pool else {"n_draws": N_DRAWS}
    given = _labels(task.data == CHOSEN, drawn, truth, setting.n_labels, options)
    result = gpssl.label(**given, target="kind", max_risk=MAX_RISK, confidence=setting.confidence, random_state=0, **options)
    found = result.frame()
    is_open = found["kind_predicted"].notna().to_numpy()
    kept = ~found["kind_abstain"][is_open].to_numpy(dtype=bool)
    wrong = found["kind_predicted"][is_open].to_numpy() != truth[is_open]
    return {"rows": len(kept), "kept": int(kept.sum()), "wrong": int(wrong[kept].sum()), "error": float(wrong.mean())}


def _labels(is_chosen: bool, drawn: Drawn, truth: Any, n_labels: int, options: dict[str, Any]) -> dict[str, Any]:
    """Return the table with labels as `gpssl.label` takes them; chosen ones come after a third that is drawn at random."""
    known = drawn.order[: n_labels // 3 if is_chosen else n_labels]
    frame = drawn.frame.assign(kind=pd.Series(truth).where(np.isin(np.arange(N_ROWS), known), None))
    if not is_chosen:
        return {"table": frame}
    model = gpssl.label(frame, "kind", random_state=0, **options).model
    suggested = gpssl.next_rows(frame, "kind", n=n_labels - len(known), model=model)
    places = np.sort([row.place for row in suggested.rows])
    names, checksums = row_names(suggested.subject, places), row_checksums(suggested.subject, places)
    labels = empty_labels("kind", list(zip(names, checksums, strict=True))).assign(kind=truth[places])
    return {"table": frame, "labels": labels}


def report(records: Sequence[Record]) -> dict[str, str]:
    """Return what was kept and how much of it was wrong, by setting and population."""
    header = [
        "",
        "errors among all",
        "tables with something kept",
        "share kept",
        "wrong among kept, mean (s.e.)",
        f"tables above {MAX_RISK:.0%}",
    ]
    found = {}
    for method, setting in SETTINGS.items():
        mine = [record for record in records if record["method"] == method]
        names = [name for name in POPULATIONS if any(record["data"] == name for record in mine)]
        rows = [_row(name, [record for record in mine if record["data"] == name]) for name in names]
        found[setting.name] = table(header, rows)
    return found


def _row(name: str, records: Sequence[Record]) -> list[str]:
    shares = np.array([record["wrong"] / max(1, record["kept"]) for record in records])
    error = shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else np.nan
    n_any = sum(record["kept"] > 0 for record in records)
    return [
        name,
        _percent(np.mean([record["error"] for record in records])),
        f"{n_any} of {len(records)}",
        _percent(np.mean([record["kept"] / record["rows"] for record in records])),
        f"{_percent(shares.mean())} ({100 * error:.1f})",
        f"{int((shares > MAX_RISK).sum())} of {len(records)}",
    ]


def _percent(value: float | np.floating[Any]) -> str:
    return f"{100 * value:.1f} %"


def draw(_records: Sequence[Record], _plan: Plan, _folder: Path) -> list[Path]:
    """Draw nothing."""
    return []
