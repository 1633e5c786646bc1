"""Warnings, as notes for a person who did not write the code that they are about."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from ..io import OutsideTrainingRangeWarning
from .words import with_options

INDUCING = re.compile(r"(\d+) inducing points leave (\S+) of the prior variance open")


def _for_people(text: str) -> str:
    """With the options of the command in the place of parameters."""
    found = INDUCING.match(text)
    if found is None:
        return with_options(text)
    advice = f"--max-inducing {2 * int(found[1])} would follow the rows better"
    return f"{found[1]} inducing points leave {found[2]} of the prior variance open: {advice}."


@contextmanager
def noting(notes: list[str]) -> Iterator[None]:
    """Within this block, warnings become sentences in `notes`, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)  # what libraries say to their developers is left out
        try:
            yield
        finally:
            # Of rows outside the ranges, pieces of a table tell one by one: the first is enough.
            outside = [warning for warning in caught if issubclass(warning.category, OutsideTrainingRangeWarning)]
            texts = [_for_people(str(warning.message)) for warning in caught if warning not in outside[1:]]
            notes.extend(text for text in dict.fromkeys(texts) if text not in notes)
