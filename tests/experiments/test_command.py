"""`python -m experiments`, as a person meets it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from experiments import uci
from experiments.__main__ import Target, app
from experiments.reproduce import EXPERIMENTS


def run(*arguments: Any, code: int = 0) -> str:
    """Return what the command prints, on one line."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    return " ".join(result.output.split())


def test_every_experiment_is_a_target() -> None:
    assert {target.value for target in Target} == {*EXPERIMENTS, "all"}


@pytest.mark.parametrize("arguments", [[], ["--help"]])
def test_help_says_what_can_be_run(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "experiments", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    output = done.stdout + done.stderr
    assert done.returncode == (0 if arguments else 2)
    assert output.startswith("Usage: python -m experiments ")
    assert all(name in output for name in EXPERIMENTS)


@pytest.mark.slow
def test_command_prints_the_tables_and_says_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uci, "METHODS", ("GPSSL-full", "columns"))
    output = run("uci", "--quick", "--splits", "1", "--jobs", "1", "--output", tmp_path)
    assert "| GPSSL-full | " in output
    assert f"wrote {tmp_path / 'report.md'}" in output
    assert "python -m experiments uci --quick --splits 1 --seed 0" in (tmp_path / "report.md").read_text()


def test_unknown_data_set_and_missing_data_get_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = run("uci", "--table", "wine", "--output", tmp_path, code=1)
    assert "There is no data set wine in this experiment" in output

    def refuse(**_: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("experiments.data.sources.fetch_openml", refuse)
    monkeypatch.setenv("GPSSL_DATA", str(tmp_path))
    output = run("uci", "--table", "ecoli", "--jobs", "1", "--output", tmp_path, code=1)
    assert "set GPSSL_DATA to a folder that has uci_ecoli/ecoli.data" in output


def test_no_processes_get_a_sentence() -> None:
    assert "0 processes do nothing" in run("decisions", "--jobs", "0", code=2)
