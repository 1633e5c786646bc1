"""Text messages from the command line: 50 of 5,574 have a label, by chance, and the others are predicted.

The messages are a CSV file with the columns label and message, and `gpssl label` is run on it without options. Beside it are the pool on
a list of texts, as a Python user has them, the pool of the command without what is learned from unlabeled messages, and what scikit-learn
has. All methods see all messages; labels are the same for all.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.gaussian_process.kernels import Kernel
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.semi_supervised import LabelSpreading

import gpssl
from gpssl import MarginalizedClassifier, RepresentationPool
from gpssl.comparison import split_seed
from gpssl.datasets import Messages, load_sms_spam

from .ledger import Record, Task
from .plan import Plan
from .tables import table

Texts = NDArray[np.object_]
Labels = NDArray[np.str_]
Known = NDArray[np.bool_]

N_LABELS = 50
QUICK_ROWS = 400
LIMIT = 0.06
"""The error rate that must not be exceeded."""
SPAM = "spam"
N_TOPICS, N_NEIGHBORS = 20, 10
"""Of latent semantic analysis and label spreading in it."""
COMMAND = "`gpssl label`, no options"


def _by_command(texts: Texts, y: Labels, known: Known, _seed: int) -> Labels:
    """Write the file, run what the command runs, and return the predictions of all messages."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sms.csv"
        pd.DataFrame({"label": np.where(known, y, ""), "message": texts}).to_csv(path, index=False)
        predicted = gpssl.label(path, "label").frame()["label_predicted"]
    return np.where(known, y, predicted.to_numpy(dtype=object)).astype(str)


def _by_pool_on_texts(texts: Texts, y: Labels, known: Known, seed: int) -> Labels:
    """Predict as a Python user does who has a list of texts."""
    return _with_codes(MarginalizedClassifier(random_state=seed), list(texts), y, known)


def _without_learning(texts: Texts, y: Labels, known: Known, seed: int) -> Labels:
    """Predict with the kernels of the command's pool as they are."""
    frame = pd.DataFrame({"message": texts})
    members = [member for member in RepresentationPool.for_rows(frame).members or [] if isinstance(member.representation, Kernel)]
    return _with_codes(MarginalizedClassifier(RepresentationPool(members), random_state=seed), frame, y, known)


def _with_codes(classifier: MarginalizedClassifier, rows: object, y: Labels, known: Known) -> Labels:
    classes, codes = np.unique(y, return_inverse=True)
    return classes[classifier.fit(rows, np.where(known, codes, -1)).predict(rows)]


def _by_regression(texts: Texts, y: Labels, known: Known, _seed: int, weight: str | None = None) -> Labels:
    """Predict with logistic regression on TF–IDF of all messages."""
    words = TfidfVectorizer().fit_transform(texts)
    return LogisticRegression(class_weight=weight, max_iter=1000).fit(words[known], y[known]).predict(words)


def _by_balanced_regression(texts: Texts, y: Labels, known: Known, seed: int) -> Labels:
    """Predict the same with classes of equal weight."""
    return _by_regression(texts, y, known, seed, "balanced")


def _by_counts(texts: Texts, y: Labels, known: Known, _seed: int) -> Labels:
    """Predict with naive Bayes."""
    words = CountVectorizer().fit_transform(texts)
    return MultinomialNB().fit(words[known], y[known]).predict(words)


def _by_spreading(texts: Texts, y: Labels, known: Known, seed: int) -> Labels:
    """Let labels spread among neighbors in latent semantic analysis of all messages."""
    topics = make_pipeline(TfidfVectorizer(sublinear_tf=True), TruncatedSVD(N_TOPICS, random_state=seed), Normalizer()).fit_transform(texts)
    classes, codes = np.unique(y, return_inverse=True)
    spreading = LabelSpreading(kernel="knn", n_neighbors=N_NEIGHBORS, max_iter=200).fit(topics, np.where(known, codes, -1))
    return classes[spreading.transduction_]


METHODS: dict[str, Callable[[Texts, Labels, Known, int], Labels]] = {
    COMMAND: _by_command,
    "`MarginalizedClassifier()` on a list of texts": _by_pool_on_texts,
    "the pool of the command, nothing learned": _without_learning,
    "TF–IDF, logistic regression": _by_regression,
    "TF–IDF, logistic regression, balanced": _by_balanced_regression,
    "naive Bayes": _by_counts,
    "LSA, label spreading": _by_spreading,
}
"""From messages, labels, and which of them may be looked at, to predictions of all messages."""


def load(data: str) -> Messages:
    """Return the messages."""
    del data  # there is one set
    return load_sms_spam()


def tasks(plan: Plan) -> list[Task]:
    """Return all methods on all draws of labels."""
    names = plan.choose(("sms",), quick=("sms",))
    return [Task(name, split, method) for split in range(plan.splits) for name in names for method in METHODS]


def run(task: Task, plan: Plan) -> Record:
    """Draw the labels, and count the errors on all other messages."""
    messages = load(task.data)
    seed = split_seed(plan.seed, task.split)
    order = np.random.default_rng(seed).permutation(len(messages.y))[: QUICK_ROWS if plan.quick else None]
    texts, y = np.array(messages.texts, dtype=object)[order], messages.y[order]
    known = np.arange(len(y)) < N_LABELS
    if len(np.unique(y[known])) < 2:
        raise ValueError("One class has no label: choose another seed.")
    wrong = METHODS[task.method](texts, y, known, plan.seed) != y
    is_spam = y == SPAM
    return {
        "error": float(wrong[~known].mean()),
        "missed": float(wrong[~known & is_spam].mean()),
        "alarms": float(wrong[~known & ~is_spam].mean()),
        "labeled spam": int(is_spam[known].sum()),
    }


def report(records: Sequence[Record]) -> dict[str, str]:
    """Return errors by method: their mean and largest over the draws, and which messages they are."""
    header = ["", "errors", "worst draw", f"draws above {LIMIT:.0%}", "spam that is missed", "others taken for spam"]
    return {"sms": table(header, [_row(method, records) for method in dict.fromkeys(record["method"] for record in records)])}


def _row(method: str, records: Sequence[Record]) -> list[str]:
    mine = [record for record in records if record["method"] == method]
    errors, missed, alarms = (np.array([record[name] for record in mine]) for name in ("error", "missed", "alarms"))
    above = f"{(errors > LIMIT).sum()} of {len(errors)}"
    return [
        method,
        _percent(errors.mean()),
        _percent(errors.max()),
        above,
        _percent(missed.mean()),
        _percent(alarms.mean()),
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def draw(_records: Sequence[Record], _plan: Plan, _folder: Path) -> list[Path]:
    """Draw nothing."""
    return []
