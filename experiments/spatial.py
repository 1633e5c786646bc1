"""Table 2 of the paper, on slices simulated after blood cells; and sections of breast tumors with a pathologist's labels.

A simulated slice is a grid of 30 × 30 spots of thirty cells each, of four types. Half of the spots of which at least 80 % are of one type
have its label, and all others are predicted, most of them mixed; what is right is the dominant type. In "found" slices, labeled are
the spots that archetypal analysis and marker genes call pure. All spots train the representation, without labels: 20 principal
components of expression and two coordinates, standardized. Settings are chosen by the likelihood of a fifth of the labels, the head is the
paper's perceptron. In sections, 30 % of the labeled spots, or of 25 blocks of neighboring spots, have their labels, and the head is
Bayesian logistic regression; all methods have their defaults, but for VICReg, which chooses as before. Methods "modalities" have what
`gpssl.spatial.embed` does by default: a sum of a kernel of expression and a kernel of place, and ten dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from gpssl._runtime import RESIDUAL_TOLERANCE
from gpssl.comparison import SUPERVISED, Candidate, Contest, Grids, by_likelihood
from gpssl.downstream import BayesianLogisticRegression
from gpssl.evaluation import Labeled, probabilities_of, score_classification

from . import paper
from .ledger import Record, Task
from .methods import FIXED, HEAD, QUICK, TABLES, models
from .one_against_the_rest import PAPER_METHODS
from .plan import Plan
from .protocol import Split, learn
from .slices import Slice, labeled_section, section, simulated_slice, simulator
from .spatial_pictures import draw_slices
from .tables import Scores, paired_tests_table, scores_table

Array = NDArray[np.float64]

SIMULATED = ("simulated", "simulated_found")
MADE_UP = ("made_up", "made_up_found")
"""The same with made-up cells, which need no data."""
SECTIONS = ("H1", "G2", "B1", "F1")
DATA = (*SIMULATED, *(f"{section}_{by}" for section in SECTIONS for by in ("random", "blocks")))
MAX_SPLITS = 10

OF_MODALITIES = ", modalities"
METHODS = (
    *("columns", "VICReg", "kernel PCA", "GPSSL-mean", "GPSSL-full", "GP prior"),
    SUPERVISED,
    *(f"{name}{OF_MODALITIES}" for name in ("GPSSL-mean", "GPSSL-full", "GP prior", SUPERVISED)),
)
N_COMPONENTS = 10
"""The default of `gpssl.spatial.embed`."""
SCORES = ("accuracy", "ROC AUC", "AURC", "pMSE", "AUROC of errors", "log loss")


def tasks(plan: Plan) -> list[Task]:
    """Return all methods on all slices."""
    data = plan.choose(DATA, quick=MADE_UP)
    return [Task(name, split, method) for split in range(min(plan.splits, MAX_SPLITS)) for name in data for method in METHODS]


def load(data: str) -> None:
    """Read what a slice is made from, or say what is missing."""
    if data in SIMULATED:
        simulator(made_up=False)
    elif data not in MADE_UP:
        section(data.split("_")[0])


def slice_of(data: str, number: int, plan: Plan) -> Slice:
    """Return one simulation, or one choice of labels in a section."""
    if data in (*SIMULATED, *MADE_UP):
        return simulated_slice(number, plan, made_up=data in MADE_UP, found=data.endswith("_found"))
    name, by = data.split("_")
    return labeled_section(name, number, plan, by_block=by == "blocks")


def run(task: Task, plan: Plan) -> Record:
    """Learn and predict."""
    problem = slice_of(task.data, task.split, plan)
    simulated = problem.proportions is not None
    grids = QUICK if plan.quick else TABLES if simulated else FIXED
    rows, candidates = _candidates(task.method, problem, grids, head=HEAD if simulated else BayesianLogisticRegression())
    (learned,) = learn(candidates, _split(problem, rows), by_likelihood)
    classes = problem.classes
    proba = probabilities_of(learned.estimator, rows[problem.test], classes)
    truth = problem.types[problem.test]
    right = classes[proba.argmax(axis=1)] == truth
    labeled = problem.labeled
    return {
        "scores": _scores(problem, proba),
        "settings": learned.settings,
        "labeled": len(labeled),
        "labels right": float((problem.labels[labeled] == problem.types[labeled]).mean()),
        "right": right.astype(int).tolist(),
        "certainty": proba.max(axis=1).round(6).tolist(),
    }


def _split(problem: Slice, rows: Array) -> Split:
    groups = None if problem.blocks is None else problem.blocks[problem.labeled]
    known = Labeled(problem.labeled, rows[problem.labeled], problem.labels[problem.labeled], groups)
    return Split(rows, known, known, Labeled(problem.test, rows[problem.test], problem.types[problem.test]), problem.seed)


def _candidates(method: str, problem: Slice, grids: Grids, *, head: Any) -> tuple[Array, list[Candidate]]:
    """Return the rows that a method sees, and its settings to choose from."""
    if not method.endswith(OF_MODALITIES):
        rows = problem.rows()
        return rows, models(method, rows, grids, problem.seed, head=head)
    found = problem.modalities()
    contest = Contest(
        found.rows,
        [({}, found.kernel("sum"))],
        grids,
        n_components=N_COMPONENTS,
        residual_tolerance=RESIDUAL_TOLERANCE,
        head=head,
        seed=problem.seed,
    )
    return found.rows, PAPER_METHODS[method.removesuffix(OF_MODALITIES)](contest)


def _scores(problem: Slice, proba: Array) -> dict[str, float]:
    """Return the paper's scores, and how well certainty tells right from wrong."""
    truth, classes = problem.types[problem.test], problem.classes
    scores = score_classification(truth, proba, classes)
    if problem.proportions is not None:
        scores["pMSE"] = float(((proba - problem.proportions[problem.test]) ** 2).mean())
    wrong = classes[proba.argmax(axis=1)] != truth
    scores["AUROC of errors"] = float(roc_auc_score(wrong, -proba.max(axis=1))) if 0 < wrong.sum() < len(wrong) else 1.0
    return {name: scores[name] for name in SCORES if name in scores}


def report(records: Sequence[Record]) -> dict[str, str]:
    """Return a table for each kind of slice, and tests of the simulated ones."""
    blocks: dict[str, str] = {}
    for data, mine in _by_data(records).items():
        scores = Scores(mine)
        blocks[f"spatial {data}"] = scores_table(scores, data, paper.SPATIAL)
        if data in (*SIMULATED, *MADE_UP):
            blocks |= {f"spatial {data} tests {name}": paired_tests_table(scores, name) for name in ("pMSE", "AURC")}
        blocks[f"spatial {data} labels"] = _about_labels(mine)
    return blocks


def _about_labels(records: Sequence[Record]) -> str:
    labeled = [record["labeled"] for record in records]
    right = np.mean([record["labels right"] for record in records])
    return f"{min(labeled)} to {max(labeled)} labeled spots, {right:.1%} of them with the right label."


def _by_data(records: Sequence[Record]) -> Mapping[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record["data"], []).append(record)
    return groups


def draw(records: Sequence[Record], plan: Plan, folder: Path) -> list[Path]:
    """Draw the paper's figures of the first simulated slice, and of sections."""
    return draw_slices(_by_data(records), plan, folder)
