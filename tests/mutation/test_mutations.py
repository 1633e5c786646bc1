"""The changes that mutation testing makes, and that it tells a test which notices from one which does not."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from mutations import mutants_of

SOURCE = '''
"""A docstring of several words, and 1 + 1."""

__all__ = ["share"]
LIMIT: int = 3  # a number


def share(values: list[int | float], *, above: bool = False) -> float:
    """Return a share of 1 or less."""
    if not values:
        raise ValueError("There must be one value at least.")
    kept = [value for value in values if (value > LIMIT
                                          or above)]
    total = sum(kept, start=0)
    return total / len(values) if "é" + "x" in ("éx", f"{1}") else -1.0
'''


def changed_lines(tmp_path: Path) -> list[str]:
    """Return each line that some mutant changes, as it becomes."""
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    before = SOURCE.splitlines()
    found = []
    for mutant in mutants_of(path, tmp_path):
        assert mutant.compiles(SOURCE), str(mutant)
        after = mutant.applied_to(SOURCE).splitlines()
        found.append(next(new.strip() for old, new in zip(before, after, strict=False) if old != new))
    return found


def test_every_mutant_is_one_change_of_code(tmp_path: Path) -> None:
    expression = 'return total / len(values) if "é" + "x" in ("éx", f"{1}") else -1.0'
    assert sorted(changed_lines(tmp_path)) == sorted(
        [
            "LIMIT: int = 4  # a number",
            "def share(values: list[int | float], *, above: bool = True) -> float:",
            "if (not (not values)):",
            "if values:",
            "pass",
            "kept = [value for value in values if ((not (value > LIMIT",
            "kept = [value for value in values if (value >= LIMIT",
            "and above)]",
            "total = sum(kept, **{})",
            "total = sum(kept, start=1)",
            expression.replace("total /", "total *"),
            expression.replace('if "é" + "x" in ("éx", f"{1}") else', 'if (not ("é" + "x" in ("éx", f"{1}"))) else'),
            expression.replace('" in (', '" not in ('),
            expression.replace("+", "-"),
            expression.replace('"é"', "'XXéXX'"),
            expression.replace('"x"', "'XXxXX'"),
            expression.replace('"éx"', "'XXéxXX'"),
            expression.replace("-1.0", "1.0"),
            expression.replace("1.0", "2.0"),
        ]
    )


def test_a_mutant_knows_its_function_and_statement(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(SOURCE)
    found = {mutant.after: mutant for mutant in mutants_of(path, tmp_path)}
    assert found["4"].function is None
    assert found["True"].function is None  # defaults belong to the import
    assert found["pass"].function == ("share", 8)
    assert {mutant.lines for mutant in found.values() if "not (value" in mutant.after} == {(12, 13)}


PROJECT = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
import in_pytest, pytest
from mutations import mutants_of

source = Path("src").resolve()
sys.path.insert(0, str(source))
tell = lambda mutant, outcome: print(mutant.before.strip(), outcome, sep=": ", file=sys.stderr)
in_pytest.SLACK = 0.0  # endless loops end after a second
runner = in_pytest.MutantRunner(source, mutants_of(source / "sums.py", source), Path("reach.json"), tell)
pytest.main(["-q", "-p", "no:cacheprovider", "tests"], plugins=[runner])
"""


@pytest.mark.slow
def test_mutants_live_where_nothing_looks_and_die_where_something_does(tmp_path: Path) -> None:
    """One function is tested, one is called and not looked at, one is not called, one never ends; a constant is used through a fixture."""
    (tmp_path / "src").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "src" / "sums.py").write_text(
        textwrap.dedent("""
            def looked_at(x):
                return x % 5

            def called(x):
                return x * 6

            def forgotten(x):
                return x - 7

            def endless(n):
                while n > 0:
                    n -= 8

            def shared():
                return 9

            CONSTANT = 10

            def at_import():
                return 11

            FOLLOWS = CONSTANT + at_import()
            """)
    )
    (tmp_path / "tests" / "test_sums.py").write_text(
        textwrap.dedent("""
            import pytest, sums

            @pytest.fixture(scope="module")
            def nine():
                return sums.shared()

            def test_first(nine):
                sums.called(1)

            def test_second(nine):
                assert nine == 9

            def test_third():
                assert sums.looked_at(6) == 1
                sums.endless(16)
                assert sums.CONSTANT == 10

            def test_fourth():
                assert sums.FOLLOWS == 21
            """)
    )
    script = PROJECT.format(here=str(Path(__file__).parent))
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    outcomes = dict(line.split(": ") for line in ran.stderr.splitlines())
    assert outcomes == {
        "%": "killed",
        "+": "killed",
        "5": "killed",
        "*": "survived",
        "6": "survived",
        "-": "not reached",
        "7": "not reached",
        ">": "survived",
        "0": "survived",
        "-=": "hung",
        "8": "survived",
        "n -= 8": "hung",
        "9": "killed",
        "10": "killed",
        "11": "killed",
    }
