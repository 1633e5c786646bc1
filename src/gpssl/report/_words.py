"""Every text of the page: explanations of its parts, a glossary, and sentences about a model."""

from __future__ import annotations

from typing import Any

from ..estimator import GPSSL
from ..io._card import ModelCard
from ..kernels.neighbors import DiffusionKernel
from ..kernels.tables import ColumnKernel
from ..workflows._choices import FULL, POOL
from ..workflows._subject import Subject
from ._content import Fact, ReportContent

MOST_NAMES = 12
WELL_COVERED = 1e-2
LONGEST_TEXT = 200

# Charts

SPECTRUM = (
    "How many directions the kernel sees in the rows, and how much of their variation is along each. A few tall bars: the rows have a "
    "simple structure that a few dimensions can show. Many bars of similar height: they do not."
)
RISK_COVERAGE = (
    "Rows are kept from the most to the least certain. A model that knows what it does not know makes its errors among the last: its curve "
    "stays low and rises late. From labels that were held out in turn."
)
RELIABILITY = "Of the predictions made with a probability of 80 %, 80 % should be right: the closer to the diagonal, the better."
INTERVALS = "An interval that should hold a number with a probability of 80 % should do so for 80 % of them."

BELIEVED = (
    "The rows were looked at in several ways, without labels. Each way makes predictions, and the labels say how far to believe it: the "
    "longer its bar, the likelier they are under it. Predictions are the average with these shares."
)

BY_CLASS = (
    "Of the labels of each class, how many were predicted as another class by models that had not seen them, and between what shares the "
    "error rate of the class is with a probability of 95 %."
)
COMPARED = (
    "The same labels were hidden from other methods too. One score decides: how probable the true answer is, says the method. Each had its "
    "settings chosen by the labels beforehand, which favors them a little. gpssl compare decides with more splits."
)
IMPORTANCE = (
    "How much worse held-out predictions become when the values of a column are shuffled between rows, the share of each column in the "
    "whole, and bars in proportion to the longest. Columns that tell the same share their importance: each may seem to matter little."
)
SUSPICIOUS = (
    "These labels contradict what the other labels say about rows like theirs, with high certainty. Look at them again: each is either a "
    "mistake, or a rare case that the model has yet to learn."
)

# The slider

ON_AVERAGE = "in cross-validation: an estimate, no promise"
AVERAGE = (
    "What cross-validation gives: about as many errors, more or fewer by chance. With few labels it is optimistic: the threshold is the "
    "one that keeps most, chosen and judged by the same labels."
)
PROMISED_ON_AVERAGE = "on average over such tables"
AVERAGE_PROMISE = (
    "Over many such tables with other labels, at most this share of what is kept is wrong, if the rows without a label are like those with "
    "one; in a single table it may be more. About, since the threshold comes from models that were trained on a part of the labels each."
)
CONFIDENT = (
    "Held in about as many of 100 such tables as the confidence says, if the rows without a label are like those with one: stricter, and "
    "needs more labels. About, since the threshold comes from models that were trained on a part of the labels each."
)
AVERAGE_OF_NUMBERS = (
    "What cross-validation gives; no guarantee. With few labels it is optimistic: thresholds are chosen and judged by the same ones."
)
WITHOUT_PROMISE = (
    "The labels are not like the other rows: what cross-validation gives holds for rows like the labels, and nothing is promised."
)
NOT_ALIKE = (
    "The labels are not like the other rows: predictions for rows without a label are much less sure than those for labels that were held "
    "out. No error rate is promised. Label some of the other rows, chosen at random."
)

# Methods

THIS_MODEL = "this model"
_METHODS = {
    POOL: "many representations, weighed by the labels",
    FULL: "the paper's method: one representation, equal weights",
    "GPSSL-mean": "the mean of one representation",
    "columns": "logistic regression on the columns",
    "random forest": "a random forest on the columns",
    "kernel PCA": "kernel PCA and logistic regression",
    "label spreading": "label spreading between neighbors",
    "self-training": "logistic regression that learns from its own sure predictions",
    "GP prior": "random functions, as they are before they have learned",
    "VICReg": "VICReg, a neural network that learns from noisy copies of rows",
}
_OF_NUMBERS = {"columns": "linear regression on the columns", "kernel PCA": "kernel PCA and linear regression"}


def method_in_words(name: str, *, numeric: bool) -> str:
    """Return what a compared method is, for people who have not read the paper."""
    return (_OF_NUMBERS if numeric else {}).get(name) or _METHODS.get(name, name)


# Colorings

DECISION = "Kept or left to a person"
"""The coloring that follows the slider."""
PREDICTED_CLASS = "The likeliest class of each row."
PROBABILITY = "How likely the predicted class is, says the model."
STD_OF_PROBABILITY = "How far the probability varies between equally plausible models. Large values: more labels near here would help."
STD_OF_NUMBER = "How far the true number may well be from the predicted one: for two rows in three it should be nearer than this."
STD_OF_REPRESENTATION = "The standard deviation of the representation: 1 where the data say nothing, 0 where they say all."

