"""Pages for labels in tests: their contents, and a browser in which a person labels."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpssl.report._labeling_page import LabelingContent, RowToLabel, render_labeling

N_ROWS = 6


def content(kind: str = "class", classes: tuple[str, ...] = ("ham", "spam"), n_rows: int = N_ROWS) -> LabelingContent:
    """Rows 2, 3, … with two cells, of which the first class is the more probable."""
    is_class = kind == "class"
    probabilities = [0.75, *[0.25 / max(len(classes) - 1, 1)] * (len(classes) - 1)] if is_class and classes else None
    predicted = (classes[0] if classes else None) if is_class else "4.5"
    rows = [RowToLabel(f"{n + 2}", f"c{n:010x}", (f"message {n}", str(n)), f"reason {n}", predicted, probabilities) for n in range(n_rows)]
    return LabelingContent(
        title="Label rows of messages.csv",
        subtitle="Nothing is known.",
        target="kind",
        kind=kind,
        classes=classes if is_class else (),
        columns=("text", "length"),
        rows=rows,
        keys=("row", "checksum"),
        file="labels.csv",
        then="Run:",
        command="gpssl label messages.csv --target kind --labels labels.csv -o messages-labeled.csv",
        more="gpssl annotate messages.csv --target kind --labels labels.csv",
    )


def with_cells(page: LabelingContent, texts: list[str]) -> LabelingContent:
    """The same page with these texts in the first cells."""
    rows = [replace(row, cells=(text, *row.cells[1:])) for row, text in zip(page.rows, texts, strict=False)]
    return replace(page, rows=[*rows, *page.rows[len(rows) :]])


def three_kinds(n_rows: int = 240, n_labels: int = 6, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """A table of three kinds of trees, each in three places that lie apart, a few rows labeled by chance, and the truth."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(scale=2.5, size=(9, 4))
    island = rng.permutation(np.arange(n_rows) % 9)
    frame = pd.DataFrame(centers[island] + rng.normal(scale=0.7, size=(n_rows, 4)), columns=["height", "girth", "leaf", "bark"]).round(4)
    truth = pd.Series(np.array(["oak", "pine", "rowan"])[island % 3])
    labeled = np.concatenate([np.flatnonzero(island % 3 == one)[: n_labels // 3] for one in range(3)])
    return frame.assign(tree=truth.where(truth.index.isin(labeled), None)), truth


class LabelingPage:
    """A page for labels in the browser, and what a person does with it."""

    def __init__(self, driver: Any, folder: Path) -> None:
        self.driver, self.folder = driver, folder
        self.n_opened = 0

    def open(self, page: LabelingContent | str, name: str = "label.html") -> LabelingPage:
        """Open a page, for which the browser has kept nothing yet: each gets a fingerprint of its own."""
        path, text = self.folder / name, page if isinstance(page, str) else render_labeling(page)
        self.n_opened += 1
        path.write_text(re.sub(r'"fingerprint":"\w+"', f'"fingerprint":"{self.n_opened}"', text), encoding="utf-8")
        self.driver.get(path.as_uri())
        return self

    def press(self, *keys: str) -> LabelingPage:
        """Press keys one after the other, wherever the focus is."""
        from selenium.webdriver import ActionChains

        actions = ActionChains(self.driver, duration=0)
        for key in keys:
            actions.send_keys(key)
        actions.perform()
        return self

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements("css selector", selector)

    def text(self, selector: str) -> str:
        return " ".join(str(self.find(selector).get_attribute("textContent")).split())

    def wait_for(self, selector: str, words: str) -> None:
        """Wait until an element says this."""
        self.wait_for_one_of(selector, [words])

    def wait_for_one_of(self, selector: str, texts: list[str]) -> None:
        """Wait until an element says one of these."""
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 10).until(lambda _: self.text(selector) in texts, f"{selector}: {self.text(selector)}")

    def asks_before_leaving(self) -> bool:
        return bool(self.run("return !window.dispatchEvent(new Event('beforeunload', { cancelable: true }))"))

    def wait_until_written(self) -> None:
        """Wait until the browser has confirmed that it has written the last label: the page no longer asks before one leaves it."""
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 10).until(lambda _: not self.asks_before_leaving(), "the last label is not written")

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def choices(self) -> list[str]:
        return [one.get_attribute("data-label") for one in self.all("#classes button")]

    def saved(self, *keys: str) -> list[list[str]]:
        """The cells of the file that these keys save, e by default."""
        from selenium.webdriver.support.ui import WebDriverWait

        path = self.folder / "downloads" / "labels.csv"
        path.unlink(missing_ok=True)
        self.press(*keys or ("e",))
        WebDriverWait(self.driver, 10).until(lambda _: path.exists() and not list(path.parent.glob("*.crdownload")))
        return list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"), newline="")))

    def complaints(self) -> list[str]:
        """What the browser wrote on its console since it was last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def emulate(self, command: str, **settings: object) -> None:
        self.driver.execute_cdp_cmd(f"Emulation.{command}", settings)
