"""Labels are given by keyboard in a real Chromium, saved as a file, and merged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import gpssl
from browser import open_browser
from labeling import N_ROWS, LabelingPage, content, three_kinds, with_cells
from reports import CLOSING, IMAGE, SCRIPT

MANY = tuple(f"species {number}" for number in range(1, 15))
FORBID = "Object.defineProperty(window, '{}', {{ get() {{ throw new DOMException('no', 'SecurityError') }} }});"
KEEPERS = ("localStorage", "sessionStorage", "indexedDB")
SLOW_DATABASE = """
  const waiting = new Promise((resolve) => { window.goOn = resolve; });
  const add = EventTarget.prototype.addEventListener;
  IDBOpenDBRequest.prototype.addEventListener = function (kind, act) {
    add.call(this, kind, kind === "success" ? (event) => waiting.then(() => act(event)) : act);
  };
"""
CONTRASTS = """
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const color = channels(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const owns = (one) => [...one.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
  const isSeen = (one) => one.getClientRects().length > 0 && !one.closest(':disabled');
  const shown = [...document.querySelectorAll('body *')].filter((one) => owns(one) && isSeen(one));
  return shown.map((one) => {
    const pair = [luminance(channels(getComputedStyle(one).color)), luminance(behind(one))].sort((a, b) => b - a);
    return [one.textContent.trim().slice(0, 40), (pair[0] + 0.05) / (pair[1] + 0.05)];
  });
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabelingPage]:
    folder = tmp_path_factory.mktemp("browser")
    (folder / "downloads").mkdir()
    with open_browser(folder) as driver:
        yield LabelingPage(driver, folder)


@pytest.fixture
def page(browser: LabelingPage) -> Iterator[LabelingPage]:
    """Whatever a test does, the console stays empty and nothing is fetched."""
    browser.complaints()
    yield browser
    assert browser.complaints() == []
    assert browser.run("return performance.getEntriesByType('resource').map(({ name }) => name)") == []


def test_twenty_rows_labeled_by_keyboard_make_the_error_fall(page: LabelingPage, tmp_path: Path) -> None:
    """The whole loop: a table, a page, keys, a file, a merge; the truth is known."""
    frame, truth = three_kinds()
    table = tmp_path / "trees.csv"
    frame.to_csv(table, index=False)
    made = gpssl.annotate(table, "tree", out=tmp_path / "label.html")
    assert len(made.rows) == 20
    page.open((tmp_path / "label.html").read_text(encoding="utf-8"))
    key_of = {name: str(number) for number, name in enumerate(page.choices(), start=1)}
    assert list(key_of) == ["oak", "pine", "rowan"]
    for row in made.rows:
        assert page.text("#row-heading") == f"Row {row.place + 2}"
        page.press(key_of[truth[row.place]])
    assert page.text("#progress-words") == "20 of 20 done"
    cells = page.saved()
    assert cells[0] == ["row", "checksum", "tree"]
    assert [(int(row), label) for row, _, label in cells[1:]] == [(row.place + 2, truth[row.place]) for row in made.rows]

    before = gpssl.label(table, "tree")
    after = gpssl.label(table, "tree", labels=page.folder / "downloads" / "labels.csv")
    assert (before.n_labeled, after.n_labeled) == (6, 26)
    rest = after.frame()["tree_predicted"].notna()
    wrong = [(result.frame()["tree_predicted"][rest] != truth[rest]).mean() for result in (before, after)]
    assert wrong[0] > 0.2
    assert wrong[1] < wrong[0] / 3


def test_keys_skip_undo_and_go_back(page: LabelingPage) -> None:
    page.open(content()).press("1", "2", "s", "1")
    assert page.text("#progress-words") == "4 of 6 done"
    assert page.find("#bar").get_attribute("aria-valuetext") == "4 of 6"
    page.press("u", "u", "u")
    assert page.text("#row-heading") == "Row 3"
    assert page.text("#progress-words") == "1 of 6 done"
    page.press("u", "u", "u")  # more than there is to take back
    assert page.text("#progress-words") == "0 of 6 done"
    page.press("1", "2", "s", "S", "2", "1")
    assert page.text("#finish-heading") == "Done: 4 labeled, 2 skipped"
    assert page.text("#counts") == "ham 2, spam 2"
    rows = page.saved()
    assert rows == [
        ["row", "checksum", "kind"],
        *([f"{n + 2}", f"c{n:010x}", ("ham", "spam", "", "", "spam", "ham")[n]] for n in (0, 1, 4, 5)),
    ]


def test_another_answer_replaces_the_first_and_can_be_taken_back(page: LabelingPage) -> None:
    from selenium.webdriver import Keys

    page.open(content()).press("1", Keys.ARROW_LEFT)
    assert page.text("#answered") == "Your answer: ham. Another one replaces it."
    assert page.find("#classes button[aria-pressed=true]").get_attribute("data-label") == "ham"
    page.press("2")
    assert page.text("#row-heading") == "Row 3"
    assert page.saved()[1][2] == "spam"
    page.press("u")
    assert page.saved()[1][2] == "ham"


def test_skipped_rows_can_be_looked_at_again(page: LabelingPage) -> None:
    page.open(content()).press("s", "1", "s", "1", "1", "1")
    assert page.text("#finish-heading") == "Done: 4 labeled, 2 skipped"
    page.press("r")
    assert page.text("#row-heading") == "Row 2"
    page.press("2", "2")
    assert page.text("#finish-heading") == "Done: 6 labeled, 0 skipped"
    assert not page.find("#again").is_displayed()
    page.press("u")
    assert page.text("#row-heading") == "Row 4"


def test_answers_survive_a_reload_and_belong_to_their_page(page: LabelingPage) -> None:
    page.open(content()).press("1", "n", "eggs", "\ue007", "s", "1")
    page.driver.refresh()
    page.wait_for("#progress-words", "4 of 6 done")  # a busy browser may tell a new page late
    assert page.text("#row-heading") == "Row 6"
    assert page.choices() == ["ham", "spam", "eggs"]
    page.press("u", "u", "u")
    assert page.text("#row-heading") == "Row 3"
    # Another table at the same place begins anew, and leaves the answers of the first alone.
    other = replace(content(), rows=[replace(row, checksum="cffffffffff") for row in content().rows])
    first = page.driver.current_url
    (page.folder / "other.html").write_text(gpssl.report._labeling_page.render_labeling(other), encoding="utf-8")
    page.driver.get((page.folder / "other.html").as_uri())
    assert page.text("#progress-words") == "0 of 6 done"
    page.driver.get(first)
    page.wait_for("#progress-words", "1 of 6 done")


def test_two_windows_of_a_page_agree(page: LabelingPage) -> None:
    page.open(content()).press("1")
    first = page.driver.current_window_handle
    address = page.driver.current_url
    page.driver.switch_to.new_window("window")
    try:
        page.driver.get(address)
        page.wait_for("#progress-words", "1 of 6 done")
        page.press("2", "2")
        page.driver.switch_to.window(first)
        page.wait_for("#progress-words", "3 of 6 done")
        page.driver.switch_to.window(page.driver.window_handles[-1])
    finally:
        page.driver.close()
        page.driver.switch_to.window(first)


@pytest.mark.parametrize("kept", ["not JSON", "null", "[]", '{"of": 3}', '{"of": [1], "history": []}'])
def test_what_else_a_browser_kept_is_ignored(page: LabelingPage, kept: str) -> None:
    page.open(content())
    page.run("localStorage.setItem(`gpssl-labels-${arguments[1]}`, arguments[0])", kept, page.n_opened)
    page.driver.refresh()
    assert page.text("#progress-words") == "0 of 6 done"
    page.press("1")
    assert page.text("#progress-words") == "1 of 6 done"


@contextmanager
def script_before_pages(page: LabelingPage, source: str) -> Iterator[None]:
    """Pages that are opened meanwhile run this first."""
    script = page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
    try:
        yield
    finally:
        page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


def test_works_where_nothing_may_be_kept(page: LabelingPage) -> None:
    with script_before_pages(page, "".join(map(FORBID.format, KEEPERS))):
        page.open(content()).press("1", "2")
        assert "keeps nothing: save before you close" in page.text("#kept")
        assert page.asks_before_leaving()
        assert len(page.saved()) == 3
        assert not page.asks_before_leaving()


def test_the_database_alone_keeps_answers(page: LabelingPage) -> None:
    with script_before_pages(page, "".join(map(FORBID.format, ("localStorage", "sessionStorage")))):
        page.open(content()).press("1", "2")
        page.wait_for("#kept", "Kept in this browser: close the page and come back.")
        page.wait_until_written()
        page.driver.refresh()
        page.wait_for("#progress-words", "2 of 6 done")


def test_local_storage_alone_keeps_answers(page: LabelingPage) -> None:
    """Chromium itself may lose it between two pages, so that the second page is given what the first one has written."""
    with script_before_pages(page, "".join(map(FORBID.format, ("sessionStorage", "indexedDB")))):
        page.open(content()).press("1", "2")
        page.wait_for("#kept", "Kept in this browser: close the page and come back.")
        assert page.asks_before_leaving()  # it cannot say whether it has written
        key = f"gpssl-labels-{page.n_opened}"
        kept = page.run("return localStorage.getItem(arguments[0])", key)
        with script_before_pages(page, f"localStorage.setItem({json.dumps(key)}, {json.dumps(kept)});"):
            page.driver.refresh()
            page.wait_for("#progress-words", "2 of 6 done")


def test_the_newest_of_what_was_kept_counts(page: LabelingPage) -> None:
    """Chromium may give a page an older localStorage, or an empty one, than it has written."""
    page.open(content()).press("1")
    key = f"gpssl-labels-{page.n_opened}"
    older = page.run("return localStorage.getItem(arguments[0])", key)
    page.press("2", "s").wait_until_written()
    page.run("sessionStorage.clear(); localStorage.setItem(...arguments)", key, older)
    page.driver.refresh()
    page.wait_for("#progress-words", "3 of 6 done")
    assert page.text("#row-heading") == "Row 5"
    page.run("sessionStorage.clear(); localStorage.clear()")
    page.driver.refresh()
    page.wait_for("#progress-words", "3 of 6 done")
    page.press("u", "u")
    assert page.text("#row-heading") == "Row 3"


@pytest.mark.parametrize(("keys", "first", "done"), [("2", "spam", 4), ("\ue014", "", 3), ("2u", "", 3)])
def test_whoever_is_quicker_than_the_database_loses_nothing(page: LabelingPage, keys: str, first: str, done: int) -> None:
    page.open(content()).press("\ue014", "1", "1", "1").wait_until_written()  # the first row is left out
    page.run("sessionStorage.clear(); localStorage.clear()")
    with script_before_pages(page, SLOW_DATABASE):
        page.driver.refresh()
        assert page.text("#progress-words") == "0 of 6 done"
        page.press(*keys)
        page.run("window.goOn()")
        page.wait_for("#progress-words", f"{done} of 6 done")
        assert page.text("#row-heading") == "Row 6"  # where one had stopped
        page.wait_until_written()
    page.driver.refresh()
    page.wait_for("#progress-words", f"{done} of 6 done")
    assert [label for _, _, label in page.saved()[1:]] == [*filter(None, [first]), "ham", "ham", "ham"]


def test_a_class_that_nobody_has_used_yet(page: LabelingPage) -> None:
    from selenium.webdriver import Keys

    page.open(content()).press("n", "  eggs, “fried” ", Keys.ENTER)
    assert page.choices() == ["ham", "spam", "eggs, “fried”"]
    page.press("3")  # keys are commands again
    page.press("n", "HAM", Keys.ENTER)  # one that is there, spelled otherwise
    assert page.choices() == ["ham", "spam", "eggs, “fried”"]
    assert [label for _, _, label in page.saved()[1:]] == ["eggs, “fried”", "eggs, “fried”", "ham"]
    page.press("u", "u", "u")
    assert page.choices() == ["ham", "spam"]


@pytest.mark.parametrize(("typed", "words"), [("", "Type the name"), ("N/A", "“N/A” stands for a missing label")])
def test_names_that_cannot_be_a_class_get_a_sentence(page: LabelingPage, typed: str, words: str) -> None:
    from selenium.webdriver import Keys

    page.open(content()).press("n", *typed, Keys.ENTER)
    assert words in page.text("#problem")
    assert page.text("#progress-words") == "0 of 6 done"
    page.press(Keys.ESCAPE, "1")
    assert page.text("#problem") == ""
    assert page.text("#progress-words") == "1 of 6 done"


def test_without_any_label_the_first_class_is_typed(page: LabelingPage) -> None:
    from selenium.webdriver import Keys

    page.open(content(classes=())).press("n", "ham", Keys.ENTER, "1", "n", "spam", Keys.ENTER, "2")
    assert "too few labels for a model" in page.text("#thinks")
    assert [label for _, _, label in page.saved()[1:]] == ["ham", "ham", "spam", "spam"]


def test_more_than_nine_classes_are_found_by_typing(page: LabelingPage) -> None:
    from selenium.webdriver import Keys

    page.open(content(classes=MANY)).press("9")
    assert len(page.choices()) == 14
    assert [key.get_attribute("textContent") for key in page.all("#classes kbd") if key.is_displayed()] == list("123456789")
    page.press("/", "Species 12", Keys.ENTER)  # Enter takes the first of what is left
    page.press("species 1")  # the field keeps the focus: the next row can be answered at once
    assert page.choices() == ["species 1", "species 10", "species 11", "species 12", "species 13", "species 14"]
    page.press("x")
    assert page.choices() == []
    assert page.find("#no-class").is_displayed()
    page.press(Keys.ESCAPE, "2")
    assert len(page.choices()) == 14
    assert [label for _, _, label in page.saved()[1:]] == ["species 9", "species 12", "species 2"]


def test_numbers_are_typed(page: LabelingPage) -> None:
    from selenium.webdriver import Keys

    page.open(content("number"))
    assert page.text("#thinks") == "The model expects 4.5."
    assert not page.find("#classes").is_displayed()
    page.press("3.5", Keys.ENTER, "-1,25e3", Keys.ENTER, "s", "7", Keys.ENTER, "u", "8", Keys.ENTER)
    assert page.text("#progress-words") == "4 of 6 done"
    page.press("tall", Keys.ENTER)
    assert page.text("#problem") == "“tall” is no number."
    page.press(*[Keys.BACKSPACE] * 4, Keys.ENTER)
    assert page.text("#problem") == "Type a number, or skip the row."
    assert [label for _, _, label in page.saved()[1:]] == ["3.5", "-1.25e3", "8"]


def test_digits_find_the_field_for_numbers(page: LabelingPage) -> None:
    from selenium.webdriver import Keys

    page.open(content("number")).press(Keys.ESCAPE)
    assert page.run("return document.activeElement.tagName") == "BODY"
    page.press("-", "4", "2", Keys.ENTER)
    assert page.saved()[1][2] == "-42"


def test_the_command_can_be_copied(page: LabelingPage) -> None:
    page.open(content()).press(*"1" * N_ROWS)
    page.find("#copy-command").click()
    assert page.run("return String(getSelection())") == content().command
    page.wait_for_one_of("#live", ["Copied.", "The command is selected: copy it with Ctrl and C."])


def test_markup_stays_text_everywhere(page: LabelingPage) -> None:
    hostile = with_cells(content(classes=("ham", IMAGE)), [f"{CLOSING}{IMAGE}", SCRIPT])
    hostile = replace(hostile, title=SCRIPT, target=IMAGE, columns=(SCRIPT, "b"), command=CLOSING, then=IMAGE)
    hostile = replace(hostile, rows=[replace(row, reason=f"</script>{IMAGE}") for row in hostile.rows])
    page.open(hostile)
    assert page.find("#cells dd").get_attribute("textContent") == f"{CLOSING}{IMAGE}"
    assert page.find("#title").get_attribute("textContent") == SCRIPT
    page.press("2", "s", "s", "s", "s", "s")
    assert page.find("#command").get_attribute("textContent") == CLOSING
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert page.run("return document.querySelectorAll('img, main script').length") == 0
    assert page.saved()[1][2] == IMAGE


def test_labels_hold_no_formulas(page: LabelingPage) -> None:
    page.open(content(classes=("=1+1", "-5"))).press("1", "2")
    assert [label for _, _, label in page.saved()[1:]] == ["'=1+1", "-5"]


def test_nothing_can_be_fetched(browser: LabelingPage) -> None:
    browser.open(content())
    script = "const done = arguments[0]; fetch('https://example.org').then(() => done('fetched'), () => done('refused'))"
    assert browser.driver.execute_async_script(script) == "refused"
    assert any("Content Security Policy" in message for message in browser.complaints())


def test_the_mouse_does_what_keys_do(page: LabelingPage) -> None:
    page.open(content())
    page.find("#classes li:nth-child(2) button").click()
    page.find("#skip").click()
    page.find("#undo").click()
    assert page.text("#row-heading") == "Row 3"
    page.find("#next").click()
    page.find("#previous").click()
    page.find("#new-class").send_keys("eggs")
    page.find("#new-class-form button").click()
    assert page.text("#progress-words") == "2 of 6 done"
    assert page.choices() == ["ham", "spam", "eggs"]


def test_keys_can_be_switched_off_and_shortcuts_of_the_browser_stay(page: LabelingPage) -> None:
    from selenium.webdriver import ActionChains, Keys

    page.open(content())
    ActionChains(page.driver).key_down(Keys.CONTROL).send_keys("1").key_up(Keys.CONTROL).perform()
    page.find("#keys").click()
    page.press("1", "s")
    assert page.text("#progress-words") == "0 of 6 done"
    page.find("#keys").click()
    page.press("1")
    assert page.text("#progress-words") == "1 of 6 done"


def test_the_focus_can_be_seen_and_stays_on_the_class(page: LabelingPage) -> None:
    from selenium.webdriver import Keys

    page.open(content())
    for _ in range(20):
        page.press(Keys.TAB)
        if page.run("return document.activeElement.dataset.label") == "spam":
            break
    style = "return getComputedStyle(document.activeElement).outlineStyle + getComputedStyle(document.activeElement).outlineWidth"
    assert page.run(style) == "solid2px"
    page.press(Keys.ENTER, Keys.SPACE)
    assert page.text("#progress-words") == "2 of 6 done"
    assert page.run("return document.activeElement.dataset.label") == "spam"


def test_screen_readers_are_told(page: LabelingPage) -> None:
    page.open(content()).press("2")
    assert page.text("#live") == "Row 2: spam. Row 3, 1 of 6 done."
    assert page.find("#live").get_attribute("aria-live") == "polite"
    page.press("s", "u")
    assert page.text("#live") == "Taken back: Row 3, 1 of 6 done."
    name = "one.ariaLabel || one.textContent.trim() || one.labels?.length"
    assert page.run(f"return [...document.querySelectorAll('button, input')].filter((one) => !({name}))") == []
    page.press("1", "1", "1", "1", "1")
    assert page.run("return document.activeElement.id") == "finish-heading"
    assert page.run("return document.querySelector('#finish code').textContent").startswith("gpssl label messages.csv")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_have_the_contrast_of_level_aa(page: LabelingPage, theme: str) -> None:
    page.emulate("setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    try:
        page.open(content()).press("n", "\ue007")  # with a complaint
        assert page.find("html").get_attribute("data-theme") == theme
        seen: list[tuple[str, float]] = page.run(CONTRASTS)
        page.press("\ue00c", *"1" * N_ROWS, "e")
        seen += page.run(CONTRASTS)
    finally:
        page.emulate("setEmulatedMedia", features=[])
    assert len(seen) > 60
    assert [(text, contrast) for text, contrast in seen if contrast < 4.5] == []


@pytest.mark.parametrize("answers", ["", "1" * N_ROWS])
def test_narrow_screens_do_not_scroll_sideways(page: LabelingPage, answers: str) -> None:
    long = with_cells(content(classes=("ham" * 40, "spam")), ["word " * 300, "x" * 500])
    page.emulate("setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=2, mobile=True)
    try:
        page.open(replace(long, columns=("a very long name of a column " * 4, "b"))).press(*answers)
        assert page.run("return document.documentElement.scrollWidth") <= 390
        assert page.run("return Math.min(...[...document.querySelectorAll('.choice')].map((one) => one.offsetHeight || 99))") >= 44
    finally:
        page.emulate("clearDeviceMetricsOverride")


def test_on_a_phone_the_next_row_is_seen_from_its_beginning(page: LabelingPage) -> None:
    page.emulate("setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=2, mobile=True)
    try:
        page.open(with_cells(content(), ["word " * 400] * N_ROWS))
        button = page.find("#classes button")
        page.run("arguments[0].scrollIntoView()", button)
        assert page.run("return document.getElementById('row-heading').getBoundingClientRect().top") < 0
        button.click()
        assert 0 <= page.run("return document.getElementById('row-heading').getBoundingClientRect().top") < 100
    finally:
        page.emulate("clearDeviceMetricsOverride")


def test_paper_has_all_rows_and_lines_to_write_on(page: LabelingPage) -> None:
    page.open(content()).press("2")
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    page.emulate("setEmulatedMedia", media="print")
    try:
        headings = [one.text for one in page.all("#paper h2")]
        assert headings == [f"Row {n + 2} — kind: {'spam' if n == 0 else '_' * 20}" for n in range(N_ROWS)]
        assert not any(page.find(part).is_displayed() for part in ("#labeling", "#theme", "#bar", "#save"))
    finally:
        page.emulate("setEmulatedMedia", media="")


def test_a_hundred_columns_and_long_texts_are_shown(page: LabelingPage) -> None:
    names = tuple(f"column {number}" for number in range(100))
    rows = [replace(row, cells=tuple("" if number % 10 == 3 else f"cell {number}" for number in range(100))) for row in content().rows]
    page.open(replace(content(), columns=names, rows=rows))
    assert len(page.all("#cells dd")) == 90
    assert page.text("#empty-cells").startswith("Empty: column 3, column 13")


def merged(page: LabelingPage, frame: pd.DataFrame) -> Any:
    return gpssl.label(frame, "tree", labels=page.folder / "downloads" / "labels.csv", n_draws=5)


def test_new_classes_and_formulas_come_through_the_merge(page: LabelingPage) -> None:
    from selenium.webdriver import Keys

    frame, _ = three_kinds(60)
    page.open(gpssl.annotate(frame, "tree", n=4).html()).press("n", "=fir", Keys.ENTER, "1", "s", "4")
    page.saved()
    assert merged(page, frame).classes == ["=fir", "oak", "pine", "rowan"]
