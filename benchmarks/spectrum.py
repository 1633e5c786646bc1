"""Kernels for strings on short messages: all pairs of them, and all of them with some."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer

from gpssl.kernels import MismatchKernel, SpectrumKernel, SubsequenceKernel, TfidfKernel
from gpssl.kernels._protocol import resolve_kernel, training_rows

from .measurement import Run, alternate, measure, median_seconds, table_row
from .real_tables import find_table, not_run
from .report import Comparison, Finding

FILE = "sms_spam/SMSSpamCollection"
TITLE = "Kernels for strings"
LENGTH = 3
FEW = 300
POINTS = 512
QUICK_MESSAGES = 600
WARM_UP_MESSAGES = 50
TARGET_RATIO = 5
SequenceKernel = SpectrumKernel | SubsequenceKernel | MismatchKernel | TfidfKernel
KERNELS: tuple[SequenceKernel, ...] = (SpectrumKernel(LENGTH), SubsequenceKernel(), MismatchKernel(), TfidfKernel())

SETTING = f"""\
{{n_messages:,}} messages of the SMS Spam Collection, {{n_letters:,}} letters. First the matrix of all pairs, for words of {LENGTH}
letters. A double loop in Python over dictionaries of counts, with each pair computed once, is timed on {FEW} messages, the counting
of words apart from the pairs, whose time is then multiplied by the number of pairs. `CountVectorizer` is scikit-learn's, followed by
the product of the sparse matrix with its transpose, as a dense array and not normalized; the kernel's is. The last lines are the
matrix of all messages with {POINTS} of them, which is what GPSSL asks of a kernel in one pass over the data."""


def messages(path: Path, n_messages: int | None) -> NDArray[Any]:
    """Return the texts, without their labels."""
    with path.open(encoding="utf-8", newline="\n") as lines:
        texts = [line.rstrip("\n").split("\t", maxsplit=1)[1] for line in lines]
    return np.array(texts[:n_messages], dtype=object)


def spectrum_gram(path: Path, n_messages: int | None) -> Run:
    """Measure all pairs of messages with our kernel."""
    texts = messages(path, n_messages)
    kernel = SpectrumKernel(LENGTH)
    kernel(texts[:WARM_UP_MESSAGES])
    return measure(lambda: kernel(texts))


def vectorizer_gram(path: Path, n_messages: int | None) -> Run:
    """Measure all pairs of messages with scikit-learn's counts."""
    texts = messages(path, n_messages)

    def gram(texts: NDArray[Any]) -> Any:
        counts = CountVectorizer(analyzer="char", ngram_range=(LENGTH, LENGTH), lowercase=False).fit_transform(texts)
        return (counts @ counts.T).toarray()

    gram(texts[:WARM_UP_MESSAGES])
    return measure(lambda: gram(texts))


def double_loop(path: Path, n_messages: int | None) -> Run:
    """Estimate the time of all pairs in Python from few messages: counting grows with the messages, the rest with their pairs."""
    texts = messages(path, n_messages)
    few = texts[np.random.default_rng(0).permutation(len(texts))[:FEW]]
    words: list[Counter[str]] = []
    counting = measure(lambda: words.extend(Counter(x[i : i + LENGTH] for i in range(len(x) - LENGTH + 1)) for x in few))
    values = np.empty((len(few), len(few)))

    def fill() -> None:
        for i, one in enumerate(words):
            for j, other in enumerate(words[: i + 1]):
                values[i, j] = values[j, i] = sum(count * other[word] for word, count in one.items() if word in other)

    factor = len(texts) / len(few)
    pairs = measure(fill)
    note = f"from {len(few)} messages, {counting.seconds + pairs.seconds:.2g} s"
    return Run(counting.seconds * factor + pairs.seconds * factor**2, pairs.megabytes, note)


def columns(path: Path, n_messages: int | None, kernel: SequenceKernel) -> Run:
    """Measure the kernel between all messages and some of them."""
    texts = messages(path, n_messages)
    points = texts[np.random.default_rng(0).permutation(len(texts))[:POINTS]]
    concrete = resolve_kernel(kernel, training_rows(kernel, texts), seed=0)
    concrete(texts[:WARM_UP_MESSAGES], points[:WARM_UP_MESSAGES])
    return measure(lambda: concrete(texts, points))


def compare(*, quick: bool) -> Comparison:
    """Compare the times of all pairs, and show those of all rows with some points."""
    path = find_table(FILE)
    n_messages = QUICK_MESSAGES if quick else None
    if path is None:
        return not_run(TITLE, SETTING.format(n_messages=5574, n_letters=448_586), FILE)
    grams = alternate(
        {
            f"SpectrumKernel({LENGTH})": partial(spectrum_gram, path, n_messages),
            f'CountVectorizer(analyzer="char", ngram_range=({LENGTH}, {LENGTH})), @': partial(vectorizer_gram, path, n_messages),
            "double loop": partial(double_loop, path, n_messages),
        }
    )
    with_points = alternate(
        {f"{type(kernel).__name__}(), {POINTS} points": partial(columns, path, n_messages, kernel) for kernel in KERNELS}
    )
    ours, vectorizer, loop = map(median_seconds, grams.values())
    texts = messages(path, n_messages)
    return Comparison(
        title=TITLE,
        setting=SETTING.format(n_messages=len(texts), n_letters=sum(map(len, texts))),
        header=("", "seconds (range)", "memory, MB", ""),
        rows=[table_row(name, runs) for name, runs in (grams | with_points).items()],
        findings=[
            Finding(f"at least {TARGET_RATIO}× the speed of the double loop", f"{loop / ours:.3g}×", loop / ours >= TARGET_RATIO),
            Finding("not slower than `CountVectorizer` and a sparse product", f"{vectorizer / ours:.3g}× the speed", vectorizer >= ours),
        ],
    )
