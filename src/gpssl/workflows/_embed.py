"""Learn a representation of a table, with its uncertainty, and use a model that was learned before on other rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ..core._checked_rows import check_new_rows
from ..core._posterior import warn_if_mean_is_zero
from ..downstream._marginal import Marginalized
from ..downstream._pool import RepresentationPool
from ..estimator import GPSSL
from ..evaluation._importance import ColumnImportance, dimension_importance, in_order
from ..io._card import representation_of
from ..io._model_files import load
from ._choices import MAX_INDUCING, Alike, Settings
from ._label import PredictionColumns, names_of_results
from ._subject import NewColumns, Roles, Subject, SubjectPart, Writing, as_path, check_outputs, model_path, open_subject

Array = NDArray[np.float64]

PREFIX = "gpssl"
RESULTS = re.compile(rf"{PREFIX}_(\d+(_std|_draw_\d+)?|cluster(_\d+|_probability)?)")
"""Columns that representations and clusters are written to: what an earlier run left there is not learned from."""
MOST_ROWS = 500
"""Rows that say which columns matter."""


@dataclass(frozen=True)
class Embedded:
    """What `embed` and `transform` have found."""

    n_rows: int
    columns: list[str]
    """The columns that were learned from."""
    n_components: int
    residual: float
    temperature: float
    n_inducing: int
    mean_std: float
    """Average standard deviation of the representation over rows and dimensions, 1 where nothing is known. Most of it may be a shift that
    all rows share, which tells no rows apart."""
    certain_share: float
    """The share of the spread between rows that is certain, averaged over dimensions: Var_n E f(x_n) over that and the mean of
    Var(f(x_n) − mean f). 1 where rows are told apart for sure, 0 where they are not told apart."""
    importance: dict[str, list[ColumnImportance]]
    """Which columns matter to each dimension: how far it moves when a column is shuffled. Columns that tell the same share their
    importance. Empty for tissue, and for `transform`."""
    target: str | None
    """The column that a model with heads predicted too."""
    written: list[Path]
    notes: list[str]
    model: Any = field(repr=False)
    """The fitted model, with its card as `card_`."""
    new_columns: NewColumns = field(repr=False)

    def frame(self) -> Any:
        """Return the new columns as a data frame: gpssl_1, …, gpssl_1_std, …, and what else was asked for. [n rows]"""
        return self.new_columns.frame()


def embed(
    table: Any,
    *,
    n_components: int | None = None,
    alike: Literal["columns", "neighbors"] | Alike = Alike.COLUMNS,
    temperature: float | Literal["auto"] = "auto",
    max_inducing: int = MAX_INDUCING,
    keep: Sequence[str] = (),
    ignore: Sequence[str] = (),
    sheet: str | None = None,
    random_state: int = 0,
    out: str | PathLike[str] | None = None,
    model_out: str | PathLike[str] | None = None,
    only_new: bool = False,
    force: bool = False,
) -> Embedded:
    """Learn a representation of a table from its rows alone, as `gpssl embed` does.

    Parameters
    ----------
    table
        A path (CSV, TSV, Parquet, Arrow, JSON lines, .xlsx, .sqlite, .duckdb, .zip, .h5ad; "-" is standard input), a pandas data frame,
        or AnnData; objects in memory are left as they are. Mixed columns and missing cells are fine.
    n_components
        J, the number of dimensions; by default 5, for tissue 10.
    alike
        "columns": rows are alike if their columns agree. "neighbors": if small steps lead from one to the other.
    temperature, max_inducing, random_state
        As for `GPSSL`.
    keep, ignore
        Columns to learn from though they look like identifiers, and columns not to learn from.
    sheet
        The sheet of a workbook, by default the first that holds a table; or the table of a database, by default the only one.
    out
        File for the rows with the new columns gpssl_1, …, gpssl_J (posterior means) and gpssl_1_std, … (standard deviations).
    model_out
        File for the model; by default `out` with the ending .gpssl. Without `out` and `model_out` nothing is written, and with "-",
        standard output, as `out` no model.
    only_new, force
        Whether to write the new columns alone, and whether to replace files that exist.

    Examples
    --------
    >>> import gpssl
    >>> from sklearn.datasets import load_wine
    >>> result = gpssl.embed(load_wine(as_frame=True).data, n_components=2)
    >>> result.frame().columns.tolist()
    ['gpssl_1', 'gpssl_2', 'gpssl_1_std', 'gpssl_2_std']
    """
    settings = Settings(n_components, Alike(alike), temperature, max_inducing=max_inducing, seed=random_state)
    out, model_file = as_path(out), model_path(as_path(out), model_out)
    written = check_outputs([table], [out, model_file], force=force)
    subject = open_subject(table, Roles(keep=keep, ignore=ignore, sheet=sheet), results=RESULTS)
    with subject.noting(settings):
        ssl = subject.fit(settings)
        representation = RepresentationColumns(ssl)
        columns = NewColumns(subject, lambda part, _: representation(part.learned_rows))
        importance = _importance(ssl, subject, random_state)
        noted = {name: [asdict(one) for one in ones] for name, ones in importance.items()}
        subject.finish(ssl, columns, out, model_file, Writing(only_new, force), lambda: {"importance": noted})
    return representation.summary(subject, ssl, columns, written, importance=importance)


def transform(
    model: Any,
    table: Any,
    *,
    n_draws: int = 0,
    sheet: str | None = None,
    out: str | PathLike[str] | None = None,
    only_new: bool = False,
    force: bool = False,
) -> Embedded:
    """Represent other rows by a model that was learned before, and predict where it has heads, as `gpssl transform` does.

    Parameters
    ----------
    model
        A path, or the `model` of what `embed` or `label` returned. A model of `label` abstains as its `max_risk` demands.
    table
        Rows, as for `embed`. A note says where they leave the ranges of the rows that the model was learned from.
    n_draws
        How many functions of the posterior to evaluate too: columns gpssl_1_draw_1, …, each the same function at all rows.
    sheet, out, only_new, force
        As for `embed`; without `out` nothing is written.

    Examples
    --------
    >>> import gpssl
    >>> from sklearn.datasets import load_wine
    >>> wines = load_wine(as_frame=True).data
    >>> model = gpssl.embed(wines[:100], n_components=2).model
    >>> gpssl.transform(model, wines[100:], n_draws=3).frame().shape
    (78, 10)
    """
    out = as_path(out)
    written = check_outputs([table, model], [out], force=force)
    loaded = open_model(model)
    target = loaded.card_.notes.get("target", "target") if isinstance(loaded, Marginalized) else None
    results = RESULTS if target is None else re.compile(f"{RESULTS.pattern}|{names_of_results(target).pattern}")
    subject = open_subject(table, Roles(sheet=sheet), columns=loaded.card_.columns or None, results=results)
    representation = RepresentationColumns(check_map(representation_of(loaded)))
    functions = representation.ssl.draw_functions(n_draws) if n_draws else None
    predict = None if target is None else PredictionColumns.of_model(loaded, target)
    clusters = cluster_columns(loaded) if hasattr(loaded, "n_clusters_") else None

    def of_part(part: SubjectPart, _where: slice) -> Any:
        frame = representation(part.rows)
        if functions is not None:
            frame = frame.join(_draws(functions(part.rows)))
        if clusters is not None:
            frame = frame.join(clusters(part.rows))
        return frame if predict is None else frame.join(predict(part, np.ones(part.n_rows, dtype=bool)))

    columns = NewColumns(subject, of_part)
    with subject.noting():
        columns.write(out, Writing(only_new, force))
    return representation.summary(subject, loaded, columns, written, target)


class RepresentationColumns:
    """The columns of a representation for parts of a table, and how sure it is of them."""

    def __init__(self, ssl: GPSSL) -> None:
        self.ssl = ssl
        moments = ssl.moments_
        self._center: Array = ssl.features_.whiten(moments.first / moments.weight)
        self._n_rows = 0
        self._sums = np.zeros((4, len(ssl.posterior_.weights.mean)))
        """Sums over rows of the mean, of its square, of the standard deviation and of the variance without a common shift. [4, J]"""

    def __call__(self, rows: Any) -> Any:
        """Return gpssl_1, …, gpssl_J, and gpssl_1_std, …, gpssl_J_std. [n, 2 J]"""
        posterior = self.ssl.posterior_
        warn_if_mean_is_zero(posterior, stacklevel=2)
        shape = (3, None, len(posterior.weights.mean))
        mean, std, apart = check_new_rows(self.ssl, rows, self.ssl.kernel_).map(
            partial(posterior.mean_and_stds, center=self._center), shape
        )
        self._n_rows += len(mean)
        self._sums += [mean.sum(axis=0), (mean**2).sum(axis=0), std.sum(axis=0), (apart**2).sum(axis=0)]
        names = [f"{PREFIX}_{j + 1}" for j in range(mean.shape[1])]
        return pd.DataFrame(np.hstack([mean, std]), columns=[*names, *(f"{name}_std" for name in names)])

    @property
    def certain_share(self) -> float:
        """The share of the spread between rows that is certain, averaged over dimensions; 0 without rows."""
        mean, square, _, open_variance = self._sums / max(1, self._n_rows)
        certain = np.maximum(square - mean**2, 0.0)
        return float((certain / np.maximum(certain + open_variance, np.finfo(float).tiny)).mean())

    def summary(
        self,
        subject: Subject,
        model: Any,
        columns: NewColumns,
        written: list[Path],
        target: str | None = None,
        importance: dict[str, list[ColumnImportance]] | None = None,
    ) -> Embedded:
        """Return what was found, after all parts."""
        return Embedded(
            n_rows=subject.n_rows,
            columns=[column.name for column in subject.facts],
            n_components=len(self.ssl.posterior_.weights.mean),
            residual=self.ssl.residual_,
            temperature=self.ssl.temperature_,
            n_inducing=len(self.ssl.inducing_points_),
            mean_std=float(self._sums[2].mean() / max(1, self._n_rows)),
            certain_share=self.certain_share,
            importance=importance or {},
            target=target,
            written=written,
            notes=subject.notes,
            model=model,
            new_columns=columns,
        )


def cluster_columns(model: Any) -> Callable[[Any], Any]:
    """Return what gives the columns of clusters for parts of a table."""
    from ._cluster import ClusterColumns  # which needs the names here

    return ClusterColumns(model)


def _importance(ssl: GPSSL, subject: Subject, seed: int) -> dict[str, list[ColumnImportance]]:
    """Return which columns matter to each dimension, from some of the rows; nothing for spots of tissue, which have no few columns."""
    if subject.kind != "table" or subject.n_rows < 2:
        return {}
    chosen = np.random.default_rng(seed).permutation(subject.n_rows)[:MOST_ROWS]
    names, found = dimension_importance(ssl.transform, subject.rows_at(np.sort(chosen)), seed=seed)
    return {f"{PREFIX}_{place + 1}": in_order(names, values) for place, values in enumerate(found.T)}


def check_map(representation: Any) -> GPSSL:
    """Raise ValueError for a pool that has no representation of its own to show, which models of `label` have."""
    if isinstance(representation, RepresentationPool):
        raise ValueError(
            "This model is a pool without a representation of few dimensions. Use its predict_proba or predict; models that gpssl.label "
            "makes have such a representation."
        )
    return representation


def open_model(model: Any) -> Any:
    """Load a model from a file, or return one that has a card."""
    if isinstance(model, str | PathLike):
        return load(model)
    if getattr(model, "card_", None) is None:
        raise ValueError(
            "This model has no card. Pass the model that embed or label returned, or one that gpssl.load has read from a file."
        )
    return model


def _draws(values: Array) -> Any:
    """Return gpssl_1_draw_1, …: each draw is one function, the same at all rows. From [S, n, J] to [n, S J]"""
    n_draws, n_rows, n_components = values.shape
    names = [f"{PREFIX}_{j + 1}_draw_{s + 1}" for s in range(n_draws) for j in range(n_components)]
    return pd.DataFrame(values.swapaxes(0, 1).reshape(n_rows, -1), columns=names)
