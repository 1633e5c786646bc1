"""Markdown: tables, and documents whose numbers are filled in by a command."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpssl.evaluation import HIGHER_IS_BETTER, Estimate, average_ranks, holm, paired_p_value

from .ledger import Record

Array = NDArray[np.float64]

SIGNIFICANT = 0.05
LEAST_SPLITS = 6
"""With fewer splits, the signed-rank test cannot be significant."""

REFERENCE = "GPSSL-full"
"""The method that the others are tested against."""


class Scores:
    """The scores of all methods on all data sets, by split: only splits that every method has finished, so that all pairs are complete."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.data = list(dict.fromkeys(record["data"] for record in records))
        self.methods = list(dict.fromkeys(record["method"] for record in records))
        self.names = list(records[0]["scores"])
        self._values: dict[tuple[str, str], dict[int, Mapping[str, float]]] = {}
        for record in records:
            self._values.setdefault((record["data"], record["method"]), {})[record["split"]] = record["scores"]

    def splits(self, data: str) -> list[int]:
        """Return the splits that all methods have."""
        finished = [set(self._values.get((data, method), {})) for method in self.methods]
        return sorted(set.intersection(*finished))

    def of(self, data: str, method: str, score: str) -> Array:
        """Return one value for each split. [splits]"""
        values = self._values[data, method]
        return np.array([values[split][score] for split in self.splits(data)])

    def estimate(self, data: str, method: str, score: str) -> Estimate:
        """Return mean and standard error over splits."""
        return Estimate.of(self.of(data, method, score))


def scores_table(scores: Scores, data: str, published: Mapping[tuple[str, str, str], float], digits: int = 3) -> str:
    """Return a table with methods in rows and scores in columns; the paper's numbers in brackets, the best mean of a column bold."""
    rows = []
    best = {name: _best(scores, data, name) for name in scores.names}
    for method in scores.methods:
        row = [method]
        for name in scores.names:
            cell = scores.estimate(data, method, name).text(digits)
            cell = f"**{cell}**" if method == best[name] else cell
            known = published.get((data, method, name))
            row.append(cell if known is None else f"{cell} ({known:.{digits}f})")
        rows.append(row)
    return table(["", *scores.names], rows)


def _best(scores: Scores, data: str, name: str) -> str | None:
    """Return the method with the best mean; none for scores that have a target and no direction, such as the coverage of intervals."""
    if name not in HIGHER_IS_BETTER:
        return None
    sign = 1 if HIGHER_IS_BETTER[name] else -1
    return max(scores.methods, key=lambda method: sign * scores.estimate(data, method, name).mean)


def paired_tests_table(scores: Scores, name: str, digits: Mapping[str, int] | None = None) -> str:
    """Return mean differences of GPSSL-full to each other method with p-values of the paired test, corrected over the methods.

    Significant ones are bold and say whether GPSSL-full is the better one. Digits may differ between data sets.
    """
    others = [method for method in scores.methods if method != REFERENCE]
    columns = []
    for data in scores.data:
        reference = scores.of(data, REFERENCE, name)
        differences = [reference - scores.of(data, method, name) for method in others]
        p_values = holm([paired_p_value(difference, np.zeros_like(difference)) for difference in differences])
        n_digits = 3 if digits is None else digits[data]
        columns.append([_difference(values, p, name, n_digits) for values, p in zip(differences, p_values, strict=True)])
    rows = [[f"against {method}", *cells] for method, *cells in zip(others, *columns, strict=True)]
    return table([f"{REFERENCE}, {name}", *scores.data], rows)


def _difference(values: Array, p_value: float, name: str, digits: int) -> str:
    """Return a cell: with few splits no difference could be significant, and there is no test."""
    mean = float(values.mean())
    if len(values) < LEAST_SPLITS:
        return f"{mean:+.{digits}f}"
    cell = f"{mean:+.{digits}f}, p {'< 0.001' if p_value < 0.001 else f'= {p_value:.3f}'}"
    verdict = "better" if (mean > 0) == HIGHER_IS_BETTER[name] else "worse"
    return f"**{cell}, {verdict}**" if p_value < SIGNIFICANT else cell


