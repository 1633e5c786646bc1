"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from ..workflows._choices import N_COMPONENTS, Alike

SEED_HELP = "Seed of all that is random."

Table = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, Parquet, Arrow, JSON lines, .xlsx, .sqlite, .duckdb, .zip (by the name's ending) or .h5ad; - is standard input.",
        metavar="TABLE",
        show_default=False,
    ),
]
Model = Annotated[Path, typer.Argument(help="A model that gpssl embed or gpssl label wrote.", metavar="MODEL", show_default=False)]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        help="File for the results: .csv, .tsv, .jsonl (also .gz), .parquet, .arrow; - is standard output, as CSV.",
        show_default=False,
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option("--sheet", "--table", help="Sheet of a workbook, or table of a database.", show_default="the first, or the only one"),
]
TargetColumn = Annotated[
    str, typer.Option("--target", "-t", help="Column to predict; cells without a label are empty.", show_default=False)
]
ModelOut = Annotated[
    Path | None, typer.Option("--model", "-m", help="File for the model.", show_default="as the results, with .gpssl; none for -o -")
]
Labels = Annotated[
    list[Path] | None,
    typer.Option("--labels", help="Labels that a person gave in the page of gpssl annotate: labels.csv. Repeatable.", show_default=False),
]
Keep = Annotated[list[str] | None, typer.Option("--keep", help="Learn from this column although it looks like an identifier. Repeatable.")]
Ignore = Annotated[list[str] | None, typer.Option("--ignore", help="Do not learn from this column. Repeatable.")]
Unlabeled = Annotated[list[str] | None, typer.Option("--unlabeled", help="A word in the target that means 'no label'. Repeatable.")]
Group = Annotated[
    str | None,
    typer.Option("--group", help="Column that says which rows belong together (a patient, a mouse): they are held out together."),
]
Numeric = Annotated[
    bool | None,
    typer.Option("--numeric/--classes", help="Take the target as numbers, or as classes.", show_default="by what the column holds"),
]
Components = Annotated[
    int | None,
    typer.Option(
        "--components",
        min=1,
        help="Dimensions of the representation.",
        show_default=f"{N_COMPONENTS['table']}, tissue: {N_COMPONENTS['tissue']}",
    ),
]
AlikeOption = Annotated[
    Alike, typer.Option("--alike", help="Rows are alike if their columns agree, or if small steps lead from one to the other.")
]
Temperature = Annotated[
    str, typer.Option("--temperature", help="auto (one over the number of rows), or a number: higher ones make draws more diverse.")
]
Draws = Annotated[int, typer.Option("--draws", min=2, help="Functions that predictions are averaged over.")]
FixedAlike = Annotated[
    Alike | None,
    typer.Option(
        "--alike", help="One representation: rows are alike if their columns agree, or if small steps lead from one to the other."
    ),
]
FixedTemperature = Annotated[str | None, typer.Option("--temperature", help="One representation, at this temperature: auto, or a number.")]
FixedDraws = Annotated[int | None, typer.Option("--draws", min=2, help="One representation, and so many functions drawn from it.")]
MaxInducing = Annotated[int, typer.Option("--max-inducing", min=2, help="Largest number of rows that carry the functions.")]
Confidence = Annotated[
    str,
    typer.Option(
        "--confidence",
        help="How the error rate is held: average, or with a confidence such as 0.95; auto is average with fewer than 300 labels.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help=SEED_HELP)]
OnlyNew = Annotated[bool, typer.Option("--only-new", help="Write the new columns alone, not those of the table.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Replace files that are there already.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def temperature_of(text: str) -> float | Literal["auto"]:
    """Return a positive number, or "auto"."""
    if text == "auto":
        return "auto"
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise typer.BadParameter(f"{text} is neither auto nor a positive number.", param_hint="--temperature")
    return value


def target_kind_of(numeric: bool | None) -> Literal["class", "number"] | None:
    """Return None where the column decides."""
    return None if numeric is None else "number" if numeric else "class"
