"""How the command prints: results on standard output, notes and progress on standard error, errors in a sentence."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from errno import ENOMEM
from functools import wraps
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from unicodedata import category

import typer

from .._runtime import is_standard
from .._runtime.files import forget_all, remove_left_behind
from .._runtime.signals import end_when_stopped, ignore_stopping
from ..workflows._choices import ChoiceError

if TYPE_CHECKING:
    from .._runtime.progress import Progress

FAILED, INTERRUPTED = 1, 130
"""Exit codes for what cannot be done, and for what a person stopped. Wrong options are 2, as everywhere."""

AS_BEFORE = "Files that were not finished are not there, or as they were before."

TRACEBACK = "GPSSL_TRACEBACK"
"""Environment variable: with any value, errors come with their traceback."""

OPTIONS = {
    "n_clusters": "--clusters",
    "max_clusters": "--max-clusters",
    "n_draws": "--draws",
    "n_components": "--components",
    "max_inducing": "--max-inducing",
    "max_risk": "--max-risk",
    "confidence": "--confidence",
    "n_splits": "--splits",
    "model_out": "--model",
    "alike": "--alike",
    "keep": "--keep",
    "ignore": "--ignore",
    "sheet": "--sheet",
    "unlabeled": "--unlabeled",
}
"""The options of parameters that sentences of the library name."""
FLAGS = {"force=True": "--force", "target_kind='number'": "--numeric"}
WORDS = ("confidence", "alike", "keep", "ignore", "sheet", "unlabeled")
"""Parameters whose names are also plain words: they are parameters only where they have a value."""
PARAMETER = re.compile(rf"\b({'|'.join(OPTIONS)})\b(?:=(\[[^]]*\]|'[^']*'|\w+))?")

LESS_MEMORY = (
    "lower max_inducing or n_components, leave out columns with --ignore, use fewer rows, or give the table as Parquet, "
    "which is read part by part"
)
OF_MEMORY = (
    *("can't start new thread", "cannot allocate memory", "failed to map segment", "bad_alloc", "out of memory"),
    "failed to launch worker thread",
)
"""What libraries say that have no memory, and no error of their own for it."""

LEAST_MAPPED = 2 * 2**30
"""How many bytes the libraries map, of which they use a tenth: OpenBLAS waits forever, and others abort, where they cannot."""

IN_LIST = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,\s]+""")
"""An element of a list in a sentence: a quoted text, or a name."""

UNSEEN, JOINERS = ("Cc", "Cf", "Cs", "Zl", "Zp"), ("\u200c", "\u200d")
"""Kinds of signs that terminals obey or do not show, and those of them that are printed as they are: they join letters."""

Command = Callable[..., None]
_bars: list[Any] = []
"""The bars that are on the terminal, which hide its cursor."""


def in_sentences(command: Command) -> Command:
    """Return the command with errors as one sentence, and an exit code."""

    @wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
        except KeyboardInterrupt as error:
            raise typer.Exit(_complain(f"Interrupted. {AS_BEFORE}", INTERRUPTED)) from error
        except (typer.Exit, BrokenPipeError):
            raise
        except ChoiceError as error:
            raise typer.BadParameter(error.reason, param_hint=OPTIONS.get(error.parameter, f"--{error.parameter}")) from error
        except Exception as error:
            if TRACEBACK in os.environ or type(error).__module__.split(".")[0] in ("click", "typer"):
                raise
            show_notes(getattr(error, "__notes__", ()))
            raise typer.Exit(_complain(_sentence(error), FAILED)) from error

    return run


def run_as_process(command: Callable[[], object]) -> None:
    """Run a command as all that this process does: neither its end, nor a signal that stops it, leaves an unfinished file.

    What killed processes have left in the folder for temporary files is removed.
    """
    end_when_stopped(_end_stopped)
    try:
        remove_left_behind()
        _check_limit_of_memory()
        command()
    except Exception as error:
        if TRACEBACK in os.environ or not _is_of_memory(error):
            raise
        sys.exit(_complain(_sentence(error), FAILED))
    finally:
        ignore_stopping()
        forget_all()


