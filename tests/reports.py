"""Contents of reports for tests: small, complete, and hostile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpssl.report import (
    Chart,
    ClassColoring,
    Fact,
    HoverColumn,
    NamedCurve,
    NumberColoring,
    Points,
    Predictions,
    ReportContent,
    RiskTable,
    SpectrumChart,
    Thresholds,
)

N_ROWS = 60
N_LABELED = 10
TARGETS = np.array([0.01, 0.05, 0.2])
SCRIPT = "<script>alert(1)</script>"
IMAGE = '"><img src=x onerror=alert(2)>'
CLOSING = "</script><!-- & \u2028"


def embedding(n_rows: int = N_ROWS) -> ReportContent:
    """Points, two colorings and nothing else; rows lie on a circle, so that each can be pointed at."""
    angle = 2 * np.pi * np.arange(n_rows) / n_rows
    return ReportContent(
        title="Flowers",
        points=Points(x=3 * np.cos(angle), y=np.sin(angle), axes="t-SNE of the posterior mean"),
        hover=[HoverColumn("petal", [f"petal of {row}" for row in range(n_rows)])],
        colorings=[
            ClassColoring("Species", np.arange(n_rows) % 4 - 1, ["setosa", "virginica", "other"], "As a botanist saw them."),
            NumberColoring("Height", np.where(np.arange(n_rows) % 5 == 0, np.nan, angle), "cm"),
        ],
    )


def predicted(n_rows: int = N_ROWS) -> ReportContent:
    """With all parts. Row k has certainty (k + 1)/n; the first ten have a label. Thresholds keep 10, 30 and 50 rows of sixty."""
    certainty = (np.arange(n_rows) + 1) / n_rows
    average = Thresholds("on average", np.array([51, 31, 11]) / N_ROWS, np.array([0.2, 0.6, 1.0]), 0.9 * TARGETS, "Holds on average.")
    late = np.array([np.inf, 51 / N_ROWS, 31 / N_ROWS])
    sure = Thresholds("with 95 % confidence", late, np.array([0.0, 0.2, 0.6]), np.array([np.nan, 0.01, 0.05]))
    coverage = np.linspace(0.1, 1, 10)
    curves = [NamedCurve("GPSSL-full", coverage, coverage / 10), NamedCurve("raw columns", coverage, coverage / 5)]
    return replace(
        embedding(n_rows),
        subtitle="flowers.csv, 60 rows",
        summary=["Ten rows had a label."],
        predictions=Predictions(
            target="species",
            predicted=["setosa" if row % 2 else "virginica" for row in range(n_rows)],
            certainty=certainty,
            std=np.full(n_rows, 0.03),
            labeled=np.arange(n_rows) < N_LABELED,
        ),
        controls=RiskTable(targets=TARGETS, promises=[average, sure], start=1),
        risk_coverage=Chart(curves, "share of rows kept", "error rate among them"),
        reliability=Chart([NamedCurve("GPSSL-full", coverage, coverage**2, np.arange(1, 11))], "probability", "share that is right"),
        uncertain=7,
        spectrum=SpectrumChart(0.5 ** np.arange(12)),
        facts=[Fact("Temperature", "0.01", "Draws agree.")],
    )


def hostile() -> ReportContent:
    """Markup, formulas and quotes wherever a user's text can be; row 10, the first in the table, has most of them."""
    content = predicted()
    assert content.predictions is not None
    cells = [SCRIPT] * 11 + [IMAGE] * (N_ROWS - 11)
    formulas = ["=1+1", "-5.5", '@a "b", c', "+1e3", "-cmd", "two\nlines", CLOSING]
    return replace(
        content,
        title=f"Report {SCRIPT}",
        subtitle=IMAGE,
        summary=[CLOSING + SCRIPT],
        points=replace(content.points, axes=IMAGE, rows=[f"{IMAGE}{row}" for row in range(N_ROWS)]),
        hover=[HoverColumn(SCRIPT, cells), HoverColumn("formula", ["0"] * 10 + formulas + ["0"] * 43)],
        colorings=[ClassColoring(IMAGE, np.zeros(N_ROWS, dtype=int), [SCRIPT], SCRIPT)],
        predictions=replace(content.predictions, target=SCRIPT, predicted=[IMAGE] * N_ROWS),
        facts=[Fact(SCRIPT, IMAGE, CLOSING)],
        glossary=[(SCRIPT, IMAGE)],
        risk_coverage=Chart([NamedCurve(SCRIPT, TARGETS, TARGETS)], IMAGE, SCRIPT, explanation=SCRIPT),
    )


def many(n_rows: int) -> ReportContent:
    """As many rows as asked, all parts."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, n_rows))
    return replace(predicted(n_rows), points=Points(x=x, y=y, axes="a cloud"))
