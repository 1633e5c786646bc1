"""Markdown: tables, and documents whose numbers are filled in by a command."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with its columns aligned, so that it can be read in a terminal too."""
    cells = [list(header), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def marks(document: str) -> list[str]:
    """The names of the blocks of a document."""
    return re.findall(r"<!-- end of (.*?) -->", document)


def fill(document: str, blocks: Mapping[str, str]) -> str:
    """Put each block between its marks, <!-- NAME --> and <!-- end of NAME -->, or at the end; all else stays as it is."""
    for name, block in blocks.items():
        marks = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end of {re.escape(name)} -->)", flags=re.DOTALL)
        if marks.search(document):
            document = marks.sub(lambda found, text=block: f"{found[1]}{text}\n{found[2]}", document)  # type: ignore[misc]
        else:
            document = f"{document.rstrip()}\n\n<!-- {name} -->\n{block}\n<!-- end of {name} -->\n"
    return document
