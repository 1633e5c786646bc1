"""What a workflow works on: the rows that a person gave, what is to be predicted, and a way to write results beside the rows."""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from .._runtime import is_standard
from .._runtime.files import put_together
from .._runtime.progress import Progress
from .._runtime.threads import one_blas_thread
from ..core._checked_rows import rows_in_memory
from ..data._frames import ColumnFacts
from ..data._label_cells import TidyLabels, tidy_labels
from ..data._labels import Target, TargetKind
from ..data._outputs import Style, asked_for, beside, check_table_name, check_writable, replacing
from ..data._writing import write_table
from ..downstream._pool import RepresentationPool
from ..estimator import GPSSL
from ..evaluation._held_out import Labeled
from ..io._card import ModelCard, OutsideTrainingRangeWarning, card_of
from ..io._model_files import attach_card, write_model
from ._choices import MAX_INDUCING, ChoiceError, Kind, Settings

if TYPE_CHECKING:
    from ._given_labels import GivenLabels

Array = NDArray[np.float64]

SPOTS = ".h5ad"
"""The ending of files that hold AnnData."""
FEW_INDUCING = re.compile(r"\A((\d+) inducing points leave \S+ of the prior variance open).*", flags=re.DOTALL)
"""A warning of which a note says what number may do."""


@dataclass(frozen=True)
class SubjectPart:
    """Consecutive rows. What is made of them is made when it is asked for."""

    n_rows: int
    make_rows: Callable[[], Any]
    cells: Callable[..., Any]
    """All columns as the person had them, in a data frame: with typed=True, numbers and dates as such, else as they stood there."""
    encode: Callable[[], Array] | None = None
    """The rows as encoded numbers, where `Subject.fit` learns from those. [n, D]"""

    @cached_property
    def rows(self) -> Any:
        """The rows as any model takes them: a data frame, or an array."""
        return self.make_rows()

    @property
    def learned_rows(self) -> Any:
        """The rows as `Subject.fit` gives them to its own model, which need not be checked again."""
        return self.rows if self.encode is None else rows_in_memory(self.encode())


@dataclass(frozen=True)
class Roles:
    """What a person says of the columns."""

    target: str | None = None
    """The column to predict."""
    target_kind: TargetKind | None = None
    """None: its cells decide."""
    group: str | None = None
    """The column that says which rows belong together."""
    keep: Sequence[str] = ()
    ignore: Sequence[str] = ()
    unlabeled: Sequence[str] = ()
    """Words in the target that mean "no label"."""
    sheet: str | None = None
    """The sheet of a workbook, or the table of a database, that has the columns."""

    def __post_init__(self) -> None:
        for parameter, names in (("keep", self.keep), ("ignore", self.ignore), ("unlabeled", self.unlabeled)):
            if isinstance(names, str):
                raise ChoiceError(parameter, f"{names!r} is a text, not a list of names: write {parameter}=[{names!r}].")
        if self.target_kind not in (None, *get_args(TargetKind)):
            raise ChoiceError("target_kind", f"{self.target_kind!r} is neither {' nor '.join(map(repr, get_args(TargetKind)))}.")


