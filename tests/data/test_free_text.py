"""Free text in tables: which columns hold sentences, and which hold categories, IDs and names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gpssl.data import open_table
from gpssl.kernels import for_table
from messages import TITLES, messages

N = 60


def numbered(text: str) -> list[str]:
    return [text.format(number=number, code=f"{number * 7919 % 100_003:05d}") for number in range(N)]


def names(*parts: str) -> list[str]:
    """Return the names of people, in which first names and surnames recur."""
    rng = np.random.default_rng(0)
    first, last = ["Anna", "Maria", "José", "Peter", "Li", "Sarah-Jane"], ["Schmidt", "López", "O'Neill", "Chen", "García", "Novak"]
    words = {"first": first, "last": last, "middle": ["Maria", "J.", "Louise"]}
    return [" ".join(str(rng.choice(words[part])) for part in parts) for _ in range(N)]


SATISFIED = ["not at all satisfied", "quite satisfied with it", "very satisfied with it"]

TEXTS = {
    "messages": messages(N)["message"].tolist(),
    "sentences without blanks": [f"今日は{'雨' if number % 2 else '晴'}です、{number}回目の連絡をお待ちしています" for number in range(N)],
    "titles": [f"The {thing} of the {number} {place}" for number, (thing, place) in enumerate(TITLES * (N // len(TITLES)))],
}
NO_TEXTS = {
    "codes": numbered("A-{code}"),
    "codes of several parts": numbered("AB-{code}-X-{number}"),
    "long codes": numbered("{code}a7f3-4e1b-{code}"),
    "names": names("first", "last"),
    "names with a middle name": names("first", "middle", "last"),
    "levels of three words": [SATISFIED[number % 3] for number in range(N)],
    "words that nobody shares": [" ".join(f"{letter}{number}x" for letter in "abcd") for number in range(N)],
}


def kind_in_file(cells: list[str], path: Path) -> tuple[str | None, str]:
    """Return the kind of a column as a file has it, None where it is left out, and all notes."""
    pd.DataFrame({"cells": cells, "size": np.arange(N) * 1.5}).to_csv(path, index=False)
    table = open_table(path)
    return {fact.name: fact.kind for fact in table.facts}.get("cells"), " ".join(table.notes)


@pytest.mark.parametrize("name", TEXTS)
def test_sentences_are_free_text_and_a_note_says_so(name: str, tmp_path: Path) -> None:
    kind, notes = kind_in_file(TEXTS[name], tmp_path / "table.csv")
    assert kind == "text"
    assert "Free text, compared by its words: 'cells'." in notes


@pytest.mark.parametrize("name", NO_TEXTS)
def test_codes_names_and_levels_are_no_text(name: str, tmp_path: Path) -> None:
    kind, notes = kind_in_file(NO_TEXTS[name], tmp_path / "table.csv")
    assert kind in (None, "category")
    assert "Free text" not in notes


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.filterwarnings("ignore:Left out of the kernel")
def test_data_frames_are_understood_as_files_are(name: str) -> None:
    frame = pd.DataFrame({"cells": TEXTS[name], "size": np.arange(N) * 1.5})
    for dtype in (object, "string"):
        assert for_table(frame.astype({"cells": dtype})).text_columns == ("cells",)
    assert for_table(frame.assign(cells=NO_TEXTS["codes"])).text_columns == ()


def test_a_category_by_its_type_is_no_text() -> None:
    frame = pd.DataFrame({"cells": pd.Categorical(TEXTS["messages"] * 3), "size": np.arange(3.0 * N)})
    assert for_table(frame).text_columns == ()


def test_the_order_of_rows_makes_no_difference_and_gaps_are_no_words(tmp_path: Path) -> None:
    cells: list[Any] = [*TEXTS["messages"]]
    cells[::7] = [None] * len(cells[::7])
    for order in (slice(None), slice(None, None, -1)):
        pd.DataFrame({"cells": cells[order], "size": np.arange(N)}).to_csv(tmp_path / "table.csv", index=False)
        facts = {fact.name: fact for fact in open_table(tmp_path / "table.csv").facts}
        assert facts["cells"].kind == "text"
        assert facts["cells"].n_missing == len(cells[::7])
        assert facts["cells"].levels is None


def test_a_file_of_sentences_alone_has_one_column(tmp_path: Path) -> None:
    """Blanks between words are no separators."""
    messages(N)[["message"]].to_csv(tmp_path / "table.csv", index=False)
    assert [(fact.name, fact.kind) for fact in open_table(tmp_path / "table.csv").facts] == [("message", "text")]


def test_a_target_of_long_names_is_classes(tmp_path: Path) -> None:
    frame = messages(N).rename(columns={"message": "class", "label": "other"})
    frame.to_csv(tmp_path / "table.csv", index=False)
    table = open_table(tmp_path / "table.csv", target="class")
    assert table.target_kind == "class"
    assert not any("Free text" in note for note in table.notes)


def test_a_file_that_outgrows_the_sample_is_the_same_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer texts are looked at than there are, in any order."""
    monkeypatch.setattr("gpssl.data._free_text.sample_of_texts.__defaults__", (20,))
    for seed in (0, 1):
        messages(N).sample(frac=1, random_state=seed).to_csv(tmp_path / "table.csv", index=False)
        assert [fact.kind for fact in open_table(tmp_path / "table.csv", target="label").facts] == ["text"]
