"""The results as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

METHOD = """\
Written by `python -m benchmarks`; all numbers are from one run. Every timed fit runs in a fresh process. Imports, the
generation of the data and a tiny fit, which loads what is loaded lazily, come before the clock starts. Times are wall-clock
medians of three runs, in which the candidates take turns, unless said otherwise. Both sides have the machine's default number
of threads."""


class Finding(NamedTuple):
    """One target and what was measured."""

    asked: str
    measured: str
    met: bool

    @property
    def verdict(self) -> str:
        """Say it in a word."""
        return "met" if self.met else "**not met**"


class Comparison(NamedTuple):
    """Everything to be said about one comparison."""

    title: str
    setting: str
    """What was compared, and why that is fair."""
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    findings: list[Finding]


def render(preamble: Sequence[str], comparisons: Sequence[Comparison]) -> str:
    """Write the whole report: a summary of targets, then each comparison."""
    summary = [
        (comparison.title, finding.asked, finding.measured, finding.verdict)
        for comparison in comparisons
        for finding in comparison.findings
    ]
    parts = [
        "# Benchmarks",
        METHOD,
        "\n".join(f"- {line}" for line in preamble),
        _table(("comparison", "asked", "measured", ""), summary),
        *(_section(comparison) for comparison in comparisons),
    ]
    return "\n\n".join(parts) + "\n"


def _section(comparison: Comparison) -> str:
    findings = "\n".join(f"- Asked: {finding.asked}. Measured: {finding.measured}: {finding.verdict}." for finding in comparison.findings)
    table = _table(comparison.header, comparison.rows)
    return f"## {comparison.title}\n\n{comparison.setting}\n\n{table}\n\n{findings}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a Markdown table whose columns line up as plain text too."""
    widths = [max(3, *(len(row[i]) for row in [header, *rows])) for i in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines)
