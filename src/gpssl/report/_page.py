"""Turn the content of a report into the text of one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from importlib.resources import files
from string import Template

import numpy as np

from ._content import Chart, Points, ReportContent
from ._encoding import as_script_data
from ._words import INTERVALS, RELIABILITY, RISK_COVERAGE, SPECTRUM, glossary_of

SCRIPTS = ("data.js", "scatter.js", "pointer.js", "charts.js", "decisions.js", "table.js", "legend.js", "page.js")
"""The scripts, which share one scope, in this order."""
LONGEST_BOLD = 60
"""Longest text that is set in bold, in characters: a list of columns is not a headline."""


def render(content: ReportContent) -> str:
    """Return the text of the file, to be written as UTF-8. The same content gives the same text."""
    style, script = _resource("page.css"), _script()
    page = _without_absent_parts(_resource("page.html"), _present_parts(content))
    fields = {
        "style": style,
        "style_hash": _content_hash(style),
        "script": script,
        "script_hash": _content_hash(script),
        "data": as_script_data(content),
        **_texts(content),
    }
    return Template(page).substitute(fields)


def _script() -> str:
    return "\n(() => {\n'use strict';\n" + "\n".join(_resource(name) for name in SCRIPTS) + "\n})();\n"


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _content_hash(text: str) -> str:
    """Return the hash by which the page's security policy knows its own style and script, and refuses every other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _present_parts(content: ReportContent) -> dict[str, bool]:
    has_predictions, has_controls = content.predictions is not None, content.controls is not None
    curves = {"risk_coverage": content.risk_coverage is not None, "reliability": content.reliability is not None}
    learned = {"spectrum": content.spectrum is not None and bool(np.any(content.spectrum.eigenvalues > 0)), "facts": len(content.facts) > 0}
    return {
        "summary": len(content.summary) > 0,
        "controls": has_controls,
        "colorings": has_predictions or len(content.colorings) > 0,
        "charts": has_predictions or any(curves.values()),
        "predictions": has_predictions,
        "slider_words": has_controls,
        **curves,
        "uncertain": has_predictions and content.uncertain > 0,
        "download_abstained": has_controls,
        "learned": any(learned.values()),
        **learned,
        "glossary": True,
    }


def _without_absent_parts(page: str, present: dict[str, bool]) -> str:
    """Remove absent parts, which stand between the marks `part NAME` and `end of NAME`."""
    for name, is_present in present.items():
        pattern = rf"<!-- part {name} -->(.*?)<!-- end of {name} -->"
        page = re.sub(pattern, (lambda match: match[1]) if is_present else "", page, flags=re.DOTALL)
    return page


def _texts(content: ReportContent) -> dict[str, str]:
    """Return what stands on the page, as HTML."""
    predictions, controls = content.predictions, content.controls
    is_probability = predictions is None or predictions.is_probability
    all_labeled = predictions is not None and bool(np.all(predictions.labeled))
    return {
        "title": escaped(content.title),
        "subtitle": escaped(content.subtitle),
        "summary": "".join(f"<li>{escaped(sentence)}</li>" for sentence in content.summary),
        "plane": escaped(_plane(content.points)),
        "sample": _sample_words(content),
        "risk_name": escaped("error rate" if controls is None else controls.risk_name),
        "unlabeled": "" if all_labeled else "without a label",
        "certainty_name": "probability of the predicted class" if is_probability else "standard deviation",
        "risk_coverage_explanation": _chart_words(content.risk_coverage, RISK_COVERAGE),
        "reliability_heading": "Can the probabilities be believed?" if is_probability else "Can the intervals be believed?",
        "reliability_explanation": _chart_words(content.reliability, RELIABILITY if is_probability else INTERVALS),
        "spectrum_explanation": escaped((content.spectrum and content.spectrum.explanation) or SPECTRUM),
        "facts": "".join(_fact(*fact) for fact in content.facts),
        "glossary": "".join(f"<div><dt>{escaped(word)}</dt><dd>{escaped(meaning)}</dd></div>" for word, meaning in glossary_of(content)),
    }


def _plane(points: Points) -> str:
    """Say what the plane is, and what it means that points lie together."""
    if points.equal_aspect:
        return f"Each point is a row. The plane is: {points.axes}."
    return f"Each point is a row; points that lie together are alike. The plane is: {points.axes}."


def escaped(text: str) -> str:
    """Return the text as HTML; half characters, which UTF-8 cannot write, become question marks."""
    return html.escape(text.encode("utf-8", "replace").decode("utf-8"))


def _sample_words(content: ReportContent) -> str:
    total = content.points.sampled_from
    return "" if total is None else f" Shown are {len(content.points.x):,} of {total:,} rows."


def _chart_words(chart: Chart | None, otherwise: str) -> str:
    return escaped((chart and chart.explanation) or otherwise)


def _fact(name: str, value: str, explanation: str) -> str:
    shown = f"<strong>{escaped(value)}</strong>" if len(value) <= LONGEST_BOLD else f'<span class="long">{escaped(value)}</span>'
    return f"<div><dt>{escaped(name)}</dt><dd>{shown}<p>{escaped(explanation)}</p></dd></div>"
