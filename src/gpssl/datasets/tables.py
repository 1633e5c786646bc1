"""Tables to compare methods on: four with classes, ten with a number to predict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer as load_scikit_learn_s_breast_cancer
from sklearn.datasets import load_diabetes

from .sources import Source, read_source

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Rows, what is to be predicted from them, and what their columns are called."""

    name: str
    X: Array
    """NaN where a value is missing. [n, D]"""
    y: NDArray[Any]
    """Labels as strings, or targets as floats. [n]"""
    columns: tuple[str, ...]
    """[D]"""
    groups: NDArray[np.str_] | None = None
    """Which rows belong together and should not be split, such as repeated measurements of a mouse. [n]"""

    @property
    def n_missing(self) -> int:
        """How many values of X are missing."""
        return int(np.isnan(self.X).sum())


# Where the tables are. The numbers on OpenML, names of targets and counts of columns were compared with public lists of OpenML's
# data sets (those of the suite CTR23 have numbers from 44957 to 44980), not with OpenML itself: that its rows are in the order of the
# original files is an assumption.

DERMATOLOGY = Source(
    "uci_dermatology/dermatology.data",
    openml_id=35,
    delimiter=",",
    columns=(
        "erythema",
        "scaling",
        "definite borders",
        "itching",
        "koebner phenomenon",
        "polygonal papules",
        "follicular papules",
        "oral mucosal involvement",
        "knee and elbow involvement",
        "scalp involvement",
        "family history",
        "melanin incontinence",
        "eosinophils in the infiltrate",
        "PNL infiltrate",
        "fibrosis of the papillary dermis",
        "exocytosis",
        "acanthosis",
        "hyperkeratosis",
        "parakeratosis",
        "clubbing of the rete ridges",
        "elongation of the rete ridges",
        "thinning of the suprapapillary epidermis",
        "spongiform pustule",
        "munro microabcess",
        "focal hypergranulosis",
        "disappearance of the granular layer",
        "vacuolisation and damage of basal layer",
        "spongiosis",
        "saw-tooth appearance of retes",
        "follicular horn plug",
        "perifollicular parakeratosis",
        "inflammatory monoluclear inflitrate",
        "band-like infiltrate",
        "age",
    ),
)

DISEASES = {
    "1": "psoriasis",
    "2": "seboreic dermatitis",
    "3": "lichen planus",
    "4": "pityriasis rosea",
    "5": "cronic dermatitis",
    "6": "pityriasis rubra pilaris",
}
"""What the numbers in the file stand for, as its description spells them."""

ECOLI = Source("uci_ecoli/ecoli.data", openml_id=39, first=1, columns=("mcg", "gvh", "lip", "chg", "aac", "alm1", "alm2"))

PROTEINS = """
    DYRK1A ITSN1 BDNF NR1 NR2A pAKT pBRAF pCAMKII pCREB pELK pERK pJNK PKCA pMEK pNR1 pNR2A pNR2B pPKCAB pRSK AKT BRAF CAMKII CREB ELK ERK
    GSK3B JNK MEK TRKA RSK APP Bcatenin SOD1 MTOR P38 pMTOR DSCR1 AMPKA NR2B pNUMB RAPTOR TIAM1 pP70S6 NUMB P70S6 pGSK3B pPKCG CDK5 S6
    ADARB1 AcetylH3K9 RRP1 BAX ARC ERBB4 nNOS Tau GFAP GluR3 GluR4 IL1B P3525 pCASP9 PSD95 SNCA Ubiquitin pGSK3B_Tyr216 SHH BAD BCL2 pS6
    pCFOS SYP H3AcK18 EGR1 H3MeK4 CaNA
"""

MICE = """
    309 311 320 321 322 3415 3499 3507 3520 3521 294 3412 3413 3419 3420 3500 3503 362 364 365 3477 3478 3479 3480 3484 3497 50810A 50810D
    50810F 3422 3423 3424 3481 3488 3489 3490 3516 J2292 3414 3416 3417 3429 3504 3505 3522 361 363 293 3411 3418 3501 3502 3530 3534 3605
    3606 18899 3476 3483 3498 50810B 50810C 50810E 3421 3425 3426 3491 3513 3517 3525 J1291 J3295
"""
"""The mice in the order of the file."""

