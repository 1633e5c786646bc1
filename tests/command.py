"""The command as a person calls it."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner

from gpssl.cli import app

FEW = ["--draws", "10"]


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def done(*arguments: Any) -> str:
    """What a command prints that has to succeed."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return str(result.output)


def as_json(*arguments: Any) -> Any:
    """What a command with --json prints on standard output; notes are elsewhere."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*arguments: Any, code: int = 1) -> str:
    """What a command prints that has to fail: one sentence, and no traceback."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return " ".join(result.output.replace("│", " ").split())
