"""A server of commands and what they read, for all attacks on the command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_cases import write_inputs
from command_server import Server, serving


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with serving() as one:
        yield one


@pytest.fixture(scope="session")
def inputs(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("faults") / "inputs"
    write_inputs(server, folder)
    return folder
