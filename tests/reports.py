"""Contents of reports for tests: small, complete, and hostile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gpssl.report import (
    Chart,
    ClassColoring,
    ClassErrors,
    ColumnBar,
    Compared,
    Fact,
    HoverColumn,
    NamedCurve,
    NumberColoring,
    Points,
    Predictions,
    ReportContent,
    RiskTable,
    SpectrumChart,
    Suspicion,
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
        warnings=["The labels are not like the other rows."],
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
        by_class=[ClassErrors("setosa", 6, 1, 0.01, 0.6, 25), ClassErrors("virginica", 4, 0, 0.0, 0.5, 25)],
        compared=[Compared("a forest", "better", "This model is better than a forest."), Compared("a tree", "undecided", "Nobody knows.")],
        importance=[ColumnBar("petal", 0.4, "80 %"), ColumnBar("noise", -0.1)],
        suspicious=[Suspicion("4", "setosa", "virginica", 0.97)],
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
        warnings=[SCRIPT],
        summary=[CLOSING + SCRIPT],
        by_class=[ClassErrors(SCRIPT, 6, 1, 0.01, 0.6, 25)],
        compared=[Compared(SCRIPT, IMAGE, SCRIPT)],
        importance=[ColumnBar(SCRIPT, 0.4, IMAGE)],
        suspicious=[Suspicion(IMAGE, SCRIPT, CLOSING, 0.97)],
        points=replace(content.points, axes=IMAGE, rows=[f"{IMAGE}{row}" for row in range(N_ROWS)]),
        hover=[HoverColumn(SCRIPT, cells), HoverColumn("formula", ["0"] * 10 + formulas + ["0"] * 43)],
        colorings=[ClassColoring(IMAGE, np.zeros(N_ROWS, dtype=int), [SCRIPT], SCRIPT)],
        predictions=replace(content.predictions, target=SCRIPT, predicted=[IMAGE] * N_ROWS),
        facts=[Fact(SCRIPT, IMAGE, CLOSING)],
        glossary=[(SCRIPT, IMAGE)],
        risk_coverage=Chart([NamedCurve(SCRIPT, TARGETS, TARGETS)], IMAGE, SCRIPT, explanation=SCRIPT),
    )


def sampled() -> ReportContent:
    """A page that shows sixty rows of a table of a thousand, of which all are counted; the last target is no limit."""
    content = predicted()
    targets = np.array([0.05, np.inf])
    sure = Thresholds("with 95 % confidence", np.array([51 / N_ROWS, -np.inf]), np.array([0.2, 1.0]), np.array([0.01, 0.1]), "A promise.")
    average = Thresholds("on average", np.array([31 / N_ROWS, -np.inf]), np.array([0.6, 1.0]), np.array([0.04, 0.1]), is_promise=False)
    counted = [replace(one, n_kept=np.array([n, 990])) for one, n in ((sure, 123), (average, 456))]
    controls = RiskTable(targets=targets, promises=counted, n_decided=990)
    return replace(content, points=replace(content.points, sampled_from=1000), controls=controls)


def many(n_rows: int) -> ReportContent:
    """As many rows as asked, all parts."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, n_rows))
    return replace(predicted(n_rows), points=Points(x=x, y=y, axes="a cloud"))
