"""The command and its parts."""

from __future__ import annotations

import sys
from typing import Annotated

try:
    import typer
except ImportError:
    sys.exit('The command gpssl needs typer: pip install "gpssl[cli]".')

from . import datasets, describing, learning, reproducing
from .console import in_sentences

HELP = """Self-supervised learning with Gaussian processes, on a table of your own.

Learn a representation from all rows, have the rows without a label labelled with an error rate that you choose, and send a colleague one page that
explains it. No Python needed.
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


for command in (
    learning.embed,
    learning.transform,
    learning.label,
    learning.compare,
    describing.report,
    describing.info,
    datasets.datasets,
    reproducing.reproduce,
):
    app.command(epilog=getattr(command, "examples", None), no_args_is_help=command is not datasets.datasets)(in_sentences(command))
