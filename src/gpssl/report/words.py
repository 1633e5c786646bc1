"""Plain words: what stands beside a part where the content says nothing, and the glossary."""

from __future__ import annotations

from .content import ReportContent

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
