"""What a command imports: only the rooms that it needs, so that it starts quickly and a reader has few doors to open."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from command import FEW, done
from people import two_groups, written

RUN = """
import json, sys
from typer.testing import CliRunner
from gpssl.cli import app
result = CliRunner().invoke(app, sys.argv[1:])
assert result.exit_code == 0, result.output
print(json.dumps([name for name in sys.modules if name.split(".")[0] in ("gpssl", "experiments")]))
"""


def modules_after(*arguments: Any) -> list[str]:
    """Modules of ours that a fresh interpreter has imported after a command."""
    command = [sys.executable, "-c", RUN, *map(str, arguments)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.fixture(scope="module")
def labeled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imports")
    table = written(two_groups(), folder / "things.csv")
    done("label", table, "-t", "kind", "-o", folder / "labeled.csv", *FEW)
    return folder


def test_label_imports_at_most_eighty_modules(labeled: Path, tmp_path: Path) -> None:
    found = modules_after("label", labeled / "things.csv", "-t", "kind", "-o", tmp_path / "out.csv", *FEW)
    assert "gpssl.workflows._label" in found
    assert len(found) <= 80, sorted(found)
    assert not [name for name in found if name.startswith(("gpssl.spatial", "gpssl.report", "gpssl.comparison", "experiments"))]


def test_report_on_a_table_imports_nothing_about_tissue(labeled: Path, tmp_path: Path) -> None:
    found = modules_after("report", labeled / "labeled.gpssl", labeled / "things.csv", "-o", tmp_path / "out.html", "--no-rivals")
    assert "gpssl.report._making" in found
    assert not [name for name in found if name.startswith(("gpssl.spatial", "gpssl.workflows._tissue", "experiments"))]
    heavy = ("gpssl.comparison", "gpssl.baselines._joint_embedding", "gpssl.downstream._perceptron")
    assert not [name for name in found if name.startswith(heavy)]
    assert len(found) <= 95, sorted(found)


def test_help_imports_no_room_but_the_command_s() -> None:
    rooms = {name.split(".")[1] for name in modules_after("--help") if "." in name}
    assert rooms == {"_runtime", "cli", "workflows"}
