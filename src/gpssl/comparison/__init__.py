"""GPSSL beside other methods: rivals, splits and the choice of settings.

`compare` does all of it on a table. The parts are for comparisons of your own: `METHODS` are given a `Contest` and return candidates, of
which `choose` takes the best on held-out labels.
"""

from .._runtime import N_DRAWS
from ..workflows._choices import FULL, POOL
from ._compare import Comparison, compare
from ._deciding import Difference, Verdict
from ._rivals import (
    COLUMNS,
    MEAN,
    METHODS,
    N_COMPONENTS,
    PRIOR,
    SUPERVISED,
    Candidate,
    Contest,
    Grids,
    numbers_from,
    vicreg_settings,
)
from ._splits import Choice, Criterion, Validation, by_accuracy, by_likelihood, choose, divide, split_seed

__all__ = [
    "COLUMNS",
    "FULL",
    "MEAN",
    "METHODS",
    "N_COMPONENTS",
    "N_DRAWS",
    "POOL",
    "PRIOR",
    "SUPERVISED",
    "Candidate",
    "Choice",
    "Comparison",
    "Contest",
    "Criterion",
    "Difference",
    "Grids",
    "Validation",
    "Verdict",
    "by_accuracy",
    "by_likelihood",
    "choose",
    "compare",
    "divide",
    "numbers_from",
    "split_seed",
    "vicreg_settings",
]
