"""Model files: data and no code, with a card that says what a model was trained on. See `save` and `load`."""

from ._card import ModelCard, OutsideTrainingRangeWarning, card_of, facts_of_rows
from ._encoding import ModelFileError
from ._model_files import FORMAT, load, read_card, save

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