class Subject(ABC):
    """Rows of a file or of an object in memory."""

    path: Path | None
    """None for what is in memory."""
    name: str
    """The name of the file, for sentences."""
    index: Any = None
    """The index of a data frame or the names of spots, which frames of results get; None for files."""
    n_rows: int
    notes: list[str]
    """Sentences on what was done to read the rows and to learn from them."""
    facts: Sequence[ColumnFacts]
    """Facts about the columns that the model learns from."""
    kind: Kind
    dropped: Mapping[str, str]
    """Columns that the model does not look at, and why."""
    style = Style()
    """How results are written into a file of text."""
    given: GivenLabels | None = None
    """Labels from other files, which `target` has too, and so have the cells of results."""

    def __init__(self, given: Any, roles: Roles) -> None:
        self.path = Path(given) if isinstance(given, str | PathLike) else None
        self.name = f"the {self.kind}" if self.path is None else "standard input" if is_standard(self.path) else self.path.name
        self.roles = roles

    @abstractmethod
    def kernel(self, settings: Settings) -> Kernel:
        """Return the kernel that says which rows are alike."""

    @abstractmethod
    def fit(self, settings: Settings) -> GPSSL:
        """Learn a representation of all rows."""

    @abstractmethod
    def pool(self, ssl: GPSSL, seed: int) -> RepresentationPool:
        """Return a pool of representations of all rows, fitted, with this one among them."""

    @abstractmethod
    def parts(self) -> Iterator[SubjectPart]:
        """Yield all rows in order, some at a time."""

    @abstractmethod
    def _read_target(self) -> Target:
        """Return the column to predict, as it was read."""

    @cached_property
    def tidy(self) -> TidyLabels:
        """The column to predict, with one name for each class, and what is to be said of its cells."""
        return tidy_labels(self._read_target(), self.roles.unlabeled, self.roles.target_kind)

    def target(self) -> Target:
        """Return the column to predict, with the labels that a person gave elsewhere."""
        return self.tidy.target if self.given is None else self.given.merged(self.tidy.target)

    def is_chosen(self) -> NDArray[np.bool_]:
        """Return which rows have a label because somebody chose them for their difficulty, as files of labels from the page do. [n]"""
        is_chosen = np.zeros(self.n_rows, dtype=bool)
        if self.given is not None:
            is_chosen[self.given.places] = ~self.tidy.target.is_known[self.given.places]
        return is_chosen

    @abstractmethod
    def groups(self) -> NDArray[Any] | None:
        """Return which rows belong together. [n]"""

    def lines(self, places: NDArray[np.intp]) -> NDArray[np.int64] | None:  # noqa: ARG002  (of tables in files)
        """Return the line of the file, the row of the sheet or the number of the row that a person sees; None for objects in memory."""
        return None

    def coordinates(self) -> Array | None:
        """Return where the rows lie on tissue; None for rows of a table. [n, 2]"""
        return None

    def take(self, given: GivenLabels) -> None:
        """Merge labels that a person gave elsewhere."""
        self.given = given

    def cells_at(self, places: NDArray[np.intp]) -> Any:
        """Return all columns of some rows, whose places increase, as the person had them, numbers and dates as such."""
        return self.views_at(places, lambda part: part.cells(typed=True))[0]

    def labeled(self) -> Labeled:
        """Return the rows with a label."""
        target, groups = self.target(), self.groups()
        places = np.flatnonzero(target.is_known)
        return Labeled(places, self.rows_at(places), target.labels, None if groups is None else groups[places])

    def rows_at(self, places: NDArray[np.intp]) -> Any:
        """Return some of the rows, in their order, in memory, as models take them."""
        return self.views_at(places, lambda part: part.rows)[0]

    def views_at(self, places: NDArray[np.intp], *views: Callable[[SubjectPart], Any]) -> list[Any]:
        """Return some of the rows as each of these functions shows them, after one pass over all rows."""
        chosen = np.zeros(self.n_rows, dtype=bool)
        chosen[places] = True
        found = [[view(part)[chosen[where]] for view in views] for part, where in self.numbered_parts()]
        return [concatenate(parts) for parts in zip(*found, strict=True)]

    def numbered_parts(self, task: str = "reading") -> Iterator[tuple[SubjectPart, slice]]:
        """Yield the parts, and the places of their rows."""
        progress = Progress(task, self.n_rows)
        start = 0
        for part in self.parts():
            yield part, slice(start, start + part.n_rows)
            start += part.n_rows
            progress.advance(part.n_rows)
        progress.finish()

    def write(self, out: Path, new_columns: NewColumnsOfPart, *, only_new: bool, force: bool, finish: Step) -> None:
        """Write a table of the rows as they were read, and the new columns, which replace those of an earlier run.

        `finish` is called when all rows are written, and before the file is put in its place: where it fails, there is no file.
        """
        asked, style = asked_for(out, self.style)
        write_table(out, self._frames(new_columns, only_new, asked, finish), force=force, style=style)

    def _frames(self, new_columns: NewColumnsOfPart, only_new: bool, asked: Mapping[str, bool], finish: Step) -> Iterator[Any]:
        for part, where in self.numbered_parts("writing"):
            new = new_columns(part, where)
            if not only_new:
                cells = part.cells(**asked)
                if self.given is not None:
                    in_cells = self.given.in_json if asked.get("as_json") else partial(self.given.in_cells, decimal=self.style.decimal)
                    cells[self.roles.target] = in_cells(cells[self.roles.target], where)
                new = cells.drop(columns=new.columns, errors="ignore").join(new.set_index(cells.index))
            yield new
        finish()

    @contextmanager
    def noting(self, settings: Settings | None = None) -> Iterator[None]:
        """Turn warnings within this block into notes, each once, and add the notes to an error: they may explain it. BLAS has one thread.

        A note does not advise a person to use an option that the settings show in use.
        """
        is_noted = False
        is_advised = settings is None or settings.max_inducing == MAX_INDUCING

        def note(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            nonlocal is_noted
            if issubclass(category, OutsideTrainingRangeWarning):
                if is_noted:  # each part of a table may warn: the first warning is enough
                    return
                is_noted = True
            text = FEW_INDUCING.sub(
                lambda few: f"{few[1]}: max_inducing={2 * int(few[2])} would follow the rows better." if is_advised else f"{few[1]}.",
                str(message),
            )
            if text not in self.notes:
                self.notes.append(text)

        with warnings.catch_warnings(), one_blas_thread():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)  # what libraries tell their developers is left out
            warnings.showwarning = note
            try:
                yield
            except Exception as error:
                for text in self.notes:
                    error.add_note(text)
                raise

    def finish(self, model: Any, columns: NewColumns, out: Path | None, model_file: Path | None, how: Writing, notes: Notes = dict) -> None:
        """Write the new columns, save the model and give it its card: results and model are both written, or neither is.

        `notes` is called when the columns of all rows have been made, so that the card can say what was found on the way.
        """
        own = {"kind": self.kind, "table": self.name, "rows": self.n_rows, "target": self.roles.target, "group": self.roles.group}
        found: dict[str, Any] = {name: value for name, value in own.items() if value is not None}

        def save_beside(beside: Path | None) -> None:
            found.update(notes())
            card = card_of(model, self.facts, found)
            if beside is not None:
                write_model(model, beside, card)
            cards.append(card)

        cards: list[ModelCard] = []
        with put_together(), replacing(model_file, force=how.force) if model_file is not None else nullcontext() as beside:
            columns.write(out, how, lambda: save_beside(beside))
        attach_card(cards[-1], model)


