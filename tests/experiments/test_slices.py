"""Experiments on slices of tissue: what is labeled, what is predicted, and that predictions do not see what they are judged by."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import spatial
from experiments.ledger import Record, Task
from experiments.plan import Plan
from experiments.slices import labeled_section, simulated_slice
from gpssl.comparison import split_seed
from gpssl.spatial import spatial_blocks

QUICK = Plan(splits=1, quick=True)
FEW = ("columns", "kernel PCA", "GPSSL-full", "GP prior", "GPSSL-full, modalities", "GP prior, modalities")


@pytest.fixture(scope="module")
def records() -> list[Record]:
    tasks = [Task(data, 0, method) for data in spatial.MADE_UP for method in FEW]
    return [{**task._asdict(), **spatial.run(task, QUICK)} for task in tasks]


def test_labels_are_of_half_the_pure_spots_and_right() -> None:
    problem = simulated_slice(0, QUICK, made_up=True, found=False)
    pure = problem.adata.obs["purity"].to_numpy() >= 0.8
    assert len(problem.labeled) == pure.sum() // 2
    assert pure[problem.labeled].all()
    np.testing.assert_array_equal(problem.labels[problem.labeled], problem.types[problem.labeled])
    np.testing.assert_array_equal(np.sort([*problem.labeled, *problem.test]), np.arange(256))


def test_found_labels_may_be_wrong_and_mostly_are_right() -> None:
    problem = simulated_slice(2, QUICK, made_up=True, found=True)
    right = problem.labels[problem.labeled] == problem.types[problem.labeled]
    assert 0.7 < right.mean() < 1
    assert np.isin(problem.labels, ["", *problem.classes]).all()


def test_type_that_dominates_nowhere_is_a_class_all_the_same() -> None:
    problem = simulated_slice(2, QUICK, made_up=True, found=True)
    assert len(np.unique(problem.types)) < len(problem.classes) == 4
    record = spatial.run(Task("made_up_found", 2, "columns"), QUICK)
    assert 0.3 < record["scores"]["accuracy"] <= 1


def test_score_of_proportions_is_their_mean_squared_error() -> None:
    problem = simulated_slice(0, QUICK, made_up=True, found=False)
    assert problem.proportions is not None
    exact = spatial._scores(problem, problem.proportions[problem.test])
    assert exact["pMSE"] == 0
    assert exact["accuracy"] == 1
    half = spatial._scores(problem, (problem.proportions[problem.test] + 0.25) / 2)
    assert half["pMSE"] == pytest.approx(((problem.proportions[problem.test] - 0.25) ** 2).mean() / 4)


@pytest.mark.parametrize("method", ["GPSSL-full", "GPSSL-full, modalities", "supervised GP, modalities"])
def test_types_of_predicted_spots_are_not_looked_at(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = spatial.run(Task("made_up", 0, method), QUICK)
    whole = spatial.slice_of

    def poisoned(data: str, number: int, plan: Plan) -> object:
        problem = whole(data, number, plan)
        types = problem.types.copy()
        types[problem.test] = np.roll(types[problem.test], 1)
        return replace(problem, types=types)

    monkeypatch.setattr(spatial, "slice_of", poisoned)
    found = spatial.run(Task("made_up", 0, method), QUICK)
    assert found["certainty"] == expected["certainty"]
    assert found["settings"] == expected["settings"]
    assert found["right"] != expected["right"]


def test_report_has_a_table_for_each_kind_of_slice(records: list[Record]) -> None:
    blocks = spatial.report(records)
    assert list(blocks) == [f"spatial {data}{what}" for data in spatial.MADE_UP for what in ("", " tests pMSE", " tests AURC", " labels")]
    for method in FEW:
        assert f"| {method} " in blocks["spatial made_up"]
    assert "with the right label" in blocks["spatial made_up_found labels"]


@pytest.mark.slow
def test_pictures_of_the_simulated_slice(records: list[Record], tmp_path: Path) -> None:
    paths = spatial.draw(records, QUICK, tmp_path)
    assert sorted(path.name for path in paths) == ["STsim_data.png", "STsim_pest.png", "made_up_RC.png", "made_up_found_RC.png"]
    assert all(path.stat().st_size > 10_000 for path in paths)


def test_blocks_of_a_section_are_labeled_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    adata = simulated_slice(0, QUICK, made_up=True, found=False).adata.copy()
    adata.obs["pathologist_label"] = adata.obs["cell_type"].where(np.arange(256) % 7 > 0)
    monkeypatch.setattr("experiments.slices.section", lambda _: adata)
    problem = labeled_section("any", 3, QUICK, by_block=True)
    blocks = spatial_blocks(adata, 25)
    assert problem.seed == split_seed(0, 3)
    assert set(blocks[problem.labeled]) & set(blocks[problem.test]) == set()
    assert len(set(blocks[problem.labeled])) == round(0.3 * 25)
    known = np.flatnonzero(adata.obs["pathologist_label"].notna())
    np.testing.assert_array_equal(np.sort([*problem.labeled, *problem.test]), known)
    by_spot = labeled_section("any", 3, QUICK, by_block=False)
    assert len(by_spot.labeled) == round(0.3 * len(known))


@pytest.mark.slow
@pytest.mark.skipif("GPSSL_DATA" not in os.environ, reason="GPSSL_DATA is not set")
@pytest.mark.parametrize("data", ["H1_random", "H1_blocks", "G2_random", "G2_blocks"])
def test_certainty_tells_wrong_labels_of_sections_from_right_ones(data: str) -> None:
    found = [spatial.run(Task(data, split, "GPSSL-full, modalities"), Plan())["scores"]["AUROC of errors"] for split in range(2)]
    assert np.mean(found) > 0.7
