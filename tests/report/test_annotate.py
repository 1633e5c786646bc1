"""The page for labels, before a browser opens it: what is in it, what the command says, and what it refuses."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import gpssl
from command import as_json, done, refused
from gpssl.report._labeling_page import render_labeling
from labeling import content, three_kinds, with_cells
from reports import CLOSING, IMAGE


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "trees.csv"
    three_kinds(60)[0].to_csv(path, index=False)
    return path


def data_of(page: str) -> dict[str, Any]:
    """What the scripts of a page read."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_the_command_writes_a_page_and_says_what_to_do_with_it(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = done("annotate", "trees.csv", "--target", "tree", "-n", "7")
    assert "60 rows: 6 have a label in 'tree'; 7 of the other 54 are in the page." in said
    assert "\n  gpssl label trees.csv --target tree --labels labels.csv -o trees-labeled.csv\n" in said
    assert "wrote trees-label.html" in said
    data = data_of((tmp_path / "trees-label.html").read_text(encoding="utf-8"))
    assert len(data["rows"]) == 7
    assert data["classes"] == ["oak", "pine", "rowan"]
    assert data["columns"] == ["height", "girth", "leaf", "bark"]
    assert data["texts"]["more"] == "gpssl annotate trees.csv --target tree --labels labels.csv -n 7 -o trees-label-2.html"
    lines = pd.read_csv(table, dtype=str)
    for row in data["rows"]:
        assert row["cells"] == lines.loc[int(row["row"]) - 2, data["columns"]].tolist()
        assert sum(row["probabilities"]) == pytest.approx(1, abs=1e-3)
    assert "exists" in refused("annotate", "trees.csv", "--target", "tree")


def test_the_loop_goes_on_with_earlier_labels(table: Path, tmp_path: Path) -> None:
    """Rows that have a label by now are not shown again, and the labels of the next page have another name."""
    _, truth = three_kinds(60)
    first = gpssl.annotate(table, "tree", n=10)
    labels = first.frame().assign(tree=[truth[row.place] for row in first.rows])
    labels.to_csv(tmp_path / "labels.csv", index=False)
    second = as_json("annotate", table, "--target", "tree", "-n", "10", "--labels", tmp_path / "labels.csv", "-o", tmp_path / "two.html")
    assert second["n_labeled"] == 16
    assert {row["place"] for row in second["rows"]}.isdisjoint(row.place for row in first.rows)
    assert f"--labels {tmp_path / 'labels.csv'} --labels labels-2.csv" in second["command"]


def test_options_come_back_in_the_commands(tmp_path: Path) -> None:
    frame, _ = three_kinds(60)
    path = tmp_path / "my trees.csv"
    frame = frame.assign(site=[f"site {row % 5}" for row in range(60)], code=range(60), tree=frame["tree"].fillna("not yet"))
    frame.to_csv(path, index=False)
    made = gpssl.annotate(path, "tree", n=3, target_kind="class", group="site", keep=["code"], ignore=["leaf"], unlabeled=["not yet"])
    roles = "--target tree --classes --group site --keep code --ignore leaf --unlabeled 'not yet' --labels labels.csv"
    assert made.command == f"gpssl label '{path}' {roles} -o 'my trees-labeled.csv'"


def test_tables_in_memory_get_a_call_and_no_command() -> None:
    frame, _ = three_kinds(60)
    made = gpssl.annotate(frame, "tree", n=3, ignore=["leaf"])
    assert made.command == "gpssl.label(table, 'tree', labels='labels.csv', ignore=['leaf'])"
    assert made.written == []
    assert made.frame()["row"].tolist() == [str(row.place) for row in made.rows]


def test_results_of_earlier_runs_are_not_shown(table: Path, tmp_path: Path) -> None:
    gpssl.label(table, "tree", n_draws=5, out=tmp_path / "labeled.csv")
    made = gpssl.annotate(tmp_path / "labeled.csv", "tree", n=3)
    assert list(made.content.columns) == ["height", "girth", "leaf", "bark"]
    assert gpssl.annotate(table, "tree", n=3).frame().equals(made.frame())


def test_without_labels_the_page_asks_for_the_first() -> None:
    made = gpssl.annotate(three_kinds(60)[0].assign(tree=None), "tree", n=3)
    assert made.classes == []
    assert all(row.predicted is None and row.probabilities is None for row in made.content.rows)


def test_numbers_are_asked_for_as_numbers() -> None:
    frame, _ = three_kinds(60)
    values = frame["height"].where(frame.index % 4 == 0) * 1.25
    data = data_of(gpssl.annotate(frame.assign(tree=values), "tree", n=3).html())
    assert data["kind"] == "number"
    assert data["classes"] == []
    assert all(re.fullmatch(r"-?[\d.]+(e-?\d+)?", row["predicted"]) for row in data["rows"])


def test_more_rows_than_are_open_are_all_that_are_open(table: Path) -> None:
    made = gpssl.annotate(table, "tree", n=500)
    assert len(made.rows) == len({row.place for row in made.rows}) == 54


def test_nothing_left_to_label_gets_a_sentence(tmp_path: Path) -> None:
    frame, truth = three_kinds(60)
    frame.assign(tree=truth).to_csv(tmp_path / "trees.csv", index=False)
    assert "All 60 rows" in refused("annotate", tmp_path / "trees.csv", "--target", "tree")
    assert not (tmp_path / "trees-label.html").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--target", "trees"], "has no column 'trees'; did you mean 'tree'?"),
        (["--target", "tree", "-o", "page.csv"], "page.csv ends in .csv: choose a name that ends in .html"),
        (["--target", "tree", "--labels", "none.csv"], "There is no file"),
    ],
)
def test_bad_input_gets_a_sentence(table: Path, options: list[str], words: str) -> None:
    assert words in refused("annotate", table, *options)


def test_the_page_asks_for_nothing_from_elsewhere() -> None:
    page = render_labeling(with_cells(content(), [f"{CLOSING}{IMAGE}"]))
    assert re.findall(r"""(?:src|href|action)\s*=\s*["']?([^"'\s>]*)""", page.split('id="data"')[0]) == ["data:,"]
    assert "http://" not in page
    assert "https://" not in page
    assert IMAGE not in page
    policy = re.search(r'http-equiv="Content-Security-Policy" content="(.*?)"', page)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    for kind in ("style", "script"):
        inline = re.findall(rf"<{kind}>(.*?)</{kind}>", page, flags=re.DOTALL)
        assert len(inline) == 1
        digest = base64.b64encode(hashlib.sha256(inline[0].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy[1]


def test_same_content_same_page_and_same_place_in_the_browser() -> None:
    assert render_labeling(content()) == render_labeling(content())
    assert content().fingerprint == content(classes=("ham",)).fingerprint  # a class more does not lose the answers
    assert len({content().fingerprint, content(n_rows=5).fingerprint, content("number").fingerprint}) == 3
