"""Which mistakes would the tests notice? `make mutants AREA=core SAMPLE=100 SEED=0`.

A random sample of the mutants of an area (`mutations.py` says what they are) is run against the tests of its own folder. mutmut changes
neither what stands outside functions nor what is decorated, which in the readers is a quarter, and Cosmic Ray starts all tests of a folder
anew for every mutant, which takes days; hence this.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from in_pytest import MutantRunner
from mutations import Mutant, mutants_of
from scipy.stats import binomtest

ROOT = Path(__file__).parent.parent.parent

READERS = (
    *("archives", "byte_stream", "calendar", "columns", "databases", "decisions", "delimited", "dialect", "formats"),
    *("json_lines", "layout", "lines", "quantities", "readings", "source", "table_files", "units", "workbooks"),
)

AREAS = {
    "core": ("tests/core", ["core/*.py"]),
    "inference": ("tests/inference", ["inference/*.py"]),
    "risk": ("tests/evaluation", [f"evaluation/_{name}.py" for name in ("selective", "conformal", "promises", "label_sample")]),
    "pool": ("tests/downstream", [f"downstream/{name}.py" for name in ("_pool*", "_weighting", "_softmax_gp", "_gp_head", "_laplace")]),
    "readers": ("tests/data", [f"data/_{name}.py" for name in READERS]),
}
"""For each area the folder of its tests, and its files."""


def all_mutants(area: str, source: Path) -> list[Mutant]:
    """Return the mutants of all files of an area."""
    paths = sorted({path for pattern in AREAS[area][1] for path in (source / "gpssl").glob(pattern)})
    return [mutant for path in paths for mutant in mutants_of(path, source)]


def sampled(mutants: list[Mutant], source: Path, size: int, seed: int) -> list[Mutant]:
    """Return a random sample in random order, so that the beginning of a run is one too. What Python cannot read is passed over."""
    shuffled = random.Random(seed).sample(mutants, len(mutants))
    chosen: list[Mutant] = []
    for mutant in shuffled:
        if len(chosen) < size and mutant.compiles((source / mutant.path).read_text()):
            chosen.append(mutant)
    return chosen


def fingerprint(folder: str) -> str:
    """Return a checksum of all sources and of the tests in a folder: what tests reach is measured once for each."""
    paths = [path for part in ("src", folder) for path in (ROOT / part).rglob("*.py")] + list((ROOT / "tests").glob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()[:12]


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("area", choices=AREAS)
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--again", type=Path, help="a report: run what survived there, and nothing else")
    asked = parser.parse_args()
    os.chdir(ROOT)
    results = ROOT / "results" / "mutants"
    results.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder).resolve() / "src"
        shutil.copytree(ROOT / "src", source)
        sys.path.insert(0, str(source))
        os.environ["PYTHONPATH"] = str(source)
        mutants = all_mutants(asked.area, source)
        chosen = survivors_of(asked.again, mutants) if asked.again else sampled(mutants, source, asked.sample, asked.seed)
        report = results / (f"{asked.area}-again.txt" if asked.again else f"{asked.area}-{asked.seed}.txt")
        outcomes = tried(chosen, source, AREAS[asked.area][0], results / f"reach-{asked.area}", report)
    print(summary(asked.area, len(mutants), outcomes))
    return 0 if sum(outcomes.values()) == len(chosen) else 1


def survivors_of(report: Path, mutants: list[Mutant]) -> list[Mutant]:
    """Return the mutants that survived an earlier run, to see whether new tests kill them."""
    survived = {line.split("  ", 1)[1] for line in report.read_text().splitlines() if line.startswith(("survived", "not reached"))}
    return [mutant for mutant in mutants if str(mutant) in survived]


def tried(mutants: list[Mutant], source: Path, tests: str, reach: Path, path: Path) -> Counter[str]:
    """Run the mutants and return how many had which outcome. The report has a line for each, the terminal for each survivor."""
    outcomes: Counter[str] = Counter()
    with path.open("w") as report:

        def tell(mutant: Mutant, outcome: str) -> None:
            outcomes[outcome] += 1
            print(f"{outcome}  {mutant}", file=report, flush=True)
            if outcome in ("survived", "not reached"):
                print(f"{outcome}  {mutant}", file=sys.__stdout__, flush=True)

        runner = MutantRunner(source, mutants, reach.with_name(f"{reach.name}-{fingerprint(tests)}.json"), tell)
        pytest.main(["-q", "-p", "no:cacheprovider", f"--basetemp={source.parent}/tests", tests], plugins=[runner])
    return outcomes


def summary(area: str, n_mutants: int, outcomes: Counter[str]) -> str:
    """Return a row of the table: area, mutants, tried, killed, survived, share that was killed with its 95 % interval."""
    n_tried, n_killed = sum(outcomes.values()), outcomes["killed"] + outcomes["hung"]
    if n_tried == 0:
        return "No mutant was tried."
    interval = binomtest(n_killed, n_tried).proportion_ci(method="wilson")
    share = f"{n_killed / n_tried:.0%} ({interval.low:.0%} to {interval.high:.0%})"
    return f"| {area} | {n_mutants} | {n_tried} | {n_killed} | {n_tried - n_killed} | {share} |"


if __name__ == "__main__":
    sys.exit(main())
