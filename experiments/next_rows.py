"""Which rows to label next: learning curves of ways to choose them, ten at a time, on many tables; and how honest "N more labels" is.

What all ways to choose share is in `next_samples.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpssl.active import suggest
from gpssl.active._greedy import Nearest
from gpssl.active._representation import OwnRepresentation
from gpssl.active._suggest import Beliefs

from .data.keel import DEVELOPMENT_TABLES, load_keel
from .data.tables import REGRESSION_TABLES, load_regression
from .few_label_protocol import UNLABELED, all_classes, score
from .few_targets import Prediction
from .few_targets import score as score_numbers
from .figures import picture, plot_lines, save
from .ledger import Record, Task
from .next_samples import START, Array, Places, Sample, sample_of, split_of
from .next_stopping import STOP, STOP_TABLES, stop_record, stop_table
from .plan import Plan
from .ranked import LEAST_TABLES, TableMeans, Versus, corrected, mean_lines, signed_rank_test
from .tables import table

COUNTS = (20, 30, 40, 50, 60)
TESTED = (20, 30, 40)
BATCH = 10
NEXT = "next"
SPLITS_OF_NUMBERS = 3
SPLITS_OF_STOP = 2

OF_CLASSES, OF_NUMBERS = ("log loss", "error rate"), ("NLL", "RMSE")
QUICK_TABLES = ("heart", "diabetes")


class State(NamedTuple):
    """What is known when rows are to be chosen."""

    sample: Sample
    model: Any
    labeled: Places
    others: Places
    """Rows without a label that may get one, in the order of chance."""

    @property
    def is_open(self) -> NDArray[np.bool_]:
        """Which rows may be chosen. [n]"""
        mask = np.zeros(len(self.sample.y), dtype=bool)
        mask[self.others] = True
        return mask

    @property
    def uncertainty(self) -> Array:
        """[n]"""
        return Beliefs.of(self.model, self.sample.rows).uncertainty

    @property
    def points(self) -> Array:
        """The representation that the labels believe in. [n, D]"""
        own = OwnRepresentation.of(self.model)
        if own is None:
            raise TypeError("The model has no representation.")
        return own(self.sample.rows)


Strategy = Callable[[State], Places]
"""From a state to the rows to label."""


def by_chance(state: State) -> Places:
    """Choose the next rows of a random order."""
    return state.others[:BATCH]


def uncertain(state: State) -> Places:
    """Choose the rows with the smallest margin, or the largest standard deviation."""
    return state.others[np.argsort(-state.uncertainty[state.others], kind="stable")[:BATCH]]


def covering(state: State) -> Places:
    """Choose the row that is farthest from what is labeled or chosen, again and again."""
    return _farthest(state, np.ones(len(state.sample.y)))


def margin_times_distance(state: State) -> Places:
    """Choose the row with the largest product of uncertainty and that distance, again and again."""
    return _farthest(state, state.uncertainty)


def _farthest(state: State, weight: Array) -> Places:
    points, chosen = state.points, list[int]()
    for _ in range(BATCH):
        distance = np.sqrt(Nearest.of(points[state.others], points[[*state.labeled, *chosen]]).squared)
        value = np.where(np.isin(state.others, chosen), -1.0, distance * weight[state.others])
        chosen.append(int(state.others[value.argmax()]))
    return np.array(chosen, dtype=np.intp)


def suggested(state: State) -> Places:
    """Choose as `gpssl next` does."""
    return _suggest(state, state.model, None)


def suggested_by_columns(state: State) -> Places:
    """Choose as `gpssl next` does, with distances between standardized columns: nothing is learned in them."""
    return _suggest(state, state.model, state.sample.numbers)


def suggested_evenly(state: State) -> Places:
    """Choose as `gpssl next` does without a model: rows that are sure count as much as others."""
    return _suggest(state, None, state.points)


def _suggest(state: State, model: Any, points: Array | None) -> Places:
    seen = np.concatenate([state.labeled, state.others])  # rows that are judged can be chosen by nobody
    marks = np.where(np.arange(len(seen)) < len(state.labeled), 0, UNLABELED)
    found = suggest(model, state.sample.rows[seen], BATCH, y=marks, representation=None if points is None else points[seen])
    return seen[found.places]


STRATEGIES: dict[str, Strategy] = {
    "random": by_chance,
    "margin": uncertain,
    "farthest": covering,
    "margin × distance": margin_times_distance,
    "next without margin": suggested_evenly,
    "next on the columns": suggested_by_columns,
    NEXT: suggested,
}
"""All ways to choose. For numbers, the standard deviation is in the place of the margin."""


# The experiment


def load(data: str) -> object:
    """Return the rows of a table."""
    return load_keel(data) if data in DEVELOPMENT_TABLES else load_regression(data)


def tasks(plan: Plan) -> list[Task]:
    """Return all ways to choose on all splits of all tables, table by table: what is learned without labels is learned once."""
    data = plan.choose((*DEVELOPMENT_TABLES, *REGRESSION_TABLES), quick=QUICK_TABLES)
    found = []
    for name in data:
        n_splits = plan.splits if name in DEVELOPMENT_TABLES else min(plan.splits, SPLITS_OF_NUMBERS)
        found += [Task(name, split, method) for split in range(n_splits) for method in STRATEGIES]
        if name in STOP_TABLES and not plan.quick:
            found += [Task(name, split, STOP) for split in range(min(plan.splits, SPLITS_OF_STOP))]
    return found


def run(task: Task, plan: Plan) -> Record:
    """Label ten rows at a time, and score the predictions of the rows that are judged."""
    sample = sample_of(task.data, plan.seed)
    judged, others = split_of(sample, task.split, plan.seed)
    if task.method == STOP:
        return stop_record(sample, np.concatenate([others, judged]))
    record: Record = {name: {} for name in (OF_CLASSES if sample.is_class else OF_NUMBERS)}
    labeled, others = others[:START], others[START:]
    for count in (START, *COUNTS):
        model = sample.fitted(labeled)
        for name, value in scores_of(model, sample, judged, labeled).items():
            record[name][str(count)] = value
        if count < COUNTS[-1]:
            chosen = STRATEGIES[task.method](State(sample, model, labeled, others))
            labeled, others = np.concatenate([labeled, chosen]), others[~np.isin(others, chosen)]
    return record


def scores_of(model: Any, sample: Sample, judged: Places, labeled: Places) -> dict[str, float]:
    """Return the scores of predictions at the rows that are judged; a class without a label has probability zero."""
    rows, truth = sample.rows[judged], sample.y[judged]
    if sample.is_class:
        proba = all_classes(model.predict_proba(rows), sample.y[labeled], int(sample.y.max()) + 1)
        found = score(truth, proba, sample.y[labeled])
        return {"log loss": found["log loss"], "error rate": 1 - found["accuracy"]}
    means, stds = model.predict_draws(rows)
    found = score_numbers(truth, Prediction(means, stds, model.component_weights))
    return {name: found[name] for name in OF_NUMBERS}


# Tables and pictures


def report(records: Sequence[Record]) -> dict[str, str]:
    """Return mean scores, tests of `next` against the others, the scores on each table, and how honest "N more labels" is."""
    of_classes = [record for record in records if OF_CLASSES[0] in record]
    of_numbers = [record for record in records if OF_NUMBERS[0] in record]
    stops = [record for record in records if record["method"] == STOP]
    blocks: dict[str, str] = {}
    for name, mine, scores in (("classes", of_classes, OF_CLASSES), ("numbers", of_numbers, OF_NUMBERS)):
        if mine:
            for one in scores:
                blocks[f"next {name}, {one}"] = means_table(mine, one)
                blocks[f"next {name}, tests by {one}"] = ahead_table(mine, one)
            blocks[f"next {name}, tables"] = per_table(mine, scores[0], TESTED[1])
    if stops:
        blocks["next when to stop"] = stop_table(stops)
    return {
        **blocks,
        "next figure": picture(NEXT, "Error rate and log loss over the tables against the number of labels, by ways to choose them"),
    }


def means_table(records: Sequence[Record], name: str) -> str:
    """Return the mean over tables: ways to choose in rows, numbers of labels in columns."""
    means = [TableMeans(records, name, count) for count in (START, *COUNTS)]
    rows = [[method, *(f"{mean.of(method).mean():.3f}" for mean in means)] for method in means[0].methods]
    return table([f"{name}, {len(means[0].data)} tables", *(f"{count} labels" for count in (START, *COUNTS))], rows)


def ahead_table(records: Sequence[Record], name: str) -> str:
    """Return tests over tables whether `next` is ahead of, or behind, each other way, corrected over the three numbers of labels."""
    means = {count: TableMeans(records, name, count) for count in TESTED}
    rows = []
    for method in means[TESTED[0]].methods:
        if method != NEXT:
            ahead = corrected({str(count): signed_rank_test(mean.of(NEXT), mean.of(method)) for count, mean in means.items()})
            behind = corrected({str(count): signed_rank_test(mean.of(method), mean.of(NEXT)) for count, mean in means.items()})
            rows.append([f"against {method}", *(_cell(ahead[str(count)], behind[str(count)]) for count in TESTED)])
    return table([f"{NEXT}, {name}", *(f"{count} labels" for count in TESTED)], rows)


def _cell(ahead: Versus, behind: Versus) -> str:
    won = f"better on {ahead.won} of {ahead.n_tables}"
    if ahead.n_tables < LEAST_TABLES:
        return won
    p_value = "< 0.001" if ahead.p_value < 0.001 else f"= {ahead.p_value:.3f}"
    return f"{won}, p {p_value} (behind: {behind.p_value:.2f})"


def per_table(records: Sequence[Record], name: str, count: int) -> str:
    """Return a score on each table, averaged over splits: tables in rows, ways to choose in columns."""
    means = TableMeans(records, name, count)
    rows = [[data, *(f"{means.of(method)[place]:.3f}" for method in means.methods)] for place, data in enumerate(means.data)]
    return table([f"{name}, {count} labels", *means.methods], rows)


def draw(records: Sequence[Record], _plan: Plan, folder: Path) -> list[Path]:
    """Draw the means over all tables against the number of labels."""
    of_classes = [record for record in records if OF_CLASSES[0] in record]
    of_numbers = [record for record in records if OF_NUMBERS[0] in record]
    panels = {f"{name}, classes": mean_lines(of_classes, name, COUNTS) for name in OF_CLASSES if of_classes}
    panels |= {f"{name}, numbers": mean_lines(of_numbers, name, COUNTS) for name in OF_NUMBERS if of_numbers}
    return save({NEXT: plot_lines(panels, xlabel="labels", ylabel="mean over tables")[0]}, folder)
