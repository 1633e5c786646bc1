"""The runtime below all rooms: here shared defaults and names imported on demand; beside it files, signals, progress and threads.

This file needs the standard library only, so that `import gpssl` and `gpssl --help` are quick.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

N_DRAWS = 100
"""The paper's number of drawn representations."""
N_COMPONENTS_OF_TISSUE = 10
RESIDUAL_TOLERANCE = 1e-3
"""For expression and for tables that nobody prepared. They have many small directions: the last of them would take twice the inducing
points and change nothing that can be seen."""
CONFIDENCE = 0.95
POOL_TOLERANCE, POOL_INDUCING = 1e-6, 256
"""For the kernels of a pool, which are many: what so many inducing points of a rough kernel leave open, another kernel sees; a smooth one
follows the rows as closely as targets without noise may ask for."""

MOST_TEXTS, GRAPH_TEXTS, TEXT_NEIGHBORS = 20_000, 3000, 20
"""Different texts of a table from which words and their weights are taken, those that make the graph of neighbors, and how many neighbors
each has there: short texts share few words with each other, and with fewer neighbors some kinds of texts fall apart."""
TEXT_TOLERANCE = 5e-3
"""The residual tolerance where a table has free text: one text in a hundred has nothing in common with others, and stays open."""


def percent(share: float, digits: int = 1) -> str:
    """Format a share as a percentage, with a space before the sign.

    >>> percent(0.056), percent(0.95, 0)
    ('5.6 %', '95 %')
    """
    return f"{100 * share:.{digits}f} %"


def is_standard(path: str | os.PathLike[str] | None) -> bool:
    """Return whether a path is "-", which is standard input or output."""
    return path is not None and os.fspath(path) == "-"


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package, from its `__name__` and `__file__`: its names are imported when first used.

    The names are those that the package imports under `if TYPE_CHECKING:`, where readers and type checkers see them.
    """
    homes = names_for_type_checkers(file)

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        value = getattr(import_module(f".{home}", package), name) if home else import_module(f".{name}", package)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        # Modules are left out: `help` imports all that it sees, and some need packages that are not installed.
        return sorted({*vars(sys.modules[package]), *(name for name, home in homes.items() if home)})

    return get, names


def names_for_type_checkers(file: str) -> dict[str, str]:
    """Return the names that a package imports under `if TYPE_CHECKING:`, and the module of each; "" where it is a module itself."""
    blocks = [node for node in ast.parse(Path(file).read_text(encoding="utf-8")).body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom) and node.level == 1]
    return {alias.name: node.module or "" for node in imports for alias in node.names}
