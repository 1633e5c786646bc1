"""`gpssl label`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from .._runtime import percent
from ..workflows._choices import MAX_INDUCING
from . import _options
from ._console import progress_bars, show_result

if TYPE_CHECKING:
    from ..workflows import LabeledTable

MANY_ERRORS = 0.1
"""An error rate at which other settings are worth a try."""
MOST_CLASSES = 12
MOST_MEMBERS, LEAST_SHARE = 3, 0.05
"""How many representations to name, and their least share of the weight."""
MOST_COLUMNS, LEAST_IMPORTANCE = 5, 0.02
"""How many columns to name, and their least share of what matters."""
MOST_SUSPICIOUS = 5
"""How many labels to show that are perhaps wrong."""


def label(
    table: _options.Table,
    target: _options.TargetColumn,
    out: _options.Out,
    max_risk: Annotated[
        str | None,
        typer.Option(
            "--max-risk",
            help="Largest error rate of what is kept, 0.05 or 5% (for numbers: root mean squared error); the rest abstains.",
            show_default=False,
        ),
    ] = None,
    confidence: _options.Confidence = "auto",
    model: _options.ModelOut = None,
    components: _options.Components = None,
    alike: _options.FixedAlike = None,
    temperature: _options.FixedTemperature = None,
    draws: _options.FixedDraws = None,
    max_inducing: _options.MaxInducing = MAX_INDUCING,
    numeric: _options.Numeric = None,
    group: _options.Group = None,
    labels: _options.Labels = None,
    keep: _options.Keep = None,
    ignore: _options.Ignore = None,
    unlabeled: _options.Unlabeled = None,
    sheet: _options.Sheet = None,
    seed: _options.Seed = 0,
    only_new: _options.OnlyNew = False,
    force: _options.Force = False,
    as_json: _options.Json = False,
) -> None:
    """Label the rows that have no label, and say what error rate to expect.

    All rows train many representations, those with a label the predictions, and how far to believe each representation.
    Whoever gives --alike, --temperature or --draws chooses one of them. Rows without a label get TARGET_predicted,
    TARGET_probability and TARGET_std (of the probability); a numeric target gets TARGET_predicted, TARGET_std, and
    TARGET_lower and TARGET_upper, between which it is with a probability of 90 %. With --max-risk, TARGET_abstain
    says which predictions to leave to a person.
    """
    with progress_bars():
        from ..workflows._label import label as run

        result = run(
            table,
            target,
            max_risk=max_risk,
            confidence=confidence,
            n_components=components,
            alike=alike,
            temperature=None if temperature is None else _options.temperature_of(temperature),
            n_draws=draws,
            max_inducing=max_inducing,
            target_kind=_options.target_kind_of(numeric),
            group=group,
            labels=labels or (),
            keep=keep or (),
            ignore=ignore or (),
            unlabeled=unlabeled or (),
            sheet=sheet,
            random_state=seed,
            out=out,
            model_out=model,
            only_new=only_new,
            force=force,
        )
    show_result(result, _lines(result), as_json=as_json, out=out)


def _lines(result: LabeledTable) -> Iterator[str]:
    """Yield what to know of the predictions."""
    from ..workflows._sentences import expected, promised

    yield f"{result.n_rows:,} rows: {result.n_labeled:,} had a label in {result.target!r}, {result.n_predicted:,} were predicted."
    yield expected(result.expectation)
    if result.promise.max_risk is not None:
        yield promised(result.expectation, result.promise, result.n_predicted, result.n_abstained)
    if len(result.members) > 1:
        yield _believed(result)
    if result.importance:
        yield _matters(result)
    yield from _perhaps_wrong(result)
    if result.kind == "class" and MANY_ERRORS < result.expectation.risk < result.expectation.baseline_risk:
        yield "If these are too many: label more rows. gpssl compare says whether another method does better."
    if result.counts:
        commonest = sorted(result.counts.items(), key=lambda item: -item[1])[:MOST_CLASSES]
        yield f"Predicted and kept: {', '.join(f'{name} {count:,}' for name, count in commonest)}."


def _believed(result: LabeledTable) -> str:
    """Name the representations that count most."""
    largest = sorted(result.members, key=lambda member: -member.share)[:MOST_MEMBERS]
    named = [f"{member.name} ({percent(member.share, 0)})" for member in largest if member.share >= LEAST_SHARE]
    return f"The labels believe most in: {'; '.join(named)}."


def _matters(result: LabeledTable) -> str:
    """Name the columns without which predictions become worse."""
    named = [f"{one.name} ({percent(one.share, 0)})" for one in result.importance[:MOST_COLUMNS] if one.share >= LEAST_IMPORTANCE]
    if not named:
        return "No column matters by itself: held-out predictions are as good when any one of them is shuffled."
    return f"Columns that matter most: {', '.join(named)}."


def _perhaps_wrong(result: LabeledTable) -> Iterator[str]:
    """Show the labels that are most doubtful."""
    for one in result.suspicious[:MOST_SUSPICIOUS]:
        yield f"Perhaps wrong: {one.text}."
    if len(result.suspicious) > MOST_SUSPICIOUS:
        yield f"Perhaps wrong too: {len(result.suspicious) - MOST_SUSPICIOUS:,} more, which --json lists."
