"""How honest "about N more labels until 5 % errors can be promised" is: what was foretold, and how many it took.

From `FIRST` labels drawn by chance a learning curve foretells how many labels in all it takes. Then more labels are drawn, in steps, until
cross-validation makes so few errors that the binomial bound allows the promise for all predictions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import binom
from sklearn.frozen import FrozenEstimator

from gpssl import MarginalizedClassifier
from gpssl.active import learning_curve
from gpssl.evaluation import hold_out_classes

from .ledger import Record
from .next_samples import Places, Sample
from .tables import table

STOP = "when to stop"
STOP_TABLES = ("wisconsin", "wdbc", "ring", "ionosphere")
FIRST, FACTOR, MOST = 50, 1.25, 300
MAX_RISK, CONFIDENCE = 0.05, 0.95
N_FOLDS = 5


def stop_record(sample: Sample, order: Places) -> Record:
    """Return the number of labels that was foretold from the first ones, and the one that it took; infinity is None."""
    curve = learning_curve(sample.fitted(order[:FIRST]), sample.rows[order[:FIRST]], sample.y[order[:FIRST]])
    found = curve.labels_until(MAX_RISK, CONFIDENCE)._asdict()
    foretold = {name: value if np.isfinite(value) else None for name, value in found.items()}
    return {"foretold": foretold, "took": labels_taken(sample, order), "errors": curve.predicted_risk(curve.n_labels)[0]}


def labels_taken(sample: Sample, order: Places) -> int | None:
    """Return the first number of labels, in steps, that allows the promise; None where `MOST` do not."""
    model = MarginalizedClassifier(FrozenEstimator(sample.pool), random_state=0)
    count = float(FIRST)
    while round(count) <= min(MOST, len(order)):
        known = order[: round(count)]
        held_out = hold_out_classes(model, sample.rows[known], sample.y[known], n_folds=N_FOLDS)
        if binom.cdf(int(held_out.is_wrong.sum()), len(known), MAX_RISK) <= 1 - CONFIDENCE:
            return len(known)
        count *= FACTOR
    return None


def stop_table(records: Sequence[Record]) -> str:
    """Return what was foretold and what it took on each split of each table, and how often the interval held."""
    rows = [
        [record["data"], f"{100 * record['errors']:.1f} %", _foretold(record), _taken(record), "yes" if held(record) else "no"]
        for record in records
    ]
    n_held = sum(map(held, records))
    rows.append(["all", "", "", "", f"{n_held} of {len(records)}"])
    return table([f"from {FIRST} labels", "errors", "labels in all, foretold", f"took (steps of {FACTOR})", "within the interval"], rows)


def held(record: Record) -> bool:
    """Return whether the number that it took, to the step, is within the 80 % interval; more than `MOST` is within one that ends later."""
    low, high = record["foretold"]["low"], record["foretold"]["high"]
    low, high = (np.inf if low is None else low), (np.inf if high is None else high)
    if record["took"] is None:
        return bool(high >= MOST)
    before = record["took"] / FACTOR if record["took"] > FIRST else 0.0
    return bool(low <= record["took"] and high > before)


def _foretold(record: Record) -> str:
    low, middle, high = (record["foretold"][name] for name in ("low", "middle", "high"))
    words = ["out of reach" if number is None else f"{number:.0f}" for number in (middle, low, high)]
    return f"{words[0]} ({words[1]} to {words[2]})"


def _taken(record: Record) -> str:
    return f"more than {MOST}" if record["took"] is None else str(record["took"])
