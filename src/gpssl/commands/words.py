"""Numbers as people write them."""

from __future__ import annotations


def percent(share: float, digits: int = 1) -> str:
    """A share, with a space before its sign.

    >>> percent(0.056), percent(0.95, 0)
    ('5.6 %', '95 %')
    """
    return f"{100 * share:.{digits}f} %"