# The glossary

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
    ("Certainty", "The largest probability of a row, which is that of the predicted class."),
    ("Calibrated", "Probabilities that can be taken at their word."),
]
WITH_CONTROLS = [
    ("Threshold", "The least certainty with which a prediction is kept. It is found by cross-validation."),
    ("Cross-validation", "Labels are hidden in turn and predicted from the others, to see how good predictions of new rows are."),
    (
        "On average, with 95 % confidence",
        "Two kinds of promise, if the rows without a label are like those with one. On average: over many tables like yours, at most this "
        "share of what is kept is wrong; in one of them it may be more. With 95 % confidence: it is more in about one of twenty, and fewer "
        "rows are kept. What cross-validation gives is an estimate and no promise: with few labels it is optimistic.",
    ),
]
WITH_SPECTRUM = [("Spectrum", "How much of the differences between rows each learned direction carries.")]


def glossary_of(content: ReportContent) -> list[tuple[str, str]]:
    """Return the words of the parts that are there, and those that the content adds, by the alphabet."""
    entries = [*ALWAYS, *content.glossary]
    if content.predictions is not None:
        entries += WITH_PREDICTIONS + (WITH_PROBABILITIES if content.predictions.is_probability else [])
    entries += WITH_CONTROLS if content.controls is not None else []
    entries += WITH_SPECTRUM if content.spectrum is not None else []
    return sorted(dict(entries).items(), key=lambda entry: entry[0].lower())


# Sentences about a model


def subtitle(card: ModelCard, n_rows: int) -> str:
    """Return rows, day and version."""
    return f"{n_rows:,} rows; model of {card.created[:10]}, gpssl {card.versions.get('gpssl', '')}"


def what_was_learned(ssl: GPSSL, subject: Subject) -> str:
    """Return the first sentence that a reader sees."""
    source = f"{len(subject.facts):,} columns" if subject.facts else "expression and place"
    return (
        f"gpssl learned {len(ssl.posterior_.weights.mean)} numbers for each of {subject.n_rows:,} rows from {source}, without looking at "
        "labels, and how sure it is of each."
    )


def facts_about(ssl: GPSSL, card: ModelCard, subject: Subject) -> list[Fact]:
    """Return settings and results, each with what it means."""
    verdict = (
        "Little enough to be ignored."
        if ssl.residual_ < WELL_COVERED
        else "That is much: more inducing points (max_inducing) would follow the rows better."
    )
    facts = [
        Fact("dimensions", f"{len(ssl.posterior_.weights.mean)}", "How many numbers stand for a row."),
        Fact(
            "temperature",
            f"{ssl.temperature_:.3g}",
            "How strongly the prior holds the functions back. Low: draws agree on what the data show. High: they stay diverse. One "
            "over the number of rows unless it was chosen.",
        ),
        Fact("inducing points", f"{len(ssl.inducing_points_):,}", "Rows that carry the functions; the others are interpolated from them."),
        Fact("residual", f"{ssl.residual_:.2g}", f"Share of the prior variance at the rows that the inducing points leave open. {verdict}"),
        Fact("directions", f"{len(ssl.eigenvalues_):,}", "How many independent patterns the kernel sees in the rows."),
        Fact("kernel", kernel_in_words(ssl.kernel_), "What says which rows are alike."),
        Fact("learned from", _learned_from(card), "The table behind the model. Rows that leave its ranges get a warning."),
    ]
    return [*facts, *_columns(subject)]


def _columns(subject: Subject) -> list[Fact]:
    used = [column.name for column in subject.facts]
    left_out = [f"{name} ({why})" for name, why in subject.dropped.items()]
    facts = [Fact("columns", _listed(used), "What the model looks at.")] if used else []
    return facts + ([Fact("left out", _listed(left_out), "Columns that it does not look at, and why.")] if left_out else [])


def _learned_from(card: ModelCard) -> str:
    table = card.notes.get("table", "a table")
    n_rows = card.n_rows or card.notes.get("rows")
    return f"{table}{'' if n_rows is None else f', {n_rows:,} rows'}, {card.created[:10]}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def kernel_in_words(kernel: Any) -> str:
    """Return the name of a kernel, and for tables what is compared by what."""
    if isinstance(kernel, ColumnKernel):
        return "; ".join(f"{name}: {type(part).__name__} of {_count(columns)}" for name, part, columns in kernel.groups)
    if isinstance(kernel, DiffusionKernel):
        inner = "" if kernel.kernel is None else f" by {kernel_in_words(kernel.kernel)}"
        return f"diffusion among {kernel.n_neighbors} neighbors{inner}"
    text = str(kernel)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def _count(columns: Any) -> str:
    return f"{len(columns)} column{'' if len(columns) == 1 else 's'}"
