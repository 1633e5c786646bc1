"""The methods that are compared, each with the settings that it may choose from: same rows, same heads, same rules for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, Literal, NamedTuple

from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import Kernel
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from .._runtime import N_DRAWS
from .._runtime.progress import Progress
from ..baselines._joint_embedding import SCARF, VICReg
from ..baselines._kernel_methods import GPPrior, KernelPCA
from ..baselines._simvae import SimVAE
from ..baselines._supervised import SupervisedGPClassifier, SupervisedGPRegressor
from ..data._frames import encode_table
from ..data._free_text import text_columns
from ..downstream._pool import RepresentationPool
from ..downstream._predictors import MarginalizedClassifier, MarginalizedRegressor
from ..estimator import GPSSL
from ..kernels._protocol import DataDependentKernel
from ..kernels.vectors import NeighborRBF
from ..workflows._choices import FULL, MAX_INDUCING, POOL
from ._learners import (
    N_TREES,
    ForestClassifier,
    ForestRegressor,
    PenalizedLogisticRegression,
    SelfTraining,
    SpreadingClassifier,
    TopicColumns,
    as_numbers,
)

N_COMPONENTS = 5
"""The paper's J."""

MANY_COLUMNS = 100
"""Beyond this, a posterior over the weights of all columns takes long, and cross-validation chooses the penalty."""
MOST_LEVELS = 50
"""How many levels of a category, the most frequent ones, get a column of their own."""

WARM = 1.0
"""The temperature from which on posterior means are zero, as a rule: only draws are of use there."""
COLUMNS, MEAN, PRIOR, SUPERVISED = "columns", "GPSSL-mean", "GP prior", "supervised GP"
FOREST, SPREADING, SELF_TRAINING = "random forest", "label spreading", "self-training"
NEIGHBORS = (10, 5, 20)
"""Of label spreading."""


def vicreg_settings(weights: Sequence[float], noises: Sequence[float]) -> list[dict[str, Any]]:
    """Return the grid of the paper's appendix A: c_I = c_V, the noise of the positive pairs, and the later learning rate.

    The learning rate is that after the first 20 iterations.
    """
    rates = (0.00001, 0.00005, 0.0001, 0.0005)
    return [
        {"invariance_weight": weight, "variance_weight": weight, "noise": noise, "learning_rate": rate}
        for weight, noise, rate in product(weights, noises, rates)
    ]


@dataclass(frozen=True)
class Grids:
    """The settings that methods choose from. Kernels and VICReg: the paper's appendix A; the others have about as many."""

    neighborhoods: Sequence[float] = (5, 10, 20)
    temperatures: Sequence[float | Literal["auto"]] = ("auto", 0.1, 1.0)
    vicreg: Sequence[dict[str, Any]] = field(default_factory=lambda: vicreg_settings((25.0, 50.0), (0.1, 0.25, 0.5)))
    wide_vicreg: Sequence[dict[str, Any]] = tuple(
        {"noise": noise, "learning_rate": rate, "max_iterations": 1000} for noise in (0.1, 0.25) for rate in (5e-4, 5e-3)
    )
    scarf: Sequence[dict[str, Any]] = tuple({"corruption": c, "learning_rate": rate} for c in (0.3, 0.6) for rate in (1e-3, 1e-2))
    simvae: Sequence[dict[str, Any]] = tuple({"noise": r, "learning_rate": rate} for r in (0.1, 0.25, 0.5) for rate in (1e-3, 1e-2))
    n_draws: int = N_DRAWS
    per_column: bool = True
    """Whether kernels measure distances in units of each column's standard deviation."""

    @property
    def kernels(self) -> list[tuple[dict[str, Any], Kernel]]:
        """The settings and the kernel of each neighborhood."""
        return [({"neighborhood": k}, NeighborRBF(k, per_column=self.per_column)) for k in self.neighborhoods]


