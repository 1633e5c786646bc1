"""What `gpssl COMMAND --help` prints, for the reference: a section for each command."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from typer.main import get_command

from gpssl.cli import app as command_line

WIDTH = 100
"""Characters in a line."""


class CommandHelp(Directive):
    """The help of all commands, in the order of `gpssl --help`."""

    def run(self) -> list[nodes.Node]:
        """Return the help of the whole command, then a section for each part."""
        whole: Any = get_command(command_line)
        context = whole.make_context("gpssl", [], resilient_parsing=True, terminal_width=WIDTH)
        parts = [self._section(name, whole.get_command(context, name)) for name in whole.list_commands(context)]
        return [_literal(whole.get_help(context)), *parts]

    def _section(self, name: str, command: Any) -> nodes.section:
        context = command.make_context(f"gpssl {name}", [], resilient_parsing=True, terminal_width=WIDTH)
        return nodes.section("", nodes.title("", f"gpssl {name}"), _literal(command.get_help(context)), ids=[f"gpssl-{name}"])


def _literal(text: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language="text")


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True}
