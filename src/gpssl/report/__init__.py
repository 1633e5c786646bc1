"""One HTML file about an embedding and its predictions, to send to a colleague: no server, no network, no library.

`render(content)` turns a `ReportContent`, plain numbers and texts, into the text of the file.
"""

from ._content import (
    Chart,
    ClassColoring,
    Fact,
    HoverColumn,
    NamedCurve,
    NumberColoring,
    Points,
    Predictions,
    Promise,
    ReportContent,
    RiskTable,
    Spectrum,
)
from ._page import render

__all__ = [
    "Chart",
    "ClassColoring",
    "Fact",
    "HoverColumn",
    "NamedCurve",
    "NumberColoring",
    "Points",
    "Predictions",
    "Promise",
    "ReportContent",
    "RiskTable",
    "Spectrum",
    "render",
]
