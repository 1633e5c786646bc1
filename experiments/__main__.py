"""`python -m experiments`: run the experiments, and write their tables and pictures."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from gpssl.cli._console import in_sentences

EPILOG = """\b
Examples:
  python -m experiments circles --splits 1
  python -m experiments all --quick
  GPSSL_DATA=FOLDER python -m experiments all --report docs/results.md

Exit codes: 0 done, 1 it cannot be done (one sentence says why), 2 wrong options, 130 interrupted.
"""

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)


class Target(StrEnum):
    """What can be run."""

    CIRCLES = "circles"
    UCI = "uci"
    REGRESSION = "regression"
    LABELS = "labels"
    TEMPERATURE = "temperature"
    SCALING = "scaling"
    DECISIONS = "decisions"
    PROMISES = "promises"
    KINDS = "kinds"
    NEIGHBORS = "neighbors"
    FEW_LABELS = "few-labels"
    FEW_TARGETS = "few-targets"
    CLUSTERS = "clusters"
    NEXT = "next"
    SMS = "sms"
    SPATIAL = "spatial"
    ALL = "all"


@app.command(epilog=EPILOG, no_args_is_help=True)
@in_sentences
def run(
    target: Annotated[Target, typer.Argument(help="Which experiment. Labels, temperature and scaling explain the tables of uci.")],
    output: Annotated[
        Path | None, typer.Option(help="Folder for finished tasks.", show_default="results/reproduce, quick: results/quick")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Markdown file to fill in.", show_default="report.md in the folder")] = None,
    splits: Annotated[int | None, typer.Option(min=1, help="Random splits of each table.", show_default="20, quick: 2")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the splits and of all that is random.")] = 0,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for as many as there are cores.")] = -1,
    table: Annotated[list[str] | None, typer.Option(help="Only this data set; can be given several times.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few data sets, settings and draws: a minute or two.")] = False,
) -> None:
    """Regenerate the paper's tables and figures. Finished tasks are kept: after an interruption the same command resumes."""
    if jobs == 0:
        raise typer.BadParameter("0 processes do nothing: pass 1 or more, or -1 for as many as there are cores.", param_hint="--jobs")
    from .plan import Plan
    from .reproduce import EXPERIMENTS, reproduce

    names = list(EXPERIMENTS) if target is Target.ALL else [target.value]
    plan = Plan(splits=splits or (2 if quick else 20), seed=seed, quick=quick, tables=tuple(table) if table else None)
    folder = output or Path("results/quick" if quick else "results/reproduce")
    results = reproduce(names, plan, folder, report or folder / "report.md", n_jobs=jobs)
    for title, text in results.tables.items():
        typer.echo(f"\n{title}\n\n{text}")
    typer.echo()
    for path in results.written:
        typer.echo(f"wrote {path}")


if __name__ == "__main__":
    app(prog_name="python -m experiments")
