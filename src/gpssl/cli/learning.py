"""`gpssl embed`, `transform`, `label` and `compare`: options in, a few lines out."""

from __future__ import annotations

from typing import Annotated

import typer

from ..workflows._choices import Alike
from . import _options as take
from ._console import notes_on_failure, progress_bars
from ._showing import show_compared, show_embedded, show_labeled


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
        from ..workflows._embed import RESULTS
        from ..workflows._embed import embed as run
        from ..workflows._opening import open_subject
        from ..workflows._settings import Settings, model_path

        settings = Settings(components, alike, take.temperature_of(temperature), max_inducing=max_inducing, seed=seed)
        subject = open_subject(table, keep=keep or (), ignore=ignore or (), results=RESULTS)
        with notes_on_failure(subject.notes):
            result = run(subject, out, model_path(out, model), settings, only_new=only_new, force=force)
    show_embedded(result, as_json)


def transform(
    model: take.Model,
    table: take.Table,
    out: take.Out,
    draws: Annotated[int, typer.Option("--draws", min=0, help="Also write so many functions drawn from the posterior.")] = 0,
    only_new: take.OnlyNew = False,
    force: take.Force = False,
    as_json: take.Json = False,
) -> None:
    """The representation of other rows, by a model that was learned before, and what it predicts for them.

    A model of gpssl label writes its predictions too, with the abstentions of its --max-risk. A note says where they
    leave the ranges of the rows that the model was learned from. With --draws, columns gpssl_1_draw_1, … hold
    functions from the posterior, each the same function at all rows.
    """
    with progress_bars():
        from ..workflows._transform import transform as run

        result = run(model, table, out, n_draws=draws, only_new=only_new, force=force)
    show_embedded(result, as_json)


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
        from ..evaluation._expectation import Promise
        from ..workflows._label import label as run
        from ..workflows._label import names_of_results
        from ..workflows._opening import open_subject
        from ..workflows._settings import Settings, model_path

        settings = Settings(components, alike, take.temperature_of(temperature), draws, max_inducing, seed)
        subject = open_subject(
            table, target=target, target_kind=kind, group=group, keep=keep or (), ignore=ignore or (), results=names_of_results(target)
        )
        _check_risk(max_risk, subject.target().kind)
        with notes_on_failure(subject.notes):
            result = run(subject, out, model_path(out, model), settings, Promise(max_risk, confidence), only_new=only_new, force=force)
    show_labeled(result, max_risk, confidence, as_json)


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
    judged; only the columns themselves, if they are more than 100, get logistic regression with a cross-validated
    penalty. Methods with several settings choose by a fifth of the labels that they train on.
    """
    with progress_bars():
        from ..comparison._compare import compare as run
        from ..workflows._opening import open_subject
        from ..workflows._settings import Settings

        settings = Settings(components, alike, "auto", draws, max_inducing, seed)
        kind = take.target_kind_of(numeric)
        subject = open_subject(table, target=target, target_kind=kind, group=group, keep=keep or (), ignore=ignore or ())
        with notes_on_failure(subject.notes):
            result = run(subject, settings, splits, max_rows)
    show_compared(result, as_json)


def _check_share(value: float, option: str) -> None:
    if not 0 < value < 1:
        raise typer.BadParameter(f"{value:g} is no share between 0 and 1.", param_hint=option)


def _check_risk(max_risk: float | None, kind: str) -> None:
    if max_risk is None:
        return
    if kind == "class":
        _check_share(max_risk, "--max-risk")
    elif not 0 < max_risk < float("inf"):
        raise typer.BadParameter("for numbers it is the largest root mean squared error, a positive number.", param_hint="--max-risk")
