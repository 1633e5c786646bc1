"""Tables to try things on: those that come with scikit-learn, text messages that are downloaded once, and the paper's circles."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn.datasets
from numpy.typing import NDArray

from ._runtime.files import written_beside

__all__ = [
    "NOISE",
    "QUADRANT_ROWS",
    "RADII",
    "TABLES",
    "ExampleFile",
    "Messages",
    "Table",
    "even_circles",
    "load_breast_cancer",
    "load_diabetes",
    "load_digits",
    "load_sms_spam",
    "load_wine",
    "quadrant_circles",
    "write_example",
]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Rows, what is to be predicted from them, and what their columns are called."""

    name: str
    X: Array
    """NaN where a value is missing. [n, D]"""
    y: NDArray[Any]
    """Labels as strings, or targets as floats. [n]"""
    columns: tuple[str, ...]
    """[D]"""
    groups: NDArray[np.str_] | None = None
    """Which rows belong together and should not be split, such as repeated measurements of a mouse. [n]"""

    @property
    def predicts(self) -> str:
        """What the target holds, in words."""
        return "a number" if self.y.dtype.kind == "f" else f"{len(np.unique(self.y))} classes"

    @property
    def n_missing(self) -> int:
        """How many values of X are missing."""
        return int(np.isnan(self.X).sum())

    @property
    def target(self) -> str:
        """The name of the column of y in a file."""
        return "target"

    def frame(self) -> Any:
        """Return the columns of X as a data frame. [n, D]"""
        import pandas as pd

        return pd.DataFrame(self.X, columns=list(self.columns))


@dataclass(frozen=True)
class Messages:
    """Texts, and what is to be predicted from them."""

    name: str
    texts: tuple[str, ...]
    """[n]"""
    y: NDArray[np.str_]
    """Labels. [n]"""

    @property
    def target(self) -> str:
        """The name of the column of y in a file."""
        return "label"

    def frame(self) -> Any:
        """Return the texts as a data frame of one column. [n, 1]"""
        import pandas as pd

        return pd.DataFrame({"message": self.texts})


def load_breast_cancer() -> Table:
    """Load Wisconsin diagnostic breast cancer, 569 rows of 30 columns, "malignant" or "benign": comes with scikit-learn.

    Examples
    --------
    >>> from gpssl.datasets import load_breast_cancer
    >>> table = load_breast_cancer()
    >>> table.X.shape, str(table.y[0]), table.n_missing
    ((569, 30), 'malignant', 0)
    """
    return _from_scikit_learn("breast_cancer", sklearn.datasets.load_breast_cancer())


def load_digits() -> Table:
    """Load handwritten digits, 1,797 pictures of 8 × 8 pixels, "0" to "9": comes with scikit-learn."""
    return _from_scikit_learn("digits", sklearn.datasets.load_digits())


def load_wine() -> Table:
    """Load chemical analyses of 178 wines in 13 columns, of three cultivars: comes with scikit-learn."""
    return _from_scikit_learn("wine", sklearn.datasets.load_wine())


def load_diabetes() -> Table:
    """Load the progression of diabetes in a year, of 442 patients with 10 columns: comes with scikit-learn."""
    bunch = sklearn.datasets.load_diabetes(scaled=False)
    return Table("diabetes", bunch.data, bunch.target, tuple(bunch.feature_names))


_SMS_SPAM = Path("sms_spam") / "SMSSpamCollection"
_SMS_SPAM_ARCHIVE = "https://archive.ics.uci.edu/static/public/228/sms+spam+collection.zip"
_SMS_SPAM_SHA256 = "edc1f2ca36319ca36c6f80fede2f6ae5f81335289352485f3924df077ec20266"
_DOWNLOAD_SECONDS = 60


def load_sms_spam() -> Messages:
    """Load the SMS Spam Collection of Almeida and Gómez Hidalgo (CC BY 4.0): 5,574 text messages, 747 of them "spam", the others "ham".

    The file is taken from the folder that the environment variable GPSSL_DATA names, if it is there; otherwise it is downloaded once from
    the UCI Machine Learning Repository, into the folder where scikit-learn keeps its downloads (`sklearn.datasets.get_data_home`).
    """
    lines = _sms_spam_file().read_bytes().decode("utf-8").rstrip("\n").split("\n")
    labels, texts = zip(*(line.split("\t", 1) for line in lines), strict=True)
    return Messages("sms_spam", texts, np.array(labels))


