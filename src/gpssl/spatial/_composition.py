"""Find the probability of each type at every spot, with its uncertainty, from a few labeled spots."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from .._runtime import CONFIDENCE, N_DRAWS, percent
from .._runtime.progress import announce
from .._validation import check_number
from ..data._labels import UNLABELED_WORDS
from ..downstream._pool import RepresentationPool
from ..downstream._predictors import MarginalizedClassifier
from ..estimator import GPSSL
from ..evaluation._held_out import HeldOutClasses, hold_out_classes
from ..evaluation._selective import risk_controlled_threshold
from ..evaluation._shift import Shift, find_shift
from ._embedding import representation
from ._fields import check_anndata, column, coordinates, make_writable, need, quoted, slice_codes

N_FOLDS = 5


def composition(
    adata: Any,
    label_key: str,
    *,
    key: str = "gpssl",
    head: Any = None,
    n_draws: int | None = N_DRAWS,
    unlabeled: str | None = None,
    max_risk: float | None = None,
    confidence: float = CONFIDENCE,
    random_state: int = 0,
    verbose: bool = False,
) -> None:
    """Find the probability of each type at every spot from the labeled spots, averaged over representations.

    A head is trained on each of `n_draws` functions drawn from the posterior of what `embed` learned, with equal weights ("GPSSL-full"), as
    in the paper. The spread of their probabilities says how uncertain the type is. If the labeled spots are pure, the probabilities at the
    others can be read as their composition.

    With `n_draws=None` the labels weigh a pool of representations around it (`RepresentationPool.around`). That suits labels that are like
    the other spots, such as a pathologist's. Pure spots are not: on simulated slices the pool believes what tells pure spots apart, and
    is farther from the composition of mixed ones.

    Parameters
    ----------
    adata
        After `embed`.
    label_key
        The column of `obs` with the types, missing (NaN, None, −1 or a word such as "NA") at unlabeled spots: what `pure_spots` writes,
        or the annotation of a pathologist.
    key
        The `key_added` of `embed`.
    head
        A classifier, by default one of `gpssl.downstream` that suits the representation; the paper's is
        `gpssl.downstream.PerceptronClassifier()`.
    n_draws
        The number of representations drawn from the posterior; None for the pool.
    unlabeled
        A type that means "not known", such as "undetermined": its spots count as unlabeled.
    max_risk
        The share of wrong labels allowed among those that are kept; the model abstains from the others. The threshold is found on labeled
        spots that were held out block by block. It holds where the labeled spots are a random sample of those that it is used on, and not
        elsewhere, such as at mixed spots if only pure ones were labeled: where the other spots are much less certain than labels that
        were held out, a warning says so, and no label is kept.
    confidence
        The probability with which the threshold holds `max_risk`, see `gpssl.evaluation.risk_controlled_threshold`.
    random_state
        The seed of draws and heads.
    verbose
        Whether to report progress on standard error.

    Returns
    -------
    None
        The result is written into these fields, where "gpssl" stands for `key`:

        - `obsm["gpssl_proba"]`, `obsm["gpssl_proba_std"]`: data frames with a column for each type. [n, types]
        - `obs["gpssl_label"]`: the likeliest type.
        - `obs["gpssl_certainty"]`: its probability.
        - `obs["gpssl_kept"]`, with `max_risk` only: whether the label is certain enough to be kept.
        - `uns["gpssl_composition"]`: parameters, the number of labeled spots, the share of each representation in the pool and, with
          `max_risk`, the threshold and, where the labeled spots are not like the others, the "shift" between them.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from gpssl.spatial import composition, embed
    >>> place = np.argwhere(np.ones((12, 12)))
    >>> adata = AnnData(np.random.default_rng(0).poisson(1.0 + place[:, :1] * np.arange(50) / 50, (144, 50)).astype(float))
    >>> adata.obsm["spatial"], adata.obs["known"] = place, np.where(place[:, 0] < 2, "edge", "")
    >>> adata.obs.loc[place[:, 0] > 9, "known"] = "center"
    >>> embed(adata)
    >>> composition(adata, "known")
    >>> adata.obsm["gpssl_proba"].shape[0], adata.obs["gpssl_label"].isna().any()
    (144, np.False_)
    """
    if n_draws is not None:
        check_number("n_draws", n_draws, Integral, at_least=1, otherwise="or None for a pool")
    types = _types_of(adata, label_key, unlabeled)
    known = np.flatnonzero([name is not None for name in types])
    fitted = representation(adata, key=key)
    model = _model(fitted.ssl, fitted.rows, head, n_draws, random_state)
    announce(f"{len(known)} labeled spots", enabled=verbose)
    classifier = clone(model).fit(fitted.rows, types)
    found = classifier.predict_distribution(fitted.rows)
    facts: dict[str, Any] = {"label_key": label_key, "key": key, "n_labeled": classifier.n_labeled_}
    facts |= {"shares": {member.name: member.share for member in classifier.members_}} if n_draws is None else {"n_draws": n_draws}
    if max_risk is not None:
        announce("calibrating", enabled=verbose)
        groups = _groups(adata, adata.uns[key]["params"])[known]
        held_out = hold_out_classes(
            model, fitted.rows[known], types[known].astype(str), groups=groups, n_folds=N_FOLDS, random_state=None, task="calibrating"
        )
        shift = find_shift(held_out, np.delete(found.certainty, known))
        threshold = _threshold(held_out, max_risk, confidence) if shift is None else np.inf
        facts |= {"max_risk": max_risk, "confidence": confidence, "threshold": threshold}
        if shift is not None:
            facts["shift"] = asdict(shift)
            warnings.warn(_not_alike(shift), UserWarning, stacklevel=2)
    pandas, index = need("pandas"), adata.obs_names
    adata.obsm[f"{key}_proba"] = pandas.DataFrame(found.proba, index=index, columns=found.classes)
    adata.obsm[f"{key}_proba_std"] = pandas.DataFrame(found.proba_std, index=index, columns=found.classes)
    adata.obs[f"{key}_label"] = pandas.Categorical(found.predicted, categories=_categories(adata.obs[label_key], found.classes))
    adata.obs[f"{key}_certainty"] = found.certainty
    adata.obs.drop(columns=[f"{key}_kept"], errors="ignore", inplace=True)
    if max_risk is not None:
        adata.obs[f"{key}_kept"] = found.certainty > facts["threshold"]
    adata.uns[f"{key}_composition"] = facts


def _not_alike(shift: Shift) -> str:
    """Return why no label is kept, where the labeled spots are not like the others."""
    return (
        f"The labeled spots are not like the others: labels that are held out are predicted with a mean probability of "
        f"{percent(shift.held_out, 0)}, the other spots with {percent(shift.others, 0)}. No error rate can be promised there, and no label "
        "is kept. Read the probabilities as a composition, or label some of the other spots, chosen at random."
    )


def _model(ssl: GPSSL, rows: Any, head: Any, n_draws: int | None, random_state: int) -> MarginalizedClassifier:
    """Return the classifier on a pool around the representation, or on draws of it; its heads are still to be trained."""
    if n_draws is not None:
        return MarginalizedClassifier(FrozenEstimator(ssl), head, n_draws=n_draws, weighting="equal", random_state=random_state)
    pool = RepresentationPool.around(ssl, random_state=random_state).fit(rows)
    return MarginalizedClassifier(FrozenEstimator(pool), head, random_state=random_state)


def _types_of(adata: Any, label_key: str, unlabeled: str | None) -> NDArray[Any]:
    """Return the types as text, None where there is none. [n]"""
    make_writable(adata)
    values = column(adata.obs, label_key, "label_key", "obs")
    if values.dtype.kind == "f" and (values.dropna() % 1 != 0).any():
        raise ValueError(f"obs[{label_key!r}] has fractions, such as {values.dropna().iloc[0]:g}: these are measurements, not types.")
    labels = np.array([_type_name(value) for value in values.astype(object)], dtype=object)
    if unlabeled is not None and unlabeled not in labels:
        raise ValueError(f"unlabeled={unlabeled!r} does not occur in obs[{label_key!r}], which has {quoted(values.dropna().unique())}.")
    missing = values.isna().to_numpy() | np.isin(labels, [*UNLABELED_WORDS, *([] if unlabeled is None else [unlabeled])])
    labels[missing] = None
    if missing.all():
        raise ValueError(
            f"No spot has a label in obs[{label_key!r}]: all are missing. Label some of each type, or let "
            "gpssl.spatial.pure_spots(adata, signatures) do it."
        )
    return labels


def _type_name(value: Any) -> str:
    """Return the type as text; numbers that pandas made floats, because some were missing, become whole numbers again."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _groups(adata: Any, params: Mapping[str, Any]) -> NDArray[np.intp]:
    """Return which spots are held out together: those of a block, or each spot alone if the places were left out. [n]"""
    if "spatial_key" not in params:
        return np.arange(adata.n_obs)
    return spatial_blocks(adata, spatial_key=params["spatial_key"], batch_key=params.get("batch_key"))


