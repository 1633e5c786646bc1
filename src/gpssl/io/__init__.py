"""Model files: data and no code, with a card that says what a model was trained on. See `save` and `load`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._runtime import lazy_names

if TYPE_CHECKING:
    from ._archive import FORMAT, read_card
    from ._card import ModelCard, OutsideTrainingRangeWarning, card_of, facts_of_rows
    from ._encoding import ModelFileError
    from ._model_files import load, save

__all__ = [
    "FORMAT",
    "ModelCard",
    "ModelFileError",
    "OutsideTrainingRangeWarning",
    "card_of",
    "facts_of_rows",
    "load",
    "read_card",
    "save",
]

__getattr__, __dir__ = lazy_names(__name__, __file__)
