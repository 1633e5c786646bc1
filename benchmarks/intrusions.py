"""Half a million network connections, end to end: encode, learn without labels, train heads on few labels, predict."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpssl import GPSSL, MarginalizedClassifier
from gpssl.baselines import GPPrior
from gpssl.downstream import BayesianLogisticRegression
from gpssl.evaluation import log_loss, risk_coverage_curve_from_losses
from gpssl.kernels import NeighborRBF

from .data import residual_accepted
from .measurement import in_fresh_process, peak_in_megabytes, seconds_of
from .real_tables import find_table, not_run
from .report import Comparison, Finding

Array = NDArray[np.float64]

FILE = "kddcup99_10pct/kddcup.data_10_percent.gz"
TITLE = "Half a million connections"
SYMBOLS = [1, 2, 3]
"""Columns of symbols: protocol, service, flag."""
LABEL = 41
LARGEST_SHARE = 1.0
"""Columns of numbers beyond this are counts, bytes or seconds with heavy tails."""
TASKS = ("normal or attack", "23 kinds")
METRICS = ("accuracy", "macro F1", "log loss", "AURC")
N_DRAWS = 100
FEW_LABELS = 200
KERNELS = {"defaults": NeighborRBF(), "median": NeighborRBF(reduce="median")}

SETTING = """\
KDD Cup 1999, the tenth of it: {n_rows:,} connections, of which {n_distinct:,} are distinct. Symbols are one-hot encoded, columns of
numbers with values above one (bytes, counts, seconds) go through log(1 + x), columns that never vary are left out; {n_columns} columns
in float32. GPSSL is fitted to all rows without labels, with its defaults and with `NeighborRBF(reduce="median")`, which the
documentation names for tables with outlying rows; nothing was tuned. Labels of rows drawn at random train the heads, and {n_test:,}
other rows test them; means and standard errors over {n_seeds} draws of both. Raw features are standardized by the labeled rows. All
have the head `BayesianLogisticRegression()`, except for the line that says otherwise; on raw features of the 23 kinds, with more than 200
labels, it has over a thousand weights, takes half a minute each time, and is left out. GP prior is the ablation: functions with the same
kernel that have learned nothing. Classes without a label cannot be predicted and count as errors; macro F1 is over the classes of the
rows tested. The table is full of copies, and many rows tested occur among the labeled ones: new rows are those that do not ({new}).
Seconds are for training and predicting, copies once."""


class Connections(NamedTuple):
    """The encoded table."""

    X: NDArray[np.float32]
    kinds: NDArray[Any]
    """`normal`, or the attack's name. [n]"""
    copies: NDArray[np.intp]
    """The same number for the same connection. [n]"""


class Study(NamedTuple):
    """Everything that was measured."""

    shape: tuple[int, int]
    n_distinct: int
    seconds: dict[str, float]
    megabytes: float
    note: str
    new_share: dict[int, float]
    """The share of new rows, by number of labels."""
    scores: dict[tuple[int, str, str], Array]
    """Scores by number of labels, task and method: seconds, the metrics on all rows tested and those on new rows. [n seeds, 1 + 2 · 4]"""


def read_connections(path: Path) -> Connections:
    """Read and encode the table."""
    table = pd.read_csv(path, header=None)
    features = table.drop(columns=LABEL)
    copies = np.unique(pd.util.hash_pandas_object(features, index=False).to_numpy(), return_inverse=True)[1]
    numbers = features.drop(columns=SYMBOLS).to_numpy(dtype=np.float64)
    heavy = numbers.max(axis=0) > LARGEST_SHARE
    numbers[:, heavy] = np.log1p(numbers[:, heavy])
    symbols = pd.get_dummies(features[SYMBOLS].astype("category")).to_numpy()
    X = np.column_stack([numbers, symbols]).astype(np.float32)
    return Connections(X[:, X.min(axis=0) < X.max(axis=0)], table[LABEL].str.rstrip(".").to_numpy(dtype=str), copies)


class Representations(NamedTuple):
    """Fitted to all rows, without labels, with the same kernel."""

    ssl: GPSSL
    prior: GPPrior


def fit_representations(X: NDArray[np.float32], kernel: NeighborRBF) -> Representations:
    """Learn, and prepare the ablation."""
    with residual_accepted():
        ssl = GPSSL(5, kernel=kernel, random_state=0).fit(X)
    return Representations(ssl, GPPrior(5, kernel=ssl.kernel_, random_state=0).fit(X))


def methods(fitted: dict[str, Representations], seed: int, *, many_weights: bool) -> dict[str, Any]:
    """Everything that is compared, by name."""
    models = {"raw, `LogisticRegression()`": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))}
    if not many_weights:
        models["raw"] = make_pipeline(StandardScaler(), BayesianLogisticRegression(random_state=seed))
    for kernel, (ssl, prior) in fitted.items():
        choices = {"GPSSL-full": (ssl, N_DRAWS), "GPSSL-mean": (ssl, None), "GP prior": (prior, N_DRAWS)}
        for name, (representation, n_draws) in choices.items():
            frozen = FrozenEstimator(representation)
            models[f"{name}, {kernel}"] = MarginalizedClassifier(frozen, n_draws=n_draws, weighting="equal", random_state=seed)
    return models


