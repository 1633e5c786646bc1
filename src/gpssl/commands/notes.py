"""Warnings, as notes for a person who did not write the code that they are about."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def noting(notes: list[str]) -> Iterator[None]:
    """Within this block, warnings become sentences in `notes`, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)  # what libraries say to their developers is left out
        try:
            yield
        finally:
            texts = [str(warning.message) for warning in caught]
            notes.extend(text for text in dict.fromkeys(texts) if text not in notes)
