"""Find clusters of the rows of a table, with the probability of each cluster for each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from ..clustering._estimator import LEARNING_ROWS, PosteriorClustering, widened
from ._choices import CLUSTERED_DRAWS, MAX_CLUSTERS, MAX_INDUCING, Alike, ChoiceError, Settings
from ._embed import PREFIX, RESULTS
from ._subject import NewColumns, Roles, Writing, as_path, check_outputs, model_path, open_subject

Array = NDArray[np.float64]

CLUSTER = f"{PREFIX}_cluster"
"""The column of clusters; those of probabilities begin with it."""
SURE = 0.95
"""The probability from which on a row counts as surely in its cluster."""


@dataclass(frozen=True)
class Clustered:
    """What `cluster` has found."""

    n_rows: int
    columns: list[str]
    """The columns that were learned from."""
    n_clusters: int
    n_clusters_proba: dict[int, float]
    """The posterior of the number of clusters, given that there are some: the share of draws that prefer each."""
    one_cloud_proba: float
    """The share of draws that show no clusters: see `PosteriorClustering.one_cloud_proba_`."""
    sizes: list[int]
    """How many rows are most probably in each cluster, the largest cluster first as the rows tell that clusters were learned from."""
    mean_probability: float
    """Average probability of the cluster that a row is assigned to."""
    n_unsure: int
    """Rows that are in their cluster with a probability below 95 %."""
    written: list[Path]
    notes: list[str]
    model: PosteriorClustering = field(repr=False)
    """The fitted clustering, with its card as `card_`."""
    new_columns: NewColumns = field(repr=False)

    def frame(self) -> Any:
        """Return the new columns as a data frame: gpssl_cluster, gpssl_cluster_probability, gpssl_cluster_1, … [n rows]"""
        return self.new_columns.frame()


def cluster(
    table: Any,
    n_clusters: int | Literal["auto"] = "auto",
    *,
    max_clusters: int = MAX_CLUSTERS,
    n_components: int | None = None,
    alike: Literal["columns", "neighbors"] | Alike = Alike.COLUMNS,
    temperature: float | Literal["auto"] = "auto",
    n_draws: int = CLUSTERED_DRAWS,
    max_inducing: int = MAX_INDUCING,
    keep: Sequence[str] = (),
    ignore: Sequence[str] = (),
    sheet: str | None = None,
    random_state: int = 0,
    out: str | PathLike[str] | None = None,
    model_out: str | PathLike[str] | None = None,
    only_new: bool = False,
    force: bool = False,
) -> Clustered:
    """Find clusters of the rows of a table, and how sure each row is in its cluster, as `gpssl cluster` does.

    Draws of a representation of all rows are clustered one by one, and matched: see `gpssl.clustering.PosteriorClustering`.

    Parameters
    ----------
    table
        A path, a pandas data frame or AnnData, as for `embed`.
    n_clusters, max_clusters
        The number of clusters, or "auto" for the one that most draws prefer, from two to `max_clusters`.
    n_components
        Dimensions of the representation; by default 10, or fewer where the rows have not so many.
    n_draws
        How many draws are clustered.
    alike, temperature, max_inducing, keep, ignore, sheet, random_state, model_out, only_new, force
        As for `embed`.
    out
        File for the rows with the new columns gpssl_cluster (from 1, the largest cluster), gpssl_cluster_probability, and gpssl_cluster_1,
        …, gpssl_cluster_K, the probability of each cluster.

    Examples
    --------
    >>> import gpssl
    >>> from sklearn.datasets import load_wine
    >>> result = gpssl.cluster(load_wine(as_frame=True).data)
    >>> result.n_clusters, result.frame().columns.tolist()
    (3, ['gpssl_cluster', 'gpssl_cluster_probability', 'gpssl_cluster_1', 'gpssl_cluster_2', 'gpssl_cluster_3'])
    """
    _check_numbers(n_clusters, max_clusters, n_draws)
    settings = Settings(1, Alike(alike), temperature, n_draws, max_inducing, random_state)
    out, model_file = as_path(out), model_path(as_path(out), model_out)
    written = check_outputs([table], [out, model_file], force=force)
    subject = open_subject(table, Roles(keep=keep, ignore=ignore, sheet=sheet), results=RESULTS)
    if not isinstance(n_clusters, str) and n_clusters > subject.n_rows:
        raise ChoiceError("n_clusters", f"{subject.n_rows:,} rows cannot form {n_clusters:,} clusters.")
    with subject.noting(settings):
        ssl = widened(subject.fit(settings), n_components)
        model = PosteriorClustering(
            n_clusters, FrozenEstimator(ssl), max_clusters=max_clusters, n_draws=n_draws, random_state=random_state
        ).fit(subject.rows_at(_some_places(subject.n_rows, random_state)))
        find = ClusterColumns(model)
        columns = NewColumns(subject, lambda part, _: find(part.learned_rows))
        subject.finish(model, columns, out, model_file, Writing(only_new, force))
    return Clustered(
        n_rows=subject.n_rows,
        columns=[column.name for column in subject.facts],
        n_clusters=model.n_clusters_,
        n_clusters_proba=model.n_clusters_proba_,
        one_cloud_proba=model.one_cloud_proba_,
        sizes=find.sizes.tolist(),
        mean_probability=find.total / max(1, subject.n_rows),
        n_unsure=find.n_unsure,
        written=written,
        notes=subject.notes,
        model=model,
        new_columns=columns,
    )


class ClusterColumns:
    """The columns of clusters for parts of a table, and how many rows there are in each and how sure."""

    def __init__(self, model: PosteriorClustering) -> None:
        self.model = model
        self.sizes = np.zeros(model.n_clusters_, dtype=np.intp)
        self.total, self.n_unsure = 0.0, 0

    def __call__(self, rows: Any) -> Any:
        """Return gpssl_cluster, gpssl_cluster_probability, and the probability of each cluster. [n, 2 + K]"""
        proba = self.model.predict_proba(rows)
        best, certainty = proba.argmax(axis=1), proba.max(axis=1)
        self.sizes += np.bincount(best, minlength=len(self.sizes))
        self.total += float(certainty.sum())
        self.n_unsure += int((certainty < SURE).sum())
        each = {f"{CLUSTER}_{place + 1}": column for place, column in enumerate(proba.T)}
        return pd.DataFrame({CLUSTER: best + 1, f"{CLUSTER}_probability": certainty, **each})


def _some_places(n_rows: int, seed: int) -> NDArray[np.intp]:
    """Return the places of the rows that clusters are learned from: all, or a random sample in their order."""
    if n_rows <= LEARNING_ROWS:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, LEARNING_ROWS, replace=False))


def _check_numbers(n_clusters: Any, max_clusters: int, n_draws: int) -> None:
    if isinstance(n_clusters, str) and n_clusters != "auto":
        raise ChoiceError("n_clusters", f"{n_clusters!r} is neither 'auto' nor a whole number.")
    if not isinstance(n_clusters, str) and n_clusters < 1:
        raise ChoiceError("n_clusters", f"{n_clusters} is no number of clusters: it is 'auto', or a whole number of at least 1.")
    if max_clusters < 2:
        raise ChoiceError("max_clusters", f"{max_clusters} is too few: 'auto' considers two clusters or more.")
    if n_draws < 1:
        raise ChoiceError("n_draws", f"{n_draws} is too few: one draw at least is clustered.")
