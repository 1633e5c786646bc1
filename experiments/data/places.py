"""Where the tables are, in the user's folder and on OpenML, and how they are laid out there."""

from __future__ import annotations

from .sources import Source

# The numbers on OpenML, names of targets and counts of columns were compared with public lists of OpenML's
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
