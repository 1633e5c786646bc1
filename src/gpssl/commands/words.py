"""Words and numbers as people at the command line have them."""

from __future__ import annotations


def percent(share: float, digits: int = 1) -> str:
    """A share, with a space before its sign.

    >>> percent(0.056), percent(0.95, 0)
    ('5.6 %', '95 %')
    """
    return f"{100 * share:.{digits}f} %"


def with_options(text: str) -> str:
    """A sentence of the library, with the options of the command in the place of its parameters.

    >>> with_options("Give more rows, or lower n_components.")
    'Give more rows, or lower --components.'
    """
    return text.replace("n_components", "--components").replace("max_inducing", "--max-inducing")
