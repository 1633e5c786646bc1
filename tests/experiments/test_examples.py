"""Texts, graphs and data frames: counts as documented, hand-written files, and a sentence where a file is missing or broken."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from experiments.data.examples import Examples, load_sms_spam, load_splice
from experiments.data.frames import ATTACKS, KDD_CATEGORIES, KDD_COLUMNS, load_dermatology_frame, load_kdd_frame, load_mice_protein_frame
from experiments.data.graphs import load_enzymes, load_mutag, load_proteins
from experiments.data.sources import BrokenTableError
from experiments.data.tables import CLASSIFICATION_TABLES, FURTHER_TABLES, load_classification

has_data = (Path(os.environ.get("GPSSL_DATA", "")) / "sms_spam" / "SMSSpamCollection").is_file()
needs_data = pytest.mark.skipif(not has_data, reason="GPSSL_DATA names no folder with the data sets")

COUNTS: dict[Callable[[], Examples], dict[str, int]] = {
    load_sms_spam: {"ham": 4827, "spam": 747},
    load_splice: {"N": 1655, "IE": 768, "EI": 767},
    load_mutag: {"1": 125, "-1": 63},
    load_enzymes: dict.fromkeys("123456", 100),
    load_proteins: {"0": 663, "1": 450},
    load_kdd_frame: {"normal": 87832, "dos": 54572, "probe": 2131, "r2l": 999, "u2r": 52},
}


@needs_data
@pytest.mark.parametrize("load", COUNTS, ids=lambda load: load.__name__)
def test_counts_of_classes(load: Callable[[], Examples]) -> None:
    examples = load()
    assert Counter(examples.y.tolist()) == COUNTS[load]
    assert len(examples.X) == len(examples.y)


@needs_data
@pytest.mark.parametrize(
    ("load", "n_nodes", "n_edges", "labels"),
    [(load_mutag, 3371, 3721, range(7)), (load_enzymes, 19580, 37282, (1, 2, 3)), (load_proteins, 43471, 81044, range(3))],
)
def test_nodes_edges_and_labels_of_graphs(load: Callable[[], Examples], n_nodes: int, n_edges: int, labels: range) -> None:
    graphs = load().X
    assert sum(graph.number_of_nodes() for graph in graphs) == n_nodes
    assert sum(graph.number_of_edges() for graph in graphs) == n_edges
    assert {label for graph in graphs for _, label in graph.nodes(data="label")} == set(labels)


@needs_data
def test_columns_of_frames() -> None:
    kdd, skin, mice = load_kdd_frame(), load_dermatology_frame(), load_mice_protein_frame()
    assert [kdd.X[name].dtype.name for name in KDD_CATEGORIES] == ["category"] * 3
    assert kdd.X.select_dtypes("number").shape == (145586, 38)
    grades = skin.X.select_dtypes("category")
    assert grades.shape == (366, 33)
    assert all(grades[name].cat.ordered for name in grades)
    assert (skin.X.isna().sum().sum(), skin.X["age"].isna().sum()) == (8, 8)
    assert (mice.X.isna().sum().sum(), len(set(mice.groups if mice.groups is not None else []))) == (1396, 72)


def test_tables_beyond_the_paper_s_come_with_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPSSL_DATA", raising=False)
    digits, wine = (load_classification(name) for name in FURTHER_TABLES)
    assert (digits.X.shape, wine.X.shape) == ((1797, 64), (178, 13))
    assert (sorted(set(digits.y.tolist())), wine.columns[0]) == (list("0123456789"), "alcohol")
    assert not set(FURTHER_TABLES) & set(CLASSIFICATION_TABLES)


# Hand-written files


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """A file in the user's folder."""
    monkeypatch.setenv("GPSSL_DATA", str(tmp_path))

    def write_file(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())

    return write_file


Write = Callable[[str, str], None]
LETTERS = ", ".join("ACGTN" * 12)


def test_messages_may_contain_tabs_and_letters_of_all_kinds(write: Write) -> None:
    write("sms_spam/SMSSpamCollection", "ham\tI'm\there ü\nspam\tWIN £100\n")
    messages = load_sms_spam()
    assert messages.X == ["I'm\there ü", "WIN £100"]
    assert messages.y.tolist() == ["ham", "spam"]


def test_sequences_are_strings_of_sixty_letters(write: Write) -> None:
    write("dna_splice/splice.dat", f"@relation splice\n@data\n{LETTERS}, EI\n{LETTERS}, N\n")
    sequences = load_splice()
    assert sequences.X == ["ACGTN" * 12] * 2
    assert sequences.y.tolist() == ["EI", "N"]


