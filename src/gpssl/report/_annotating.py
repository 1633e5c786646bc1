"""Make a page in which a person labels the rows that matter most: from a table to one HTML file, and from there to labels.csv."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..active._advice import StopAdvice
from ..data._labels import TargetKind
from ..data._outputs import replacing
from ..workflows._given_labels import empty_labels, key_columns
from ..workflows._label import names_of_results
from ..workflows._next import N_SUGGESTED, NextRows, SuggestedRow, next_rows
from ..workflows._row_checksums import RESULTS, row_checksums, row_names
from ..workflows._subject import Subject, as_path, check_outputs
from ._labeling_page import LabelingContent, RowToLabel, render_labeling

FILE = "labels"


@dataclass(frozen=True)
class Annotation:
    """What `annotate` has made."""

    target: str
    kind: str
    classes: list[str] | None
    """The classes that are known; None for numbers."""
    n_rows: int
    n_labeled: int
    n_candidates: int
    """Rows without a label."""
    rows: list[SuggestedRow]
    """The rows of the page, in their order."""
    stop: StopAdvice | None
    """Whether more labels are worth it; None without a model."""
    command: str
    """What to run with the labels that the page saves."""
    written: list[Path]
    notes: list[str]
    content: LabelingContent = field(repr=False)
    """All that the page shows."""

    def html(self) -> str:
        """Return the text of the page."""
        return render_labeling(self.content)

    def frame(self) -> Any:
        """Return the rows as the `labels` that `gpssl.label` takes: row, checksum and the target, to be filled in. [n]"""
        return empty_labels(self.target, [(row.row, row.checksum) for row in self.content.rows])


def annotate(
    table: Any,
    target: str,
    n: int = N_SUGGESTED,
    *,
    model: Any = None,
    labels: Any = (),
    target_kind: TargetKind | None = None,
    group: str | None = None,
    keep: Sequence[str] = (),
    ignore: Sequence[str] = (),
    unlabeled: Sequence[str] = (),
    sheet: str | None = None,
    random_state: int = 0,
    out: str | PathLike[str] | None = None,
    force: bool = False,
) -> Annotation:
    """Make a page in which a person labels the rows that matter most, as `gpssl annotate` does.

    The page is one file that works offline: it shows the rows that `next_rows` suggests one after the other, takes labels by keyboard, and
    saves them as labels.csv, which `label` merges: `gpssl.label(table, target, labels="labels.csv")`.

    Parameters
    ----------
    table, target
        As for `label`: cells of rows without a label are empty.
    n, model
        How many rows, and a model to choose them by, as for `next_rows`.
    labels
        Labels of earlier pages, as for `label`: their rows are not shown again.
    target_kind, group, keep, ignore, unlabeled, sheet, random_state
        As for `label`.
    out
        The HTML file to write; without it nothing is written, and `Annotation.html` has the page.
    force
        Whether to replace a file that exists.

    Examples
    --------
    >>> import gpssl
    >>> from sklearn.datasets import load_wine
    >>> wines = load_wine(as_frame=True).frame
    >>> wines.loc[wines.index % 9 > 0, "target"] = None
    >>> page = gpssl.annotate(wines, "target", n=5)
    >>> page.frame().columns.tolist()
    ['row', 'checksum', 'target']
    """
    path = as_path(out)
    written = check_outputs([table, model, *_listed(labels)], [path], force=force, endings=(".html", ".htm"))
    columns: dict[str, Any] = {"keep": keep, "ignore": ignore, "unlabeled": unlabeled}
    roles: dict[str, Any] = {"target_kind": target_kind, "group": group, **columns, "sheet": sheet}
    found = next_rows(table, target, n, model=model, labels=labels, random_state=random_state, **roles)
    content = _content(found, _Call(table, target, n, _listed(labels), roles))
    if path is not None:
        with replacing(path, force=force) as beside:
            beside.write_text(render_labeling(content), encoding="utf-8")
    return Annotation(
        target=target,
        kind=found.kind,
        classes=found.classes,
        n_rows=found.n_rows,
        n_labeled=found.n_labeled,
        n_candidates=found.n_candidates,
        rows=found.rows,
        stop=found.stop,
        command=content.command,
        written=written,
        notes=found.notes,
        content=content,
    )


def _listed(labels: Any) -> list[Any]:
    """Return files and data frames of labels as a list."""
    return [labels] if isinstance(labels, str | PathLike) or hasattr(labels, "columns") else list(labels)


@dataclass(frozen=True)
class _Call:
    """What a person asked for, to say what they may ask for next."""

    table: Any
    target: str
    n: int
    labels: list[Any]
    roles: dict[str, Any]

    @property
    def is_command(self) -> bool:
        """Whether a command can take over: the table and all labels are files."""
        return all(isinstance(one, str | PathLike) and str(one) != "-" for one in (self.table, *self.labels))

    @property
    def file(self) -> str:
        """The name of the file of labels, which differs from those that are there."""
        number = len(self.labels) + 1
        return f"{FILE}.csv" if number == 1 else f"{FILE}-{number}.csv"

    def merging(self) -> str:
        """Return what merges the labels of the page."""
        if not self.is_command:
            return f"gpssl.label({self._arguments()})"
        return self._command("label", "-o", _free_name(_stem(self.table)))

    def more(self) -> str:
        """Return what makes a page with further rows."""
        if not self.is_command:
            return f'gpssl.annotate({self._arguments()}, out="more.html")'
        page = f"{_stem(self.table)}-label-{len(self.labels) + 2}.html"
        return self._command("annotate", *([] if self.n == N_SUGGESTED else ["-n", str(self.n)]), "-o", page)

    def _command(self, name: str, *last: str) -> str:
        kind = {"class": ["--classes"], "number": ["--numeric"], None: []}[self.roles["target_kind"]]
        single = [word for role in ("sheet", "group") if self.roles[role] is not None for word in (f"--{role}", self.roles[role])]
        columns = [word for role in ("keep", "ignore", "unlabeled") for name in self.roles[role] for word in (f"--{role}", name)]
        files = [word for file in (*self.labels, self.file) for word in ("--labels", str(file))]
        return shlex.join(["gpssl", name, str(self.table), "--target", self.target, *kind, *single, *columns, *files, *last])

    def _arguments(self) -> str:
        roles = "".join(f", {name}={value!r}" for name, value in self.roles.items() if value)
        earlier = "".join(f"{str(one)!r}, " if isinstance(one, str | PathLike) else "earlier, " for one in self.labels)
        labels = f"[{earlier}{self.file!r}]" if earlier else repr(self.file)
        return f"table, {self.target!r}, labels={labels}{roles}"


def _stem(table: str | PathLike[str]) -> str:
    """Return the name of a file without its endings."""
    return Path(table).name.split(".")[0] or "table"


def _free_name(stem: str) -> str:
    """Return a name for the results that no file has where the command runs."""
    names = (f"{stem}-labeled{number}.csv" for number in ("", *(f"-{k}" for k in range(2, 1000))))
    return next(name for name in names if not Path(name).exists())


def _content(found: NextRows, call: _Call) -> LabelingContent:
    """Return all that the page shows."""
    subject, classes = found.subject, found.classes or []
    order = np.argsort([row.place for row in found.rows], kind="stable")
    places = np.array([found.rows[number].place for number in order], dtype=np.intp)
    columns, texts = _cells(subject, places)
    named = zip(places.tolist(), row_names(subject, places), row_checksums(subject, places), texts, strict=True)
    plain = {place: RowToLabel(name, checksum, cells) for place, name, checksum, cells in named}
    n_shown, has = len(found.rows), "has" if found.n_labeled == 1 else "have"
    return LabelingContent(
        title=f"Label {n_shown:,} row{'' if n_shown == 1 else 's'} of {subject.name}",
        subtitle=f"Column {found.target!r}: {found.n_labeled:,} of {found.n_rows:,} rows {has} a label. These {n_shown:,} would help most.",
        advice=_advice(found.stop, call),
        target=found.target,
        kind=found.kind,
        classes=classes,
        columns=columns,
        rows=[_with_thoughts(plain[row.place], row, classes) for row in found.rows],
        keys=key_columns(found.target),
        file=call.file,
        then=f"Put {call.file} where this page was made, or send it to whoever made it, and run there:",
        command=call.merging(),
        more=call.more(),
    )


def _advice(stop: StopAdvice | None, call: _Call) -> str:
    """Return whether more labels are worth it, in the words of the command where a command can take over."""
    text = "" if stop is None else stop.text
    return text.replace("max_risk", "--max-risk") if call.is_command else text


def _with_thoughts(plain: RowToLabel, row: SuggestedRow, classes: Sequence[str]) -> RowToLabel:
    """Return a row with the reason to label it and what the model thinks."""
    predicted = f"{row.predicted:.4g}" if isinstance(row.predicted, float) else row.predicted
    by_class = row.probabilities
    probabilities = None if by_class is None else [float(by_class.get(one, 0.0)) for one in classes]
    return replace(plain, reason=row.reason, predicted=predicted, probabilities=probabilities)


def _cells(subject: Subject, places: Any) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the names of the person's columns without the target and results, and the texts of each row. [D], [n, D]"""
    (cells,) = subject.views_at(places, lambda part: part.cells(typed=False))
    target = str(subject.roles.target)
    ours = (RESULTS, names_of_results(target))
    names = [name for name in cells.columns if name != target and not any(one.fullmatch(str(name)) for one in ours)]
    texts = [[_text(cell) for cell in cells[name].astype(object).where(cells[name].notna(), None)] for name in names]
    return [str(name) for name in names], list(zip(*texts, strict=True)) if texts else [()] * len(places)


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    return f"{cell:.10g}" if isinstance(cell, float) else str(cell).strip()
