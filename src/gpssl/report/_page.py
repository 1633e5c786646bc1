"""From a report's content to the text of one HTML file that needs nothing else."""

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

SPECTRUM = (
    "How much of the differences between rows each learned direction carries, largest first, on a scale where each step is a factor of "
    "ten. A steep fall means that few directions tell the rows apart; a slow one that the rows differ in many ways at once."
)
RISK_COVERAGE = (
    "Keep only the most certain predictions, and they are better: how many can be kept (further right is more) at which risk (lower is "
    "better). Measured on labeled rows that the model did not see."
)
RELIABILITY = (
    "Of the rows that were given, say, 80 %, about 80 % should be right: then the line follows the diagonal. Below it the model is too "
    "sure of itself, above it too modest. Larger dots stand for more rows. Measured on labeled rows that the model did not see."
)
INTERVALS = (
    "Of intervals that should hold, say, 80 % of the true numbers, about 80 % should: then the line follows the diagonal. Below it the "
    "intervals are too narrow, above it too wide. Measured on labeled rows that the model did not see."
)

ALWAYS = [
    ("Row", "One line of your table."),
    ("Representation", "A few numbers that describe each row, learned without labels: rows that are alike get numbers that are alike."),
    ("Kernel", "The rule that says how alike two rows are."),
]
WITH_PREDICTIONS = [
    ("Label", "What is known about a row in the column to be predicted."),
    ("Standard deviation", "How far a number may well be off: the spread of the answers of models that explain the data equally well."),
    ("Abstain", "To make no prediction where the model is not sure enough, and to leave the row to a person."),
    ("Coverage", "The share of rows whose prediction is kept."),
    ("Risk", "How wrong the kept predictions are: the share of errors among them, or for numbers their typical distance from the truth."),
]
WITH_PROBABILITIES = [
    ("Probability", "How likely the predicted class is, says the model: 1 in 10 of the rows with 90 % should turn out to be wrong."),
    ("Calibrated", "Probabilities that can be taken at their word."),
]
WITH_CONTROLS = [
    ("Threshold", "The least certainty with which a prediction is kept. It is found by cross-validation."),
    ("Cross-validation", "Labels are hidden in turn and predicted from the others, to see how good predictions of new rows are."),
    (
        "On average, with 95 % confidence",
        "The first holds roughly, over many tables like yours, and may be exceeded in one of them; with few labels it is optimistic. The "
        "second is exceeded in about one of twenty, if the rows without a label are like those with one, and keeps fewer rows.",
    ),
]
WITH_SPECTRUM = [("Spectrum", "How much of the differences between rows each learned direction carries.")]


def glossary_of(content: ReportContent) -> list[tuple[str, str]]:
    """The words of the parts that are there, and those that the content adds, by the alphabet; none for an empty page."""
    entries = [*ALWAYS, *content.glossary]
    if content.predictions is not None:
        entries += WITH_PREDICTIONS + (WITH_PROBABILITIES if content.predictions.is_probability else [])
    entries += WITH_CONTROLS if content.controls is not None else []
    entries += WITH_SPECTRUM if content.spectrum is not None else []
    return sorted(dict(entries).items(), key=lambda entry: entry[0].lower())


SCRIPTS = ("data.js", "scatter.js", "pointer.js", "charts.js", "decisions.js", "table.js", "legend.js", "page.js")
"""In this order, in one scope."""
LONGEST_BOLD = 60
"""Characters; a list of columns is not a headline."""


def render(content: ReportContent) -> str:
    """The text of the file, to be written as UTF-8. The same content gives the same text."""
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
    """By this the page's security policy knows its own style and script, and refuses every other."""
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
    """Parts stand between the marks `part NAME` and `end of NAME`."""
    for name, is_present in present.items():
        pattern = rf"<!-- part {name} -->(.*?)<!-- end of {name} -->"
        page = re.sub(pattern, (lambda match: match[1]) if is_present else "", page, flags=re.DOTALL)
    return page


def _texts(content: ReportContent) -> dict[str, str]:
    """What stands on the page, as HTML."""
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
    """What it means that points lie together."""
    if points.equal_aspect:
        return f"Each point is a row. The plane is: {points.axes}."
    return f"Each point is a row; points that lie together are alike. The plane is: {points.axes}."


def escaped(text: str) -> str:
    """The text as HTML; half characters, which UTF-8 cannot write, become question marks."""
    return html.escape(text.encode("utf-8", "replace").decode("utf-8"))


def _sample_words(content: ReportContent) -> str:
    total = content.points.sampled_from
    return "" if total is None else f" Shown are {len(content.points.x):,} of {total:,} rows."


def _chart_words(chart: Chart | None, otherwise: str) -> str:
    return escaped((chart and chart.explanation) or otherwise)


def _fact(name: str, value: str, explanation: str) -> str:
    shown = f"<strong>{escaped(value)}</strong>" if len(value) <= LONGEST_BOLD else f'<span class="long">{escaped(value)}</span>'
    return f"<div><dt>{escaped(name)}</dt><dd>{shown}<p>{escaped(explanation)}</p></dd></div>"
