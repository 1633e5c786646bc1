"""The packages of the extra `spatial`, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def need(name: str) -> Any:
    """A module that the extra brings."""
    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f'This needs {name}: pip install "gpssl[spatial]".') from error