class Candidate(NamedTuple):
    """A setting of a method: a model with `fit` and predictions, its representation fitted and its heads not yet trained."""

    settings: dict[str, Any]
    """The settings by name, as they are told and recorded."""
    estimator: Any


@dataclass(frozen=True)
class Contest:
    """What all methods are given alike: unlabeled rows, kernels for them, settings to choose from, and the head."""

    rows: Any
    """The rows that representations are learned from: an array, a data frame, or whatever the kernels take."""
    kernels: Sequence[tuple[dict[str, Any], Kernel]]
    """Kernels to choose from, each with the settings that it stands for."""
    grids: Grids = field(default_factory=Grids)
    n_components: int = N_COMPONENTS
    residual_tolerance: float = 1e-4
    max_inducing: int = MAX_INDUCING
    regression: bool = False
    head: Any = None
    """None is the default head of the marginalized classifier or regressor."""
    encoder: Any = None
    """Steps that make numbers of the rows, for methods without a kernel: `numbers_from(rows)`. None where they are such numbers already."""
    seed: int = 0

    @cached_property
    def posteriors(self) -> list[tuple[dict[str, Any], GPSSL]]:
        """GPSSL with each kernel and at each temperature, after one pass over the rows for each kernel.

        They are kept, so that GPSSL-mean and GPSSL-full are of the same functions.
        """
        found = []
        for settings, kernel in self.kernels:
            base = self.of_functions(GPSSL, kernel).partial_fit(self.rows)
            found += [({**settings, "temperature": value}, base.refit(temperature=value)) for value in self.grids.temperatures]
        return found

    def of_functions(self, method: Any, kernel: Kernel) -> Any:
        """Return an estimator whose representation is made of random functions with this kernel, not yet fitted."""
        tolerance, max_inducing = self.residual_tolerance, self.max_inducing
        return method(self.n_components, kernel=kernel, residual_tolerance=tolerance, max_inducing=max_inducing, random_state=self.seed)

    @cached_property
    def fitted_encoder(self) -> Any:
        """The encoder after a look at the rows; None where there is none."""
        return None if self.encoder is None else self.encoder.fit(self.rows)

    @cached_property
    def numbers(self) -> Any:
        """The rows as numbers. [n, D]"""
        return self.rows if self.fitted_encoder is None else self.fitted_encoder.transform(self.rows)

    def of_numbers(self, representation: Any) -> Any:
        """Return a representation of rows from one of their numbers."""
        return representation if self.fitted_encoder is None else make_pipeline(self.fitted_encoder, representation)

    def candidate(self, settings: dict[str, Any], representation: Any, *, n_draws: int | None = None, head: Any = None) -> Candidate:
        """Return heads still to be trained, on a representation that is fitted.

        Predictions are averaged over `n_draws` functions; None uses the mean, or the only representation that there is.
        """
        kind = MarginalizedRegressor if self.regression else MarginalizedClassifier
        head = self.head if head is None else head
        model = kind(FrozenEstimator(representation), head, n_draws=n_draws, weighting="equal", random_state=self.seed)
        return Candidate(dict(settings), model)


def _columns(contest: Contest) -> list[Candidate]:
    """Many columns need a penalty that suits them, unless the contest prescribes a head."""
    many = contest.head is None and not contest.regression and contest.numbers.shape[1] > MANY_COLUMNS
    return [contest.candidate({}, _as_representation(contest), head=PenalizedLogisticRegression() if many else None)]


def _as_representation(contest: Contest) -> Any:
    """Return the numbers of rows as a fitted representation."""
    return FunctionTransformer().fit(contest.rows) if contest.fitted_encoder is None else contest.fitted_encoder


def _pca(contest: Contest) -> list[Candidate]:
    X = contest.numbers
    components = PCA(min(contest.n_components, X.shape[1]), random_state=contest.seed).fit(X)
    return [contest.candidate({}, contest.of_numbers(components))]


