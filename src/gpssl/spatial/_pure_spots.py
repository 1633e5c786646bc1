"""Label spots that hold nearly one type of cell only: at the corners of the cloud of spots, with the markers of their type."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Mapping
from contextlib import redirect_stdout
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax

from .._runtime.threads import one_blas_thread
from .._validation import check_number
from ._expression import expression_scores, fix_signs, log_expression
from ._fields import make_writable, need, quoted, standardized

Array = NDArray[np.float64]

LABELED_SHARE = 0.2
"""The largest share of spots that get a label, equal for all types, unless `n_spots` says otherwise."""
FEWEST_SPOTS = 5
MAX_FITTED = 5_000
"""Archetypes are fitted to at most this many points, a sample: the time grows with their number, and the corners hardly move."""

N_STARTS = 3
MAX_ITERATIONS = 60
TOLERANCE = 1e-5
"""Iterations stop when the unexplained variance changes by less than this share of the variance."""


def pure_spots(
    adata: Any,
    signatures: Any,
    *,
    n_archetypes: int | None = None,
    n_spots: int | None = None,
    use_rep: str | None = None,
    layer: str | None = None,
    mask_var: str | ArrayLike | None = None,
    batch_key: str | None = None,
    key_added: str = "pure",
    random_state: int = 0,
) -> None:
    """Label the spots that are nearly pure, from the marker genes of each type; leave the rest unlabeled.

    The three steps are those of Starfysh (He et al., 2024). Archetypal analysis finds the corners of the cloud of spots in principal
    components of expression: mixtures of cell types lie inside, pure spots at the corners. Each type gets an archetype of its own, such
    that the sum of the scores for the types' markers at the spots nearest to their archetypes is largest. A spot is labeled with a type if
    it is among the `n_spots` nearest to the type's archetype (if it is near several, the nearest counts) and expresses the markers of this
    type more than those of the others and more than spots do on average: both kinds of evidence have to agree. A type whose archetype does
    not express its markers gets no label.

    The certainty of a label is a product of three numbers between 0 and 1,

        share of the archetype in the spot × softmax_t(s_nt) × agreement of the archetype,

    where the first is the weight of the type's archetype in the mixture of archetypes that comes nearest to the spot, the second says how
    far the spot's score s_nt for the type stands out among its scores for all types, and the third is the share of the `n_spots` spots
    nearest to the archetype whose strongest signature is the type's: it is low if the type is not in the tissue or the archetype belongs to
    something else. The product ranks labels, right ones above wrong ones; the probability that a label is right is usually higher.

    Parameters
    ----------
    adata
        With counts, or log-normalized expression.
    signatures
        Marker genes: names of types with their genes, or a pandas DataFrame with a column for each type, shorter ones filled up with NaN.
        Genes are found by their names in `adata.var_names`, with upper and lower case as they are; those not found are listed in a warning.
    n_archetypes
        By default one more than there are types, because tissue often has a type without a signature. Archetypes that match no type are
        not used.
    n_spots
        How many of the spots nearest to each archetype may be labeled. By default a fifth of all spots in total, at least 5 of each type.
    use_rep, layer, mask_var, batch_key
        Where the expression is, as in `embed`.
    key_added
        The prefix of the names of the fields that are written.
    random_state
        The seed of the archetypes.

    Returns
    -------
    None
        The result is written into these fields, where "pure" stands for `key_added`:

        - `obs["pure_label"]`: the type, categorical, or NaN.
        - `obs["pure_certainty"]`: between 0 and 1, NaN where there is no label.
        - `obsm["pure_scores"]`: how strongly a spot expresses the markers of each type, standardized over spots: a data frame. [n, types]
        - `uns["pure"]`: "params"; "matching", a data frame with the archetype of each type, its score, its agreement and how many spots are
          labeled; "archetype_scores" [archetypes, types]; "genes", a data frame that says for each gene of each type whether it was used.
        - `obsm["X_pca"]`, `varm["PCs"]`, `uns["pca"]` and `var["highly_variable"]`, if they were computed.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> shares = rng.dirichlet([0.3, 0.3], 100)                      # of two types, in 100 spots
    >>> adata = anndata.AnnData(rng.poisson(shares @ rng.permutation([[20.0] * 5 + [2.0] * 25, [2.0] * 25 + [20.0] * 5])))
    >>> pure_spots(adata, {"one": ["0", "1", "2"], "other": ["27", "28", "29"]}, n_spots=10)
    >>> adata.obs["pure_label"].value_counts().to_dict()
    {'one': 10, 'other': 10}
    """
    make_writable(adata)
    found = find_signatures(signatures, adata.var_names)
    n_archetypes, n_spots = _check_numbers(n_archetypes, n_spots, adata.n_obs, len(found.types))
    scores = signature_scores(adata, found, layer=layer)
    if use_rep is None and layer is None and mask_var is None and "X_pca" in adata.obsm and adata.obsm["X_pca"].shape[1] >= n_archetypes:
        use_rep = "X_pca"  # however many there are: `embed` may use them, too, so they are not replaced
    expression = expression_scores(adata, use_rep=use_rep, layer=layer, mask_var=mask_var, batch_key=batch_key)
    archetypes = find_archetypes(expression, n_archetypes, random_state=random_state)
    distances = archetypes.distances()
    near = np.argsort(distances, axis=0, kind="stable")[:n_spots]
    matching = match_archetypes(scores, near)
    types, certainty = _label(archetypes.shares, distances, matching, scores, near)
    _warn_of_types_without_spots(found.types, types)
    pandas = need("pandas")
    adata.obs[f"{key_added}_label"] = pandas.Categorical.from_codes(types, categories=found.types)
    adata.obs[f"{key_added}_certainty"] = certainty
    adata.obsm[f"{key_added}_scores"] = pandas.DataFrame(scores, index=adata.obs_names, columns=found.types)
    adata.uns[key_added] = {
        "params": {"n_archetypes": n_archetypes, "n_spots": n_spots, "random_state": random_state},
        "archetype_scores": matching.scores,
        "matching": matching.table(found.types, types),
        "genes": found.table(),
    }


def _check_numbers(n_archetypes: int | None, n_spots: int | None, n: int, n_types: int) -> tuple[int, int]:
    """Return how many archetypes there are and how many spots nearest to each may be labeled."""
    if n_spots is not None:
        check_number("n_spots", n_spots, Integral, at_least=1)
    if n_archetypes is not None:
        check_number("n_archetypes", n_archetypes, Integral, at_least=n_types, otherwise=f"for {n_types} types, each with one of its own")
    n_archetypes = n_types + 1 if n_archetypes is None else n_archetypes
    if n <= n_archetypes:
        raise ValueError(f"There are {n} spots and {n_archetypes} archetypes: archetypal analysis needs more spots than archetypes.")
    n_spots = max(FEWEST_SPOTS, round(LABELED_SHARE * n / n_types)) if n_spots is None else n_spots
    return n_archetypes, min(n_spots, n)


class Signatures(NamedTuple):
    """The marker genes of each type, divided into those that the data have and those that they lack."""

    used: dict[str, list[str]]
    missing: dict[str, list[str]]

    @property
    def types(self) -> list[str]:
        """The names of the types, in the order in which they were given."""
        return list(self.used)

    def table(self) -> Any:
        """Return a data frame that says for each gene of each type whether it is used."""
        used = [(name, gene, True) for name, genes in self.used.items() for gene in genes]
        rows = used + [(name, gene, False) for name, genes in self.missing.items() for gene in genes]
        return need("pandas").DataFrame(rows, columns=["type", "gene", "used"], index=[str(i) for i in range(len(rows))])


def find_signatures(signatures: Any, gene_names: Iterable[str]) -> Signatures:
    """Return the marker genes of at least two types, divided by the genes of the data; a warning lists those that the data lack."""
    wanted = _read_signatures(signatures)
    present = set(gene_names)
    found = Signatures(
        {name: [gene for gene in genes if gene in present] for name, genes in wanted.items()},
        {name: [gene for gene in genes if gene not in present] for name, genes in wanted.items()},
    )
    lost = {name: found.missing[name] for name, genes in found.used.items() if not genes}
    if lost:
        raise ValueError(
            f"No gene of {quoted(lost)} is in the data: {_genes_by_type(lost)}. Leave these types out, or give genes by their names "
            f"in adata.var_names.{_case_hint(lost, present)}"
        )
    seen: dict[frozenset[str], str] = {}
    for name, genes in found.used.items():
        other = seen.setdefault(frozenset(genes), name)
        if other != name:
            raise ValueError(f"{other!r} and {name!r} have the same genes in these data, and cannot be told apart: leave one of them out.")
    if any(found.missing.values()):
        warnings.warn(
            f"These genes of the signatures are missing from the data and are left out: {_genes_by_type(found.missing)}."
            f"{_case_hint(found.missing, present)}",
            stacklevel=3,
        )
    return found


def signature_scores(adata: Any, signatures: Signatures, *, layer: str | None = None) -> Array:
    """Return how strongly each spot expresses the markers of each type. [n, types]

    s_nt = (1/|G_t|) Σ_{g ∈ G_t} z_ng, the mean over the type's genes of log-expression that is standardized over spots; this mean is
    standardized over spots once more. So no gene has more influence because it is abundant, and types with few, or weakly correlated,
    genes can be compared with others.
    """
    place = {gene: j for j, gene in enumerate(dict.fromkeys(gene for used in signatures.used.values() for gene in used))}
    z = standardized(log_expression(adata, list(place), layer=layer))
    scores = np.column_stack([z[:, [place[gene] for gene in used]].mean(axis=1) for used in signatures.used.values()])
    silent = [name for name, spread in zip(signatures.types, np.ptp(scores, axis=0), strict=True) if not spread > 0]
    if silent:
        raise ValueError(
            f"The genes of {quoted(silent)} do not vary over the spots, or are expressed in none: leave these types out, or give them "
            "other genes."
        )
    return standardized(scores)


def _read_signatures(signatures: Any) -> dict[str, list[str]]:
    if not isinstance(signatures, Mapping | need("pandas").DataFrame):
        raise TypeError(
            f'signatures must be names of types with their genes, such as {{"B cells": ["CD79A", "MS4A1"]}}, or a DataFrame with a column '
            f"for each type, got {type(signatures).__name__}."
        )
    named = [(str(name), _gene_list(str(name), genes)) for name, genes in signatures.items()]
    found = dict(named)
    if len(found) < len(named):
        raise ValueError("Two of the signatures have the same name: name each type once.")
    if len(found) < 2:
        raise ValueError(f"Types are told apart by their marker genes: give signatures of at least two, got {len(found)}.")
    return found


def _gene_list(name: str, genes: Any) -> list[str]:
    """Return the genes of one type, each once, without what fills up a column."""
    if isinstance(genes, str):
        raise TypeError(f"The signature of {name!r} is the single string {genes!r}: pass a list of genes.")
    entries = [gene for gene in genes if not (gene is None or gene != gene)]
    for gene in entries:
        if not isinstance(gene, str):
            raise TypeError(
                f"The signature of {name!r} holds {gene!r}, which is not the name of a gene. If this column numbers the rows of a file, "
                "read it with pandas.read_csv(..., index_col=0)."
            )
    return list(dict.fromkeys(gene.strip() for gene in entries if gene.strip()))


def _genes_by_type(genes: Mapping[str, list[str]]) -> str:
    return "; ".join(f"{name}: {', '.join(own) or 'none given'}" for name, own in genes.items() if own or len(genes) == 1)


def _case_hint(missing: Mapping[str, list[str]], present: set[str]) -> str:
    """Return advice for names that differ in upper and lower case only, as those of human and mouse genes do."""
    spelled = {gene.lower(): gene for gene in present}
    pairs = [(gene, spelled[gene.lower()]) for genes in missing.values() for gene in genes if gene.lower() in spelled]
    if not pairs:
        return ""
    gene, other = pairs[0]
    return (
        f" {len(pairs)} of them differ in upper and lower case only ({gene} is {other} in the data), as the names of human and mouse genes "
        "do: spell them as the data do."
    )


class Archetypes(NamedTuple):
    """The corners of the cloud of points, in its leading principal components."""

    points: Array
    """The points in these components, with mean square length 1. [n, D]"""
    corners: Array
    """[K, D]"""
    shares: Array
    """Each point as a mixture of the corners: non-negative, rows sum to 1. [n, K]"""

    def distances(self) -> Array:
        """Return the distance from each point to each corner. [n, K]"""
        squared = (self.points**2).sum(axis=1)[:, None] - 2 * self.points @ self.corners.T + (self.corners**2).sum(axis=1)
        return np.sqrt(np.maximum(squared, 0.0))


def find_archetypes(scores: Array, n_archetypes: int, *, random_state: int) -> Archetypes:
    """Fit K archetypes to the rows of `scores` (Cutler and Breiman, 1994).

    min Σ_n ‖x_n − Σ_k a_nk c_k‖², with c_k = Σ_n b_kn x_n, over mixtures a_n of the corners and b_k of the points: the corners are
    themselves mixtures of points, so that they lie in the cloud and not somewhere beyond.

    K corners span K − 1 dimensions, so the x_n are the K − 1 leading principal components of the scores: the other components hold nothing
    that K corners could explain, and their noise would move the corners.
    """
    points = _leading_components(scores, n_archetypes - 1)
    rng = np.random.default_rng(random_state)
    fitted = points[np.sort(rng.choice(len(points), MAX_FITTED, replace=False))] if len(points) > MAX_FITTED else points
    with redirect_stdout(io.StringIO()):  # one of the package's dependencies prints a line about its backend
        package = need("archetypes")
    model = package.AA(
        n_archetypes,
        init="furthest_sum",
        n_init=N_STARTS,
        method="nnls",
        method_params={"max_iter_optimizer": 3 * len(fitted)},  # the package's own limit fails on some points
        max_iter=MAX_ITERATIONS,
        tol=TOLERANCE * len(fitted),  # the package compares sums over points
        random_state=random_state,
    )
    with one_blas_thread():
        model.fit(fitted)
        return Archetypes(points, np.asarray(model.archetypes_), np.asarray(model.transform(points)))


def _leading_components(scores: Array, n_components: int) -> Array:
    """Return the leading principal components, scaled to mean square length 1. [n, D]"""
    centered = scores - scores.mean(axis=0)
    size = np.sqrt((centered**2).sum(axis=1).mean())
    if not size > 0:
        raise ValueError("All spots have the same expression: there are no archetypes to find.")
    eigenvalues, vectors = np.linalg.eigh(centered.T @ centered / (len(centered) * size**2))
    leading = fix_signs(vectors[:, ::-1][:, :n_components])
    return centered @ leading / (size * np.sqrt(eigenvalues[::-1][:n_components].sum()))


class Matching(NamedTuple):
    """The archetype of each type."""

    archetypes: NDArray[np.intp]
    """The number of each type's archetype. [T]"""
    scores: Array
    """The mean signature score of the spots nearest to each archetype. [K, T]"""
    agreement: Array
    """The share of the spots nearest to the type's archetype that express the markers of this type most. [T]"""

    def table(self, names: list[str], types: NDArray[np.intp]) -> Any:
        """Return a data frame with a row for each type, from the names of the types and the type of each spot [n]."""
        columns = {
            "type": names,
            "archetype": self.archetypes,
            "score": self.scores[self.archetypes, np.arange(len(names))],
            "agreement": self.agreement,
            "n_labeled": [int((types == t).sum()) for t in range(len(names))],
        }
        return need("pandas").DataFrame(columns, index=[str(t) for t in range(len(names))])


