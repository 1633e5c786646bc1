"""The command and its subcommands."""

from __future__ import annotations

import sys
from typing import Annotated

try:
    import typer
except ImportError:
    sys.exit('The command gpssl needs typer: pip install "gpssl[cli]".')

from ._console import Command, in_sentences
from .compare import compare
from .datasets import datasets
from .embed import embed
from .info import info
from .label import label
from .report import report
from .transform import transform

HELP = """Self-supervised learning with Gaussian processes, on a table of your own.

Learn a representation from all rows, label the rows without a label at an error rate that you choose, and send a
colleague one page that explains it. You need no Python.
"""

EPILOG = """Exit codes: 0 done, 1 it cannot be done (one sentence says why), 2 wrong options, 130 interrupted.
"""

app = typer.Typer(no_args_is_help=True, help=HELP, epilog=EPILOG, rich_markup_mode=None, pretty_exceptions_enable=False)


def _print_version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        typer.echo(f"gpssl {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")] = False,
) -> None:
    """Take the options of all commands."""


COMMANDS: dict[Command, list[str]] = {
    embed: [
        "gpssl embed customers.csv -o customers-embedded.csv",
        "gpssl embed rows.parquet -o out.parquet --components 8 --alike neighbors",
        "gpssl embed slice.h5ad -o slice-embedded.h5ad",
    ],
    transform: ["gpssl transform customers-embedded.gpssl new.csv -o new-embedded.csv --draws 100"],
    label: [
        "gpssl label patients.csv --target diagnosis -o labeled.csv",
        "gpssl label patients.csv --target diagnosis --max-risk 0.02 -o labeled.csv",
        "gpssl label mice.csv --target class --group mouse -o labeled.csv",
    ],
    compare: ["gpssl compare patients.csv --target diagnosis", "gpssl compare houses.csv --target price --splits 10 --json"],
    report: ["gpssl report labeled.gpssl patients.csv -o report.html"],
    info: ["gpssl info labeled.gpssl"],
    datasets: ["gpssl datasets", "gpssl datasets breast_cancer --labels 60"],
}
"""The commands, with examples of their use."""

for command, examples in COMMANDS.items():
    # The first character keeps the lines as they are.
    epilog = "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)
    app.command(epilog=epilog, no_args_is_help=command is not datasets)(in_sentences(command))
