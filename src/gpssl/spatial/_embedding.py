"""Representations of spots, with their uncertainty: AnnData in, fields of AnnData out."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._validation import check_number
from ..estimator import GPSSL
from ._expression import N_COMPS, N_TOP_GENES, expression_scores
from ._fields import check_writable, listed
from ._modalities import COMBINATIONS, Combine, Modalities, gather

Array = NDArray[np.float64]

RESIDUAL_TOLERANCE = 1e-3
"""Expression has many small directions: the last of them would take twice the inducing points, and change nothing that can be seen."""
SAME = 1e-3
"""Of the largest value: another machine may round otherwise."""
IMAGE_KEY = "image"
"""Where `read_visium` and `image_features` put the colors."""


def embed(
    adata: Any,
    n_components: int = 10,
    *,
    combine: Combine = "sum",
    weights: Mapping[str, float] | None = None,
    neighborhood: float = 10,
    temperature: float | Literal["auto"] = "auto",
    use_rep: str | None = None,
    layer: str | None = None,
    mask_var: str | ArrayLike | None = None,
    batch_key: str | None = None,
    spatial_key: str | None = "spatial",
    image_key: str | None = "auto",
    n_top_genes: int = N_TOP_GENES,
    n_comps: int = N_COMPS,
    residual_tolerance: float = RESIDUAL_TOLERANCE,
    max_inducing: int = 512,
    random_state: int = 0,
    key_added: str = "gpssl",
    verbose: bool = False,
) -> None:
    """Learn representations of the spots of one or several slices, from expression, place and color.

    Raw counts are normalized to the median total, logged, reduced to highly variable genes and to principal components; components that are
    there already are used. Spots are compared by a kernel of each modality. `adata` may be backed or on Dask: its counts are read a part
    at a time.

    Parameters
    ----------
    adata
        Spots in rows, raw counts in `X` or in `layers[layer]`, coordinates in `obsm["spatial"]`, perhaps colors in `obsm["image"]`.
    n_components
        J, the number of representation dimensions.
    combine
        How the kernels of modalities make one: "sum" (spots are alike if they are alike in some modalities), "product" (in all) or
        "concatenate", the paper's single kernel on all columns.
    weights
        One for each of "expression", "place" and, with an image, "color"; by default all count alike.
    neighborhood
        Lengthscales are twice the distance to the ⌊n / neighborhood⌋-th neighbor: larger values give shorter lengthscales, and a standard
        deviation that rises at edges and holes which the default bridges.
    temperature
        τ of `GPSSL`.
    use_rep
        A representation of the expression in `obsm`, for instance one that was corrected for batches, in the place of `obsm["X_pca"]`.
    layer, mask_var
        Where the counts are, and which genes to use: a column of `var` or one boolean for each gene.
    batch_key
        Column of `obs` that says which slice a spot is of. Places are compared within a slice only, and variable genes are chosen in each.
        Differences in expression between slices are not corrected: do so before, and pass `use_rep`.
    spatial_key, image_key
        Fields of `obsm`; None leaves the modality out. "auto" is `obsm["image"]` where it is there.
    n_top_genes, n_comps
        Highly variable genes and principal components.
    residual_tolerance, max_inducing, random_state, verbose
        As for `GPSSL`.
    key_added
        Beginning of the names of the fields written.

    Returns
    -------
    None
        but these fields, "gpssl" standing for `key_added`:

        - `obsm["X_gpssl"]`: posterior mean of the representation. [n, J]
        - `obsm["X_gpssl_std"]`: its standard deviation. [n, J]
        - `uns["gpssl"]`: "params", with which `composition` finds the same posterior again, and "residual", "temperature" and "n_inducing",
          the attributes of `GPSSL`.
        - `obsm["X_pca"]`, `varm["PCs"]`, `uns["pca"]` and `var["highly_variable"]`, where they were made.

    Examples
    --------
    >>> from gpssl.spatial import embed, simulate, simulate_reference
    >>> adata = simulate(simulate_reference(), shape=(12, 12))
    >>> embed(adata, n_components=5)
    >>> adata.obsm["X_gpssl"].shape, adata.obsm["X_gpssl_std"].shape
    ((144, 5), (144, 5))
    """
    if combine not in COMBINATIONS:
        raise ValueError(f"combine must be one of {', '.join(map(repr, COMBINATIONS))}, got {combine!r}.")
    if weights is not None and (combine == "concatenate" or not isinstance(weights, Mapping)):
        raise ValueError('weights is a number for each modality, such as {"expression": 2, "place": 1}, with combine="sum" or "product".')
    _check_key(adata, key_added)
    check_number("n_components", n_components, Integral, at_least=1)
    check_number("random_state", random_state, Integral, at_least=0)
    check_number("max_inducing", max_inducing, Integral, at_least=1)
    check_number("n_comps", n_comps, Integral, at_least=1)
    check_number("n_top_genes", n_top_genes, Integral, at_least=2)
    check_number("neighborhood", neighborhood, Real, above=0)
    expression_scores(
        adata,
        use_rep=use_rep,
        layer=layer,
        mask_var=mask_var,
        batch_key=batch_key,
        n_top_genes=n_top_genes,
        n_comps=n_comps,
        verbose=verbose,
    )
    if image_key == "auto":
        image_key = IMAGE_KEY if IMAGE_KEY in adata.obsm else None
    params = {
        "n_components": n_components,
        "combine": combine,
        "weights": None if weights is None else dict(weights),
        "neighborhood": neighborhood,
        "temperature": temperature,
        "use_rep": use_rep or "X_pca",
        "n_comps": None if use_rep else n_comps,
        "batch_key": batch_key,
        "spatial_key": spatial_key,
        "image_key": image_key,
        "residual_tolerance": residual_tolerance,
        "max_inducing": max_inducing,
        "random_state": random_state,
    }
    optional = ("weights", "n_comps", "batch_key", "spatial_key", "image_key")
    # No file format of AnnData's has a value for "nothing".
    kept = {name: value for name, value in params.items() if value is not None or name not in optional}
    fitted = fit(adata, kept, verbose=verbose)
    _forget_composition(adata, key_added)
    adata.obsm[f"X_{key_added}"], adata.obsm[f"X_{key_added}_std"] = fitted.ssl.mean_and_std(fitted.rows)
    adata.uns[key_added] = {
        "params": kept,
        "residual": fitted.ssl.residual_,
        "temperature": fitted.ssl.temperature_,
        "n_inducing": len(fitted.ssl.inducing_points_),
    }


def _check_key(adata: Any, key: str) -> None:
    """Results of other functions are not written over."""
    check_writable(adata)
    if key in adata.uns and "n_inducing" not in adata.uns[key]:
        raise ValueError(f"uns[{key!r}] is there already, and not from embed: choose another key_added.")


def _forget_composition(adata: Any, key: str) -> None:
    """What `composition` wrote belongs to the representation that is replaced."""
    for name in (f"{key}_proba", f"{key}_proba_std"):
        adata.obsm.pop(name, None)
    adata.obs.drop(columns=[f"{key}_{what}" for what in ("label", "confidence", "accepted")], errors="ignore", inplace=True)
    adata.uns.pop(f"{key}_composition", None)


class Fitted(NamedTuple):
    """The posterior over representations of the spots of an AnnData."""

    ssl: GPSSL
    rows: Array
    """What it was fitted to: expression, place and color of each spot, in units of lengthscales. [n, D]"""
    columns: dict[str, slice]


def representation(adata: Any, *, key: str = "gpssl") -> Fitted:
    """The posterior that `embed` found, found again from the fields of `adata`: for draws, or for rows of your own.

    An error if it is not the same any more, because a field was replaced or spots were removed.
    """
    if key not in adata.uns or "n_inducing" not in adata.uns[key]:
        raise ValueError(f"There is no uns[{key!r}] from embed: call gpssl.spatial.embed(adata, key_added={key!r}) first.")
    fitted = fit(adata, adata.uns[key]["params"], verbose=False)
    before, now = adata.obsm[f"X_{key}"], fitted.ssl.transform(fitted.rows)
    if before.shape != now.shape or np.abs(before - now).max() > SAME * np.abs(now).max():
        used = [adata.uns[key]["params"].get(name) for name in ("use_rep", "spatial_key", "image_key")]
        raise ValueError(
            f"obsm['X_{key}'] is not what the fields give now: {listed(filter(None, used))} of obsm changed since embed, or spots were "
            f"removed. Call gpssl.spatial.embed(adata, key_added={key!r}) again."
        )
    return fitted


def fit(adata: Any, params: Mapping[str, Any], *, verbose: bool) -> Fitted:
    """GPSSL on the modalities of an AnnData, with the parameters that `embed` writes."""
    found = modalities(adata, params)
    weights = params.get("weights")
    if weights is not None and set(weights) != set(found.columns):
        raise ValueError(f"weights must be for {', '.join(map(repr, found.columns))}, got {', '.join(map(repr, weights)) or 'none'}.")
    ssl = GPSSL(
        int(params["n_components"]),
        kernel=found.kernel(params["combine"], weights),
        temperature=params["temperature"],
        residual_tolerance=float(params["residual_tolerance"]),
        max_inducing=int(params["max_inducing"]),
        random_state=int(params["random_state"]),
        verbose=verbose,
    )
    return Fitted(ssl.fit(found.rows), found.rows, found.columns)


def modalities(adata: Any, params: Mapping[str, Any]) -> Modalities:
    """The rows that the representation is learned from."""
    expression = expression_scores(adata, use_rep=params["use_rep"])[:, : params.get("n_comps")]
    return gather(
        adata,
        expression,
        spatial_key=params.get("spatial_key"),
        image_key=params.get("image_key"),
        batch_key=params.get("batch_key"),
        combine=params["combine"],
        neighborhood=float(params["neighborhood"]),
    )
