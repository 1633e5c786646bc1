"""One HTML file about a representation and its predictions, to send to a colleague: no server, no network, no library.

`make_report` makes it from a model and a table. `render` turns a `ReportContent` of your own, plain numbers and texts, into the text of
the file. `annotate` makes another page, in which a person labels rows. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._runtime import lazy_names

if TYPE_CHECKING:
    from ._annotating import Annotation, annotate
    from ._content import (
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
    from ._making import Report, make_report
    from ._page import render

__all__ = [
    "Annotation",
    "Chart",
    "ClassColoring",
    "ClassErrors",
    "ColumnBar",
    "Compared",
    "Fact",
    "HoverColumn",
    "NamedCurve",
    "NumberColoring",
    "Points",
    "Predictions",
    "Report",
    "ReportContent",
    "RiskTable",
    "SpectrumChart",
    "Suspicion",
    "Thresholds",
    "annotate",
    "make_report",
    "render",
]

__getattr__, __dir__ = lazy_names(__name__, __file__)
