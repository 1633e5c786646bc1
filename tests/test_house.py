"""Which room is whose: data flow down this list, and no import goes up."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

import gpssl
from gpssl._runtime import names_for_type_checkers

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "gpssl"

HOMES = names_for_type_checkers(str(PACKAGE / "__init__.py"))
"""Names of the package, and the module that each is imported from; "" for rooms such as `gpssl.kernels`."""

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
    "active",
    "clustering",
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
    *("_perceptron", "_networks", "_joint_embedding", "_simvae"),  # PyTorch
    "adapters",  # PyTorch and GPyTorch
    *("_dask", "_errors", "_table_files", "_checked_rows"),  # Dask, pyarrow, pandas
    *("graphs", "_stored_kernels", "datasets"),  # pandas, NetworkX
)
"""Modules that import what an extra brings, inside the functions that need it."""


READERS = (
    *("_byte_stream", "_calendar", "_cell_texts", "_columns", "_csv_writing", "_databases", "_decisions", "_delimited", "_dialect"),
    *("_formats",),
    *("_json_lines", "_label_cells", "_layout", "_left_out", "_profile", "_quantities", "_reading_notes", "_readings", "_source", "_table"),
    *("_workbooks", "_writing"),
)
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
    if HOMES.get(name):
        return HOMES[name].split(".")[0]
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
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level > 0 and node.module != "_runtime"]
    seen = {(node.module, alias.name) for node in imports for alias in node.names}
    assert seen == {(home or None, name) for name, home in HOMES.items()}
    assert {(home or name).split(".")[0] for name, home in HOMES.items()} <= set(ORDER)
    assert {*gpssl.__all__} == {name for home, name in seen if home} | {"__version__"}
    for name in {*gpssl.__all__} - {"__version__"}:
        assert getattr(gpssl, name) is getattr(importlib.import_module(f"gpssl.{HOMES[name]}"), name)
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


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_product_imports_nothing_that_is_not_installed_with_it(path: Path) -> None:
    """Experiments, benchmarks and tests are folders of the repository and not of the wheel."""
    helpers = (path.stem for folder in ("tests", "tests/attacks") for path in (ROOT / folder).glob("*.py"))
    outside = {"experiments", "benchmarks", "tests", "attacks", *helpers}
    named = {name for name in imported_names(path) if name.split(".")[0] in outside}
    assert named == set(), f"{path.name} imports {', '.join(named)}"


def imported_names(path: Path) -> set[str]:
    """Return the modules that a module imports by their whole name."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return plain | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and node.level == 0}


def test_the_wheel_holds_the_package_and_nothing_else() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["src/gpssl"]}


PUBLIC_ROOMS = sorted(name for name, home in HOMES.items() if not home)
"""Modules that need not be imported by themselves: `import gpssl` is enough for `gpssl.kernels`."""

PUBLIC_FILES = ("kernels", "cli")
"""Rooms with files for their visitors: one for each kind of row, one for each command."""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_is_public_or_begins_with_an_underscore(path: Path) -> None:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    in_private = any(part.startswith("_") for part in parts)
    assert in_private or parts[0] in PUBLIC_FILES or (parts[0] in (*PUBLIC_ROOMS, "estimator") and len(parts) == 1)


@pytest.mark.parametrize("name", PUBLIC_ROOMS)
def test_a_room_exports_what_it_lists_and_its_page_in_the_reference_shows_it(name: str) -> None:
    """The page of a module is made from its `__all__`: classes, functions, exceptions and the names of constants."""
    module = importlib.import_module(f"gpssl.{name}")
    assert len(set(module.__all__)) == len(module.__all__)
    for exported in module.__all__:
        thing = getattr(module, exported)
        assert not exported.startswith("_")
        assert not isinstance(thing, ModuleType), f"gpssl.{name}.{exported} is a module"
        assert not isinstance(thing, type | FunctionType) or (thing.__doc__ and thing.__module__.startswith("gpssl.")), (
            f"gpssl.{name}.{exported}"
        )
    if (PACKAGE / name).is_dir():
        assert {seen for seen in defined_names(PACKAGE / name / "__init__.py") if not seen.startswith("_")} <= set(module.__all__)
    else:
        assert {seen for seen in defined_names(PACKAGE / f"{name}.py") if not seen.startswith("_")} == set(module.__all__)
    assert name in listed_modules()


