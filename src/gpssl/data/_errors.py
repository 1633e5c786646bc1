"""What is wrong with a file, in one sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

LONGEST_NAME = 100
"""Letters of a name that a sentence shows."""


class FileError(ValueError):
    """A file cannot be read or written. The message is one sentence or two, and says what to do."""


@contextmanager
def as_sentence(path: Path) -> Iterator[None]:
    """Raise the errors of the system, and what Arrow or Python raise because of the content of a file, as a `FileError` of one sentence."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileError(f"There is no file {path}.") from error
    except IsADirectoryError as error:
        raise FileError(f"{path} is a folder: name a file.") from error
    except PermissionError as error:
        raise FileError(f"{path} may not be read: change its permissions.") from error
    except Exception as error:
        import pyarrow as pa

        of_content = isinstance(error, EOFError | OSError | pa.ArrowException | ValueError | OverflowError)
        if isinstance(error, FileError | MemoryError) or not of_content:  # Arrow has an error of its own for memory
            raise
        message = str(error) or type(error).__name__
        reason = f"{message.splitlines()[0].rstrip('.')}. It may be damaged or of another kind than its name says."
        if "runcated" in message or "EOF" in message or "ended before" in message:
            reason = "it is cut off; copy or download it again."
        elif "straddling" in message:
            reason = "one of its rows is very long; perhaps a quote is opened and not closed."
        raise FileError(f"{path} cannot be read as a table: {reason}") from error


def beginning(title: str | Path) -> str:
    """Return what a sentence begins with: words such as "the table" get a capital letter, paths stay as they are."""
    return title[:1].upper() + title[1:] if isinstance(title, str) else str(title)


def no_such_column(name: str, names: Sequence[str], title: str | Path) -> FileError:
    """Return the error for a column that is not there; it tells the names that differ in a few letters, or in case alone, or the first."""
    folded: dict[str, str] = {}
    for one in names:
        folded.setdefault(one.strip().casefold(), one)
    near = [folded[match] for match in difflib.get_close_matches(name.strip().casefold(), list(folded), n=3, cutoff=0.6)]
    first = ", ".join(quoted(one) for one in names[:8]) + (", …" if len(names) > 8 else "")
    advice = f"did you mean {' or '.join(map(quoted, near))}?" if near else f"its columns are {first}."
    return FileError(f"{beginning(title)} has no column {quoted(name)}; {advice}")


def quoted(name: str) -> str:
    """Return a name in quotes; of a very long one, its beginning."""
    return repr(name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…")


def listed(names: Iterable[str], most: int = 5) -> str:
    """Return the names for a sentence, the first few of many."""
    names = list(names)
    shown = ", ".join(quoted(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"
