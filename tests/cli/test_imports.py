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
result = CliRunner().invoke(app, sys.argv[2:])
assert result.exit_code == int(sys.argv[1]), result.output
print(json.dumps(list(sys.modules)))
"""

SLOW = {"numpy", "scipy", "sklearn", "pandas", "pyarrow", "matplotlib", "torch"}
SELDOM = (
    *("matplotlib", "openpyxl", "duckdb", "torch", "anndata", "dask", "sklearn.linear_model"),
    *("sklearn.feature_extraction", "sklearn.decomposition", "sklearn.pipeline", "sklearn.compose", "sklearn.neighbors"),
)
"""Packages that a table of numbers does not need."""
TELLERS = ("sklearn.linear_model", "sklearn.decomposition", "sklearn.pipeline")
"""What tells labeled rows from others."""


def all_modules_after(*arguments: Any, code: int = 0) -> list[str]:
    """Modules that a fresh interpreter has imported after a command that ends with this code."""
    command = [sys.executable, "-c", RUN, str(code), *map(str, arguments)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def modules_after(*arguments: Any) -> list[str]:
    """Those among them that are ours."""
    return [name for name in all_modules_after(*arguments) if name.split(".")[0] in ("gpssl", "experiments")]


def slow_packages(modules: list[str]) -> set[str]:
    return {name.split(".")[0] for name in modules} & SLOW


@pytest.fixture(scope="module")
def labeled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imports")
    table = written(two_groups(), folder / "things.csv")
    done("label", table, "-t", "kind", "-o", folder / "labeled.csv", *FEW)
    return folder


def test_label_imports_few_modules(labeled: Path, tmp_path: Path) -> None:
    found = modules_after("label", labeled / "things.csv", "-t", "kind", "-o", tmp_path / "out.csv", *FEW)
    assert "gpssl.workflows._label" in found
    assert len(found) <= 120, sorted(found)
    assert not [name for name in found if name.startswith(("gpssl.spatial", "gpssl.report", "gpssl.comparison", "experiments"))]


def test_report_on_a_table_imports_nothing_about_tissue(labeled: Path, tmp_path: Path) -> None:
    found = modules_after("report", labeled / "labeled.gpssl", labeled / "things.csv", "-o", tmp_path / "out.html", "--no-rivals")
    assert "gpssl.report._making" in found
    assert not [name for name in found if name.startswith(("gpssl.spatial", "gpssl.workflows._tissue", "experiments"))]
    heavy = ("gpssl.comparison", "gpssl.baselines._joint_embedding", "gpssl.downstream._perceptron")
    assert not [name for name in found if name.startswith(heavy)]
    assert len(found) <= 132, sorted(found)


def test_help_imports_no_room_but_the_command_s() -> None:
    rooms = {name.split(".")[1] for name in modules_after("--help") if "." in name}
    assert rooms == {"_runtime", "cli", "workflows"}


def test_a_wrong_option_imports_nothing_slow(labeled: Path) -> None:
    assert slow_packages(all_modules_after("label", labeled / "things.csv", "--colour", "red", code=2)) == set()
    assert slow_packages(all_modules_after("cluster", labeled / "things.csv", "-k", "many", "-o", "out.csv", code=2)) == set()


def test_info_imports_neither_scikit_learn_nor_pandas(labeled: Path) -> None:
    assert slow_packages(all_modules_after("info", labeled / "labeled.gpssl")) <= {"numpy", "scipy"}


@pytest.mark.parametrize("command", ["embed", "cluster", "label", "transform"])
def test_commands_import_only_what_a_table_of_numbers_needs(labeled: Path, tmp_path: Path, command: str) -> None:
    out = ["-o", tmp_path / "out.csv"]
    arguments: dict[str, list[Any]] = {
        "embed": [labeled / "things.csv", "--ignore", "kind", *out],
        "cluster": [labeled / "things.csv", "--ignore", "kind", *FEW, *out],
        "label": [labeled / "things.csv", "-t", "kind", *FEW, *out],
        "transform": [labeled / "labeled.gpssl", labeled / "things.csv", *out],
    }
    found = all_modules_after(command, *arguments[command])
    needed = TELLERS if command == "label" else ()
    assert [name for name in found if name in SELDOM and name not in needed] == []