def ranks_table(scores: Scores) -> str:
    """Return the average rank of each method over all splits of all data sets, for each score that has a direction. 1 is the best."""
    names = [name for name in scores.names if name in HIGHER_IS_BETTER]
    ranks = {}
    for name in names:
        values = {method: np.concatenate([scores.of(data, method, name) for data in scores.data]) for method in scores.methods}
        ranks[name] = average_ranks(values, higher_is_better=HIGHER_IS_BETTER[name])
    rows = [[method, *(f"{ranks[name][method]:.1f}" for name in names)] for method in scores.methods]
    return table(["average rank", *names], rows)


def criteria_table(scores: Scores, others: Scores) -> str:
    """Return accuracy and log loss where settings are chosen by accuracy, and where they are chosen by likelihood."""
    methods = [method for method in scores.methods if any(_differ(scores, others, data, method) for data in scores.data)]
    rows = []
    for data in scores.data:
        for method in methods:
            estimates = [source.estimate(data, method, name).mean for name in ("accuracy", "log loss") for source in (scores, others)]
            rows.append([data, method, *(f"{value:.3f}" for value in estimates)])
    header = [f"{name}, by {criterion}" for name in ("accuracy", "log loss") for criterion in ("accuracy", "likelihood")]
    return table(["data", "method", *header], rows)


def _differ(scores: Scores, others: Scores, data: str, method: str) -> bool:
    return not np.array_equal(scores.of(data, method, "log loss"), others.of(data, method, "log loss"))


def settings_table(records: Sequence[Record], names: Sequence[str]) -> str:
    """Return how often each value of a setting was chosen."""
    rows = []
    for data, method in dict.fromkeys((record["data"], record["method"]) for record in records):
        chosen = [record["settings"] for record in records if (record["data"], record["method"]) == (data, method)]
        counts = [Counter(settings[name] for settings in chosen if name in settings) for name in names]
        if any(counts):
            rows.append([data, method, *(_counts(count) for count in counts)])
    return table(["data", "method", *names], rows)


def _counts(count: Counter[Any]) -> str:
    """Return values and counts: words first, then numbers by their size."""
    values = sorted(count, key=lambda value: (not isinstance(value, str), value))
    return ", ".join(f"{value}: {count[value]}" for value in values)


def verdicts_table(scores: Scores, published: Mapping[tuple[str, str, str], float], names: Sequence[str]) -> str:
    """Return our GPSSL-full beside the paper's, and whether ours is at least as good, within two standard errors, or worse.

    The paper's numbers are those of one split; how much one split differs from another is the standard deviation.
    """
    rows = []
    for data in scores.data:
        for name in names:
            known = published.get((data, REFERENCE, name))
            if known is not None:
                estimate = scores.estimate(data, REFERENCE, name)
                values = scores.of(data, REFERENCE, name)
                reached = (values >= known if HIGHER_IS_BETTER[name] else values <= known).sum()
                spread = f"{values.std(ddof=1):.3f}" if len(values) > 1 else ""
                cells = [estimate.text(), spread, f"{known:.3f}", _verdict(name, estimate, known)]
                rows.append([data, name, *cells, f"{reached} of {len(values)}"])
    return table(["data", "score", "ours", "standard deviation of one split", "paper", "ours is", "splits that reach it"], rows)


def _verdict(name: str, estimate: Estimate, known: float) -> str:
    gain = estimate.mean - known if HIGHER_IS_BETTER[name] else known - estimate.mean
    if gain >= 0:
        return "at least as good"
    return "within two standard errors" if gain >= -2 * estimate.error else "worse"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with its columns aligned, so that it can be read in a terminal too."""
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def marks(document: str) -> list[str]:
    """Return the names of the blocks of a document."""
    return re.findall(r"<!-- end of (.*?) -->", document)


def fill(document: str, blocks: Mapping[str, str]) -> str:
    """Put each block between its marks, <!-- NAME --> and <!-- end of NAME -->, or at the end; all else stays as it is."""
    for name, block in blocks.items():
        marks = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end of {re.escape(name)} -->)", flags=re.DOTALL)
        if marks.search(document):
            document = marks.sub(lambda found, text=block: f"{found[1]}{text}\n{found[2]}", document)  # type: ignore[misc]
        else:
            document = f"{document.rstrip()}\n\n<!-- {name} -->\n{block}\n<!-- end of {name} -->\n"
    return document