def _sms_spam_file() -> Path:
    """Return the file with the messages, after a download where it is in no folder."""
    folders = [os.environ.get("GPSSL_DATA"), sklearn.datasets.get_data_home()]
    places = [Path(folder) / _SMS_SPAM for folder in folders if folder]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        found = places[-1]
        content = _downloaded(_SMS_SPAM_ARCHIVE, _SMS_SPAM.name)
        found.parent.mkdir(parents=True, exist_ok=True)
        with written_beside(found) as temporary:
            temporary.write_bytes(content)
    if hashlib.sha256(found.read_bytes()).hexdigest() != _SMS_SPAM_SHA256:
        raise ValueError(f"{found} is not the SMS Spam Collection that this version knows: remove it, and it is downloaded again.")
    return found


def _downloaded(archive: str, member: str) -> bytes:
    """Return one file of an archive from the network. Raise OSError, in one sentence, where it cannot be had."""
    from urllib.request import urlopen
    from zipfile import BadZipFile, ZipFile

    try:
        with urlopen(archive, timeout=_DOWNLOAD_SECONDS) as answer:
            return ZipFile(io.BytesIO(answer.read())).read(member)
    except (OSError, BadZipFile, KeyError) as error:
        raise OSError(
            f"{archive} could not be downloaded ({error}). Download it by hand, unpack {member}, and name the folder that holds "
            f"{_SMS_SPAM} in the environment variable GPSSL_DATA."
        ) from error


TABLES: dict[str, Callable[[], Table]] = {
    "breast_cancer": load_breast_cancer,
    "digits": load_digits,
    "wine": load_wine,
    "diabetes": load_diabetes,
}
"""Functions that load a table, by its name; the messages of `load_sms_spam` are beside them."""

_EXAMPLES: dict[str, Callable[[], Table | Messages]] = {**TABLES, "sms_spam": load_sms_spam}


class ExampleFile(NamedTuple):
    """A table that was written to a file."""

    path: Path
    n_rows: int
    n_columns: int
    target: str
    n_labels: int


def write_example(name: str, path: str | PathLike[str], *, n_labels: int | None = None, seed: int = 0, force: bool = False) -> ExampleFile:
    """Write an example into a file, with a last column of labels of which `n_labels` random cells are filled in and the others empty.

    `name` is one of `TABLES`, whose column of labels is "target", or "sms_spam", of which it is "label".
    """
    import pandas as pd

    from .data import write_table

    if name not in _EXAMPLES:
        raise ValueError(f"There is no data set {name!r}; there are {', '.join(_EXAMPLES)}.")
    table = _EXAMPLES[name]()
    order = np.random.default_rng(seed).permutation(len(table.y))
    frame = table.frame()
    n_columns = frame.shape[1]
    frame[table.target] = pd.Series(table.y).where(order < (len(table.y) if n_labels is None else n_labels))
    write_table(path, frame, force=force)
    return ExampleFile(Path(path), len(frame), n_columns, table.target, int(frame[table.target].notna().sum()))


def _from_scikit_learn(name: str, bunch: Any) -> Table:
    return Table(
        name, bunch.data, np.array([str(label) for label in bunch.target_names[bunch.target]]), tuple(map(str, bunch.feature_names))
    )


_Circles = tuple[Array, NDArray[np.intp]]

RADII = (0.5, 1.0)
NOISE = 0.2
QUADRANT_ROWS = (300, 100, 50, 0)
"""Training rows in the top right, top left, bottom left and bottom right quadrant."""


def quadrant_circles(rows: tuple[int, int, int, int] = QUADRANT_ROWS, seed: int = 0) -> _Circles:
    """Draw the paper's concentric circles (section 3.2): rows, and the circle that each comes from.

    In each quadrant, counted counter-clockwise from the top right, a row has a radius of 0.5 or 1 with equal probability, a uniform angle,
    and Gaussian noise of standard deviation 0.2 in both coordinates.
    """
    return _circles(np.repeat(np.arange(4), rows), np.random.default_rng(seed))


def even_circles(n_rows: int, seed: int = 0) -> _Circles:
    """Draw the same circles with rows in all quadrants alike: the paper's labeled rows and test rows (section 3.3.1)."""
    rng = np.random.default_rng(seed)
    return _circles(rng.integers(4, size=n_rows), rng)


def _circles(quadrant: NDArray[np.intp], rng: np.random.Generator) -> _Circles:
    circle = rng.integers(len(RADII), size=len(quadrant))
    angle = (quadrant + rng.random(len(quadrant))) * np.pi / 2
    radius = np.array(RADII)[circle]
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + NOISE * rng.standard_normal(X.shape), circle
