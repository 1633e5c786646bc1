"""`gpssl reproduce`, as a person meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from command import done, refused
from experiments import uci
from experiments.__main__ import Target
from experiments.reproduce import EXPERIMENTS


def test_every_experiment_is_a_target() -> None:
    assert {target.value for target in Target} == {*EXPERIMENTS, "all"}


def test_help_says_what_can_be_reproduced() -> None:
    output = done("reproduce", "--help")
    assert all(name in output for name in EXPERIMENTS)


def test_command_prints_the_tables_and_says_what_it_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uci, "METHODS", ("GPSSL-full", "columns"))
    output = done("reproduce", "uci", "--quick", "--splits", "1", "--jobs", "1", "--output", tmp_path)
    assert "| GPSSL-full | " in output
    assert f"wrote {tmp_path / 'report.md'}" in output.replace("\n", "")
    assert "gpssl reproduce uci --quick --splits 1 --seed 0" in (tmp_path / "report.md").read_text()


def test_unknown_data_set_and_missing_data_get_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = refused("reproduce", "uci", "--table", "wine", "--output", tmp_path)
    assert "There is no data set wine in this experiment" in output

    def refuse(**_: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr("experiments.data.sources.fetch_openml", refuse)
    monkeypatch.setenv("GPSSL_DATA", str(tmp_path))
    output = refused("reproduce", "uci", "--table", "ecoli", "--jobs", "1", "--output", tmp_path)
    assert "set GPSSL_DATA to a folder that has uci_ecoli/ecoli.data" in output


def test_no_processes_get_a_sentence() -> None:
    assert "0 processes do nothing" in refused("reproduce", "decisions", "--jobs", "0", code=2)