def _check_limit_of_memory() -> None:
    """Raise MemoryError where this process may not map what its libraries need."""
    try:
        import resource
    except ImportError:  # on Windows
        return
    limit = resource.getrlimit(resource.RLIMIT_AS)[0] if hasattr(resource, "RLIMIT_AS") else resource.RLIM_INFINITY
    if limit != resource.RLIM_INFINITY and limit < LEAST_MAPPED:
        raise MemoryError(f"ulimit -v allows {limit // 2**20:,} MB, and the libraries alone map {LEAST_MAPPED // 2**20:,} MB: raise it")


def _end_stopped(number: int) -> NoReturn:
    """End the process at once, wherever it is, with the exit code that shells tell of this signal."""
    ignore_stopping()
    forget_all()
    code = 128 + number
    with suppress(Exception):  # a terminal that was closed takes no sentence
        if _bars:
            _bars[-1].stop()
        word = "Interrupted" if code == INTERRUPTED else "Terminated"
        os.write(2, f"Error: {word}. {AS_BEFORE}\n".encode())  # Python's own stream may be in use right now
    os._exit(code)


def with_options(text: str) -> str:
    """Return a sentence of the library with the options of the command in the place of its parameters.

    >>> with_options("Give more rows, or lower n_components; max_inducing=1024 would do, or alike='neighbors'.")
    'Give more rows, or lower --components; --max-inducing 1024 would do, or --alike neighbors.'
    >>> with_options("Pass unlabeled=['unknown', 'not yet'].")
    "Pass --unlabeled unknown --unlabeled 'not yet'."
    """

    def option(found: re.Match[str]) -> str:
        name, value = found.groups()
        flag = "--table" if name == "sheet" and "database" in text else OPTIONS[name]
        if value is None:
            return found[0] if name in WORDS else flag
        if value[0] == "[":
            return " ".join(f"{OPTIONS[name]} {_in_shell(one)}" for one in IN_LIST.findall(value[1:-1]))
        return f"{flag} {_in_shell(value)}"

    for parameter, flag in FLAGS.items():
        text = text.replace(parameter, flag)
    return PARAMETER.sub(option, text)


def _in_shell(element: str) -> str:
    """Return an element of a list as a person types it: in quotes only where the shell needs them."""
    return shlex.quote(ast.literal_eval(element)) if element[0] in "'\"" else element


def _sentence(error: Exception) -> str:
    """Return the text of an error that a person can act on; of others, what they are and how to see more."""
    text = with_options(" ".join(str(error).split()))
    if _is_of_memory(error):
        return with_options(f"There is not enough memory{f' ({text})' if text else ''}: {LESS_MEMORY}.")
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        return f"There is no file {str(error.filename)!r}."
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    expected = isinstance(error, ValueError | TypeError | OSError | ImportError) or type(error).__module__.startswith("gpssl")
    if expected and text:
        return text
    return f"{type(error).__name__}: {text}. This is likely a mistake in gpssl; {TRACEBACK}=1 shows where."


def _is_of_memory(error: BaseException | None) -> bool:
    """Return whether an error, or what it came from, tells that the system gave no memory, for data, threads or libraries."""
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == ENOMEM):
            return True
        is_of_library = isinstance(error, RuntimeError | ImportError | OSError) or type(error).__module__.startswith("pyarrow")
        if is_of_library and any(words in str(error).lower() for words in OF_MEMORY):
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


def _complain(text: str, code: int) -> int:
    show_line(f"Error: {text}", to_error=True)
    return code


def show_line(text: str = "", *, to_error: bool = False) -> None:
    """Print one line; what a terminal would obey in the names of a person's files and columns is shown with its code."""
    typer.echo(printable(text), err=to_error)


