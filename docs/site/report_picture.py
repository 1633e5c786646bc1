"""Draw docs/pictures/report.png: the report of the demo, in a Chromium without a window.

From the root of the repository: python docs/site/report_picture.py
"""

from __future__ import annotations

import base64
import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from selenium import webdriver

import gpssl
from gpssl.datasets import write_example
from gpssl.report import make_report

PICTURE = Path(__file__).parents[1] / "pictures" / "report.png"
WIDTH, HEIGHT = 1180, 900
N_LABELS, MAX_RISK, SEED = 150, 0.05, 0
LAST_PART = "importance-heading"
"""The heading of the last part that is in the picture."""
N_COLORS = 96


def main() -> None:
    """Run what `make demo` runs, and take a picture of the page from its top to the columns that matter."""
    with tempfile.TemporaryDirectory() as folder:
        table, model, page = (Path(folder) / name for name in ("cells.csv", "labeled.gpssl", "report.html"))
        write_example("breast_cancer", table, n_labels=N_LABELS, seed=SEED)
        gpssl.label(table, "target", max_risk=MAX_RISK, model_out=model)
        make_report(model, table, rivals=False, out=page)
        picture = Image.open(io.BytesIO(photographed(page)))
        picture.convert("RGB").quantize(N_COLORS).save(PICTURE, optimize=True)  # few colors: a third of the bytes


def photographed(page: Path) -> bytes:
    """Return the page as a PNG, down to the end of the last part."""
    options = webdriver.ChromeOptions()
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(switch)
    options.binary_location = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        )
        driver.get(page.as_uri())
        end = f"return document.getElementById('{LAST_PART}').parentElement.getBoundingClientRect().bottom + scrollY + 8"
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": driver.execute_script(end), "scale": 1}
        shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip})
        return base64.b64decode(shot["data"])
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