def _kernel_pca(contest: Contest) -> list[Candidate]:
    return [
        contest.candidate(settings, KernelPCA(contest.n_components, kernel=kernel, random_state=contest.seed).fit(contest.rows))
        for settings, kernel in contest.kernels
    ]


def _networks(contest: Contest, network: Any, grid: Sequence[dict[str, Any]]) -> list[Candidate]:
    """Return one network for each of these settings."""
    fitted = network.fit_grid(contest.numbers, grid)
    return [contest.candidate(settings, contest.of_numbers(model)) for settings, model in zip(grid, fitted, strict=True)]


def _vicreg(contest: Contest) -> list[Candidate]:
    return _networks(contest, VICReg(contest.n_components, random_state=contest.seed), contest.grids.vicreg)


def _wide_vicreg(contest: Contest) -> list[Candidate]:
    """Return VICReg with hidden layers as wide as those of the other networks here: the paper's of 10 and 5 units are narrow."""
    network = VICReg(contest.n_components, hidden_units=64, expander_units=64, random_state=contest.seed)
    return _networks(contest, network, contest.grids.wide_vicreg)


def _scarf(contest: Contest) -> list[Candidate]:
    return _networks(contest, SCARF(contest.n_components, random_state=contest.seed), contest.grids.scarf)


def _simvae(contest: Contest) -> list[Candidate]:
    """Return SimVAE with its posterior and without: the validation rows choose."""
    grid = contest.grids.simvae
    fitted = SimVAE(contest.n_components, random_state=contest.seed).fit_grid(contest.numbers, grid)
    return [
        contest.candidate({**settings, "draws": n_draws}, contest.of_numbers(model), n_draws=n_draws)
        for settings, model in zip(grid, fitted, strict=True)
        for n_draws in (None, contest.grids.n_draws)
    ]


def _gpssl_mean(contest: Contest) -> list[Candidate]:
    """Return one head on the posterior mean of each candidate, without those so warm that their mean is zero, while there are others."""
    with_mean = [each for each in contest.posteriors if each[0]["temperature"] == "auto" or each[0]["temperature"] < WARM]
    return [contest.candidate(settings, posterior) for settings, posterior in with_mean or contest.posteriors]


def _gpssl_full(contest: Contest) -> list[Candidate]:
    return [contest.candidate(settings, posterior, n_draws=contest.grids.n_draws) for settings, posterior in contest.posteriors]


def _gp_prior(contest: Contest) -> list[Candidate]:
    priors = [(settings, contest.of_functions(GPPrior, kernel).fit(contest.rows)) for settings, kernel in contest.kernels]
    return [contest.candidate(settings, prior, n_draws=contest.grids.n_draws) for settings, prior in priors]


def _supervised(contest: Contest) -> list[Candidate]:
    """Return a Gaussian process on the labels; a kernel that depends on rows learns its lengthscale from the unlabeled ones."""
    make = SupervisedGPRegressor if contest.regression else SupervisedGPClassifier
    found = []
    for settings, kernel in contest.kernels:
        resolved = kernel.resolve(contest.rows, seed=0) if isinstance(kernel, DataDependentKernel) else kernel
        found.append(Candidate(settings, make(resolved, random_state=contest.seed)))
    return found


METHODS: dict[str, Callable[[Contest], list[Candidate]]] = {
    COLUMNS: _columns,
    "PCA": _pca,
    "VICReg": _vicreg,
    "VICReg-wide": _wide_vicreg,
    "SCARF": _scarf,
    "SimVAE": _simvae,
    "kernel PCA": _kernel_pca,
    MEAN: _gpssl_mean,
    FULL: _gpssl_full,
    PRIOR: _gp_prior,
    SUPERVISED: _supervised,
}
"""All methods by name. Each returns its candidates, of which labels choose; the first is the default.

The supervised GP, with the same kernel, is what heads on many draws from the prior approach.
"""


