"""A pool of representations of the same rows: each is a hypothesis, and the labels say how far to believe it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from .._runtime import POOL_INDUCING, POOL_TOLERANCE
from .._runtime.progress import Progress
from .._runtime.threads import one_blas_thread
from .._validation import check_number, seed_from, unchanged_on_failure
from ..core._checked_rows import check_kernel, check_rows, check_rows_in_memory, kernel_for, warn_outside_training
from ..core._features import describe_kernel
from ..core._moments import Moments, Spectrum, moments_for_all, moments_of_rows
from ..core._posterior import Posterior
from ..data._rows import Rows
from ..estimator import GPSSL
from ..inference import inference_method
from ..kernels._protocol import kind_of_rows, takes_missing_cells, takes_tables, takes_vectors
from ._pool_members import Form, Member, default_members, members_around
from ._pool_parts import DrawnMember, FittedPart, KernelMembers, PoolRows, TransformedMember

Array = NDArray[np.float64]

FAILURES = (LinAlgError, ValueError, TypeError, FloatingPointError)
"""What a member may raise where the rows do not suit it."""
SETTINGS_OF_FEATURES = ("residual_tolerance", "max_inducing")
"""Parameters of `GPSSL`, besides kernel, inducing points and seed, that its kernel features depend on."""


class RepresentationPool(BaseEstimator):
    """Representations of the same rows, with prior weights, for `MarginalizedClassifier` and `MarginalizedRegressor`.

    A representation is a hypothesis about what the columns mean; labels have a likelihood under it, which its heads compute. The
    marginalized models weigh all draws of all members m by it:

        p(y* | x*, y) = Σ_m Σ_s w_ms p(y* | f_ms(x*), y),      w_ms ∝ π_m / S_m · p(y | f_ms)^β

    This takes the place of a search over kernels and settings, needs no validation labels, and says which representation the labels
    believe in: `members_` of the model.

    Members with the same kernel share inducing points, moments and spectrum, and one pass over the rows collects the moments of all
    kernels. A member that fails on the rows is left out: `left_out_` says why.

    Parameters
    ----------
    members
        A list of `Member`, or of tuples in its order: at least a name and a representation. None is the default for the rows that `fit` is
        given, `RepresentationPool.for_rows(X)`.
    random_state
        Seed for members without one of their own.
    verbose
        Whether to report progress on standard error.

    Attributes
    ----------
    fitted_
        The fitted members, those with the same kernel together.
    left_out_
        Members that could not be fitted, with the reason. Empty where all could.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_wine
    >>> from gpssl import GPSSL, MarginalizedClassifier, RepresentationPool
    >>> from gpssl.kernels import NeighborDiffusion, StandardizedKernel
    >>> X, y = load_wine(return_X_y=True)
    >>> pool = RepresentationPool([
    ...     ("columns", StandardizedKernel("linear")),
    ...     ("neighbors", GPSSL(5, kernel=NeighborDiffusion()), "kernel"),
    ... ])
    >>> clf = MarginalizedClassifier(pool, random_state=0).fit(X, np.where(np.arange(len(y)) % 9 == 0, y, -1))
    >>> [member.name for member in clf.members_]
    ['columns', 'neighbors']
    >>> round(sum(member.share for member in clf.members_), 6)
    1.0
    """

    def __init__(self, members: Sequence[Any] | None = None, *, random_state: Any = None, verbose: bool | int = False) -> None:
        self.members = members
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def for_rows(
        cls, X: Any, *, n_rows: int | None = None, texts: Sequence[str] | None = None, random_state: Any = None
    ) -> RepresentationPool:
        """Return the default pool for such rows: a table, an array, texts, sequences or graphs.

        `n_rows` is their number, where it is known and X does not tell it: without it, nothing is learned. `texts` names the columns of a
        table that hold free text, where its cells shall not decide.

        For tables: the columns and their normal scores; squared exponential and Laplace kernels at several lengthscales; diffusion between
        neighbors; each kernel as it is, and as the posterior kernel of `GPSSL` with 5 dimensions at the temperature 1/N and with 15 at
        10/N. docs/results.md says what else was tried. Free text in a table is compared by its words, alone and together with the other
        columns.
        """
        return cls(default_members(X, n_rows, texts), random_state=random_state)

    @classmethod
    def around(cls, ssl: GPSSL, *, random_state: Any = None) -> RepresentationPool:
        """Return a pool of what can be made of the kernel of a fitted `GPSSL`, which is a member itself.

        Its kernel, as it is and with 15 dimensions learned; neighbors of neighbors by that kernel; and the columns, where rows have some.
        """
        return cls(members_around(ssl), random_state=random_state)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # noqa: ARG002  (y is scikit-learn's)
        """Fit all members to unlabeled rows; `y` is ignored. Weight 2 is the row twice.

        Rows may come as for `GPSSL.fit`; members other than kernels and `GPSSL` need them in memory.
        """
        with unchanged_on_failure(self):
            n_rows = None if sample_weight is None else float(np.sum(sample_weight))
            members = checked_members(default_members(X, n_rows) if self.members is None else self.members)
            seed = self.seed()
            self.left_out_: dict[str, str] = {}
            self._checked: dict[Any, Rows] = {}
            self._errors: list[Exception] = []
            shared = self._share(members, seed)
            fitted = [*self._fit_shared(shared, X, sample_weight), *self._fit_others(members, X, sample_weight, seed)]
            if not fitted:
                raise self._why_none_fits()
            del self._checked, self._errors
            order = {member.name: place for place, member in enumerate(members)}
            self.fitted_ = sorted(fitted, key=lambda part: order[part.names[0]])
            self.__dict__.pop("card_", None)  # of a file, whose rows these are not
        return self

    # Members that share a kernel

    def _share(self, members: Sequence[Member], seed: int) -> dict[Any, list[Member]]:
        """Return the kernels and `GPSSL` by what their kernel features depend on."""
        groups: dict[Any, list[Member]] = {}
        for member in members:
            if is_shareable(member.representation):
                ssl = _as_estimator(member.representation, seed)
                inducing = ssl.inducing if ssl.inducing is None or isinstance(ssl.inducing, int | str) else id(ssl.inducing)
                settings = tuple(getattr(ssl, name) for name in SETTINGS_OF_FEATURES)
                key = (describe_kernel(check_kernel(ssl.kernel)), inducing, settings, seed_from(ssl.random_state))
                groups.setdefault(key, []).append(member._replace(representation=ssl, form=_form_of(member)))
        return groups

    def _fit_shared(self, groups: dict[Any, list[Member]], X: Any, sample_weight: Any) -> list[FittedPart]:
        progress = Progress("kernels", len(groups), enabled=bool(self.verbose), unit="kernels")
        attempts = [self._start(group, X, sample_weight) for group in progress.each(groups.values())]
        started = [found for found in attempts if found is not None]
        by_rows: dict[int, list[_Started]] = {}
        for one in started:
            by_rows.setdefault(id(one.rows), []).append(one)
        fitted: list[FittedPart] = []
        for together in by_rows.values():
            rows = together[0].rows
            progress = Progress("moments", rows.n_rows, enabled=bool(self.verbose))
            for one, moments in zip(together, self._moments(together, rows, progress), strict=True):
                if moments is not None:
                    one.base.moments_ = moments
                    fitted.extend(self._attempt(one.members, partial(_infer, one)) or [])
        return fitted

    def _moments(self, together: list[_Started], rows: Rows, progress: Progress) -> list[Moments | None]:
        """Return the moments for each kernel, None where it fails on these rows."""
        try:
            return list(moments_for_all([one.base.features_ for one in together], rows, progress=progress))
        except FAILURES:  # of which kernel, one pass for each tells
            return [self._attempt(one.members, partial(moments_of_rows, one.base.features_, rows)) for one in together]

    def _start(self, members: list[Member], X: Any, sample_weight: Any) -> _Started | None:
        """Resolve the kernel and choose inducing points."""
        base = clone(members[0].representation)

        def start() -> _Started:
            base._check_parameters()
            kernel = kernel_for(base.kernel, X, sample_weight)
            rows = self._rows_for(kernel, X, sample_weight)
            base._seed = seed_from(base.random_state)
            base._build_features(rows, kernel)
            return _Started(members, base, rows)

        return self._attempt(members, start)

    def _rows_for(self, kernel: Kernel, X: Any, sample_weight: Any) -> Rows:
        """Return the rows for kernels of this kind, which are checked once."""
        kind = kind_of_rows(kernel)
        if kind not in self._checked:
            self._checked[kind] = check_rows(self, X, kernel, reset=not self._checked, min_rows=2, sample_weight=sample_weight)
        return self._checked[kind]

    def _attempt(self, members: Sequence[Member], step: Callable[[], Any]) -> Any:
        """Return what the step gives; where members fail on these rows, None, and remember why."""
        try:
            return step()
        except FAILURES as error:
            self._errors.append(error)
            self.left_out_.update({member.name: str(error) for member in members})
            return None

    def _why_none_fits(self) -> Exception:
        """Return the first error as it is where the rows themselves are wrong; else one that says what the pool tried."""
        name, reason = next(iter(self.left_out_.items()))
        explained = ValueError(f"No member of the pool fits these rows. The first, {name!r}: {reason}")
        return explained if self._checked else self._errors[0]

    # All other members

    def _fit_others(self, members: Sequence[Member], X: Any, sample_weight: Any, seed: int) -> list[FittedPart]:
        fitted = []
        for member in members:
            if not is_shareable(member.representation):
                estimator = self._attempt([member], partial(_fit_other, member.representation, X, sample_weight, seed))
                if estimator is not None:
                    fitted.append(_fitted_other(member, estimator))
                    if not hasattr(self, "n_features_in_") and hasattr(estimator, "n_features_in_"):
                        self.n_features_in_ = estimator.n_features_in_
        return fitted

    # Use

    def seed(self) -> int:
        """Return the random state where it is a number, so that a member is the estimator with this seed; else one drawn from it."""
        return int(self.random_state) if isinstance(self.random_state, Integral) else seed_from(self.random_state)

    def draw(self, n_draws: int | None, seed: int) -> list[FittedPart]:
        """Return for each part of `fitted_` functions that give the features of rows; of members with draws so many, or the mean."""
        check_is_fitted(self)
        return [part.draw(n_draws, seed) for part in self.fitted_]

    def check(self, X: Any) -> PoolRows:
        """Check new rows once, for all members."""
        check_is_fitted(self)
        warn_outside_training(self, X)
        rows = PoolRows(X, {})
        for kernel in (part.kernel for part in self.fitted_):
            if kernel is not None and kind_of_rows(kernel) not in rows.prepared:
                rows.prepared[kind_of_rows(kernel)] = check_rows_in_memory(self, X, kernel, reset=False, sparse=True)
        return rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        known = vars(self).get("_known_tags")
        if known is not None and known[0] is self.members:  # each check of rows asks, and each member is asked then
            tags.input_tags = replace(known[1])
            return tags
        kernels = [_kernel_in(member.representation) for member in checked_members(self.members)] if self.members is not None else []
        # The default pool has kernels for tables, which take whatever a table may hold, and others for sparse rows.
        tags.input_tags.allow_nan = not kernels or all(kernel is not None and takes_missing_cells(kernel) for kernel in kernels)
        tags.input_tags.string = tags.input_tags.categorical = all(kernel is not None and takes_tables(kernel) for kernel in kernels)
        tags.input_tags.sparse = all(kernel is not None and takes_vectors(kernel) and not takes_missing_cells(kernel) for kernel in kernels)
        tags.input_tags.two_d_array = all(kernel is None or takes_vectors(kernel) or takes_missing_cells(kernel) for kernel in kernels)
        if hasattr(self, "fitted_"):
            self._known_tags = self.members, replace(tags.input_tags)
        return tags


class _Started(NamedTuple):
    """Members whose kernel is resolved, before the pass over the rows."""

    members: list[Member]
    base: GPSSL
    rows: Rows


def _infer(started: _Started) -> list[FittedPart]:
    """Infer what each member learns from the moments of its kernel."""
    base = started.base
    basis, spread = _directions(base._find_spectrum())
    kernels: list[tuple[str, float, Array]] = []
    parts: list[FittedPart] = []
    for member in started.members:
        posterior = _posterior_of(member.representation, base)
        if member.form == "kernel":
            kernels.append((member.name, member.weight, np.sqrt(posterior.kernel_weights(basis))))
        else:
            parts.append(DrawnMember([member.name], np.array([float(member.weight)]), posterior))
    if kernels:
        names, prior, roots = zip(*kernels, strict=True)
        parts.append(KernelMembers(list(names), np.array(prior, dtype=np.float64), base.features_, basis, np.array(roots), spread))
    return parts


def _directions(spectrum: Spectrum) -> tuple[Array, Array]:
    """Return all directions and the variance of the rows along each, zero where the kernel sees none. [M, M], [M]"""
    spread = np.zeros(spectrum.basis.shape[1])
    spread[: spectrum.rank] = spectrum.eigenvalues
    return spectrum.basis, spread


def _posterior_of(ssl: _Unlearned | GPSSL, base: GPSSL) -> Posterior:
    """Return the posterior of a member with the moments of its group; that of a kernel is the prior."""
    spectrum = base._find_spectrum()
    if isinstance(ssl, _Unlearned):
        return Posterior.of_prior(base.features_, int(ssl.n_components))
    n_components = min(int(ssl.n_components), spectrum.rank, int(base.moments_.weight))
    with one_blas_thread():
        objective = ssl._objective(ssl._temperature_for(base.moments_.weight))
        weights = inference_method(ssl.inference).infer(spectrum, objective, n_components, base._seed)[0]
    return Posterior(base.features_, spectrum.basis[:, : weights.mean.shape[1]], weights)


class _Unlearned(GPSSL):
    """A kernel without learning, as a member: features as those of `GPSSL`, and the prior in the place of the posterior."""


def _as_estimator(representation: Any, seed: int) -> GPSSL:
    if isinstance(representation, Kernel):
        return _Unlearned(kernel=representation, residual_tolerance=POOL_TOLERANCE, max_inducing=POOL_INDUCING, random_state=seed)
    return _seeded(clone(representation), seed)


def _seeded(estimator: Any, seed: int) -> Any:
    """Give an estimator this seed, if it takes one and has none."""
    if estimator.get_params(deep=False).get("random_state", seed) is None:
        estimator.set_params(random_state=seed)
    return estimator


def is_shareable(representation: Any) -> bool:
    """Return whether the pool itself fits the representation, with others of the same kernel."""
    return isinstance(representation, Kernel) or type(representation) is GPSSL


def _fit_other(representation: Any, X: Any, sample_weight: Any, seed: int) -> Any:
    """Return a fitted clone, or the representation itself where it is frozen."""
    if isinstance(representation, FrozenEstimator):
        return representation
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    return _seeded(clone(representation), seed).fit(X, **weights)


def _fitted_other(member: Member, estimator: Any) -> FittedPart:
    prior = np.array([float(member.weight)])
    inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    form = _form_of(member)
    posterior = getattr(inner, "posterior_", None)
    if form == "draws":
        return DrawnMember([member.name], prior, posterior if isinstance(posterior, Posterior) else inner)
    if form == "kernel" and isinstance(posterior, Posterior):
        basis, spread = (posterior.full_basis(), None) if not isinstance(inner, GPSSL) else _directions(inner._find_spectrum())
        roots = np.sqrt(posterior.kernel_weights(basis))[None]
        return KernelMembers([member.name], prior, posterior.features, basis, roots, np.ones(basis.shape[1]) if spread is None else spread)
    return TransformedMember([member.name], prior, inner)


def _form_of(member: Member) -> Form | None:
    """Return the form that a member has, chosen or by default."""
    if member.form is not None:
        return member.form
    if isinstance(member.representation, Kernel):
        return "kernel"
    return "draws" if hasattr(member.representation, "draw_functions") else None


def _kernel_in(representation: Any) -> Kernel | None:
    kernel = representation if isinstance(representation, Kernel) else getattr(representation, "kernel", None)
    return check_kernel(kernel) if isinstance(representation, Kernel | GPSSL) else None


# Checks


def checked_members(members: Any) -> list[Member]:
    """Return the members. Raise ValueError or TypeError, in one sentence, where a pool cannot consist of them."""
    if isinstance(members, str) or not isinstance(members, Sequence) or len(members) == 0:
        raise ValueError(f"A pool needs a list of at least one member, (name, representation), got {members!r:.60}.")
    checked = [_checked_member(given) for given in members]
    names = [member.name for member in checked]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"Two members of the pool are called {twice!r}: give each its own name.")
    if not sum(member.weight for member in checked) > 0:
        raise ValueError("The prior weights of all members are zero: give at least one member a positive weight.")
    return [member for member in checked if member.weight > 0]


def _checked_member(given: Any) -> Member:
    if not isinstance(given, tuple | list) or not 2 <= len(given) <= 4 or not isinstance(given[0], str):
        raise ValueError(f"A member of a pool is (name, representation), with form and weight if need be, got {given!r:.60}.")
    member = Member(*given)
    check_number(f"The weight of the member {member.name!r}", member.weight, Real, at_least=0)
    if member.form not in (None, "kernel", "draws"):
        raise ValueError(f'The form of the member {member.name!r} must be "kernel", "draws" or None, got {member.form!r}.')
    representation, kind = member.representation, type(member.representation).__name__
    is_kernel = isinstance(representation, Kernel)
    if not is_kernel and not hasattr(representation, "draw_functions") and not hasattr(representation, "transform"):
        raise TypeError(f"The member {member.name!r} is {kind}, which is no kernel and has neither draw_functions nor transform.")
    if member.form == "draws" and not is_kernel and not hasattr(representation, "draw_functions"):
        raise TypeError(f"The member {member.name!r} has no draws: {kind} has no draw_functions. Leave the form out, to use its transform.")
    has_posterior = (
        is_kernel or isinstance(representation, GPSSL) or hasattr(representation, "posterior_") or hasattr(representation, "kernel")
    )
    if member.form == "kernel" and not has_posterior:
        raise TypeError(
            f"The member {member.name!r} has no posterior kernel: {kind} has no kernel. Leave the form out, to use its transform."
        )
    return member