def write_tu(write: Write, **changes: str) -> None:
    """A path a–b–c of labels 5, 6, 5, and two nodes without an edge."""
    parts = {
        "A": "1, 2\n2, 1\n2, 3\n3, 2\n",
        "graph_indicator": "1\n1\n1\n2\n2\n",
        "graph_labels": "1\n-1\n",
        "node_labels": "5\n6\n5\n0\n0\n",
    }
    for part, text in {**parts, **changes}.items():
        write(f"graphs/MUTAG/MUTAG_{part}.txt", text)


def test_graphs_of_the_tu_collection(write: Write) -> None:
    write_tu(write)
    graphs = load_mutag()
    path, lonely = graphs.X
    assert graphs.y.tolist() == ["1", "-1"]
    assert [label for _, label in path.nodes(data="label")] == [5, 6, 5]
    assert sorted(path.degree(node) for node in path) == [1, 1, 2]
    assert (lonely.number_of_nodes(), lonely.number_of_edges()) == (2, 0)


def test_graphs_with_a_line_for_each_node(write: Write) -> None:
    write("graphs/PROTEINS/PROTEINS.txt", "2\n3 0\n7 1 1\n8 2 0 2\n7 1 1\n1 1\n4 0\n")
    graphs = load_proteins()
    path, single = graphs.X
    assert graphs.y.tolist() == ["0", "1"]
    assert sorted(path.edges) == [(0, 1), (1, 2)]
    assert [label for _, label in path.nodes(data="label")] == [7, 8, 7]
    assert (single.number_of_nodes(), single.number_of_edges()) == (1, 0)


def connection(label: str, protocol: str = "tcp") -> str:
    return ",".join(["0", protocol, "http", "SF", *["0.5"] * 37, f"{label}."]) + "\n"


def test_connections_are_distinct_and_have_kinds_of_attack(write: Write) -> None:
    lines = [connection("normal"), connection("smurf", "icmp"), connection("normal"), connection("rootkit")]
    write("kddcup99_10pct/kddcup.data_10_percent.gz", "".join(lines))
    kdd = load_kdd_frame()
    assert list(kdd.X.columns) == KDD_COLUMNS
    assert kdd.y.tolist() == ["normal", "dos", "u2r"]
    assert kdd.X["protocol_type"].tolist() == ["tcp", "icmp", "tcp"]
    assert sum(len(labels.split()) for labels in ATTACKS.values()) == 23


def test_grades_are_ordered_and_ages_may_be_missing(write: Write) -> None:
    low, high = (",".join([str(grade)] * 33) for grade in (0, 3))
    write("uci_dermatology/dermatology.data", f"{low},?,1\n{high},55,2\n")
    frame = load_dermatology_frame().X
    assert frame["itching"].cat.categories.tolist() == [0, 1, 2, 3]
    assert frame["itching"].cat.ordered
    np.testing.assert_array_equal(frame["age"], [np.nan, 55.0])


BROKEN: dict[str, tuple[Callable[[], Examples], str, str, str]] = {
    "no label": (load_sms_spam, "sms_spam/SMSSpamCollection", "ham\tyes\nno tab\n", "no label and text in row 2"),
    "empty": (load_sms_spam, "sms_spam/SMSSpamCollection", "", "has no rows"),
    "short sequence": (load_splice, "dna_splice/splice.dat", "A, C, EI\n", "3 cells in row 1"),
    "too few graphs": (load_proteins, "graphs/PROTEINS/PROTEINS.txt", "2\n1 0\n4 0\n", "does not have the 2 graphs"),
    "words": (load_proteins, "graphs/PROTEINS/PROTEINS.txt", "two\n", "no whole numbers"),
    "unknown attack": (load_kdd_frame, "kddcup99_10pct/kddcup.data_10_percent.gz", connection("magic"), r"none of the contest's: magic\."),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_file_gets_a_sentence_that_names_it(name: str, write: Write) -> None:
    load, file, text, sentence = BROKEN[name]
    write(file, text)
    with pytest.raises(BrokenTableError, match=rf"{Path(file).name}.*{sentence}.*Restore the file"):
        load()


@pytest.mark.parametrize(
    ("part", "text", "sentence"),
    [
        ("node_labels", "5\n6\n", "2 labels of 5 nodes"),
        ("graph_indicator", "1\n1\n1\n2\n3\n", "none of the 2"),
        ("A", "1, 9\n", r"an edge \[1, 9\]"),
    ],
)
def test_files_of_a_collection_that_do_not_fit_get_a_sentence(part: str, text: str, sentence: str, write: Write) -> None:
    write_tu(write, **{part: text})
    with pytest.raises(BrokenTableError, match=sentence):
        load_mutag()


@pytest.mark.parametrize("load", COUNTS, ids=lambda load: load.__name__)
def test_missing_file_gets_a_sentence(load: Callable[[], Examples], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPSSL_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"set GPSSL_DATA to a folder that has .* has not\)"):
        load()
    monkeypatch.delenv("GPSSL_DATA")
    with pytest.raises(FileNotFoundError, match="set GPSSL_DATA to a folder that has"):
        load()