def defined_names(path: Path) -> set[str]:
    """Return the classes, functions and constants that a module defines itself."""
    body = ast.parse(path.read_text()).body
    made = {node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    targets = [node.targets for node in body if isinstance(node, ast.Assign)]
    targets += [[node.target] for node in body if isinstance(node, ast.AnnAssign)]
    return made | {target.id for each in targets for target in each if isinstance(target, ast.Name)} - {"Array"}


def listed_modules() -> set[str]:
    """Return the modules that the reference has pages of."""
    return set(re.findall(r"^   gpssl\.(\w+)$", (ROOT / "docs" / "api" / "index.md").read_text(), flags=re.MULTILINE))


def test_the_reference_lists_the_public_modules_and_no_others() -> None:
    assert listed_modules() == set(PUBLIC_ROOMS)


@pytest.mark.parametrize("path", sorted((PACKAGE / "kernels").glob("[!_]*.py")), ids=lambda path: path.stem)
def test_files_of_kernels_define_kernels_and_private_helpers(path: Path) -> None:
    public = {name for name in defined_names(path) if not name.startswith("_")}
    assert public <= set(gpssl.kernels.__all__), f"{path.name}: {public - set(gpssl.kernels.__all__)}"


PRIVATE = re.compile(r"gpssl(\.\w+)*\._[a-z]|from gpssl(\.\w+)* import _")


def test_examples_for_users_need_nothing_private() -> None:
    """Developers' pages may name private modules; pages and examples for users import what the reference has."""
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "examples").glob("*.py")]
    shown = [page for page in pages if page.name not in ("developing.md", "mathematics.md")]
    assert [page.name for page in shown if PRIVATE.search(page.read_text())] == []


BRITISH = re.compile(
    r"neighbour|colour|behaviour|favour|flavour|tumour|centre|centring|labell|modell|learnt|grey|artefact|catalogue|analyse|"
    r"(normal|standard|minim|maxim|optim|general|factor|marginal|recogn|initial|random|regular|summar|serial|penal)is(e|ing|ation)",
    flags=re.IGNORECASE,
)
SOURCES = sorted(path for folder in ("src", "experiments", "benchmarks", "tests", "docs") for path in (ROOT / folder).rglob("*.py"))


def test_names_are_spelled_the_american_way() -> None:
    assert [str(path) for path in SOURCES if BRITISH.search(str(path.relative_to(ROOT)))] == []
    british = {f"{path.name}: {name}" for path in SOURCES for name in identifiers(path) if BRITISH.search(name)}
    assert british == set()


def identifiers(path: Path) -> set[str]:
    """Return the names of functions, classes, parameters, variables and attributes in a file."""
    kinds = {ast.Name: "id", ast.Attribute: "attr", ast.arg: "arg", ast.keyword: "arg", ast.FunctionDef: "name", ast.ClassDef: "name"}
    nodes = ast.walk(ast.parse(path.read_text()))
    return {getattr(node, kinds[type(node)]) or "" for node in nodes if type(node) in kinds}


LONGEST_FILE = 440
"""Lines. A file has one reason to exist and is read in one sitting: 80 to 400 lines are a good size."""

SHORTEST_FILE = 60
"""Lines. A shorter file belongs to its only user; files that gather the names of a room, and commands, are exempt."""

SHORT_FILES = {
    "workflows/_choices.py": "commands show the choices in their help, for which nothing heavy may be imported",
}
"""Files that are shorter, and why each is a file of its own."""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_file_is_too_long_to_read_or_too_short_to_open(path: Path) -> None:
    n_lines = len(path.read_text().splitlines())
    assert n_lines <= LONGEST_FILE
    is_exempt = path.stem == "__init__" or room(path) == "cli" or str(path.relative_to(PACKAGE)) in SHORT_FILES
    assert n_lines >= SHORTEST_FILE or is_exempt, f"merge {path.name} with its user, or say in SHORT_FILES why not"


def test_short_files_exist() -> None:
    assert [name for name in SHORT_FILES if not (PACKAGE / name).exists()] == []


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