def run_study(path: Path, label_counts: tuple[int, ...], n_test: int, n_seeds: int) -> Study:
    """Read, learn, and try all methods on all draws of labels."""
    started = time.perf_counter()
    table = read_connections(path)
    seconds = {"reading and encoding": time.perf_counter() - started}
    fitted: dict[str, Representations] = {}
    for name, kernel in KERNELS.items():
        before = time.perf_counter()
        fitted[name] = fit_representations(table.X, kernel)
        seconds[f"fits ({name})"] = time.perf_counter() - before
    shares: dict[int, list[float]] = {n_labeled: [] for n_labeled in label_counts}
    scores: dict[tuple[int, str, str], list[list[float]]] = {}
    for seed in range(n_seeds):
        order = np.random.default_rng(seed).permutation(len(table.X))
        for n_labeled in label_counts:
            labeled, test = order[:n_labeled], order[-n_test:]
            new = ~np.isin(table.copies[test], table.copies[labeled])
            shares[n_labeled].append(float(new.mean()))
            for task in TASKS:
                y = table.kinds if task == TASKS[1] else np.where(table.kinds == "normal", "normal", "attack")
                for name, model in methods(fitted, seed, many_weights=task == TASKS[1] and n_labeled > FEW_LABELS).items():
                    scores.setdefault((n_labeled, task, name), []).append(try_method(model, table, y, labeled, test, new))
    seconds["heads"] = time.perf_counter() - started - sum(seconds.values())
    note = "; ".join(f"{name}: {_describe(ssl)}" for name, (ssl, _) in fitted.items())
    means = {n_labeled: float(np.mean(share)) for n_labeled, share in shares.items()}
    arrays = {key: np.array(values) for key, values in scores.items()}
    return Study(table.X.shape, int(table.copies.max()) + 1, seconds, peak_in_megabytes(), note, means, arrays)


def _describe(ssl: GPSSL) -> str:
    return f"{len(ssl.inducing_points_)} inducing points leave {ssl.residual_:.1g} of the prior variance open"


def try_method(
    model: Any, table: Connections, y: NDArray[Any], labeled: NDArray[np.intp], test: NDArray[np.intp], new: NDArray[np.bool_]
) -> list[float]:
    """Train on the labeled rows and predict the others; copies of a row have the same prediction, which is made once."""
    _, first, inverse = np.unique(table.copies[test], return_index=True, return_inverse=True)
    proba: list[Array] = []

    def train_and_predict() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(table.X[labeled], y[labeled])
        proba.append(model.predict_proba(table.X[test[first]]))

    seconds = seconds_of(train_and_predict)
    measure: Callable[..., list[float]] = partial(metrics, classes=model.classes_)
    whole = proba[0][inverse]
    return [seconds, *measure(y[test], whole), *measure(y[test][new], whole[new])]


def metrics(y: NDArray[Any], proba: Array, *, classes: NDArray[Any]) -> list[float]:
    """Return accuracy, macro F1, log loss of two classes, and AURC."""
    predicted = classes[proba.argmax(axis=1)]
    wrong = predicted != y
    loss = log_loss(y, proba, labels=classes) if len(classes) == 2 and np.isin(y, classes).all() else np.nan
    macro = f1_score(y, predicted, labels=np.unique(y), average="macro", zero_division=0.0)
    return [1 - wrong.mean(), macro, loss, risk_coverage_curve_from_losses(wrong, proba.max(axis=1)).aurc]


def compare(*, quick: bool) -> Comparison:
    """Run the study, if the table is there."""
    path = find_table(FILE)
    label_counts, n_test, n_seeds = ((FEW_LABELS,), 2_000, 2) if quick else ((FEW_LABELS, 2_000), 5_000, 5)
    if path is None:
        return not_run(TITLE, "KDD Cup 1999: few labels of half a million connections.", FILE)
    study = in_fresh_process("connections", partial(run_study, path, label_counts, n_test, n_seeds))
    new = ", ".join(f"{share:.0%} for {n_labeled:,} labels" for n_labeled, share in study.new_share.items())
    sizes = {"n_rows": study.shape[0], "n_columns": study.shape[1], "n_distinct": study.n_distinct, "n_test": n_test, "n_seeds": n_seeds}
    steps = ", ".join(f"{step} {seconds:.3g} s" for step, seconds in study.seconds.items())
    return Comparison(
        title=TITLE,
        setting=SETTING.format(new=new, **sizes),
        header=("labels", "task", "", "seconds", *METRICS, *(f"{name}, new rows" for name in METRICS)),
        rows=[(f"{key[0]:,}", *key[1:], *_cells(values)) for key, values in study.scores.items()],
        findings=[Finding("completes end to end", f"{steps}; {study.megabytes:,.0f} MB in all; {study.note}", True)],
    )


def _cells(values: Array) -> list[str]:
    """Means of all seeds, of the metrics with their standard errors."""
    means, errors = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
    scores = ["" if np.isnan(mean) else f"{mean:.4f} ± {error:.4f}" for mean, error in zip(means[1:], errors[1:], strict=True)]
    return [f"{means[0]:.2g}", *scores]
