"""Finished tasks in a file, runs that resume, and what a run leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from experiments import circles, decisions, reproduce, uci
from experiments.ledger import Ledger, Record, Task
from experiments.plan import Plan

SMALL = Plan(splits=1, quick=True)


# Ledger


RECORD: Record = {"data": "d", "split": 0, "method": "m", "scores": {"accuracy": 0.5}}


def test_ledger_returns_what_was_written_and_the_latest_of_a_task(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "new" / "run.jsonl", {"seed": 0})
    assert ledger.records() == []
    for value in (0.5, 0.6):
        ledger.append({**RECORD, "scores": {"accuracy": value}})
    ledger.append({**RECORD, "split": 1})
    assert [record["scores"]["accuracy"] for record in ledger.records()] == [0.6, 0.5]


def test_ledger_ignores_other_protocols(tmp_path: Path) -> None:
    Ledger(tmp_path / "run.jsonl", {"seed": 0}).append(RECORD)
    assert Ledger(tmp_path / "run.jsonl", {"seed": 1}).records() == []


@pytest.mark.parametrize("n_bytes", [1, 20, 60])
def test_line_that_was_cut_off_is_no_record_and_spoils_no_other(n_bytes: int, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "run.jsonl", {"seed": 0})
    ledger.append(RECORD)
    ledger.append({**RECORD, "method": "ünfinished"})
    whole = ledger.path.read_bytes()
    first = whole.index(b"\n") + 1
    ledger.path.write_bytes(whole[: first + n_bytes])
    assert [record["method"] for record in ledger.records()] == ["m"]
    ledger.append({**RECORD, "method": "next"})
    assert [record["method"] for record in ledger.records()] == ["m", "next"]


FEW = ("columns", "kernel PCA", "VICReg", "GPSSL-mean", "GPSSL-full", "GP prior")


@pytest.fixture
def _fewer_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uci, "METHODS", FEW)
    monkeypatch.setattr(circles, "METHODS", FEW)


@pytest.mark.slow
@pytest.mark.usefixtures("_fewer_methods")
def test_same_seed_same_report_for_any_number_of_jobs(tmp_path: Path) -> None:
    reports = []
    for n_jobs in (1, 2):
        folder = tmp_path / str(n_jobs)
        _, written = reproduce.reproduce(["uci"], replace(SMALL, splits=2), folder, folder / "report.md", n_jobs=n_jobs)
        assert all(path.exists() for path in written)
        reports.append((folder / "report.md").read_text())
    assert reports[0] == reports[1]
    assert {path.name for path in (tmp_path / "1" / "figures").iterdir()} == {
        "breast_cancer_data.png",
        "breast_cancer_predictions.png",
        "breast_cancer_risk_coverage.png",
    }


@pytest.mark.slow
@pytest.mark.usefixtures("_fewer_methods")
def test_circles_draw_the_paper_s_figures(tmp_path: Path) -> None:
    _, written = reproduce.reproduce(["circles"], SMALL, tmp_path, tmp_path / "report.md", n_jobs=1)
    names = {path.stem for path in written}
    assert {"circles_data", "circles_gpssl", "circles_gpssl_std", "circles_gpssl_distance", "circles_gpssl_average_std"} <= names
    assert {"circles_kernel_pca", "circles_vicreg", "circles_kernel_pca_distance", "circles_vicreg_distance"} <= names
    assert {"circles_probabilities", "circles_risk_coverage"} <= names
    assert all(path.stat().st_size > 5_000 for path in written if path.suffix == ".png")


KILLED = """
import os, signal, sys
from pathlib import Path
from experiments import reproduce, uci
from experiments.ledger import Ledger
from experiments.plan import Plan

uci.METHODS = ("columns", "kernel PCA", "GPSSL-full", "GP prior")
folder, kill_after = Path(sys.argv[1]), int(sys.argv[2])
append, n_written = Ledger.append, 0

def append_and_die(self, record):
    global n_written
    n_written += 1
    if n_written == kill_after:
        with self.path.open("a") as file:
            file.write('{"data": "breast_ca')  # in the middle of a line
        os.kill(os.getpid(), signal.SIGKILL)
    append(self, record)

