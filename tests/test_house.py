"""Which room is whose: data flow down this list, and no import goes up."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gpssl

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "gpssl"

ORDER = [
    "_runtime",
    "_validation",
    "data",
    "kernels",
    "core",
    "inference",
    "estimator",
    "evaluation",
    "downstream",
    "baselines",
    "io",
    "spatial",
    "workflows",
    "comparison",
    "plots",
    "report",
    "datasets",
    "__init__",
    "cli",
]


IMPORT_WHEN_USED = (
    *("_perceptron", "_networks", "_vicreg", "_scarf", "_simvae"),  # PyTorch
    "adapters",  # PyTorch and GPyTorch
    *("_dask", "_table_files", "_checked_rows"),  # Dask, pyarrow, pandas
    *("graphs", "_stored_kernels", "datasets"),  # pandas, NetworkX
)
"""Modules that import what an extra brings, inside the functions that need it."""


READERS = ("_columns", "_delimited", "_dialect", "_json_lines", "_profile", "_readings", "_table", "_typed", "_writing")
"""Modules for tables in files, which need pandas and pyarrow: `gpssl.data` imports them when they are asked for."""


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
            found |= {named[0]} if named else {room_of_name(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gpssl":
            pytest.fail(f"{path} imports its own package by name")
    return found


def room_of_name(name: str) -> str:
    """Where a name comes from that is imported from the package itself, which imports it only when it is asked for."""
    if name in gpssl._HOMES:
        return gpssl._HOMES[name].split(".")[0]
    return name if (PACKAGE / name).exists() or (PACKAGE / f"{name}.py").exists() else "__init__"


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_import_goes_up(path: Path) -> None:
    here = ORDER.index(room(path))
    for name in imported_rooms(path):
        assert ORDER.index(name) <= here, f"{path.name} may not import {name}"


def test_the_package_names_what_it_imports_for_type_checkers() -> None:
    """What a reader of the source sees is what `__getattr__` gives, each name has a home in the house, and nothing is imported at once."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level > 0 and node.module != "_runtime.lazy"]
    seen = {(node.module, alias.name) for node in imports for alias in node.names}
    assert seen == {(home, name) for name, home in gpssl._HOMES.items()} | {(None, name) for name in gpssl._MODULES}
    assert {home.split(".")[0] for home in (*gpssl._HOMES.values(), *gpssl._MODULES)} <= set(ORDER)
    assert {*gpssl._HOMES, "__version__"} <= set(gpssl.__all__) <= {*gpssl._HOMES, *gpssl._MODULES, "__version__"}
    guarded = [node for node in tree.body if isinstance(node, ast.If)]
    assert [ast.unparse(node.test) for node in guarded] == ["TYPE_CHECKING"]
    assert all(any(node is child for child in ast.walk(guarded[0])) for node in imports)


@pytest.mark.parametrize("module", ["gpssl", "gpssl.cli"])
def test_importing_is_quick(module: str) -> None:
    """Nothing that takes long is imported before it is asked for."""
    slow = {"sklearn", "scipy", "numpy", "pandas", "matplotlib", "torch", "dask", "pyarrow"}
    command = f"import sys, {module}; print(*sys.modules)"
    seen = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout.split()
    assert module in seen
    assert slow & set(seen) == set()


def test_core_needs_only_its_dependencies() -> None:
    allowed = {"joblib", "numpy", "scipy", "sklearn", "threadpoolctl", "gpssl"}
    core = [path for path in MODULES if room(path) not in ("spatial", "plots", "workflows", "cli") and path.stem not in READERS]
    standard = sys.stdlib_module_names
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