NewColumnsOfPart = Callable[[SubjectPart, slice], Any]
"""From a part and its places to a data frame of new columns."""
Notes = Callable[[], Mapping[str, Any]]
"""What a card says, when all is known."""
Step = Callable[[], None]


@dataclass(frozen=True)
class Writing:
    """How results are written."""

    only_new: bool = False
    """Whether the new columns are written alone."""
    force: bool = False
    """Whether files that exist are replaced."""


class NewColumns:
    """The new columns of all rows: written into a file part by part, or kept in memory."""

    def __init__(self, subject: Subject, of_part: NewColumnsOfPart) -> None:
        self._subject, self._of_part = subject, of_part
        self._frame: Any = None

    def write(self, out: Path | None, how: Writing, finish: Step = lambda: None) -> None:
        """Write them beside the rows; without a file, keep them. `finish` is called when all are made, and nothing is in its place yet."""
        if out is None:
            self._frame = self._evaluated()
            finish()
        else:
            self._subject.write(out, self._of_part, only_new=how.only_new, force=how.force, finish=finish)

    def frame(self) -> Any:
        """Return them in a data frame; what was written to a file is evaluated again."""
        return self._evaluated() if self._frame is None else self._frame.copy()

    def _evaluated(self) -> Any:
        frame = concatenate([self._of_part(part, where) for part, where in self._subject.numbered_parts("predicting")])
        return frame if self._subject.index is None else frame.set_axis(self._subject.index)


