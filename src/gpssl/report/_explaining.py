"""What a model is and does, in plain words."""

from __future__ import annotations

from typing import Any

from .._runtime.progress import percent
from ..data._labels import Target
from ..estimator import GPSSL
from ..io._card import ModelCard
from ..kernels.neighbors import DiffusionKernel
from ..kernels.tables import ColumnKernel
from ..workflows._subject import Subject
from ._content import Fact

MOST_NAMES = 12
WELL_COVERED = 1e-2
LONGEST_TEXT = 200


def subtitle(card: ModelCard, n_rows: int) -> str:
    """Rows, day and version."""
    return f"{n_rows:,} rows; model of {card.created[:10]}, gpssl {card.versions.get('gpssl', '')}"


def what_was_learned(ssl: GPSSL, subject: Subject) -> str:
    """The first thing that a reader sees."""
    source = f"{len(subject.facts):,} columns" if subject.facts else "expression and place"
    return (
        f"gpssl learned {len(ssl.posterior_.weights.mean)} numbers for each of {subject.n_rows:,} rows from {source}, without looking at "
        "labels, and how sure it is of each."
    )


def what_is_predicted(target: Target, error: float) -> str:
    """And how well, on labels that were held out."""
    n_labels = f"{int(target.is_known.sum()):,}"
    if target.kind == "class":
        return (
            f"From {n_labels} labels it predicts {target.name}. On labels that it was not shown, {percent(error)} of the predictions were "
            "wrong. The slider below holds the error rate that you ask for, and shows which rows are then left to a person."
        )
    return (
        f"From {n_labels} known numbers it predicts {target.name}, with a root mean squared error of {error:.4g} on numbers that it was "
        "not shown."
    )


def facts_about(ssl: GPSSL, card: ModelCard, subject: Subject) -> list[Fact]:
    """Settings and results, each with what it means."""
    covered = (
        "Little enough to be ignored."
        if ssl.residual_ < WELL_COVERED
        else "That is much: more inducing points (--max-inducing) would follow the rows better."
    )
    facts = [
        Fact("dimensions", f"{len(ssl.posterior_.weights.mean)}", "How many numbers stand for a row."),
        Fact(
            "temperature",
            f"{ssl.temperature_:.3g}",
            "How strongly the prior holds the functions back. Low: draws agree on what the data show. High: they stay diverse. One "
            "over the number of rows unless it was chosen.",
        ),
        Fact("inducing points", f"{len(ssl.inducing_points_):,}", "Rows that carry the functions; the others are interpolated from them."),
        Fact("residual", f"{ssl.residual_:.2g}", f"Share of the prior variance at the rows that the inducing points leave open. {covered}"),
        Fact("directions", f"{len(ssl.eigenvalues_):,}", "How many independent patterns the kernel sees in the rows."),
        Fact("kernel", kernel_in_words(ssl.kernel_), "What says which rows are alike."),
        Fact("learned from", _learned_from(card), "The table behind the model. Rows that leave its ranges get a warning."),
    ]
    return [*facts, *_columns(subject)]


def _columns(subject: Subject) -> list[Fact]:
    names = [column.name for column in subject.facts]
    facts = [Fact("columns", _listed(names), "What the model looks at.")] if names else []
    dropped = subject.dropped
    return facts + (
        [Fact("left out", _listed([f"{name} ({why})" for name, why in dropped.items()]), "Columns that it does not look at, and why.")]
        if dropped
        else []
    )


def _learned_from(card: ModelCard) -> str:
    table = card.notes.get("table", "a table")
    n_rows = card.n_rows or card.notes.get("rows")
    return f"{table}{'' if n_rows is None else f', {n_rows:,} rows'}, {card.created[:10]}"


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def kernel_in_words(kernel: Any) -> str:
    """Its name, and for tables what is compared by what."""
    if isinstance(kernel, ColumnKernel):
        return "; ".join(f"{name}: {type(part).__name__} of {_count(columns)}" for name, part, columns in kernel.groups)
    if isinstance(kernel, DiffusionKernel):
        inner = "" if kernel.kernel is None else f" by {kernel_in_words(kernel.kernel)}"
        return f"diffusion among {kernel.n_neighbors} neighbors{inner}"
    text = str(kernel)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def _count(columns: Any) -> str:
    return f"{len(columns)} column{'' if len(columns) == 1 else 's'}"