def _threshold(held_out: HeldOutClasses, max_risk: float, confidence: float) -> float:
    """Return the certainty above which labels are right often enough, from all held-out spots that a model could judge."""
    # `certain_threshold` counts one row of each group, because its promise is for rows of other groups, such as new patients. Here the
    # promise is for other spots of the same slices, of which the labeled ones are taken as a random sample: blocks are held out
    # together only so that no spot is judged by its neighbors, and one spot of each of the few blocks could promise nothing.
    judged = slice(None) if held_out.is_judged is None else held_out.is_judged
    return risk_controlled_threshold(held_out.y[judged], held_out.proba[judged], max_risk, confidence, labels=held_out.classes)


def _categories(values: Any, classes: NDArray[Any]) -> list[str]:
    """Return all types of the column, sorted, with those that no spot has, so that a type has the same color in all pictures."""
    known = {_type_name(category) for category in values.astype("category").cat.categories}
    return sorted({*classes, *known} - set(UNLABELED_WORDS))


def spatial_blocks(adata: Any, n_blocks: int = 25, *, spatial_key: str = "spatial", batch_key: str | None = None) -> NDArray[np.intp]:
    """Return the number of the square block that each spot lies in, counted from 0: about `n_blocks` cover each slice. [n]

    Blocks are groups for scikit-learn's splitters, such as `GroupKFold` and `StratifiedGroupKFold`. Nearby spots leak label information:
    if spots were held out at random, most would have training spots beside them, and accuracies would be too high for new tissue.
    """
    check_anndata(adata)
    check_number("n_blocks", n_blocks, Integral, at_least=1)
    places, (codes, n_slices) = coordinates(adata, spatial_key)[:, :2], slice_codes(adata, batch_key)
    tiles = np.empty((len(places), 3), dtype=np.intp)
    tiles[:, 0] = codes
    for code in range(n_slices):
        tiles[codes == code, 1:] = _tiles(places[codes == code], n_blocks)
    return np.unique(tiles, axis=0, return_inverse=True)[1].reshape(-1)


def _tiles(places: NDArray[np.float64], n_blocks: int) -> NDArray[np.intp]:
    """Return column and row of the square tile of each place. [n, 2]"""
    low, extent = places.min(axis=0), np.ptp(places, axis=0)
    side = np.sqrt(extent.prod() / n_blocks) or extent.max() / n_blocks or 1.0
    counts = np.maximum(1, np.rint(extent / side))
    longer = counts.argmax()
    counts[longer] = max(1, min(counts[longer], round(n_blocks / counts[1 - longer])))  # a thin slice is cut across only
    return np.minimum((places - low) / np.where(extent > 0, extent, 1.0) * counts, counts - 1).astype(np.intp)