REPLICATES = 15
"""Rows of each mouse, one after the other."""

MICE_PROTEIN = Source(
    "uci_mice_protein/Data_Cortex_Nuclear.csv",
    openml_id=40966,
    delimiter=",",
    header=True,
    first=1,
    group=0,
    columns=tuple(f"{protein}_N" for protein in PROTEINS.split()),
)

REGRESSION_SOURCES = {
    "concrete": Source(
        "uci_regression/concrete.txt",
        openml_id=44959,
        columns=("cement", "blast furnace slag", "fly ash", "water", "superplasticizer", "coarse aggregate", "fine aggregate", "age"),
    ),
    "energy": Source(
        "uci_regression/energy.txt",
        openml_id=44960,
        columns=(
            "relative compactness",
            "surface area",
            "wall area",
            "roof area",
            "overall height",
            "orientation",
            "glazing area",
            "glazing area distribution",
        ),
        other_targets=("cooling_load",),
    ),
    "wine-quality-red": Source(
        "uci_regression/wine-quality-red.txt",
        openml_id=44972,
        columns=(
            "fixed acidity",
            "volatile acidity",
            "citric acid",
            "residual sugar",
            "chlorides",
            "free sulfur dioxide",
            "total sulfur dioxide",
            "density",
            "pH",
            "sulphates",
            "alcohol",
        ),
    ),
    "power-plant": Source(
        "uci_regression/power-plant.txt",
        openml_id=None,
        columns=("ambient temperature", "exhaust vacuum", "ambient pressure", "relative humidity"),
    ),
    "boston": Source(
        "uci_regression/bostonHousing.txt",
        openml_id=531,
        columns=("CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"),
    ),
    "kin8nm": Source(
        "uci_regression/kin8nm.txt.gz",
        openml_id=189,
        columns=tuple(f"theta{joint}" for joint in range(1, 9)),
    ),
    "naval": Source(
        "uci_regression/naval-propulsion-plant.txt.gz",
        openml_id=44969,
        target=16,
        columns=(
            "lever position",
            "ship speed",
            "gas turbine shaft torque",
            "gas turbine rate of revolutions",
            "gas generator rate of revolutions",
            "starboard propeller torque",
            "port propeller torque",
            "turbine exit temperature",
            "compressor inlet air temperature",
            "compressor outlet air temperature",
            "turbine exit pressure",
            "compressor inlet air pressure",
            "compressor outlet air pressure",
            "exhaust gas pressure",
            "turbine injection control",
            "fuel flow",
        ),
        other_targets=("gt_turbine_decay_state_coefficient",),
        # Lists of the suite count fewer columns than the original has; these two are the ones that tell nothing.
        constants={8: 288.0, 11: 0.998},
    ),
    "protein": Source(
        "uci_regression/protein-tertiary-structure.txt.gz",
        openml_id=44963,
        columns=tuple(f"F{number}" for number in range(1, 10)),
    ),
    "airfoil": Source(
        "uci_regression/airfoil_self_noise.dat",
        openml_id=44957,
        columns=("frequency", "angle of attack", "chord length", "free-stream velocity", "displacement thickness"),
    ),
}

REGRESSION_TABLES = ("diabetes", *REGRESSION_SOURCES)


def load_breast_cancer() -> Table:
    """Wisconsin diagnostic breast cancer, 569 rows of 30 columns, "malignant" or "benign": comes with scikit-learn.

    Examples
    --------
    >>> from gpssl.datasets import load_breast_cancer
    >>> table = load_breast_cancer()
    >>> table.X.shape, str(table.y[0]), table.n_missing
    ((569, 30), 'malignant', 0)
    """
    bunch = load_scikit_learn_s_breast_cancer()
    return Table("breast_cancer", bunch.data, _as_text(bunch.target_names[bunch.target]), tuple(map(str, bunch.feature_names)))


