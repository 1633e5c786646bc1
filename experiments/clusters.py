"""Clusters against known classes: the adjusted Rand index of clusterings of draws, of their rivals and of draws of the prior.

Of a table at most 1,000 rows are drawn. No method sees a class; each clusters the rows twice, into as many clusters as there are classes,
and into a number that it finds itself, from two to ten: draws by their silhouettes and a vote, k-means by the silhouette of 500 rows.
Representations have ten dimensions. Kernel principal components have the kernel of the draws, and their prior's draws too, so
that the difference is what learning brings. UMAP has its defaults, but as many dimensions as the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import adjusted_rand_score, silhouette_score

import gpssl
from gpssl.baselines import GPPrior, KernelPCA
from gpssl.clustering import PosteriorClustering, aligned
from gpssl.evaluation import holm, paired_p_value
from gpssl.kernels import StandardizedKernel

from .data.examples import Examples
from .data.keel import DEVELOPMENT_TABLES, load_keel
from .few_label_protocol import Split, few_labels_split
from .ledger import Record, Task
from .plan import Plan
from .tables import table

Array = NDArray[np.float64]

N_COMPONENTS = 10
MOST_CLUSTERS = 10
SILHOUETTE_ROWS = 500
KNOWN, FOUND = "as many as classes", "number found"
MINE = "draws"
"""The method that the others are tested against."""
EDGES = (0.0, 0.6, 0.8, 0.95, 1.0)
"""Certainties between which errors are counted."""


class Found(NamedTuple):
    """A clustering of the rows."""

    labels: NDArray[Any]
    certainty: Array | None = None
    """The probability of each row's own cluster, where a method has it. [n]"""


Method = Callable[[Split, int | None], Found]


def _by_k_means(represent: Callable[[Split], Array]) -> Method:
    def cluster(split: Split, n_clusters: int | None) -> Found:
        Z = represent(split)
        numbers = range(2, MOST_CLUSTERS + 1) if n_clusters is None else [n_clusters]
        labels = [KMeans(number, n_init=10, random_state=split.seed).fit_predict(Z) for number in numbers]
        if len(labels) == 1:
            return Found(labels[0])
        size = min(SILHOUETTE_ROWS, len(Z))
        return Found(max(labels, key=lambda own: silhouette_score(Z, own, sample_size=size, random_state=split.seed)))

    return cluster


def _by_draws(representation: Callable[[Split], Any]) -> Method:
    def cluster(split: Split, n_clusters: int | None) -> Found:
        number = "auto" if n_clusters is None else n_clusters
        clusters = PosteriorClustering(number, representation(split), max_clusters=MOST_CLUSTERS, random_state=split.seed)  # type: ignore[arg-type]
        clusters.fit(split.frame)
        return Found(clusters.labels_, clusters.probabilities_.max(axis=1))

    return cluster


def _by_command(split: Split, n_clusters: int | None) -> Found:
    found = gpssl.cluster(split.frame, "auto" if n_clusters is None else n_clusters, random_state=split.seed).frame()
    return Found(found["gpssl_cluster"].to_numpy(), found["gpssl_cluster_probability"].to_numpy())


def _umap(split: Split) -> Array:
    from umap import UMAP  # type: ignore[import-untyped]  # comes with scanpy, and takes seconds to import

    return np.asarray(UMAP(N_COMPONENTS, random_state=split.seed, n_jobs=1).fit_transform(split.numbers), dtype=np.float64)


def _kernel_pca(split: Split) -> Array:
    return KernelPCA(N_COMPONENTS, kernel=StandardizedKernel("squared exponential"), random_state=split.seed).fit_transform(split.frame)


def _prior(split: Split) -> Any:
    prior = GPPrior(N_COMPONENTS, kernel=StandardizedKernel("squared exponential"), random_state=split.seed)
    return FrozenEstimator(prior.fit(split.frame))


METHODS: dict[str, Method] = {
    MINE: _by_draws(lambda _: None),
    "draws, as gpssl cluster": _by_command,
    "draws of the prior": _by_draws(_prior),
    "k-means on columns": _by_k_means(lambda split: split.numbers),
    "k-means on kernel PCA": _by_k_means(_kernel_pca),
    "k-means on UMAP": _by_k_means(_umap),
}


def load(data: str) -> Examples:
    """Return the rows of a table."""
    return load_keel(data)


def tasks(plan: Plan) -> list[Task]:
    """Return all methods on all samples of all tables."""
    data = plan.choose(DEVELOPMENT_TABLES, quick=("heart", "wisconsin"))
    return [Task(name, split, method) for split in range(plan.splits) for name in data for method in METHODS]