def printable(text: str) -> str:
    r"""Return a text with codes in the place of signs that are not to be seen, ends of lines among them.

    >>> printable("a" + chr(27) + "[31mb" + chr(0x202E))
    'a\\x1b[31mb\\u202e'
    """
    return "".join(sign.encode("unicode_escape").decode() if _is_unseen(sign) else sign for sign in text)


def _is_unseen(sign: str) -> bool:
    return category(sign) in UNSEEN and sign not in JOINERS


@contextmanager
def with_printable_message() -> Iterator[None]:
    """Raise errors about arguments, which typer prints, with messages that a terminal does not obey."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.split(".")[0] in ("click", "typer") and isinstance(message := getattr(error, "message", None), str):
            error.message = printable(message)  # type: ignore[attr-defined]
        raise


def show_notes(notes: Sequence[str]) -> None:
    """Print what was done that a person should know of."""
    for note in notes:
        show_line(f"Note: {with_options(note)}", to_error=True)


def show_result(result: Any, lines: Iterable[str], *, as_json: bool, out: Path | None = None) -> None:
    """Print the notes of a result, then the result: as JSON, or as these lines and the files that were written.

    Where the table itself went to standard output, all this goes to standard error.
    """
    to_error = is_standard(out)
    show_notes(result.notes)
    if as_json:
        show_json(result, to_error=to_error)
        return
    for line in (*lines, *(f"wrote {path}" for path in result.written)):
        show_line(line, to_error=to_error)


SENTENCES = ("notes", "recommendation", "text")
"""Fields of results that hold sentences of the library."""


def show_json(result: Any, *, to_error: bool = False) -> None:
    """Print a result for scripts: one object, in which numbers that JSON has not, such as infinity, are null.

    Fields that are not for reading (`repr=False`), such as a fitted model, are left out. Signs that are not to be seen have JSON's codes.
    """
    text = json.dumps(_plain(result), indent=2, ensure_ascii=False, allow_nan=False)
    # Ends of lines are those between the parts: within texts they have codes already.
    typer.echo("".join(json.dumps(sign)[1:-1] if sign != "\n" and _is_unseen(sign) else sign for sign in text), err=to_error)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _plain({one.name: getattr(value, one.name) for one in fields(value) if one.repr})
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {str(name): _sentences(part) if name in SENTENCES else _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value.item() if hasattr(value, "item") else value


def _sentences(value: Any) -> Any:
    """Return sentences of the library with options; what else a field of this name holds is plain."""
    if isinstance(value, str):
        return with_options(value)
    return [_sentences(one) for one in value] if isinstance(value, list) else _plain(value)


def show_facts(title: str, facts: Mapping[str, str]) -> None:
    """Print names and values, one below the other."""
    show_line(title)
    shown = {printable(name): value for name, value in facts.items()}
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        show_line(f"  {name:<{width}}  {value}")


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a title on a line of its own, and rows of texts, the first column to the left and the others to the right."""
    from rich.console import Console
    from rich.table import Table

    show_line(title)  # as long as it is: within the table it would be wrapped to its width
    table = Table(box=None, pad_edge=False)
    for place, name in enumerate(columns):
        table.add_column(printable(name), justify="left" if place == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*map(printable, row))
    # A pipe has no width: lines there are as long as they are.
    # Names of a person's columns are not markup.
    Console(width=None if sys.stdout.isatty() else 200, highlight=False, markup=False, emoji=False).print(table)


@contextmanager
def progress_bars() -> Iterator[None]:
    """Show a bar on the terminal for whatever is counted within this block; it goes away at the end. Elsewhere there is none."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    from .._runtime.progress import shown_by

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        waiting = bars.add_task("working", total=None)
        tasks: dict[int, Any] = {}

        def show(progress: Progress) -> None:
            if id(progress) not in tasks:
                bars.update(waiting, visible=False)
                tasks[id(progress)] = (bars.add_task(printable(progress.task), total=progress.total), progress)
            bars.update(tasks[id(progress)][0], completed=progress.done, visible=not progress.finished)

        _bars.append(bars)
        try:
            with shown_by(show):
                yield
        finally:
            _bars.remove(bars)
