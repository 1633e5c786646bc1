from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from gpssl import __version__
from gpssl.cli import Target, app
from gpssl.experiments import uci
from gpssl.experiments.reproduce import EXPERIMENTS

run = CliRunner().invoke


def test_version() -> None:
    assert run(app, ["--version"]).output == f"gpssl {__version__}\n"


def test_every_experiment_is_a_target() -> None:
    assert {target.value for target in Target} == {*EXPERIMENTS, "all"}


def test_help_says_what_can_be_reproduced() -> None:
    output = run(app, ["reproduce", "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"}).output
    assert all(name in output for name in EXPERIMENTS)


def test_command_prints_the_tables_and_says_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uci, "METHODS", ("GPSSL-full", "Original"))
    result = run(app, ["reproduce", "uci", "--quick", "--splits", "1", "--jobs", "1", "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "| GPSSL-full | " in result.output
    assert f"wrote {tmp_path / 'report.md'}" in result.output.replace("\n", "")
    assert "gpssl reproduce uci --quick --splits 1 --seed 0" in (tmp_path / "report.md").read_text()


def test_unknown_data_set_and_missing_data_get_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(app, ["reproduce", "uci", "--table", "wine", "--output", str(tmp_path)])
    assert result.exit_code == 1
    assert "There is no data set wine in this experiment" in result.output

    def refuse(**_: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("gpssl.datasets.sources.fetch_openml", refuse)
    monkeypatch.setenv("GPSSL_DATA", str(tmp_path))
    result = run(app, ["reproduce", "uci", "--table", "ecoli", "--jobs", "1", "--output", str(tmp_path)])
    assert result.exit_code == 1
    assert "set GPSSL_DATA to a folder that has uci_ecoli/ecoli.data" in result.output


def test_no_processes_get_a_sentence() -> None:
    result = run(app, ["reproduce", "decisions", "--jobs", "0"])
    assert result.exit_code == 2
    assert "0 processes do nothing" in result.output
