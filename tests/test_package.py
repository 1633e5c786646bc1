"""The package's own names, which are imported when they are asked for."""

from __future__ import annotations

import importlib
import pickle
import pydoc
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gpssl
from gpssl import GPSSL
from gpssl._runtime import names_for_type_checkers

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", gpssl.__all__)
def test_every_name_is_there_and_listed(name: str) -> None:
    assert getattr(gpssl, name) is getattr(gpssl, name)
    assert name in dir(gpssl)


@pytest.mark.parametrize("name", sorted(name for name, home in names_for_type_checkers(gpssl.__file__).items() if not home))
def test_modules_need_not_be_imported_by_themselves(name: str) -> None:
    assert getattr(gpssl, name) is importlib.import_module(f"gpssl.{name}")


def test_a_fresh_interpreter_finds_names_in_every_way() -> None:
    """Each statement by itself, for what one of them imports the next would find."""
    for statement in (
        "from gpssl import *; GPSSL, load, __version__",
        "import gpssl; gpssl.kernels.NeighborRBF, gpssl.data.TableFiles, gpssl.GPSSL",
        "import gpssl.evaluation._selective as selective; selective.aurc",
        "from gpssl import GPSSL, downstream; downstream.MarginalizedClassifier(GPSSL())",
    ):
        subprocess.run([sys.executable, "-W", "error", "-c", statement], check=True)


def test_what_is_not_there_is_said_in_the_usual_words() -> None:
    with pytest.raises(AttributeError, match="module 'gpssl' has no attribute 'GPSSSL'"):
        gpssl.GPSSSL  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'GPSSSL' from 'gpssl'"):
        from gpssl import GPSSSL  # noqa: F401


def test_version_is_the_project_s() -> None:
    project = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    assert f'version = "{gpssl.__version__}"' in project


def test_models_are_pickled_by_the_module_that_defines_them() -> None:
    assert GPSSL.__module__ == "gpssl.estimator"
    assert isinstance(pickle.loads(pickle.dumps(GPSSL(3))), gpssl.GPSSL)


def test_help_shows_the_classes() -> None:
    text = pydoc.plain(pydoc.render_doc(gpssl))
    assert re.search(r"class GPSSL\(", text)


def test_the_oldest_versions_are_those_that_are_tested() -> None:
    """pyproject.toml claims them, constraints-minimum.txt is what `make test-minimum` installs. PyTorch is tested in one version only."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for_users = [*project["dependencies"], *(line for extra in extras if extra not in ("docs", "all", "dev") for line in extras[extra])]
    claimed: dict[str, str] = dict(re.sub(r"\[.*\]", "", line).split(">=") for line in for_users)
    lines = (ROOT / "constraints-minimum.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    claimed.pop("torch")
    assert tested.keys() == claimed.keys()

    def numbers(version: str) -> list[int]:
        found = [int(part) for part in version.split(".")]
        return found + [0] * (3 - len(found))

    for name, version in tested.items():
        assert numbers(version) == numbers(claimed[name]), name
    for line in extras["dev"]:
        name, _, version = re.sub(r"\[.*\]", "", line).partition(">=")
        assert name not in claimed or numbers(version) >= numbers(claimed[name]), name