def open_subject(
    table: Any,
    roles: Roles,
    *,
    columns: Sequence[ColumnFacts] | None = None,
    results: re.Pattern[str] | None = None,
    labels: Any = (),
) -> Subject:
    """Open a path, a pandas data frame or AnnData.

    `columns` are those of a model that will be used on the rows. Columns with names that match `results` are about to be written, and not
    learned from. `labels` are files or data frames of labels that a person gave elsewhere.
    """
    subject = _opened(table, roles, columns, results)
    if roles.target is not None:
        question = f"In the target {roles.target!r}, {subject.tidy.question}." if subject.tidy.question else ""
        subject.notes.extend([*subject.tidy.notes, *([question] if question else [])])
    if isinstance(labels, str | PathLike) or len(labels):
        from ._given_labels import give_labels

        give_labels(subject, labels)
    return subject


def _opened(table: Any, roles: Roles, columns: Sequence[ColumnFacts] | None, results: re.Pattern[str] | None) -> Subject:
    if is_tissue(table):
        from ._tissue_subject import TissueSubject

        return TissueSubject(table, roles)
    from ._table_subject import TableSubject

    return TableSubject(table, roles, columns, results)


def left_out_notes(pool: RepresentationPool) -> list[str]:
    """Return a note on the members of a pool that do not fit the rows."""
    return [f"Left out of the representations that labels choose from: {name} ({reason})" for name, reason in pool.left_out_.items()]


def check_outputs(
    inputs: Sequence[Any], outputs: Sequence[Path | None], *, force: bool, endings: Sequence[str] | None = None
) -> list[Path]:
    """Return the files that will be written: checked before any work.

    The first of the outputs are the results, of which the name ends as those of tables do, or in one of `endings`. Raise ValueError for
    other names, and for files that exist, cannot be written, or are read.
    """
    paths = [path for path in outputs if path is not None and not is_standard(path)]
    read = [Path(given).resolve() for given in inputs if isinstance(given, str | PathLike) and not is_standard(given)]
    for path in paths:
        check_writable(path, force=force)
        if path.resolve() in read:
            raise ValueError(f"{path} is what the command reads: write to another file.")
    if len({path.resolve() for path in paths}) < len(paths):
        raise ValueError(f"{paths[0]} cannot be both the results and the model: name another file with model_out.")
    if outputs and outputs[0] is not None:
        _check_ending(outputs[0], endings, (SPOTS,) if any(map(is_tissue, inputs)) else ())
    return paths


def _check_ending(out: Path, endings: Sequence[str] | None, others: tuple[str, ...]) -> None:
    if endings is None:
        check_table_name(out, others)
    elif out.suffix.lower() not in endings:
        raise ValueError(f"{out} ends in {out.suffix or 'nothing'}: choose a name that ends in {endings[0]}.")


def is_tissue(given: Any) -> bool:
    """Return whether a path or an object in memory is AnnData."""
    if isinstance(given, str | PathLike):
        return Path(given).suffix.lower() == SPOTS
    return type(given).__module__.split(".")[0] == "anndata"


def as_path(path: str | PathLike[str] | None) -> Path | None:
    """Return the path that a person gave as a Path."""
    return None if path is None else Path(path)


def model_path(out: Path | None, model_out: str | PathLike[str] | None) -> Path | None:
    """Return where the model goes: beside the results, unless another file is named; standard output has nothing beside it."""
    if model_out is None and out is not None:
        return None if is_standard(out) else beside(out, ".gpssl")
    return as_path(model_out)


def concatenate(parts: Sequence[Any]) -> Any:
    """Concatenate data frames or arrays."""
    return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else pd.concat(parts, ignore_index=True)
