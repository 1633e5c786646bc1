"""The paper's own figures, to stand beside ours."""

from __future__ import annotations

METHODS = ("columns", "VICReg", "kernel PCA", "GPSSL-mean", "GPSSL-full")
SCORES = ("accuracy", "ROC AUC", "AURC")

_TABLE_1 = {
    "breast_cancer": ((0.965, 0.891, 0.969, 0.956, 0.974), (0.990, 0.948, 0.990, 0.980, 0.991), (0.005, 0.029, 0.007, 0.009, 0.006)),
    "dermatology": ((0.958, 0.917, 0.965, 0.882, 0.965), (0.997, 0.986, 0.996, 0.987, 0.994), (0.002, 0.019, 0.005, 0.015, 0.011)),
    "ecoli": ((0.859, 0.726, 0.822, 0.822, 0.881), (0.894, 0.858, 0.896, 0.893, 0.906), (0.106, 0.092, 0.068, 0.097, 0.057)),
    "mice_protein": ((0.414, 0.712, 0.707, 0.599, 0.725), (0.855, 0.945, 0.952, 0.895, 0.960), (0.630, 0.166, 0.156, 0.294, 0.078)),
}
"""Data set → rows accuracy, ROC AUC, AURC; columns in the order of `METHODS`. One split, no standard errors."""

UCI: dict[tuple[str, str, str], float] = {
    (data, method, score): value
    for data, rows in _TABLE_1.items()
    for score, row in zip(SCORES, rows, strict=True)
    for method, value in zip(METHODS, row, strict=True)
}
"""(data set, method, score) → the value in the paper's table 1."""

_TABLE_2 = {
    "accuracy": (0.922, 0.906, 0.928, 0.919, 0.931),
    "ROC AUC": (0.988, 0.973, 0.993, 0.991, 0.992),
    "AURC": (0.029, 0.037, 0.010, 0.012, 0.010),
    "pMSE": (0.021, 0.027, 0.019, 0.027, 0.014),
}
"""Score → methods in the order of `METHODS`, on one simulated slice."""

SPATIAL: dict[tuple[str, str, str], float] = {
    ("simulated", method, score): value for score, row in _TABLE_2.items() for method, value in zip(METHODS, row, strict=True)
}
"""(data set, method, score) → the value in the paper's table 2."""
