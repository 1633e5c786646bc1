"""The page that `gpssl report` writes, in a real browser: from a hostile table to what a colleague sees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from browser import open_browser, why_no_browser
from gpssl.cli import app
from people import two_groups, written

SCRIPT = "<script>document.title = 'taken over'</script>"
COUNTS = "const s = document.getElementById('risk'); s.value = arguments[0]; s.dispatchEvent(new Event('input')); " + (
    "return document.getElementById('counts').textContent"
)


@pytest.mark.skipif(why_no_browser() is not None, reason=str(why_no_browser()))
def test_hostile_table_stays_text_and_the_slider_counts(tmp_path: Path) -> None:
    frame = two_groups(120, 80).rename(columns={"color": SCRIPT})
    rng = np.random.default_rng(0)
    frame[SCRIPT] = rng.choice([SCRIPT, '"><img src=x onerror="document.title=1">'], 120)
    frame["kind"] = frame["kind"].replace({"stone": SCRIPT})
    frame.loc[rng.random(120) < 0.4, ["size", "weight"]] = [3.0, 2.0]  # of which nobody knows what they are
    table, model, page = written(frame, tmp_path / "<b>table.csv"), tmp_path / "out.gpssl", tmp_path / "out.html"
    for arguments in (
        ["label", table, "-t", "kind", "-o", tmp_path / "out.csv", "--draws", "10"],
        ["report", model, table, "-o", page, "--no-rivals"],
    ):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
    with open_browser(tmp_path) as driver:
        driver.get(page.as_uri())
        assert "<b>table.csv" in driver.title
        assert SCRIPT in driver.find_element("css selector", "main").text
        last = int(driver.find_element("id", "risk").get_attribute("max"))
        assert driver.execute_script(COUNTS, 0) != driver.execute_script(COUNTS, last)
        assert driver.find_elements("css selector", "main script, main img") == []
        assert driver.get_log("browser") == []
