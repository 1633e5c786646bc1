"""Parts of the page that are plain HTML: tables, bars and lists that need no script, and print as they are."""

from __future__ import annotations

import html
from collections.abc import Sequence

from .._runtime import percent
from ._content import Belief, ClassErrors, ColumnBar, Compared, Suspicion

MARKS = {"better": "better", "worse": "worse"}
"""Verdicts with a color of their own."""


def escaped(text: str) -> str:
    """Return the text as HTML; half characters, which UTF-8 cannot write, become question marks."""
    return html.escape(text.encode("utf-8", "replace").decode("utf-8"))


def list_of(sentences: Sequence[str]) -> str:
    """Return the items of a list."""
    return "".join(f"<li>{_sentence(sentence)}</li>" for sentence in sentences)


def paragraphs(sentences: Sequence[str]) -> str:
    """Return one paragraph for each sentence."""
    return "".join(f"<p>{_sentence(sentence)}</p>" for sentence in sentences)


def _sentence(text: str) -> str:
    """Return a sentence in which no line breaks between a number and its percent sign."""
    return escaped(text).replace(" %", "&nbsp;%")


def table_of_classes(classes: Sequence[ClassErrors]) -> str:
    """Return a line for each class: labels, held-out errors with their interval, predicted rows."""
    heads = ("Class", "Labels", "Wrong when held out", "95 % interval", "Predicted")
    rows = [
        (
            one.name,
            f"{one.n_labels:,}",
            f"{one.n_wrong:,} ({percent(one.n_wrong / one.n_labels)})",
            f"{percent(one.lower)} to {percent(one.upper)}",
            f"{one.n_predicted:,}",
        )
        for one in classes
    ]
    return _table(heads, rows, numbers=range(1, 5))


def table_of_suspicions(suspicions: Sequence[Suspicion]) -> str:
    """Return a line for each label that may be wrong."""
    rows = [(one.row, one.label, one.predicted, percent(one.probability)) for one in suspicions]
    return _table(("Row", "Label", "Predicted without it", "Probability"), rows, numbers=(0, 3))


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[int]) -> str:
    """Return head and body; columns of numbers are set to the right, and the first cell of a line is its heading."""
    mark = [' class="number"' if column in numbers else "" for column in range(len(heads))]
    head = "".join(f'<th scope="col"{mark[column]}>{escaped(text)}</th>' for column, text in enumerate(heads))
    body = "".join(f"<tr>{''.join(_cell(column, text, mark[column]) for column, text in enumerate(row))}</tr>" for row in rows)
    return f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"


def _cell(column: int, text: str, mark: str) -> str:
    return f'<th scope="row"{mark}>{escaped(text)}</th>' if column == 0 else f"<td{mark}>{escaped(text)}</td>"


def list_of_compared(compared: Sequence[Compared]) -> str:
    """Return an item for each method: the verdict in a word or two, and the sentence."""
    return "".join(
        f'<li><span class="verdict {MARKS.get(one.verdict, "open")}">{escaped(_verdict(one))}</span> {_sentence(one.sentence)}</li>'
        for one in compared
    )


def _verdict(one: Compared) -> str:
    """Return the verdict with its subject, since a bare "better" could mean either side."""
    return f"this model is {one.verdict}" if one.verdict in MARKS else one.verdict


def bars_of_beliefs(beliefs: Sequence[Belief]) -> str:
    """Return a bar for each representation."""
    return "".join(_bar(one.name, one.share, percent(one.share, 0)) for one in beliefs)


def bars_of_columns(columns: Sequence[ColumnBar]) -> str:
    """Return a bar for each column, the longest of which is that of the column that matters most."""
    most = max((one.increase for one in columns), default=0.0)
    return "".join(
        _bar(one.name, max(one.increase, 0.0) / most if most > 0 else 0.0, one.words or f"{one.increase:+.2g}".replace("-", "−"))
        for one in columns
    )


def _bar(name: str, share: float, text: str) -> str:
    """Return a bar as long as the share. The page's security policy allows no styles in elements, but widths of shapes."""
    shape = f'<rect class="bar" width="{100 * share:.2f}" height="10"/>'
    bar = f'<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">{shape}</svg>'
    return f"<div><dt>{escaped(name)}</dt><dd>{bar}<span>{escaped(text)}</span></dd></div>"
