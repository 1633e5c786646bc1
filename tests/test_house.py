"""Which room is whose: data flow down this list, and no import goes up."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "gpssl"

ORDER = [
    "progress",
    "validation",
    "threads",
    "rows",
    "tables",
    "sources",
    "kernels",
    "checked_rows",
    "inducing",
    "features",
    "fourier",
    "moments",
    "checkpoint",
    "objective",
    "inference",
    "parameters",
    "posterior",
    "estimator",
    "downstream",
    "calibration",
    "selective",
    "selection",
    "baselines",
    "__init__",
    "spatial",
    "datasets",
    "plots",
    "experiments",
    "cli",
]


IMPORT_WHEN_USED = (
    *("perceptron", "networks", "network_transformer", "vicreg", "scarf", "simvae"),  # PyTorch
    "adapters",  # PyTorch and GPyTorch
    *("dask_rows", "table_files", "checked_rows"),  # Dask, pyarrow, pandas
    *("frames", "graphs"),  # pandas, NetworkX
)
"""Modules that import what an extra brings, inside the functions that need it."""


def room(path: Path) -> str:
    """The first part of a module's name."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_rooms(path: Path) -> set[str]:
    """Rooms of the package that a module imports from."""
    folder = path.relative_to(PACKAGE).parts[:-1]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level > 0:
            base = folder[: len(folder) - node.level + 1]
            parts = (*base, *(node.module or "").split("."))
            named = [part for part in parts if part]
            found |= {named[0]} if named else {alias.name if (PACKAGE / alias.name).exists() else "" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gpssl":
            pytest.fail(f"{path} imports its own package by name")
    return {name or "__init__" for name in found}


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_import_goes_up(path: Path) -> None:
    here = ORDER.index(room(path))
    for name in imported_rooms(path):
        assert ORDER.index(name) <= here, f"{path.name} may not import {name}"


def test_core_needs_only_its_dependencies() -> None:
    allowed = {"joblib", "numpy", "scipy", "sklearn", "threadpoolctl", "gpssl"}
    core = [path for path in MODULES if room(path) not in ("spatial", "plots", "experiments", "cli")]
    standard = __import__("sys").stdlib_module_names
    for path in core:
        tree = ast.parse(path.read_text())
        for node in tree.body if path.stem in IMPORT_WHEN_USED else ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            for name in names:
                assert name.split(".")[0] in allowed | set(standard), f"{path.name} imports {name}"


def test_readme_s_commands_are_targets_of_the_makefile() -> None:
    commands = set(re.findall(r"make (\w+)", (ROOT / "README.md").read_text()))
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert {"demo", "test"} <= commands <= targets


def test_changelog_and_citation_name_the_version() -> None:
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), flags=re.MULTILINE)
    assert version is not None
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text()
    assert f"version: {version[1]}" in (ROOT / "CITATION.cff").read_text()


def test_results_have_every_table_and_every_picture() -> None:
    text = (ROOT / "docs" / "results.md").read_text()
    blocks = re.findall(r"<!-- (.*?) -->\n(.*?)<!-- end of \1 -->", text, flags=re.DOTALL)
    assert len(blocks) == text.count("<!-- end of ") > 50
    assert [name for name, block in blocks if block.strip() in ("", "Not run.")] == []
    linked = set(re.findall(r"\((figures/.*?\.png)\)", text))
    assert linked == {f"figures/{path.name}" for path in (ROOT / "docs" / "figures").iterdir()}
