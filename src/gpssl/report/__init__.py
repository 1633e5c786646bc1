"""One HTML file about a representation and its predictions, to send to a colleague: no server, no network, no library.

`make_report` makes it from a model and a table. `render` turns a `ReportContent` of your own, plain numbers and texts, into the text of
the file. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._runtime.lazy import lazy_names

if TYPE_CHECKING:
    from ._content import Chart as Chart
    from ._content import ClassColoring as ClassColoring
    from ._content import Fact as Fact
    from ._content import HoverColumn as HoverColumn
    from ._content import NamedCurve as NamedCurve
    from ._content import NumberColoring as NumberColoring
    from ._content import Points as Points
    from ._content import Predictions as Predictions
    from ._content import Promise as Promise
    from ._content import ReportContent as ReportContent
    from ._content import RiskTable as RiskTable
    from ._content import SpectrumChart as SpectrumChart
    from ._making import Report as Report
    from ._making import make_report as make_report
    from ._page import render as render

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
    "Report",
    "ReportContent",
    "RiskTable",
    "SpectrumChart",
    "make_report",
    "render",
]

_CONTENT = [name for name in __all__ if name not in ("Report", "make_report", "render")]
_HOMES = {**dict.fromkeys(_CONTENT, "_content"), "Report": "_making", "make_report": "_making", "render": "_page"}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