def _pool(contest: Contest) -> list[Candidate]:
    """Return the default: the labels weigh all representations of the pool, so that there are no settings to choose from."""
    pool = FrozenEstimator(RepresentationPool(random_state=contest.seed).fit(contest.rows))
    kind = MarginalizedRegressor if contest.regression else MarginalizedClassifier
    return [Candidate({}, kind(pool, random_state=contest.seed))]


def _forest(contest: Contest) -> list[Candidate]:
    kind = ForestRegressor(N_TREES, oob_score=True) if contest.regression else ForestClassifier(N_TREES)
    return [contest.candidate({}, _as_representation(contest), head=kind.set_params(random_state=contest.seed))]


def _spreading(contest: Contest) -> list[Candidate]:
    encoder, numbers = contest.fitted_encoder, as_numbers(None, contest.numbers)
    return [Candidate({"neighbors": count}, SpreadingClassifier(_frozen(encoder), numbers, count)) for count in NEIGHBORS]


def _self_training(contest: Contest) -> list[Candidate]:
    return [Candidate({}, SelfTraining(_frozen(contest.fitted_encoder), as_numbers(None, contest.numbers)))]


def _frozen(encoder: Any) -> Any:
    """Keep what was fitted where the estimator that has it is cloned."""
    return None if encoder is None else FrozenEstimator(encoder)


RIVALS: dict[str, Callable[[Contest], list[Candidate]]] = {
    POOL: _pool,
    FULL: _gpssl_full,
    MEAN: _gpssl_mean,
    COLUMNS: _columns,
    FOREST: _forest,
    "kernel PCA": _kernel_pca,
    SPREADING: _spreading,
    SELF_TRAINING: _self_training,
    PRIOR: _gp_prior,
    "VICReg": _vicreg,
}
"""The methods that `compare` and the report run on a person's table, in this order."""
OF_CLASSES = (SPREADING, SELF_TRAINING)
"""Methods that cannot predict numbers."""
OURS = (POOL, FULL, MEAN, PRIOR)
"""Methods of this library."""
SIMPLER = (COLUMNS, FOREST, SPREADING, SELF_TRAINING, "kernel PCA")
"""Methods that scikit-learn has and that are simpler than the pool, the simplest first."""


def run_rivals(
    contest: Contest, run: Callable[[str, list[Candidate]], Any], *, without: Sequence[str] = (), needed: Sequence[str] = ()
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what `run` makes of each method's name and candidates, and the methods that cannot be run, with the reason.

    Without those that are needed there is no comparison: their errors are raised.
    """
    without = [*without, *(OF_CLASSES if contest.regression else ())]
    methods = {name: build for name, build in RIVALS.items() if name not in without}
    found: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for name, build in Progress("compared methods", len(methods), unit="methods").each(methods.items()):
        try:
            found[name] = run(name, build(contest))
        except (ImportError, ValueError) as error:
            if name in needed:
                raise
            left_out[name] = str(error)
    return found, left_out


def numbers_from(rows: Any) -> Any:
    """Return steps that make columns of comparable size: a column for each category, means in the place of gaps.

    Columns with gaps get a further column that marks them; free text becomes topics, by latent semantic analysis of its words.
    """
    scaled = make_pipeline(SimpleImputer(keep_empty_features=True, add_indicator=True), StandardScaler())
    if not hasattr(rows, "columns"):
        return scaled
    texts = text_columns(rows)
    others = [name for name in rows.columns if name not in texts]
    categories = [name for name in others if rows[name].dtype == object or rows[name].dtype.name == "category"]
    dates = [name for name in others if rows[name].dtype.kind == "M"]
    numbers = [name for name in others if name not in {*categories, *dates}]
    one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=MOST_LEVELS, sparse_output=False)
    return make_column_transformer(
        (scaled, numbers),
        (make_pipeline(FunctionTransformer(encode_table), scaled), dates),
        (make_pipeline(SimpleImputer(missing_values=None, strategy="constant", fill_value="(missing)"), one_hot), categories),
        *((TopicColumns(), [name]) for name in texts),
    )
