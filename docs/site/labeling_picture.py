"""Draw docs/pictures/annotate.png: the page of `gpssl annotate` on text messages, in a Chromium without a window.

From the root of the repository: python docs/site/labeling_picture.py
"""

from __future__ import annotations

import base64
import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver import ActionChains

import gpssl
from gpssl.datasets import write_example
from gpssl.workflows import SuggestedRow

PICTURE = Path(__file__).parents[1] / "pictures" / "annotate.png"
WIDTH, HEIGHT = 1080, 565
N_LABELS, FEWEST_ANSWERED = 50, 5
UNSURE = 0.8
N_COLORS = 64
SEED = 0


def main() -> None:
    """Make the page, give its first rows the class that the model believes in, and take a picture of what is shown then."""
    with tempfile.TemporaryDirectory() as folder:
        table, page = Path(folder) / "messages.csv", Path(folder) / "messages-label.html"
        write_example("sms_spam", table, n_labels=N_LABELS, seed=SEED)
        made = gpssl.annotate(table, "label", out=page)
        keys = [str(1 + (made.classes or []).index(str(row.predicted))) for row in made.rows[: shown_place(made.rows)]]
        picture = Image.open(io.BytesIO(photographed(page, keys)))
        picture.convert("RGB").quantize(N_COLORS).save(PICTURE, optimize=True)  # few colors: a third of the bytes


def shown_place(rows: list[SuggestedRow]) -> int:
    """Return the first row, after some, that the model takes for spam without being sure."""
    unsure = (place for place, row in enumerate(rows) if row.predicted == "spam" and (row.probability or 0) < UNSURE)
    return next((place for place in unsure if place >= FEWEST_ANSWERED), FEWEST_ANSWERED)


def photographed(page: Path, keys: list[str]) -> bytes:
    """Return the page as a PNG after these keys were pressed."""
    options = webdriver.ChromeOptions()
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(switch)
    options.binary_location = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1.5, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(page.as_uri())
        ActionChains(driver).send_keys(*keys).perform()
        return base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"])
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
