"""How the points may be coloured: what predictions bring by themselves, and what the content adds."""

from __future__ import annotations

import numpy as np

from .content import ClassColouring, NumberColouring, Predictions, ReportContent

DECISION = "Kept or left to a person"
"""The colouring that follows the slider."""

PROBABILITY = "How likely the predicted class is, says the model."
STD_OF_PROBABILITY = "How far the probability varies between equally plausible models. Large values: more labels near here would help."
STD_OF_NUMBER = "How far the true number may well be from the predicted one: for two rows in three it should be nearer than this."


def all_colourings(content: ReportContent) -> list[ClassColouring | NumberColouring | str]:
    """In the order of the menu; the one that follows the slider is its name only."""
    from_predictions = [] if content.predictions is None else _of_predictions(content.predictions)
    decision = [] if content.controls is None else [DECISION]
    return [*from_predictions, *decision, *content.colourings]


def _of_predictions(predictions: Predictions) -> list[ClassColouring | NumberColouring]:
    found = [_of_classes(predictions), *_of_certainty(predictions)] if predictions.is_probability else []
    if predictions.values is not None:
        found.append(NumberColouring(f"Predicted {predictions.target}", predictions.values, predictions.unit))
    if predictions.std is not None:
        found.append(_of_std(predictions, predictions.std))
    return found


def _of_classes(predictions: Predictions) -> ClassColouring | NumberColouring:
    levels, codes = np.unique(np.asarray(predictions.predicted, dtype=object).astype(str), return_inverse=True)
    return ClassColouring(f"Predicted {predictions.target}", codes, levels.tolist(), "The likeliest class of each row.")


def _of_certainty(predictions: Predictions) -> list[ClassColouring | NumberColouring]:
    return [NumberColouring("Probability of the predicted class", predictions.certainty, "%", PROBABILITY)]


def _of_std(predictions: Predictions, std: np.ndarray) -> NumberColouring:
    if predictions.is_probability:
        return NumberColouring("Standard deviation of the probability", std, "%", STD_OF_PROBABILITY)
    return NumberColouring("Standard deviation", std, predictions.unit, STD_OF_NUMBER)
