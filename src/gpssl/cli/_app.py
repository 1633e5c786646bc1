"""The command and its parts."""

from __future__ import annotations

import sys
from typing import Annotated

try:
    import typer
except ImportError:
    sys.exit('The command gpssl needs typer: pip install "gpssl[cli]".')

from . import datasets, describing, learning
from ._console import Command, in_sentences

HELP = """Self-supervised learning with Gaussian processes, on a table of your own.

Learn a representation from all rows, have the rows without a label labeled with an error rate that you choose, and
send a colleague one page that explains it. No Python needed.
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
    """Options of all commands."""


COMMANDS: dict[Command, list[str]] = {
    learning.embed: [
        "gpssl embed customers.csv -o customers-embedded.csv",
        "gpssl embed rows.parquet -o out.parquet --components 8 --alike neighbors",
        "gpssl embed slice.h5ad -o slice-embedded.h5ad",
    ],
    learning.transform: ["gpssl transform customers-embedded.gpssl new.csv -o new-embedded.csv --draws 100"],
    learning.label: [
        "gpssl label patients.csv --target diagnosis -o labeled.csv",
        "gpssl label patients.csv --target diagnosis --max-risk 0.02 -o labeled.csv",
        "gpssl label mice.csv --target class --group mouse -o labeled.csv",
    ],
    learning.compare: ["gpssl compare patients.csv --target diagnosis", "gpssl compare houses.csv --target price --splits 10 --json"],
    describing.report: ["gpssl report labeled.gpssl patients.csv -o report.html"],
    describing.info: ["gpssl info labeled.gpssl"],
    datasets.datasets: ["gpssl datasets", "gpssl datasets breast_cancer --labels 60"],
}
"""With examples of their use."""

for command, examples in COMMANDS.items():
    # The first character keeps the lines as they are.
    epilog = "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples)
    app.command(epilog=epilog, no_args_is_help=command is not datasets.datasets)(in_sentences(command))
