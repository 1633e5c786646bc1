"""A real Chromium without a window, for tests of pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


def browser_program() -> str | None:
    """Where Chromium is, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def why_no_browser() -> str | None:
    """What is missing, as a sentence; None if nothing is."""
    if browser_program() is None:
        return "There is no Chromium on the PATH: apt-get install chromium chromium-driver."
    if shutil.which("chromedriver") is None:
        return "There is no chromedriver on the PATH: apt-get install chromium-driver."
    return None


@contextmanager
def open_browser(folder: Path) -> Iterator[Any]:
    """Selenium's driver of a fresh Chromium that keeps its profile and its downloads in the folder; skips where there is none."""
    if (reason := why_no_browser()) is not None:
        pytest.skip(reason)
    webdriver = pytest.importorskip("selenium.webdriver", reason="Selenium is not installed: pip install selenium.")
    options = webdriver.ChromeOptions()
    options.binary_location = browser_program()
    switches = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage")
    for switch in (*switches, f"--user-data-dir={folder / 'profile'}", "--window-size=1200,1400"):
        options.add_argument(switch)
    options.add_experimental_option("prefs", {"download.default_directory": str(folder / "downloads")})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()
