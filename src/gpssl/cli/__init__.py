"""The command `gpssl` and its subcommands."""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from typing import Annotated, Any

try:
    import typer
except ImportError:
    sys.exit('The command gpssl needs typer: pip install "gpssl[cli]".')

from typer.core import TyperGroup
from typer.main import get_command

from ._console import in_sentences, run_as_process, with_printable_message

__all__ = ["app", "main"]

HELP = """Self-supervised learning with Gaussian processes, on a table of your own.

Learn a representation from all rows, label the rows without a label at an error rate that you choose, and send a
colleague one page that explains it. You need no Python.
"""

EPILOG = """Exit codes: 0 done, 1 it cannot be done (one sentence says why), 2 wrong options, 130 interrupted, 143 terminated.
"""

COMMANDS = {
    "embed": [
        "gpssl embed customers.csv -o customers-embedded.csv",
        "gpssl embed rows.parquet -o out.parquet --components 8 --alike neighbors",
        "gpssl embed slice.h5ad -o slice-embedded.h5ad",
    ],
    "cluster": ["gpssl cluster customers.csv -o customers-clustered.csv", "gpssl cluster customers.csv -k 4 -o customers-clustered.csv"],
    "transform": ["gpssl transform customers-embedded.gpssl new.csv -o new-embedded.csv --draws 100"],
    "label": [
        "gpssl label patients.csv --target diagnosis -o labeled.csv",
        "gpssl label patients.csv --target diagnosis --max-risk 0.02 -o labeled.csv",
        "gpssl label mice.csv --target class --group mouse -o labeled.csv",
        "gpssl label messages.csv --target spam --labels labels.csv -o labeled.csv",
    ],
    "next": [
        "gpssl next patients.csv --target diagnosis -n 20 -o to-label.csv",
        "gpssl next patients.csv --target diagnosis --max-risk 0.02",
    ],
    "annotate": ["gpssl annotate messages.csv --target spam", "gpssl annotate messages.csv --target spam -n 50 --labels labels.csv"],
    "compare": ["gpssl compare patients.csv --target diagnosis", "gpssl compare houses.csv --target price --splits 10 --json"],
    "report": ["gpssl report labeled.gpssl patients.csv -o report.html"],
    "info": ["gpssl info labeled.gpssl"],
    "datasets": ["gpssl datasets", "gpssl datasets sms_spam --labels 50 -o messages.csv"],
}
"""The commands, each in the module of its name, with examples of their use."""
PLAIN: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}


class Group(TyperGroup):
    """The commands, each imported when it is asked for."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = dict.fromkeys(COMMANDS)

    def make_context(self, *arguments: Any, **extra: Any) -> Any:
        """Return the context of a call; what is wrong with its arguments is quoted as a terminal can show it."""
        with with_printable_message():
            return super().make_context(*arguments, **extra)

    def invoke(self, context: Any) -> Any:
        """Run a command, and quote what is wrong with its arguments in the same way."""
        with with_printable_message():
            return super().invoke(context)

    def get_command(self, _context: Any, name: str) -> Any:
        """Return a command; None where there is none of this name."""
        if name not in COMMANDS:
            return None
        function = getattr(import_module(f".{name}", __package__), name)
        # The first character keeps the lines as they are.
        epilog = "\b\nExamples:\n" + "\n".join(f"  {example}" for example in COMMANDS[name])
        alone = typer.Typer(add_completion=False, **PLAIN)
        alone.command(name, epilog=epilog, no_args_is_help=name != "datasets")(in_sentences(function))
        return get_command(alone)


app = typer.Typer(cls=Group, no_args_is_help=True, help=HELP, epilog=EPILOG, **PLAIN)


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


def main() -> None:
    """Run the command as a process of its own, which a signal stops without leaving an unfinished file."""
    run_as_process(partial(app, prog_name="gpssl"))
