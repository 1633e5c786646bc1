"""Methods compared over many tables: average ranks and signed-rank tests, from the finished tasks alone.

A method's score on a table is its mean over splits. Smaller scores are better unless it says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import wilcoxon

from gpssl.evaluation import Estimate, average_ranks, holm

from .figures import Line, picture, plot_lines, save
from .ledger import Record
from .tables import table

Array = NDArray[np.float64]

POOL = "pool"
"""The method that the others are tested against, where it was run."""


def is_ablation(method: str) -> bool:
    """Return whether a method is the pool with a part changed: such are shown beside the others, and neither ranked nor tested."""
    return method.startswith((f"{POOL} ", f"{POOL},"))


LEAST_TABLES = 5
"""With fewer tables, the one-sided signed-rank test cannot be significant."""


class Layout(NamedTuple):
    """What the tables of an experiment show."""

    name: str
    counts: Sequence[int]
    """Numbers of labels or targets."""
    unit: str
    """What is counted: labels or targets."""
    scores: Sequence[str]
    by_rank: Sequence[str]
    """Scores that methods are ranked by; the first is the one that is tested and drawn."""

    def blocks(self, records: Sequence[Record]) -> dict[str, str]:
        """Return mean scores and ranks, tests, the main score on each table, and the picture, in Markdown by name."""
        methods = dict.fromkeys(record["method"] for record in records)
        ablated = [record for record in records if is_ablation(record["method"]) or record["method"] == POOL]
        records = [record for record in records if not is_ablation(record["method"])]
        ranked = [method for method in methods if not is_ablation(method)]
        found = {f"{self.name} {count}": overall_table(records, self, count, ranked) for count in self.counts}
        if any(map(is_ablation, methods)):
            found |= {f"{self.name} ablations {count}": overall_table(ablated, self, count, ()) for count in self.counts}
        found[f"{self.name} tests"] = (
            comparisons_table(records, self, ranked) if POOL in ranked else f"Without the {POOL}, nothing is tested."
        )
        found |= {f"{self.name} tables {count}": per_table(records, self, count) for count in self.counts}
        text = f"Mean {self.by_rank[0]} over the tables against the number of {self.unit}"
        return {**found, f"{self.name} figure": picture(self.name, text)}

    def draw(self, records: Sequence[Record], folder: Path) -> list[Path]:
        """Draw the mean of the main score over tables against the number of labels or targets.

        Ablations, and methods that are far behind all others, are left to the tables: they would press the other lines together.
        """
        ranked = [record for record in records if not is_ablation(record["method"])]
        lines = {"mean over tables": _near_the_best(mean_lines(ranked, self.by_rank[0], self.counts))}
        return save({self.name: plot_lines(lines, xlabel=self.unit, ylabel=self.by_rank[0])[0]}, folder)


def _near_the_best(lines: Sequence[Line]) -> list[Line]:
    """Return the lines whose largest value is within half of the smallest such value of all, or of one."""
    largest = {line.name: max(point.mean for point in line.y) for line in lines}
    limit = min(largest.values()) + max(0.5 * abs(min(largest.values())), 0.5)
    return [line for line in lines if largest[line.name] <= limit]


class TableMeans:
    """The mean over splits of one score at one number of labels: for each method, on each table that all methods have finished."""

    def __init__(self, records: Iterable[Record], score: str, count: int) -> None:
        values: dict[str, dict[str, dict[int, float]]] = {}
        for record in records:
            if str(count) in record[score]:
                values.setdefault(record["method"], {}).setdefault(record["data"], {})[record["split"]] = record[score][str(count)]
        self.methods = list(values)
        names = dict.fromkeys(data for mine in values.values() for data in mine)
        splits = {data: set.intersection(*(set(mine.get(data, {})) for mine in values.values())) for data in names}
        self.data = [data for data in names if splits[data]]
        self._means = {
            method: np.array([np.mean([mine[data][split] for split in sorted(splits[data])]) for data in self.data])
            for method, mine in values.items()
        }

    def of(self, method: str) -> Array:
        """Return the mean on each table. [tables]"""
        return self._means[method]


class Versus(NamedTuple):
    """One method against another, over tables."""

    won: int
    """Tables on which the first method is better."""
    n_tables: int
    p_value: float
    """One-sided: how likely so clear a win would be if none of the two were better."""


def signed_rank_test(first: Array, second: Array) -> Versus:
    """Test by Wilcoxon's signed ranks whether the first scores are smaller than the second, table by table [tables].

    It is exact where no two differences are equal in size and none is zero, else by the normal approximation.
    """
    difference = (first - second).round(12)
    won = int((difference < 0).sum())
    if not difference.any():
        return Versus(won, len(difference), 1.0)
    distinct = len(np.unique(np.abs(difference))) == len(difference) and difference.all()
    result = wilcoxon(difference, alternative="less", zero_method="pratt", method="exact" if distinct else "approx")
    return Versus(won, len(difference), float(result.pvalue))


def corrected(tests: Mapping[str, Versus]) -> dict[str, Versus]:
    """Return the tests with p-values corrected by Holm."""
    p_values = holm([test.p_value for test in tests.values()])
    return {name: test._replace(p_value=p) for (name, test), p in zip(tests.items(), p_values, strict=True)}


def compare_with(means: TableMeans, reference: str, others: Sequence[str]) -> dict[str, Versus]:
    """Return the corrected tests of a method against each of the others."""
    return corrected({method: signed_rank_test(means.of(reference), means.of(method)) for method in others})


def comparisons_table(records: Sequence[Record], layout: Layout, ranked: Sequence[str]) -> str:
    """Return the tests of the pool against each other method that is ranked: methods in rows, numbers of labels in columns."""
    others = [method for method in ranked if method != POOL]
    tests = [compare_with(TableMeans(records, layout.by_rank[0], count), POOL, others) for count in layout.counts]
    rows = [[f"against {method}", *(_cell(mine[method]) for mine in tests)] for method in others]
    return table([f"{POOL}, {layout.by_rank[0]}", *(f"{count} {layout.unit}" for count in layout.counts)], rows)


def _cell(test: Versus) -> str:
    won = f"better on {test.won} of {test.n_tables}"
    if test.n_tables < LEAST_TABLES:
        return won
    return f"{won}, p {'< 0.001' if test.p_value < 0.001 else f'= {test.p_value:.3f}'}"


def ranks_of(means: TableMeans, ranked: Sequence[str]) -> dict[str, float]:
    """Return the average rank over tables of each method that is ranked; equal scores share their ranks."""
    return average_ranks({method: means.of(method) for method in ranked}, higher_is_better=False)


def overall_table(records: Sequence[Record], layout: Layout, count: int, ranked: Sequence[str]) -> str:
    """Return mean scores over tables and, if methods are ranked, average ranks: methods in rows."""
    means = {score: TableMeans(records, score, count) for score in layout.scores}
    ranks = {score: ranks_of(means[score], ranked) for score in layout.by_rank} if ranked else {}
    rows = []
    for method in means[layout.scores[0]].methods:
        mine = [f"{means[score].of(method).mean():.3f}" for score in layout.scores]
        rows.append([method, *mine, *(f"{found[method]:.1f}" for found in ranks.values())])
    return table([f"{count} {layout.unit}", *layout.scores, *(f"rank in {score}" for score in ranks)], rows)


def per_table(records: Sequence[Record], layout: Layout, count: int) -> str:
    """Return the main score on each table, averaged over splits: tables in rows, methods in columns."""
    means = TableMeans(records, layout.by_rank[0], count)
    rows = [[data, *(f"{means.of(method)[place]:.3f}" for method in means.methods)] for place, data in enumerate(means.data)]
    return table([f"{layout.by_rank[0]}, {count} {layout.unit}", *means.methods], rows)


def mean_lines(records: Sequence[Record], score: str, counts: Sequence[int]) -> list[Line]:
    """Return a line for each method: the mean over tables against the number of labels.

    There is no standard error: how tables differ from each other is common to all methods, and says nothing about them.
    """
    means = [TableMeans(records, score, count) for count in counts]
    return [Line(method, counts, [Estimate(float(mean.of(method).mean()), np.nan) for mean in means]) for method in means[0].methods]