def load_dermatology() -> Table:
    """Skin diseases: 366 patients, 33 graded findings and an age, which is missing for 8; six diagnoses."""
    cells = read_source(DERMATOLOGY)
    return Table("dermatology", cells.X, np.array([DISEASES[label] for label in _as_text(cells.y)]), DERMATOLOGY.columns)


def load_ecoli() -> Table:
    """Where in the cell a protein of E. coli is found: 336 proteins, 7 scores; eight places, of which the rarest has two proteins."""
    cells = read_source(ECOLI)
    return Table("ecoli", cells.X, _as_text(cells.y), ECOLI.columns)


def load_mice_protein() -> Table:
    """Protein levels in the cortex of mice: 1,080 rows of 77 proteins, 1,396 values missing; eight classes.

    The rows are 15 replicates of each of 72 mice, and `groups` says which mouse a row is of. A random split puts replicates of the same
    mouse on both sides, where they are easily recognised: its accuracies are far too good. Splits by mouse (scikit-learn's
    `GroupKFold`, `GroupShuffleSplit`, `StratifiedGroupKFold`) are the honest ones; random splits are for comparison with papers that
    used them.
    """
    cells = read_source(MICE_PROTEIN)
    labels = _as_text(cells.y)
    groups = _mice_by_position(labels) if cells.groups is None else np.array([mouse.rsplit("_", 1)[0] for mouse in cells.groups])
    return Table("mice_protein", cells.X, labels, MICE_PROTEIN.columns, groups)


def load_regression(name: str) -> Table:
    """One of the tables of `REGRESSION_TABLES`, which many papers on regression with uncertainty compare on.

    "diabetes" comes with scikit-learn: the progression of the disease in a year, of 442 patients.
    The target of "energy" is the heating load, that of "naval" the decay of the compressor (column 17; the decay of the turbine, column
    18, is a second target and left out). "boston" has a column that encodes the share of Black residents, on the assumption that
    house prices depend on it, and is here for comparison with older papers only; do not build anything on it.
    """
    _check_name(name, REGRESSION_TABLES)
    if name == "diabetes":
        bunch = load_diabetes(scaled=False)
        return Table(name, bunch.data, bunch.target, tuple(bunch.feature_names))
    source = REGRESSION_SOURCES[name]
    cells = read_source(source)
    return Table(name, cells.X, cells.y.astype(np.float64), source.columns)


def load_classification(name: str) -> Table:
    """One of the tables of `CLASSIFICATION_TABLES`, by name."""
    _check_name(name, CLASSIFICATION_TABLES)
    return CLASSIFICATION_LOADERS[name]()


CLASSIFICATION_LOADERS: dict[str, Callable[[], Table]] = {
    "breast_cancer": load_breast_cancer,
    "dermatology": load_dermatology,
    "ecoli": load_ecoli,
    "mice_protein": load_mice_protein,
}

CLASSIFICATION_TABLES = tuple(CLASSIFICATION_LOADERS)


def _check_name(name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise ValueError(f"There is no table {name!r}; the names are {', '.join(known)}.")


def _as_text(labels: NDArray[Any]) -> NDArray[np.str_]:
    return np.array([str(label) for label in labels])


def _mice_by_position(labels: NDArray[np.str_]) -> NDArray[np.str_]:
    """The mouse of each row where the source, like OpenML, leaves it out: rows of a mouse follow each other. [n]"""
    mice = np.repeat(MICE.split(), REPLICATES)
    one_class_each = len(labels) == len(mice) and all(len(set(rows)) == 1 for rows in labels.reshape(-1, REPLICATES))
    if not one_class_each:
        raise ValueError(
            "The rows of the mice are not in the order of the original file, so that it is not known which mouse a row is of. Set "
            f"GPSSL_DATA to a folder that has {MICE_PROTEIN.file}."
        )
    return mice
