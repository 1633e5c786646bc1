"""Let packages import their names when these are first used."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str], modules: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package.

    Parameters
    ----------
    package
        The name of the package, `__name__`.
    homes
        For each public name, the module inside the package that defines it.
    modules
        Modules of the package that can be used without importing them first.
    """

    def get(name: str) -> Any:
        if name in homes:
            value = getattr(import_module(f".{homes[name]}", package), name)
        elif name in modules:
            value = import_module(f".{name}", package)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        # Modules are left out: `help` imports all that it sees, and some need packages that are not installed.
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names


def names_for_type_checkers(file: str) -> dict[str, str]:
    """Return the names that a package imports from its modules under `if TYPE_CHECKING:`, and the module of each.

    So a package writes its imports once, for readers, type checkers and `lazy_names`.
    """
    blocks = [node for node in ast.parse(Path(file).read_text(encoding="utf-8")).body if isinstance(node, ast.If)]
    imports = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom) and node.level == 1]
    return {alias.name: node.module or "" for node in imports for alias in node.names}