def match_archetypes(scores: Array, near: NDArray[np.intp]) -> Matching:
    """Choose an archetype for each type such that the sum of their scores is largest.

    `scores` [n, T] are those of each spot for each type, `near` [n_spots, K] are the spots nearest to each of K ≥ T archetypes.
    """
    of_archetypes = scores[near].mean(axis=0)
    types, archetypes = linear_sum_assignment(of_archetypes.T, maximize=True)
    strongest = scores.argmax(axis=1)[near]
    return Matching(archetypes, of_archetypes, (strongest[:, archetypes] == types).mean(axis=0))


def _label(shares: Array, distances: Array, matching: Matching, scores: Array, near: NDArray[np.intp]) -> tuple[NDArray[np.intp], Array]:
    """Return the type of each spot near an archetype whose own markers agree, else −1, and its certainty, else NaN. [n] each"""
    n, n_types = scores.shape
    # An archetype that does not express the markers of its type belongs to something else.
    expressed = matching.scores[matching.archetypes, np.arange(n_types)] > 0
    chosen = np.full((n, n_types), np.inf)
    for t in np.flatnonzero(expressed):
        k = matching.archetypes[t]
        chosen[near[:, k], t] = distances[near[:, k], k]
    nearest = chosen.argmin(axis=1)
    agrees = (scores.argmax(axis=1) == nearest) & (scores.max(axis=1) > 0)
    labeled = np.flatnonzero(np.isfinite(chosen.min(axis=1)) & agrees)
    types, certainty = np.full(n, -1), np.full(n, np.nan)
    types[labeled] = nearest[labeled]
    of_types = shares[:, matching.archetypes] * softmax(scores, axis=1) * matching.agreement
    certainty[labeled] = of_types[labeled, nearest[labeled]]
    return types, certainty


def _warn_of_types_without_spots(names: list[str], types: NDArray[np.intp]) -> None:
    lost = [name for t, name in enumerate(names) if not (types == t).any()]
    if lost:
        warnings.warn(
            f"No spot is labeled {', '.join(map(repr, lost))}: none near the type's archetype expresses its markers more than those of "
            "other types. Leave the type out if it is not in this tissue, or raise n_spots or n_archetypes.",
            stacklevel=3,
        )
