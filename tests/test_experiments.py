from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gpssl.experiments import decisions, demo


def test_demo_prints_what_it_learned_and_draws_figure_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["demo", "--output", str(tmp_path)])
    demo.main()
    printed = capsys.readouterr().out
    for text in ("Concentric circles", "Breast cancer", "seconds to fit", "inner circle", "top right"):
        assert text in printed
    names = {"mean.png", "std.png", "distance_to_reference.png", "average_std.png"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert all((tmp_path / name).stat().st_size > 10_000 for name in names)


def test_decisions_compares_with_the_prior_and_draws_its_pictures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["decisions", "--output", str(tmp_path), "--seeds", "2"])
    monkeypatch.setattr(decisions, "NEIGHBORHOODS", (10,))
    decisions.main()
    printed = capsys.readouterr().out
    for text in ("GPSSL-mean", "GPSSL-full", "GP-prior", "full − mean", "full − prior", "AURC", "splits above"):
        assert text in printed
    assert {path.name for path in tmp_path.iterdir()} == {"probabilities.png", "risk_coverage.png", "reliability.png"}
