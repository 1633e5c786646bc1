"""Ask files one after the other, in a process of its own: one that is aborted, hangs or takes too much memory is not the end of the attack.

It is run as `python file_worker.py ATTACK FOLDER SEED FIRST STOP`, and prints a line of JSON when it begins with an input and when it is
done with it. `attack_files` of `file_attack.py` runs it and reads these lines.
"""

from __future__ import annotations

import faulthandler
import json
import pickle
import resource
import shutil
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from answers import check_answers, finite
from file_changes import changed_on_purpose, changed_sums, damaged
from stored_sums import PART_ROWS, X, of_sums, rows_in_a_file

import gpssl
from gpssl.core import Moments
from gpssl.data import _rows
from gpssl.io import ModelFileError
from model_parts import parts_of, write_parts

MOST_MEMORY = 2**30
OF_MOMENTS = (
    *("These moments belong to", "These moments are damaged", "One row is too few", "All rows look the same"),
    *(f"{n} rows cannot show" for n in range(2)),
)
"""How sentences begin about moments that a file may hold, and that nothing can be learned from."""
KNOWN = of_sums().fit(X)
LONGEST_SENTENCE = 1000


def model_changed_on_purpose(folder: Path, path: Path, rng: np.random.Generator) -> str:
    """Change one of the models, with checksums that fit, and ask what it became."""
    model = _one_of(folder, rng)
    write_parts(path, changed_on_purpose(parts_of(model), rng))
    return asked(path, model.with_suffix(".rows"))


def model_damaged(folder: Path, path: Path, rng: np.random.Generator) -> str:
    """Damage the file of one of the models, and ask what it became."""
    model = _one_of(folder, rng)
    path.write_bytes(damaged(model.read_bytes(), rng))
    return asked(path, model.with_suffix(".rows"))


def _one_of(folder: Path, rng: np.random.Generator) -> Path:
    models = sorted(folder.glob("*.gpssl"))
    return models[int(rng.integers(len(models)))]


def asked(path: Path, rows: Path) -> str:
    """Load the file, and return "refused" or "works". Raise AssertionError, or whatever an answer ends in, where it does neither."""
    try:
        model = gpssl.load(path)
    except ModelFileError as error:
        check_sentence(error, path)
        return "refused"
    check_answers(model, pickle.loads(rows.read_bytes()))
    return "works"


def moments_changed_on_purpose(folder: Path, path: Path, rng: np.random.Generator) -> str:
    path.write_bytes(changed_sums((folder / "moments.npz").read_bytes(), rng))
    return asked_for_moments(path)


def moments_damaged(folder: Path, path: Path, rng: np.random.Generator) -> str:
    path.write_bytes(damaged((folder / "moments.npz").read_bytes(), rng))
    return asked_for_moments(path)


def checkpoint_changed_on_purpose(folder: Path, path: Path, rng: np.random.Generator) -> str:
    path.write_bytes(changed_sums((folder / "pass.npz").read_bytes(), rng))
    return resumed(folder, path)


def checkpoint_damaged(folder: Path, path: Path, rng: np.random.Generator) -> str:
    path.write_bytes(damaged((folder / "pass.npz").read_bytes(), rng))
    return resumed(folder, path)


def asked_for_moments(path: Path) -> str:
    """Load moments, add them and learn from them. Raise AssertionError unless all of it is refused in a sentence, or works."""
    try:
        moments = Moments.load(path)
    except ValueError as error:
        check_sentence(error, path)
        return "refused"
    try:
        learned = KNOWN.refit(moments=moments + KNOWN.moments_ if moments.weight < 2 else moments)
    except ValueError as error:
        if not str(error).startswith(OF_MOMENTS):
            raise
        return "refused"
    finite(learned.transform(X[:5]), 5, 2)
    finite(learned.std(X[:5]), 5, 2)
    return "works"


def resumed(folder: Path, path: Path) -> str:
    """Fit to rows of which a checkpoint is kept. Raise AssertionError unless it is refused in a sentence, or works."""
    try:
        model = of_sums().fit(rows_in_a_file(folder), checkpoint=path)
    except ValueError as error:
        if not str(error).startswith(OF_MOMENTS):
            check_sentence(error, path)
        return "refused"
    assert abs(model.moments_.weight - 600) < 1, f"of {model.moments_.weight} rows"
    finite(model.transform(X[:5]), 5, 2)
    finite(model.std(X[:5]), 5, 2)
    return "works"


def check_sentence(error: Exception, path: Path) -> None:
    text = str(error)
    assert "\n" not in text, f"more than a line: {text!r}"
    assert path.name in text, f"no name: {text!r}"
    assert len(text) < LONGEST_SENTENCE, f"no sentence: {text!r}"


ATTACKS: dict[str, Callable[[Path, Path, np.random.Generator], str]] = {
    "changed": model_changed_on_purpose,
    "damaged": model_damaged,
    "moments changed": moments_changed_on_purpose,
    "moments damaged": moments_damaged,
    "checkpoint changed": checkpoint_changed_on_purpose,
    "checkpoint damaged": checkpoint_damaged,
}


def limit_memory() -> None:
    """Let this process have no more memory than it has, and `MOST_MEMORY`."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def generator_of(attack: str, seed: int, number: int) -> np.random.Generator:
    """Return the random numbers of an input, which do not depend on the others."""
    return np.random.default_rng([seed, zlib.crc32(attack.encode()), number])


def tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def main(attack: str, folder: Path, seed: int, numbers: range, path: Path) -> None:
    """Try all inputs with these numbers."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    _rows.PART_ROWS = PART_ROWS
    if attack in ("changed", "damaged"):
        for model in sorted(folder.glob("*.gpssl")):  # imports what they need, before memory is limited
            asked(model, model.with_suffix(".rows"))
    shutil.copy(folder / "pass.npz", path)
    asked_for_moments(folder / "moments.npz")
    resumed(folder, path)
    limit_memory()
    tell(ready=True)
    for number in numbers:
        tell(begins=number)
        try:
            tell(outcome=ATTACKS[attack](folder, path, generator_of(attack, seed, number)))
        except BaseException as error:  # all of it is what is looked for
            import traceback

            place = traceback.extract_tb(error.__traceback__)[-1]
            tell(outcome=f"{type(error).__name__} in {Path(place.filename).name}:{place.lineno}: {str(error)[:300]}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), range(int(sys.argv[4]), int(sys.argv[5])), Path(sys.argv[6]))