def run(task: Task, plan: Plan) -> Record:
    """Cluster a sample with the number of clusters known and not known, and compare with the classes."""
    split = few_labels_split(load(task.data), task.split, plan.seed)
    cluster = METHODS[task.method]
    known, found = cluster(split, split.n_classes), cluster(split, None)
    record: Record = {
        "ARI": {KNOWN: float(adjusted_rand_score(split.y, known.labels)), FOUND: float(adjusted_rand_score(split.y, found.labels))},
        "n_classes": split.n_classes,
        "n_found": len(np.unique(found.labels)),
    }
    if known.certainty is not None:
        _, labels = np.unique(known.labels, return_inverse=True)
        record["certainty"] = errors_by_certainty(split.y, labels, known.certainty)
    return record


def errors_by_certainty(y: NDArray[Any], labels: NDArray[Any], certainty: Array) -> list[list[int]]:
    """Return for each interval of certainty how many rows it has, and how many are in a cluster of another class than their own.

    Clusters and classes are matched so that as many rows as possible agree.
    """
    wrong = aligned(labels, y) != y
    inner = np.digitize(certainty, EDGES[1:-1], right=False)
    return [[int((inner == place).sum()), int(wrong[inner == place].sum())] for place in range(len(EDGES) - 1)]


# Tables


def report(records: Sequence[Record]) -> dict[str, str]:
    """Return mean indices with tests, those of each table, and whether certainties are honest."""
    return {"clusters": means_table(records), "clusters tables": tables_table(records), "clusters certainty": certainty_table(records)}


def _means(records: Sequence[Record], method: str, number: str) -> dict[str, float]:
    """Return the mean index over samples of each table."""
    mine = [record for record in records if record["method"] == method]
    return {
        data: float(np.mean([one["ARI"][number] for one in mine if one["data"] == data])) for data in dict.fromkeys(r["data"] for r in mine)
    }


def means_table(records: Sequence[Record]) -> str:
    """Return the mean index over tables, on how many tables draws are better and worse, and the p-value of the signed-rank test."""
    methods = list(dict.fromkeys(record["method"] for record in records))
    columns = {}
    for number in (KNOWN, FOUND):
        means = {method: np.array(list(_means(records, method, number).values())) for method in methods}
        others = [method for method in methods if method != MINE]
        p_values = dict(zip(others, holm([paired_p_value(means[MINE], means[method]) for method in others]), strict=True))
        columns[number] = {
            method: [
                f"{means[method].mean():.3f}",
                "" if method == MINE else f"{(means[MINE] > means[method]).sum()} : {(means[MINE] < means[method]).sum()}",
                "" if method == MINE else f"{p_values[method]:.2g}",
            ]
            for method in methods
        }
    header = ["adjusted Rand index", *(f"{number}{more}" for number in (KNOWN, FOUND) for more in ("", ": draws better : worse", ": p"))]
    return table(header, [[method, *columns[KNOWN][method], *columns[FOUND][method]] for method in methods])


def tables_table(records: Sequence[Record]) -> str:
    """Return the mean index of each table with the number of clusters known, and the numbers that draws find."""
    methods = list(dict.fromkeys(record["method"] for record in records))
    means = {method: _means(records, method, KNOWN) for method in methods}
    rows = []
    for data in dict.fromkeys(record["data"] for record in records):
        mine = [record for record in records if record["data"] == data and record["method"] == MINE]
        numbers = ", ".join(str(record["n_found"]) for record in mine)
        rows.append([data, str(mine[0]["n_classes"]), numbers, *(f"{means[method][data]:.3f}" for method in methods)])
    return table(["", "classes", "found by draws", *methods], rows)


def certainty_table(records: Sequence[Record]) -> str:
    """Return the share of rows by certainty, and of those in a cluster of another class, over all samples of all tables."""
    rows = []
    for method in dict.fromkeys(record["method"] for record in records if "certainty" in record):
        counts = np.array([record["certainty"] for record in records if record["method"] == method]).sum(axis=0)
        cells = [f"{100 * n / counts[:, 0].sum():.0f} %: {100 * wrong / n:.0f} %" if n else "" for n, wrong in counts]
        rows.append([method, *cells])
    names = [f"{low:.0%} to {high:.0%}".replace("%", " %") for low, high in pairwise(EDGES)]
    return table(["rows with this certainty: in a cluster of another class", *names], rows)


def draw(_records: Sequence[Record], _plan: Plan, _folder: Path) -> list[Path]:
    """Draw nothing: tables say it all."""
    return []
