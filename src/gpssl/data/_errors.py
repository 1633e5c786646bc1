"""What is wrong with a file, in one sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class FileError(Exception):
    """A file that cannot be read or written: the message is one sentence or two, and says what to do."""


def no_such_column(name: str, names: Sequence[str], path: object, what: str = "column") -> FileError:
    """With the names that are nearest, or the first ones where none is near."""
    near = _near(name, names)
    first = ", ".join(repr(one) for one in names[:8]) + (", …" if len(names) > 8 else "")
    advice = f"did you mean {' or '.join(map(repr, near))}?" if near else f"its columns are {first}."
    return FileError(f"{path} has no {what} {name!r}; {advice}")


def _near(name: str, names: Sequence[str]) -> list[str]:
    """Names that differ in a few letters, or in case alone."""
    folded: dict[str, str] = {}
    for one in names:
        folded.setdefault(one.strip().casefold(), one)
    return [folded[match] for match in difflib.get_close_matches(name.strip().casefold(), list(folded), n=3, cutoff=0.6)]


def listed(names: Iterable[str], most: int = 5) -> str:
    """Names for a sentence, the first few of many."""
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
