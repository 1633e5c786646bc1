from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from gpssl.report import Chart, NamedCurve, Points, Predictions, ReportContent, RiskTable, SpectrumChart, Thresholds, render
from reports import CLOSING, IMAGE, N_ROWS, SCRIPT, TARGETS, embedding, hostile, many, predicted


class Reader(HTMLParser):
    """Texts of headings and of everything that is no script or style, names of elements, and addresses."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.addresses: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action", "data")]
        if tag not in ("meta", "link", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)


def data_of(page: str) -> dict[str, Any]:
    """What the scripts read."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, flags=re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def headings(content: ReportContent) -> list[str]:
    texts = Reader(render(content)).texts
    return [text for name in ("h2", "h3") for text in texts.get(name, [])]


def test_the_page_asks_for_nothing_from_elsewhere() -> None:
    page = render(predicted())
    assert set(re.findall(r"https?://[^\"'\s]*", page)) == {"http://www.w3.org/2000/svg"}  # the name of a language, not an address
    assert Reader(page).addresses == ["data:,"]
    assert "@import" not in page
    assert "url(" not in page.replace("`url(#${clip})`", "")
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'")
    assert "unsafe" not in policy[1]


def test_same_content_same_page() -> None:
    assert render(predicted()) == render(predicted())


def test_all_parts_are_there() -> None:
    assert headings(predicted()) == [
        "Before you use these predictions",
        "In short",
        "The rows, side by side",
        "How far to trust the predictions",
        "Errors of each class",
        "Would another method do better?",
        "Which columns matter",
        "Labels that may be wrong",
        "The most uncertain rows",
        "How it was learned",
        "What these words mean",
        "How sure the model is",
        "How many rows can be kept",
        "Can the probabilities be believed?",
        "Spectrum",
    ]


def test_absent_parts_vanish_with_their_headings() -> None:
    assert headings(embedding()) == ["The rows, side by side", "What these words mean"]
    page = render(embedding())
    assert all(f'id="{name}"' not in page for name in ("risk", "counts", "histogram", "uncertain", "spectrum"))
    assert 'id="color-by"' not in render(replace(embedding(), colorings=[]))
    assert "<!-- part" not in render(predicted())


def test_without_a_slider_nothing_is_said_of_it() -> None:
    page = render(replace(predicted(), controls=None))
    assert 'id="histogram"' in page
    assert 'id="risk"' not in page
    assert "Gray: left to a person" not in page
    assert [coloring["kind"] for coloring in data_of(page)["colorings"]] == ["class", "number", "number", "class", "number"]


def test_predictions_bring_colorings() -> None:
    names = [coloring["name"] for coloring in data_of(render(predicted()))["colorings"]]
    assert names[:4] == [
        "Predicted species",
        "Probability of the predicted class",
        "Standard deviation of the probability",
        "Kept or left to a person",
    ]


def test_markup_in_texts_stays_text() -> None:
    content = hostile()
    page = render(content)
    reader = Reader(page)
    assert reader.names.count("script") == 2
    assert "img" not in reader.names
    assert reader.texts["h1"] == [f"Report {SCRIPT}"]
    assert CLOSING + SCRIPT in reader.texts["li"]
    data = data_of(page)
    assert data["hover"][0]["name"] == SCRIPT
    assert data["hover"][0]["levels"] == [SCRIPT, IMAGE]
    assert "\u2028" not in page.split('id="data">')[1]


def test_dollar_signs_are_no_fields() -> None:
    assert Reader(render(replace(embedding(), title="$data costs $5"))).texts["h1"] == ["$data costs $5"]


def test_half_characters_can_be_written() -> None:
    page = render(replace(embedding(), title="half \ud800", points=replace(embedding().points, rows=["\ud800"] * N_ROWS)))
    assert "half ?" in page.encode("utf-8").decode("utf-8")


def test_missing_and_infinite_numbers_are_legal_json() -> None:
    content = predicted()
    points = replace(content.points, x=np.where(np.arange(N_ROWS) == 3, np.nan, content.points.x))
    data = data_of(render(replace(content, points=points)))
    assert data["points"]["x"]["dtype"] == "f4"
    assert data["controls"]["promises"][1]["threshold"]["dtype"] == "f8"


def test_curves_have_no_more_points_than_a_screen_and_none_without_a_place() -> None:
    x = np.linspace(0, 1, 30_000)
    long = NamedCurve("long", x, np.where(x < 0.1, np.nan, x))
    encoded = data_of(render(replace(predicted(), risk_coverage=Chart([long], "x", "y"))))["riskCoverage"]["curves"][0]
    shown = np.frombuffer(base64.b64decode(encoded["y"]["base64"]), dtype="<f4")
    assert len(shown) == 200
    assert 0.1 <= shown[0] < 0.101
    assert shown[-1] == 1


def test_a_spectrum_of_nothing_vanishes() -> None:
    assert "Spectrum" not in headings(replace(predicted(), spectrum=SpectrumChart(np.zeros(3))))


def test_fifty_thousand_rows_stay_small() -> None:
    assert len(render(many(50_000))) < 4_000_000


def test_regression_speaks_of_standard_deviations() -> None:
    n = np.ones(N_ROWS)
    predictions = Predictions(
        target="height", predicted=["3"] * N_ROWS, certainty=-n, std=n, labeled=n == 0, is_probability=False, values=3 * n, unit="cm"
    )
    page = render(replace(predicted(), predictions=predictions))
    assert "Can the intervals be believed?" in page
    assert [coloring["name"] for coloring in data_of(page)["colorings"]][:2] == ["Predicted height", "Standard deviation"]


def test_samples_are_said_to_be_samples() -> None:
    assert "Shown are 60 of 1,000,000 rows." in render(replace(embedding(), points=replace(embedding().points, sampled_from=1_000_000)))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: Points(x=np.ones(3), y=np.ones(2), axes=""), "y: 2 entries where 3 are needed"),
        (lambda: replace(embedding(), points=Points(x=np.ones(3), y=np.ones(3), axes="")), "column 'petal': 60 entries where 3"),
        (lambda: replace(predicted(), predictions=None), "pass predictions, or no controls"),
        (lambda: RiskTable(targets=TARGETS, promises=[]), "The risk table is empty"),
        (
            lambda: RiskTable(targets=TARGETS, promises=[Thresholds("", TARGETS, TARGETS, TARGETS)], n_decided=5),
            "pass all of them, or none",
        ),
        (lambda: RiskTable(targets=TARGETS[::-1], promises=[Thresholds("", TARGETS, TARGETS, TARGETS)]), "must increase"),
        (lambda: RiskTable(targets=TARGETS, promises=[Thresholds("", TARGETS, TARGETS, TARGETS)], start=3), "start is 3"),
        (lambda: RiskTable(targets=TARGETS, promises=[Thresholds("p", TARGETS[:2], TARGETS, TARGETS)]), "threshold of 'p'"),
        (lambda: Chart([NamedCurve("a", TARGETS, TARGETS[:1])], "", ""), "y of 'a': 1 entries"),
        (
            lambda: Predictions(target="", predicted=["1"], certainty=np.ones(1), labeled=np.zeros(1, dtype=bool), is_probability=False),
            "Pass std",
        ),
    ],
)
def test_wrong_contents_get_a_sentence(wrong: Any, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        wrong()
