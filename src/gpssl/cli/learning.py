"""`gpssl embed`, `transform`, `label` and `compare`: options in, a few lines out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..commands.choices import Alike
from . import options as take
from .console import progress_bars, show_json, show_notes, show_table

if TYPE_CHECKING:
    from ..commands.comparing import Comparison
    from ..commands.embedding import Embedded
    from ..commands.labelling import LabelledTable


def embed(
    table: take.Table,
    out: take.Out,
    model: take.ModelOut = None,
    components: take.Components = None,
    alike: take.AlikeOption = Alike.COLUMNS,
    temperature: take.Temperature = "auto",
    max_inducing: take.MaxInducing = 512,
    keep: take.Keep = None,
    ignore: take.Ignore = None,
    seed: take.Seed = 0,
    only_new: take.OnlyNew = False,
    force: take.Force = False,
    as_json: take.Json = False,
) -> None:
    """Learn a representation of a table, from its rows alone.

    Mixed columns and missing cells are fine. The results are the table with new columns: gpssl_1, gpssl_2, … are the
    coordinates of each row, gpssl_1_std, … say how far the data leave them open (1 is: entirely). The model is saved
    beside them, for gpssl transform.
    """
    with progress_bars():
        from ..commands.embedding import embed as run
        from ..commands.embedding import model_path
        from ..commands.opening import open_subject
        from ..commands.settings import Settings

        settings = Settings(components, alike, take.temperature_of(temperature), max_inducing=max_inducing, seed=seed)
        subject = open_subject(table, keep=keep or (), ignore=ignore or ())
        result = run(subject, out, model_path(out, model), settings, only_new=only_new, force=force)
    _show_embedded(result, as_json)


def transform(
    model: take.Model,
    table: take.Table,
    out: take.Out,
    draws: Annotated[int, typer.Option("--draws", min=0, help="Also write so many functions drawn from the posterior.")] = 0,
    only_new: take.OnlyNew = False,
    force: take.Force = False,
    as_json: take.Json = False,
) -> None:
    """The representation of other rows, by a model that was learnt before.

    A note says where they leave the ranges of the rows that the model was learnt from. With --draws, columns
    gpssl_1_draw_1, … hold functions from the posterior, each the same function at all rows.
    """
    with progress_bars():
        from ..commands.embedding import transform as run

        result = run(model, table, out, n_draws=draws, only_new=only_new, force=force)
    _show_embedded(result, as_json)


def label(
    table: take.Table,
    target: take.TargetColumn,
    out: take.Out,
    max_risk: Annotated[
        float | None,
        typer.Option(
            "--max-risk",
            help="Largest error rate of what is kept (for numbers: root mean squared error); the rest abstains.",
            show_default=False,
        ),
    ] = None,
    confidence: Annotated[float, typer.Option("--confidence", help="With which an error rate is held.")] = 0.95,
    model: take.ModelOut = None,
    components: take.Components = None,
    alike: take.AlikeOption = Alike.COLUMNS,
    temperature: take.Temperature = "auto",
    draws: take.Draws = 100,
    max_inducing: take.MaxInducing = 512,
    numeric: take.Numeric = None,
    group: take.Group = None,
    keep: take.Keep = None,
    ignore: take.Ignore = None,
    seed: take.Seed = 0,
    only_new: take.OnlyNew = False,
    force: take.Force = False,
    as_json: take.Json = False,
) -> None:
    """Label the rows that have no label, and say what error rate to expect.

    All rows train the representation, those with a label the predictions. Rows without a label get TARGET_predicted,
    TARGET_probability and TARGET_std (of the probability); a numeric target gets TARGET_predicted, TARGET_std, and
    TARGET_lower and TARGET_upper, between which it is with a probability of 90 %. With --max-risk, TARGET_abstain
    says which predictions to leave to a person.
    """
    _check_share(confidence, "--confidence")
    kind = take.target_kind_of(numeric)
    with progress_bars():
        from ..commands.embedding import model_path
        from ..commands.labelling import Promise
        from ..commands.labelling import label as run
        from ..commands.opening import open_subject
        from ..commands.settings import Settings

        settings = Settings(components, alike, take.temperature_of(temperature), draws, max_inducing, seed)
        subject = open_subject(table, target=target, target_kind=kind, group=group, keep=keep or (), ignore=ignore or ())
        _check_risk(max_risk, subject.target().kind)
        promise = Promise(max_risk, confidence)
        result = run(subject, out, model_path(out, model), settings, promise, only_new=only_new, force=force)
    _show_labelled(result, max_risk, confidence, as_json)


def compare(
    table: take.Table,
    target: take.TargetColumn,
    splits: Annotated[
        int, typer.Option("--splits", min=2, help="Random splits of the labels into 70 % to learn from, 30 % to judge by.")
    ] = 20,
    max_rows: Annotated[int, typer.Option("--max-rows", min=20, help="Of larger tables, so many rows are used.")] = 3000,
    components: take.Components = None,
    alike: take.AlikeOption = Alike.COLUMNS,
    draws: take.Draws = 100,
    max_inducing: take.MaxInducing = 512,
    numeric: take.Numeric = None,
    group: take.Group = None,
    keep: take.Keep = None,
    ignore: take.Ignore = None,
    seed: take.Seed = 0,
    as_json: take.Json = False,
) -> None:
    """Is it worth it here? The paper's methods on your table: the columns themselves, kernel PCA, VICReg, the GP prior, GPSSL.

    Every row trains the representations, without its label. On each random split the same heads are trained and
    judged; methods with several settings choose by a fifth of the labels that they train on.
    """
    with progress_bars():
        from ..commands.comparing import compare as run
        from ..commands.opening import open_subject
        from ..commands.settings import Settings

        settings = Settings(components, alike, "auto", draws, max_inducing, seed)
        kind = take.target_kind_of(numeric)
        subject = open_subject(table, target=target, target_kind=kind, group=group, keep=keep or (), ignore=ignore or ())
        result = run(subject, settings, splits, max_rows)
    _show_compared(result, as_json)


def _check_share(value: float, option: str) -> None:
    if not 0 < value < 1:
        raise typer.BadParameter(f"{value:g} is no share between 0 and 1.", param_hint=option)


def _check_risk(max_risk: float | None, kind: str) -> None:
    if max_risk is None:
        return
    if kind == "class":
        _check_share(max_risk, "--max-risk")
    elif not max_risk > 0:
        raise typer.BadParameter("for numbers it is the largest root mean squared error, a positive number.", param_hint="--max-risk")


def _show_embedded(result: Embedded, as_json: bool) -> None:
    show_notes(result.notes)
    if as_json:
        show_json(result)
        return
    typer.echo(
        f"{result.n_rows:,} rows, {len(result.columns)} columns, {result.n_components} dimensions; "
        f"average standard deviation {result.mean_std:.2f} (1: nothing is known, 0: all is)."
    )
    _show_written(result.written)


def _show_labelled(result: LabelledTable, max_risk: float | None, confidence: float, as_json: bool) -> None:
    show_notes(result.notes)
    if as_json:
        show_json(result)
        return
    typer.echo(f"{result.n_rows:,} rows: {result.n_labelled:,} had a label in {result.target!r}, {result.n_predicted:,} were predicted.")
    for line in _expectation_lines(result, max_risk, confidence):
        typer.echo(line)
    if result.counts:
        kept = ", ".join(f"{name} {count:,}" for name, count in sorted(result.counts.items(), key=lambda item: -item[1])[:12])
        typer.echo(f"Predicted and kept: {kept}.")
    _show_written(result.written)


def _expectation_lines(result: LabelledTable, max_risk: float | None, confidence: float) -> list[str]:
    expected = result.expectation
    if result.kind == "class":
        low, high = expected.interval or (0.0, 1.0)
        lines = [
            f"Expect {expected.risk:.1%} errors among all predictions (cross-validation on {expected.n_judged:,} labels; 95 % interval "
            f"{low:.1%} to {high:.1%}; always guessing the most frequent class: {expected.always_largest:.1%})."
        ]
    else:
        lines = [
            f"Expect a root mean squared error of {expected.risk:.4g} (cross-validation on {expected.n_judged:,} numbers; always guessing "
            f"their mean: {expected.always_largest:.4g}). Of these, {expected.interval_coverage:.0%} were within their 90 % intervals."
        ]
    if max_risk is None:
        return lines
    wanted = (
        f"{max_risk:.1%} errors, with {confidence:.0%} confidence" if result.kind == "class" else f"an error of {max_risk:g}, on average"
    )
    lines.append(
        f"To hold {wanted}: {result.n_predicted - result.n_abstained:,} predictions are kept, {result.n_abstained:,} are left to a person"
        + ("." if expected.coverage == 0 else f" (in cross-validation {expected.coverage:.0%} were kept, at {_risk(result)}).")
    )
    return lines


def _risk(result: LabelledTable) -> str:
    expected = result.expectation
    return f"{expected.kept_risk:.1%} errors" if result.kind == "class" else f"an error of {expected.kept_risk:.4g}"


def _show_written(paths: list[Path]) -> None:
    for path in paths:
        typer.echo(f"wrote {path}")


SHOWN = {"class": ("accuracy", "ROC AUC", "AURC", "log loss", "ECE"), "number": ("RMSE", "NLL", "coverage")}


def _show_compared(result: Comparison, as_json: bool) -> None:
    show_notes(result.notes)
    if as_json:
        show_json(result)
        return
    from ..commands.comparing import ordered

    names = SHOWN[result.kind]
    title = f"{result.target}: {result.n_rows:,} rows, {result.n_labelled:,} labels, {result.n_splits} splits (± standard error)"
    rows = [[method, *(result.scores[method][name].text() for name in names)] for method in ordered(result, names[0])]
    show_table(title, ["method", *names], rows)
    typer.echo()
    tested = names[:2] if result.kind == "number" else (names[0], "AURC", "log loss")
    differences = [[f"against {method}", *(_difference(row[name]) for name in tested)] for method, row in result.differences.items()]
    show_table(
        "GPSSL-full minus the other; * is significant at 5 %, corrected for shared rows and several tests", ["", *tested], differences
    )
    for method, reason in result.left_out.items():
        typer.echo(f"Left out: {method}. {reason}")
    for method, counts in result.settings.items():
        typer.echo(f"{method} chose {'; '.join(f'{setting} ({count} times)' for setting, count in list(counts.items())[:3])}.")
    typer.echo(f"\n{result.recommendation}")


def _difference(difference: Any) -> str:
    p_value = "< 0.001" if difference.p_value < 0.001 else f"= {difference.p_value:.3f}"
    return f"{difference.mean:+.3f} (p {p_value}){' *' if difference.p_value < 0.05 else '  '}"