Ledger.append = append_and_die
reproduce.reproduce(["uci"], Plan(splits=2, quick=True), folder, folder / "report.md", n_jobs=1)
"""


@pytest.mark.slow
def test_run_that_was_killed_resumes_and_ends_with_the_same_tables(tmp_path: Path) -> None:
    def run(folder: str, kill_after: int) -> int:
        command = [sys.executable, "-c", KILLED, str(tmp_path / folder), str(kill_after)]
        return subprocess.run(command, capture_output=True, check=False, env=dict(os.environ)).returncode

    assert run("killed", 4) == -signal.SIGKILL
    finished = (tmp_path / "killed" / "uci.jsonl").read_text().splitlines()
    assert len(finished) == 4  # three tasks and half a line
    assert not (tmp_path / "killed" / "report.md").exists()
    assert run("killed", -1) == 0
    lines = (tmp_path / "killed" / "uci.jsonl").read_text().splitlines()
    assert lines[:3] == finished[:3]
    assert len(lines) == 9  # what was finished was not run again
    assert run("whole", -1) == 0
    assert (tmp_path / "killed" / "report.md").read_text() == (tmp_path / "whole" / "report.md").read_text()


def test_task_that_fails_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(task: Task, _plan: Plan) -> Record:
        if task.method == "GP prior":
            raise ArithmeticError("no")
        return {"scores": {"accuracy": float("nan") if task.method == "PCA" else 0.5}}

    monkeypatch.setattr(uci, "run", run)
    with pytest.raises(reproduce.FailedTasksError, match=r"2 of 11 tasks failed.*PCA on split 0 of breast_cancer: ValueError"):
        reproduce.reproduce(["uci"], SMALL, tmp_path, tmp_path / "report.md")
    assert len((tmp_path / "uci.jsonl").read_text().splitlines()) == 9
    assert "Traceback" in capsys.readouterr().err


def test_warnings_go_into_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def run(task: Task, _plan: Plan) -> Record:
        if task.method == "PCA":
            warnings.warn("not sure", UserWarning, stacklevel=2)
        return {"scores": {"accuracy": 0.5}}

    monkeypatch.setattr(uci, "run", run)
    reproduce.run_all("uci", uci.tasks(SMALL), SMALL, Ledger(tmp_path / "uci.jsonl", {}), 1)
    assert "uci: 1 of 11 tasks came with warnings" in capsys.readouterr().err
    said = {record["method"]: record["warnings"] for record in Ledger(tmp_path / "uci.jsonl", {}).records()}
    assert (said["PCA"], said["columns"]) == (["not sure"], [])


def test_what_a_user_has_to_mend_is_said_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "report.md").mkdir()
    with pytest.raises(IsADirectoryError, match=r"name a file in it"):
        reproduce.reproduce(["decisions"], SMALL, tmp_path, tmp_path / "report.md")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"gpssl\[cli\]"):
        reproduce.reproduce(["decisions"], SMALL, tmp_path, tmp_path / "other.md")
    assert not (tmp_path / "decisions.jsonl").exists()


def test_report_forgets_tables_of_another_run_and_keeps_those_of_other_experiments(tmp_path: Path) -> None:
    report = tmp_path / "report.md"
    report.write_text("Text.\n<!-- decisions old -->\n1\n<!-- end of decisions old -->\n<!-- labels x -->\n2\n<!-- end of labels x -->\n")
    reproduce.reproduce(["decisions"], SMALL, tmp_path, report)
    text = report.read_text()
    assert text.startswith("Text.\n<!-- decisions old -->\nNot run.\n<!-- end of decisions old -->\n<!-- labels x -->\n2\n")
    assert "Printed by `python -m experiments decisions --quick --splits 1 --seed 0`" in text
    assert "| GP prior " in text


def test_of_several_experiments_those_without_the_table_are_left_out(tmp_path: Path) -> None:
    plan = replace(SMALL, tables=("breast_cancer", "breast_cancer"))
    tables, _ = reproduce.reproduce(["circles", "decisions"], plan, tmp_path, tmp_path / "report.md")
    assert list(tables) == ["run decisions", "decisions"]
    assert len((tmp_path / "decisions.jsonl").read_text().splitlines()) == len(decisions.METHODS)
    with pytest.raises(ValueError, match="There is no data set wine"):
        reproduce.reproduce(["circles", "decisions"], replace(SMALL, tables=("wine",)), tmp_path, tmp_path / "report.md")
