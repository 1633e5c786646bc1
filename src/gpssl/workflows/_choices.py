"""What a person may choose, with the defaults that functions and commands share. It imports nothing heavy: `gpssl --help` is quick."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from .._runtime import N_COMPONENTS_OF_TISSUE, N_DRAWS

Kind = Literal["table", "tissue"]

N_COMPONENTS: dict[Kind, int] = {"table": 5, "tissue": N_COMPONENTS_OF_TISSUE}
"""Dimensions of the representation."""
POOL = "pool"
"""What comparisons call `MarginalizedClassifier()` and `MarginalizedRegressor()` with all defaults."""
FULL = "GPSSL-full"
"""What comparisons call the paper's method: heads on draws of one representation, which count alike."""
DECIDING = {"class": "log loss", "number": "NLL"}
"""The score that comparisons decide by, for classes and numbers. Smaller is better."""
SIGNIFICANT = 0.05
"""The level of the tests of comparisons."""
MAX_INDUCING = 512
CLUSTERED_DRAWS = 50
"""Draws of a representation that are clustered."""
MAX_CLUSTERS = 10
"""The most clusters that are considered where their number is not given."""
N_SPLITS = 20
MAX_ROWS = 3000
"""Rows that `compare` uses of larger tables: kernel PCA needs a matrix of rows by rows."""


class ChoiceError(ValueError):
    """A parameter has a value that it cannot have. The command reports it as a wrong option."""

    def __init__(self, parameter: str, reason: str) -> None:
        super().__init__(f"{parameter}: {reason}")
        self.parameter, self.reason = parameter, reason


class Alike(StrEnum):
    """Which rows are alike."""

    COLUMNS = "columns"
    """Rows that agree in their columns."""
    NEIGHBORS = "neighbors"
    """Rows that can be reached from each other in small steps, from neighbor to neighbor."""

    @classmethod
    def _missing_(cls, value: object) -> Alike:
        raise ChoiceError("alike", f"{value!r} is neither {' nor '.join(repr(str(one)) for one in cls)}.")


@dataclass(frozen=True)
class Settings:
    """The choices that all workflows share."""

    n_components: int | None = None
    """None: `N_COMPONENTS` of the kind of rows."""
    alike: Alike = Alike.COLUMNS
    temperature: float | Literal["auto"] = "auto"
    n_draws: int = N_DRAWS
    max_inducing: int = MAX_INDUCING
    seed: int = 0
    is_fixed: bool = False
    """Whether a person chose kernel, temperature or draws: predictions then come from that one representation, and not from a pool."""

    def n_components_for(self, kind: Kind, n_rows: float = float("inf")) -> int:
        """Return J for rows of this kind: what a person chose, else no more than the directions in which so few rows differ."""
        return int(max(1, min(N_COMPONENTS[kind], n_rows - 1))) if self.n_components is None else self.n_components


def risk_of(max_risk: float | str | None, kind: Literal["class", "number"]) -> float | None:
    """Return the largest risk: for classes a share, of which a text may be the percentage; for numbers an error in their unit."""
    if max_risk is None:
        return None
    if isinstance(max_risk, str):
        max_risk = _share_of("max_risk", max_risk) if kind == "class" else _error_of(max_risk)
    if kind == "class":
        check_share("max_risk", max_risk)
    elif not 0 < max_risk < float("inf"):
        raise ChoiceError("max_risk", "for numbers it is the largest root mean squared error, a positive number.")
    return float(max_risk)


def _share_of(parameter: str, text: str, forms: str = "0.05 or 5% for five percent") -> float:
    """Return the share that a person has written: "0.05", "5" and "5%" are five percent."""
    bare = text.strip().removesuffix("%").strip()
    try:
        number = float(bare)
    except ValueError as error:
        raise ChoiceError(parameter, f"{text!r} is no number: write {forms}.") from error
    if not (text.strip().endswith("%") or number >= 1):
        return number
    if not 0 < number < 100:
        raise ChoiceError(parameter, f"{bare} % is no share between 0 and 100 %: write {forms}.")
    return number / 100


def _error_of(text: str) -> float:
    """Return the root mean squared error that a person has written."""
    if text.strip().endswith("%"):
        raise ChoiceError("max_risk", f"{text} is no root mean squared error: for numbers write it in the unit of the target.")
    try:
        return float(text)
    except ValueError as error:
        raise ChoiceError(
            "max_risk", f"{text!r} is no number: write the largest root mean squared error, in the unit of the target."
        ) from error


def confidence_of(confidence: float | str | None) -> float | Literal["auto"] | None:
    """Return the confidence of a promise: a share, of which a text may be the percentage, "auto", or None for "average"."""
    if confidence is None or confidence in ("auto", "average"):
        return "auto" if confidence == "auto" else None
    if isinstance(confidence, str):
        confidence = _share_of("confidence", confidence, "average, auto, 0.95 or 95%")
    check_share("confidence", confidence)
    return float(confidence)


def check_share(parameter: str, value: float) -> None:
    """Raise ChoiceError unless the value lies between 0 and 1."""
    if not 0 < value < 1:
        percentage = f": write {value / 100:g} for {value:g} percent" if 1 <= value < 100 else ""
        raise ChoiceError(parameter, f"{value:g} is no share between 0 and 1{percentage}.")
