"""How the points may be colored: what predictions bring by themselves, and what the content adds."""

from __future__ import annotations

import numpy as np

from .content import ClassColoring, NumberColoring, Predictions, ReportContent

DECISION = "Kept or left to a person"
"""The coloring that follows the slider."""

PROBABILITY = "How likely the predicted class is, says the model."
STD_OF_PROBABILITY = "How far the probability varies between equally plausible models. Large values: more labels near here would help."
STD_OF_NUMBER = "How far the true number may well be from the predicted one: for two rows in three it should be nearer than this."


def all_colorings(content: ReportContent) -> list[ClassColoring | NumberColoring | str]:
    """In the order of the menu; the one that follows the slider is its name only."""
    from_predictions = [] if content.predictions is None else _of_predictions(content.predictions)
    decision = [] if content.controls is None else [DECISION]
    return [*from_predictions, *decision, *content.colorings]


def _of_predictions(predictions: Predictions) -> list[ClassColoring | NumberColoring]:
    found = [_of_classes(predictions), *_of_certainty(predictions)] if predictions.is_probability else []
    if predictions.values is not None:
        found.append(NumberColoring(f"Predicted {predictions.target}", predictions.values, predictions.unit))
    if predictions.std is not None:
        found.append(_of_std(predictions, predictions.std))
    return found


def _of_classes(predictions: Predictions) -> ClassColoring | NumberColoring:
    levels, codes = np.unique(np.asarray(predictions.predicted, dtype=object).astype(str), return_inverse=True)
    return ClassColoring(f"Predicted {predictions.target}", codes, levels.tolist(), "The likeliest class of each row.")


def _of_certainty(predictions: Predictions) -> list[ClassColoring | NumberColoring]:
    return [NumberColoring("Probability of the predicted class", predictions.certainty, "%", PROBABILITY)]


def _of_std(predictions: Predictions, std: np.ndarray) -> NumberColoring:
    if predictions.is_probability:
        return NumberColoring("Standard deviation of the probability", std, "%", STD_OF_PROBABILITY)
    return NumberColoring("Standard deviation", std, predictions.unit, STD_OF_NUMBER)
