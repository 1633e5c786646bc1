"""How the command speaks: results on standard output, notes and progress on standard error, errors in a sentence."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from functools import wraps
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..workflows._choices import with_options

if TYPE_CHECKING:
    from .._runtime.progress import Progress

FAILED, INTERRUPTED = 1, 130
"""Exit codes: what was asked cannot be done; a person stopped it. Wrong options are 2, as everywhere."""

TRACEBACK = "GPSSL_TRACEBACK"
"""Environment variable: with any value, errors come with their traceback."""

Command = Callable[..., None]


def in_sentences(command: Command) -> Command:
    """The command with errors as one sentence, and an exit code."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except (KeyboardInterrupt, EOFError) as error:
            raise typer.Exit(_complain("Interrupted. Files that were not finished are not there.", INTERRUPTED)) from error
        except (typer.Exit, BrokenPipeError):
            raise
        except Exception as error:
            if TRACEBACK in os.environ or type(error).__module__.split(".")[0] in ("click", "typer"):
                raise
            raise typer.Exit(_complain(_sentence(error), FAILED)) from error

    return run


@contextmanager
def notes_on_failure(notes: Sequence[str]) -> Iterator[None]:
    """What was noted until something failed may explain why."""
    try:
        yield
    except Exception:
        show_notes(notes)
        raise


def _sentence(error: Exception) -> str:
    """What a person can do something about is said by the error itself; of others, say what they are and how to see more."""
    text = with_options(" ".join(str(error).split()))
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"There is no file {str(error.filename)!r}."
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    if isinstance(error, MemoryError):
        return f"There is not enough memory: {text or 'use fewer rows or columns'}."
    expected = isinstance(error, ValueError | TypeError | OSError | ImportError) or type(error).__module__.startswith("gpssl")
    if expected and text:
        return text
    return f"{type(error).__name__}: {text}. This is likely a mistake in gpssl; {TRACEBACK}=1 shows where."


def _complain(text: str, code: int) -> int:
    typer.echo(f"Error: {text}", err=True)
    return code


def show_notes(notes: Sequence[str]) -> None:
    """What was done that a person should know of."""
    for note in notes:
        typer.echo(f"Note: {note}", err=True)


def show_json(result: Any) -> None:
    """A result for scripts: one object, in which numbers that JSON has not, such as infinity, are null."""
    typer.echo(json.dumps(_plain(result), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value.item() if hasattr(value, "item") else value


def show_facts(title: str, facts: Mapping[str, str]) -> None:
    """Names and values, one below the other."""
    typer.echo(title)
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        typer.echo(f"  {name:<{width}}  {value}")


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A title on a line of its own, and rows of texts, the first column to the left and the others to the right."""
    from rich.console import Console
    from rich.table import Table

    typer.echo(title)  # as long as it is: within the table it would be wrapped to its width
    table = Table(box=None, pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(name, justify="left" if place == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    # A pipe has no width: lines there are as long as they are.
    # Names of a person's columns are not markup.
    Console(width=None if sys.stdout.isatty() else 200, highlight=False, markup=False, emoji=False).print(table)


@contextmanager
def progress_bars() -> Iterator[None]:
    """Whatever is counted within this block has a bar on the terminal, which goes away at the end; elsewhere there is none."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    from .._runtime.progress import shown_by

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        waiting = bars.add_task("working", total=None)
        tasks: dict[int, Any] = {}

        def show(progress: Progress) -> None:
            if id(progress) not in tasks:
                bars.update(waiting, visible=False)
                tasks[id(progress)] = (bars.add_task(progress.task, total=progress.total), progress)
            bars.update(tasks[id(progress)][0], completed=progress.done, visible=not progress.finished)

        with shown_by(show):
            yield
