"""Docstrings of this house as reStructuredText: they are written for readers of the code, with bare equations and symbols.

An indented paragraph becomes a literal block, and outside of backticks what reStructuredText would take for markup is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

SECTIONS = ("Parameters", "Attributes", "Returns", "Examples")
VALUES = ("attribute", "data", "property")
COLON = "\ue000"
"""In the place of a colon while napoleon looks, which takes what stands before one in the description of a value for its type."""
BACKTICKS = re.compile(r"(`[^`]*`)")
CALL = re.compile(r"(`[^`]+`)(?=[(\w])")
MARKUP = re.compile(r"(\||(?<=\w)_(?!\w)|\*(?=\S)|(?<=\S)\*)")
ITALICS = re.compile(r"(?<!\S)\*(\w[\w ]*)\*(?!\w)")
ITEM = re.compile(r"\s*(-|\d+\.) ")
ADDED_BY_SCIKIT_LEARN = re.compile(r"set_\w+_request|get_metadata_routing|set_output")


def setup(app: Any) -> dict[str, bool]:
    """Register the changes, before and after napoleon reads the sections."""
    app.connect("autodoc-process-docstring", rewrite, priority=100)
    app.connect("autodoc-process-docstring", put_colons_back, priority=900)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}


def skip(app: Any, what: str, name: str, thing: Any, skipped: bool, options: Any) -> bool | None:
    """Return True for methods that scikit-learn adds to every estimator; None leaves the choice to Sphinx."""
    return True if ADDED_BY_SCIKIT_LEARN.fullmatch(name) else None


def rewrite(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Rewrites a docstring in place, as Sphinx asks for."""
    if lines and lines[0].startswith("Alias for field number"):
        lines.clear()
    prose, sections = _split(lines)
    lines[:] = [*_with_literal_blocks(prose), *_escaped_outside_examples(sections)]
    if what in VALUES:
        lines[:] = [line.replace(":", COLON) for line in lines]


def put_colons_back(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """After napoleon."""
    lines[:] = [line.replace(COLON, ":") for line in lines]


def _split(lines: list[str]) -> tuple[list[str], list[str]]:
    """Return what comes before the first section, and the sections."""
    for number, line in enumerate(lines):
        if line.strip() in SECTIONS and number + 1 < len(lines) and set(lines[number + 1].strip()) == {"-"}:
            return lines[:number], lines[number:]
    return lines, []


def _with_literal_blocks(lines: list[str]) -> list[str]:
    """Paragraphs that are indented are equations, and those that begin with a bar are tables, unless they belong to the item of a list."""
    result: list[str] = []
    literal = in_list = False
    for number, line in enumerate(lines):
        if line.strip() and (number == 0 or not lines[number - 1].strip()):
            in_list = ITEM.match(line) is not None or (in_list and line.startswith(" "))
            was_literal, literal = literal, line.startswith((" ", "|")) and not in_list
            if literal and not was_literal:
                result += ["::", ""]
        result.append(f"    {line}" if literal else _escape(line))
    return result


def _escaped_outside_examples(lines: list[str]) -> list[str]:
    end = lines.index("Examples") if "Examples" in lines else len(lines)
    return [*map(_escape, lines[:end]), *lines[end:]]


def _escape(line: str) -> str:
    """With backslashes before what is not meant as markup; names in backticks and single *words* stay as they are."""
    escaped = _outside(BACKTICKS, line, lambda text: _outside(ITALICS, text, lambda rest: MARKUP.sub(r"\\\1", rest)))
    return CALL.sub(r"\1\\ ", escaped)


def _outside(pattern: re.Pattern[str], text: str, change: Callable[[str], str]) -> str:
    """Return the text with everything changed but what matches the pattern."""
    result, end = "", 0
    for match in pattern.finditer(text):
        result += change(text[end : match.start()]) + match[0]
        end = match.end()
    return result + change(text[end:])
