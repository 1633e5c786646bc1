"""Pages: their blocks run and print what stands below them, links lead somewhere, and what they name exists."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import gpssl
from gpssl.cli import app

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md"), *(DOCS / "api").glob("*.md")])
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", flags=re.DOTALL)
GPSSL_BLOCK = re.compile(r"```sh\n((?:\.venv/bin/)?gpssl .*?)```(?:\n\n```text\n(.*?)```)?", flags=re.DOTALL)
"""Commands on tables."""
WITH_COMMANDS = [
    pytest.param(page, marks=[pytest.mark.slow] if page.name == "command-line.md" else [])
    for page in PAGES
    if GPSSL_BLOCK.search(page.read_text())
]
WITH_BLOCKS = [page for page in PAGES if BLOCK.search(page.read_text())]


HAS_MESSAGES = Path(os.environ.get("GPSSL_DATA", "/nowhere"), "sms_spam", "SMSSpamCollection").is_file()
"""Whether the messages of the examples are in the data folder; without it they would have to be downloaded."""


def runnable(blocks: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the blocks that can be run here: those about the messages need the data folder."""
    return [(block, expected) for block, expected in blocks if HAS_MESSAGES or not re.search("sms_spam|messages", block)]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def printed_by(block: str, page: str, names: dict[str, object]) -> str:
    """What a block prints, run with the names of those before it."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(block, page, "exec"), names)
    return output.getvalue()


def drawn_by_chance() -> str:
    """The state of NumPy's global generator, from which estimators without a seed draw."""
    return str(np.random.get_state(legacy=False))  # noqa: NPY002  (that generator is what the test is about)


@pytest.mark.parametrize("page", WITH_BLOCKS, ids=name_of)
def test_code_blocks_run_and_print_what_stands_below(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # some of them write files
    names: dict[str, object] = {}
    for block, expected in runnable(BLOCK.findall(page.read_text())):
        before = drawn_by_chance()
        printed = printed_by(block, page.name, names)
        assert not expected or before == drawn_by_chance(), f"{page.name} has a block that prints by chance: set random_state.\n{block}"
        assert printed.split() == expected.split(), f"{page.name} says something else than this block prints:\n{block}"


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=name_of)
def test_commands_run_and_print_what_stands_below(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block, expected in runnable(GPSSL_BLOCK.findall(page.read_text())):
        results = [CliRunner().invoke(app, shlex.split(line, comments=True)[1:]) for line in block.replace(".venv/bin/", "").splitlines()]
        assert [result.output for result in results if result.exit_code != 0] == []
        printed = "".join(result.stdout for result in results)
        assert not expected or fits(printed, expected), f"{page.name} says something else than this prints:\n{block}\n{printed}"


def fits(printed: str, expected: str) -> bool:
    """Whether these are the same words; `…` stands for the rest of a line, where rounding may decide what it says."""
    said, shown = ([" ".join(line.split()) for line in text.strip().splitlines()] for text in (printed, expected))
    return len(said) == len(shown) and all(re.fullmatch(re.escape(b).replace("…", ".*"), a) for a, b in zip(said, shown, strict=True))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for path, heading in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", prose):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {path}"
        assert not heading or heading in headings(target), f"{page.name} links to {path}#{heading}"


def headings(page: Path) -> set[str]:
    """Anchors of a page's headings, as the repository's web view and the site make them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


def test_functions_that_the_mathematics_name_exist() -> None:
    rooms = {path.stem for path in (ROOT / "src" / "gpssl").iterdir()} - {"__init__"}
    named = re.findall(rf"\b(?:{'|'.join(rooms)})(?:\.\w+)+", (DOCS / "mathematics.md").read_text())
    assert len(named) > 50
    for name in named:
        assert found(name), f"mathematics.md names {name}, which does not exist"


def found(name: str) -> bool:
    """Whether `module.function`, `module.Class.method` or a file of the package is there."""
    if name.endswith(".py"):
        return (ROOT / "src" / "gpssl" / name).exists()
    parts = name.removeprefix("gpssl.").split(".")
    for split in range(len(parts), 0, -1):
        with contextlib.suppress(ModuleNotFoundError):
            thing: object = importlib.import_module(".".join(["gpssl", *parts[:split]]))
            for part in parts[split:]:
                thing = getattr(thing, part, None)
            return thing is not None
    return False


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/developing.md"])
def test_files_that_developers_are_sent_to_exist(page: str) -> None:
    named = set(re.findall(r"`((?:\w+/)*\w+\.py|(?:\w+/)+)`", (ROOT / page).read_text()))
    assert len(named) > 10
    assert [name for name in named if not any((start / name).exists() for start in (ROOT, ROOT / "src" / "gpssl"))] == []


def test_every_public_name_is_in_the_reference() -> None:
    reference = (DOCS / "api" / "index.md").read_text()
    for name in gpssl.__all__:
        assert name.startswith("_") or re.search(rf"\bgpssl\.(\w+\.)?{name}\b", reference), f"docs/api/index.md lacks gpssl.{name}"


@pytest.mark.parametrize("page", ["README.md", "docs/comparison.md"])
def test_numbers_that_are_claimed_are_among_the_results(page: str) -> None:
    prose = re.sub(r"```.*?```", "", (ROOT / page).read_text(), flags=re.DOTALL)
    numbers = set(re.findall(r"\b0\.\d{3}\b", prose))
    assert numbers
    assert numbers <= set(re.findall(r"\b0\.\d{3}\b", (DOCS / "results.md").read_text()))
