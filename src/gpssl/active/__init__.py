"""Which rows to label next, with the reason for each in words, and when to stop: how errors fall with more labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._runtime import lazy_names

if TYPE_CHECKING:
    from ._advice import StopAdvice, stop_advice
    from ._stopping import LabelsNeeded, LearningCurve, learning_curve
    from ._suggest import Suggestion, Suggestions, suggest

__all__ = [
    "LabelsNeeded",
    "LearningCurve",
    "StopAdvice",
    "Suggestion",
    "Suggestions",
    "learning_curve",
    "stop_advice",
    "suggest",
]

__getattr__, __dir__ = lazy_names(__name__, __file__)
