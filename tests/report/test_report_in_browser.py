from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import open_browser
from gpssl.report import Chart, NamedCurve, Points, Predictions, ReportContent, RiskTable, Thresholds, render
from reports import CLOSING, IMAGE, N_LABELED, N_ROWS, SCRIPT, embedding, hostile, many, predicted, sampled

AFTER_DRAWING = "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
COLOR_AT = "return [...document.getElementById('scatter').getContext('2d').getImageData(...arguments, 1, 1).data].slice(0, 3)"
COLOR_OF_VARIABLE = "return getComputedStyle(document.documentElement).getPropertyValue(arguments[0]).trim()"
SET_SLIDER = "const s = document.getElementById('risk'); s.value = arguments[0]; s.dispatchEvent(new Event('input'))"


class Page:
    """A report in the browser, and what a reader does with it."""

    def __init__(self, driver: Any, folder: Path) -> None:
        self.driver, self.folder = driver, folder

    def open(self, content: ReportContent) -> Page:
        self.content = content
        path = self.folder / "report.html"
        path.write_text(render(content), encoding="utf-8")
        self.driver.get(path.as_uri())
        return self.wait()

    def wait(self) -> Page:
        self.driver.execute_async_script(AFTER_DRAWING)
        return self

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements("css selector", selector)

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def slide(self, position: int) -> str:
        self.run(SET_SLIDER, position)
        return self.wait().find("#counts").text

    def place(self, row: int) -> tuple[int, int]:
        """Where a row is on the map, in pixels from its corner."""
        view = json.loads(self.find("#scatter").get_attribute("data-view"))
        x, y = float(self.content.points.x[row]), float(self.content.points.y[row])
        return round(view["scaleX"] * x + view["offsetX"]), round(view["scaleY"] * y + view["offsetY"])

    def color(self, row: int) -> tuple[int, ...]:
        return tuple(self.run(COLOR_AT, *self.place(row)))

    def variable(self, name: str) -> tuple[int, ...]:
        return tuple(bytes.fromhex(self.run(COLOR_OF_VARIABLE, name).removeprefix("#")))

    def is_gray(self, row: int) -> bool:
        # Points let a tenth of the background through.
        return bool(np.abs(np.subtract(self.color(row), self.variable("--abstained"))).max() <= 8)

    def hover(self, row: int) -> str:
        from selenium.webdriver import ActionChains

        canvas = self.find("#scatter")
        x, y = self.place(row)
        left, top = round(x - canvas.size["width"] / 2), round(y - canvas.size["height"] / 2)
        ActionChains(self.driver).move_to_element_with_offset(canvas, left, top).perform()
        return self.find("#tip").text

    def choose_coloring(self, name: str) -> None:
        from selenium.webdriver.support.ui import Select

        Select(self.find("#color-by")).select_by_visible_text(name)
        self.wait()

    def downloaded(self, button: str, name: str) -> list[list[str]]:
        from selenium.webdriver.support.ui import WebDriverWait

        path = self.folder / "downloads" / name
        path.unlink(missing_ok=True)
        self.find(button).click()
        WebDriverWait(self.driver, 10).until(lambda _: path.exists() and not list(path.parent.glob("*.crdownload")))
        return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))

    def complaints(self) -> list[str]:
        """What the browser wrote on its console since it was last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def emulate(self, command: str, **settings: object) -> None:
        self.driver.execute_cdp_cmd(f"Emulation.{command}", settings)
        self.wait()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("browser")
    (folder / "downloads").mkdir()
    with open_browser(folder) as driver:
        yield Page(driver, folder)


@pytest.fixture
def page(browser: Page) -> Iterator[Page]:
    """Whatever a test does, the console stays empty."""
    browser.complaints()
    yield browser
    assert browser.complaints() == []


def regression() -> ReportContent:
    std = 1 + np.arange(N_ROWS) / N_ROWS
    predictions = Predictions(
        target="height",
        predicted=[f"{row}.5" for row in range(N_ROWS)],
        certainty=-std,
        std=std,
        labeled=np.zeros(N_ROWS, dtype=bool),
        is_probability=False,
        values=np.arange(N_ROWS),
        unit="cm",
    )
    targets = np.array([1.0, 2.0])
    promise = Thresholds("on average", np.array([-1.5, -9.0]), np.array([0.5, 1.0]), np.array([0.9, 1.8]))
    controls = RiskTable(targets=targets, promises=[promise], risk_name="root mean squared error", unit="cm")
    return replace(predicted(), predictions=predictions, controls=controls)


def nothing_certain() -> ReportContent:
    content = predicted()
    assert content.predictions is not None
    nothing = np.full(N_ROWS, np.nan)
    curve = Chart([NamedCurve("none", nothing, nothing, nothing)], "x", "y")
    predictions = replace(content.predictions, certainty=nothing, std=nothing)
    return replace(content, predictions=predictions, risk_coverage=curve, reliability=curve)


def without_places() -> ReportContent:
    nothing = np.full(N_ROWS, np.nan)
    return replace(embedding(), points=Points(x=nothing, y=nothing, axes="nowhere"))


@pytest.mark.parametrize(
    "make", [embedding, predicted, regression, nothing_certain, without_places, lambda: replace(predicted(), controls=None)]
)
def test_loads_without_complaints(page: Page, make: Any) -> None:
    page.open(make())
    assert page.run("return document.documentElement.dataset.theme") == "light"


def test_nothing_can_be_fetched(browser: Page) -> None:
    browser.open(embedding())
    blocked = browser.driver.execute_async_script(
        "const done = arguments[0]; document.addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective));"
        "new Image().src = 'http://127.0.0.1:9/picture.png'"
    )
    assert blocked == "img-src"


def test_the_slider_counts_and_grays_out(page: Page) -> None:
    page.open(predicted())
    assert "Kept 30 of 50 rows without a label (60 %)" in page.find("#counts").text
    assert [page.is_gray(row) for row in (5, 20, 40, 55)] == [False, True, False, False]
    strict = page.slide(0)
    assert "Kept 10 of 50" in strict
    assert "40 left to a person. In cross-validation the error rate of the kept was 0.9" in strict
    assert [page.is_gray(row) for row in (5, 20, 40, 55)] == [False, True, True, False]
    assert "Kept 50 of 50" in page.slide(2)
    assert not any(page.is_gray(row) for row in (5, 20, 40, 55))
    assert page.find("#risk-value").text == "20 %"


def test_the_stricter_promise_may_keep_nothing(page: Page) -> None:
    page.open(predicted()).slide(0)
    page.all("#promises input")[1].click()
    assert "Kept 0 of 50" in page.wait().find("#counts").text
    assert "no certainty is enough" in page.find("#counts").text
    assert page.is_gray(55)


def test_counts_are_those_of_the_whole_table_and_estimates_are_no_promises(page: Page) -> None:
    counts = page.open(sampled()).find("#counts").text
    assert "Kept 123 of 990 rows without a label (12 %)" in counts
    assert "867 left to a person. In cross-validation the error rate of the kept was 1" in counts
    assert "no promise" not in counts
    page.all("#promises input")[1].click()
    assert "Kept 456 of 990" in page.wait().find("#counts").text
    assert "This is an estimate, and no promise." in page.find("#counts").text
    assert page.find("#download-abstained").text == "Download the 20 rows shown here that are left to a person as CSV"


def test_without_a_limit_everything_is_kept_and_nothing_is_promised(page: Page) -> None:
    counts = page.open(sampled()).slide(1)
    assert "Kept 990 of 990" in counts
    assert "All are kept, and nothing is promised." in counts
    assert page.find("#risk-value").text == "no limit"
    assert page.find("#risk").get_attribute("aria-valuetext") == "no limit"
    assert page.all("#risk-coverage .target") == []
    assert page.find("#risk-coverage .now").get_attribute("cx") != "NaN"


CONTRASTS = """
const luminance = (color) => {
  const linear = (c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const [r, g, b] = color.match(/[0-9.]+/g).map((c) => linear(c / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (node) => {
  for (let at = node; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor;
    if (!color.endsWith(", 0)")) return color;
  }
  return "rgb(255, 255, 255)";
};
const ratio = (node) => {
  const [one, other] = [luminance(getComputedStyle(node).color), luminance(behind(node))];
  return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
};
const texts = [...document.querySelectorAll("main *")].filter((node) => node.offsetParent && !node.disabled && !node.closest(":disabled") &&
  [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()));
return texts.map((node) => [node.className + " " + node.textContent.slice(0, 40), ratio(node)]).filter(([, value]) => value < 4.5);
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_what_is_behind_them(page: Page, scheme: str) -> None:
    """WCAG's level AA: a contrast of at least 4.5."""
    page.emulate("setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    assert page.open(predicted()).run(CONTRASTS) == []
    page.emulate("setEmulatedMedia", features=[])


def test_the_slider_moves_the_marks_in_the_charts(page: Page) -> None:
    page.open(predicted())
    kept = len(page.all("#histogram .bar"))
    before = page.find("#risk-coverage .now").get_attribute("cx")
    page.slide(0)
    assert len(page.all("#histogram .bar")) < kept
    assert page.find("#risk-coverage .now").get_attribute("cx") < before


def test_the_slider_obeys_the_keyboard(page: Page) -> None:
    from selenium.webdriver import Keys

    page.open(predicted()).find("#risk").send_keys(Keys.ARROW_RIGHT)
    assert "Kept 50 of 50" in page.find("#counts").text


@pytest.mark.parametrize("row", [0, 17, 45])
def test_hovering_shows_the_row(page: Page, row: int) -> None:
    text = page.open(predicted()).hover(row)
    assert text.startswith(f"Row {row + 1}\n")
    assert f"petal of {row}" in text
    assert ("has a label" if row < N_LABELED else "left to a person" if row == 17 else "kept") in text


def test_zooming_moves_points_and_a_double_click_resets(page: Page) -> None:
    from selenium.webdriver import ActionChains

    before = page.open(predicted()).place(0)
    page.find("#zoom-in").click()
    assert page.wait().place(0)[0] > before[0]
    ActionChains(page.driver).double_click(page.find("#scatter")).perform()
    assert page.wait().place(0) == before


def test_keys_walk_from_row_to_row_and_pin_one(page: Page) -> None:
    from selenium.webdriver import Keys

    canvas = page.open(predicted()).find("#scatter")
    canvas.send_keys(Keys.ARROW_UP)
    first = page.find("#tip h3").text
    canvas.send_keys(Keys.ARROW_LEFT)
    second = page.find("#tip h3").text
    assert first.startswith("Row ")
    assert first != second
    canvas.send_keys(Keys.ENTER)
    assert page.find("#pinned h3").text == second


def test_colorings_change_colors_and_legend(page: Page) -> None:
    page.open(embedding())
    species = [page.color(row) for row in range(1, 4)]
    assert len(set(species)) == 3
    assert [name.text for name in page.all("#legend .level")] == ["setosa", "virginica", "other", "no value"]
    page.choose_coloring("Height")
    assert [page.color(row) for row in range(1, 4)] != species
    assert "cm" in page.find("#legend").text


def test_a_class_in_the_legend_can_be_seen_alone(page: Page) -> None:
    page.open(embedding()).all("#legend button")[1].click()
    page.wait()
    assert [page.is_gray(row) for row in (1, 2, 3)] == [True, False, True]
    page.all("#legend button")[1].click()
    assert not page.wait().is_gray(1)


def test_the_coloring_by_decision_follows_the_slider(page: Page) -> None:
    page.open(predicted()).choose_coloring("Kept or left to a person")
    page.slide(0)
    assert [count.text for count in page.all("#legend .n")] == ["10", "10", "40"]


def test_markup_stays_text_everywhere(page: Page) -> None:
    page.open(hostile())
    assert page.find("h1").text == f"Report {SCRIPT}"
    assert SCRIPT in page.hover(10)
    assert f"Row {IMAGE}10" in page.find("#tip").text
    assert [cell.text for cell in page.all("#uncertain tbody tr:first-child td")][:2] == [f"{IMAGE}10", IMAGE]
    page.choose_coloring(IMAGE)
    assert page.find("#legend .level").text == SCRIPT
    assert page.find("#risk-coverage .curve-names").text == SCRIPT
    assert SCRIPT in page.find(".glossary").text
    assert page.run("return [document.images.length, document.scripts.length]") == [0, 2]


def test_rows_of_the_table_are_the_least_certain(page: Page) -> None:
    page.open(predicted())
    assert [cell.text for cell in page.all("#uncertain tbody tr td:first-child")] == [str(row) for row in range(11, 18)]
    page.all("#uncertain thead button")[0].click()
    page.all("#uncertain thead button")[0].click()
    assert [cell.text for cell in page.all("#uncertain tbody tr td:first-child")] == [str(row) for row in range(17, 10, -1)]
    assert page.find("#uncertain th").get_attribute("aria-sort") == "descending"
    page.find("#uncertain tbody button").click()
    assert page.find("#pinned h3").text == "Row 17"


def test_downloads_hold_the_rows(page: Page) -> None:
    page.open(predicted()).slide(1)
    header, *rows = page.downloaded("#download-abstained", "rows-left-to-a-person.csv")
    assert header == ["Row", "Predicted species", "Probability", "± standard deviation", "Decision", "petal"]
    assert [row[0] for row in rows] == [str(row) for row in range(11, 31)]
    assert rows[0] == ["11", "virginica", "0.183333", "0.03", "left to a person", "petal of 10"]
    assert len(page.downloaded("#download-listed", "most-uncertain-rows.csv")) == 1 + 7


def test_downloads_hold_no_formulas_and_keep_numbers(page: Page) -> None:
    page.open(hostile())
    _, *rows = page.downloaded("#download-listed", "most-uncertain-rows.csv")
    assert [row[-1] for row in rows] == ["'=1+1", "-5.5", '\'@a "b", c', "+1e3", "'-cmd", "two\nlines", CLOSING]
    assert {row[-2] for row in rows} == {SCRIPT, IMAGE}


def test_dark_and_light(page: Page) -> None:
    page.open(predicted())
    light = page.run(COLOR_AT, 1, 1)
    page.emulate("setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert max(page.run(COLOR_AT, 1, 1)) < 60 < min(light)
    assert page.is_gray(20)
    page.find("#theme").click()
    assert page.wait().run(COLOR_AT, 1, 1) == light
    page.emulate("setEmulatedMedia", features=[])


def test_paper_is_light_and_has_no_controls(page: Page) -> None:
    page.open(predicted()).find("#theme").click()
    page.emulate("setEmulatedMedia", media="print")
    assert page.run("return getComputedStyle(document.documentElement).colorScheme") == "light"
    assert not any(item.is_displayed() for item in page.all("#risk, #theme, .zoom, #download-listed"))
    assert page.find("#counts .only-print").text.startswith("At most 5")
    page.emulate("setEmulatedMedia", media="")


def test_the_map_turns_light_before_it_is_printed(page: Page) -> None:
    page.open(predicted()).find("#theme").click()
    dark = page.wait().run(COLOR_AT, 1, 1)
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert max(dark) < 60 < 200 < min(page.run(COLOR_AT, 1, 1))
    page.run("window.dispatchEvent(new Event('afterprint'))")
    assert page.run(COLOR_AT, 1, 1) == dark


def test_narrow_screens_do_not_scroll_sideways(page: Page) -> None:
    page.emulate("setDeviceMetricsOverride", width=400, height=800, deviceScaleFactor=2, mobile=True)
    page.open(predicted())
    assert page.run("return document.documentElement.scrollWidth") == 400
    assert page.run("return document.getElementById('scatter').width") > 700  # two pixels each
    page.emulate("clearDeviceMetricsOverride")


def test_charts_tell_their_values(page: Page) -> None:
    from selenium.webdriver import ActionChains

    page.open(predicted())
    ActionChains(page.driver).move_to_element(page.find("#risk-coverage svg")).perform()
    assert "raw columns:" in page.find("#risk-coverage .tip").text


def test_fifty_thousand_rows(page: Page) -> None:
    page.open(many(50_000))
    assert "of 49,990 rows" in page.find("#counts").text
    outermost = int(np.argmax(page.content.points.x))
    assert f"petal of {outermost}" in page.hover(outermost)
