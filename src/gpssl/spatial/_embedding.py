"""Learn representations of spots with their uncertainty, and find the fitted model of an AnnData object again."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Mapping
from copy import copy
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._runtime import N_COMPONENTS_OF_TISSUE, RESIDUAL_TOLERANCE
from .._validation import check_number
from ..estimator import GPSSL
from ._expression import N_COMPS, N_TOP_GENES, expression_scores
from ._fields import COMBINATIONS, Combine, Modalities, gather, make_writable, numbers, quoted

Array = NDArray[np.float64]

SAME = 1e-3
"""The difference from the stored mean that is allowed, relative to the largest value, because another machine may round differently."""
IMAGE_KEY = "image"
"""The field of `obsm` where `read_visium` and `image_features` write the colors."""


def embed(
    adata: Any,
    n_components: int = N_COMPONENTS_OF_TISSUE,
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

    Raw counts are normalized to the median total, logged, and reduced to highly variable genes and then to principal components; components
    that `adata` already has are used. Spots are compared by a kernel of each modality. `adata` may be backed by a file or on Dask: its
    counts are read in parts. The fitted model is kept as long as `adata` is, so that `composition` does not fit it again.

    Parameters
    ----------
    adata
        Spots in rows, raw counts in `X` or in `layers[layer]`, coordinates in `obsm["spatial"]`, perhaps colors in `obsm["image"]`.
    n_components
        J, the number of representation dimensions.
    combine
        How the kernels of the modalities are combined: "sum" (spots are alike if they are alike in some modalities), "product" (in all)
        or "concatenate", the paper's single kernel on all columns.
    weights
        A number for each of "expression", "place" and, with an image, "color"; by default all have the same weight.
    neighborhood
        Lengthscales are twice the distance to the ⌊n / neighborhood⌋-th neighbor: larger values give shorter lengthscales, and a standard
        deviation that rises at edges and holes which the default bridges.
    temperature
        τ of `GPSSL`.
    use_rep
        A field of `obsm` that represents the expression instead of `obsm["X_pca"]`, for instance one that was corrected for batches.
    layer, mask_var
        The layer that has the counts, and the genes to use: a column of `var` or one boolean for each gene.
    batch_key
        The column of `obs` that says which slice a spot is from. Places are compared within a slice only, and variable genes are chosen in
        each slice. Differences in expression between slices are not corrected: correct them first, and pass `use_rep`.
    spatial_key, image_key
        Fields of `obsm`; None leaves the modality out. "auto" uses `obsm["image"]` if it exists.
    n_top_genes, n_comps
        The numbers of highly variable genes and of principal components.
    residual_tolerance, max_inducing, random_state, verbose
        As for `GPSSL`.
    key_added
        The prefix of the names of the fields that are written.

    Returns
    -------
    None
        The result is written into these fields, where "gpssl" stands for `key_added`:

        - `obsm["X_gpssl"]`: posterior mean of the representation. [n, J]
        - `obsm["X_gpssl_std"]`: its standard deviation. [n, J]
        - `uns["gpssl"]`: "params", from which the same posterior is found again after reading a file, and "residual", "temperature" and
          "n_inducing", the attributes of `GPSSL`.
        - `obsm["X_pca"]`, `varm["PCs"]`, `uns["pca"]` and `var["highly_variable"]`, if they were computed.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> from gpssl.spatial import embed
    >>> place = np.argwhere(np.ones((12, 12)))
    >>> adata = AnnData(np.random.default_rng(0).poisson(1.0 + place[:, :1], (144, 50)).astype(float), obsm={"spatial": place})
    >>> embed(adata, n_components=5)
    >>> adata.obsm["X_gpssl"].shape, adata.obsm["X_gpssl_std"].shape
    ((144, 5), (144, 5))
    """
    if combine not in COMBINATIONS:
        raise ValueError(f"combine must be one of {quoted(COMBINATIONS)}, got {combine!r}.")
    if weights is not None and (combine == "concatenate" or not isinstance(weights, Mapping)):
        raise ValueError('weights is a number for each modality, such as {"expression": 2, "place": 1}, with combine="sum" or "product".')
    check_number("n_components", n_components, Integral, at_least=1)
    check_number("random_state", random_state, Integral, at_least=0)
    check_number("max_inducing", max_inducing, Integral, at_least=1)
    check_number("n_comps", n_comps, Integral, at_least=1)
    check_number("n_top_genes", n_top_genes, Integral, at_least=2)
    check_number("neighborhood", neighborhood, Real, above=0)
    make_writable(adata)
    if key_added in adata.uns and "n_inducing" not in adata.uns[key_added]:
        raise ValueError(f"uns[{key_added!r}] is there already, and not from embed: choose another key_added.")
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
    optional = {
        "weights": None if weights is None else dict(weights),
        "n_comps": None if use_rep else n_comps,
        "batch_key": batch_key,
        "spatial_key": spatial_key,
        "image_key": image_key,
    }
    params = {
        "n_components": n_components,
        "combine": combine,
        "neighborhood": neighborhood,
        "temperature": temperature,
        "use_rep": use_rep or "X_pca",
        "residual_tolerance": residual_tolerance,
        "max_inducing": max_inducing,
        "random_state": random_state,
        # The file formats of AnnData cannot store None.
        **{name: value for name, value in optional.items() if value is not None},
    }
    fitted = _fit(adata, params, key_added, verbose=verbose)
    _forget_composition(adata, key_added)
    adata.obsm[f"X_{key_added}"], adata.obsm[f"X_{key_added}_std"] = fitted.ssl.mean_and_std(fitted.rows)
    adata.uns[key_added] = {
        "params": params,
        "residual": fitted.ssl.residual_,
        "temperature": fitted.ssl.temperature_,
        "n_inducing": len(fitted.ssl.inducing_points_),
    }


def _forget_composition(adata: Any, key: str) -> None:
    """Remove what `composition` wrote: it belongs to the representation that is replaced."""
    for name in (f"{key}_proba", f"{key}_proba_std"):
        adata.obsm.pop(name, None)
    adata.obs.drop(columns=[f"{key}_{what}" for what in ("label", "certainty", "kept")], errors="ignore", inplace=True)
    adata.uns.pop(f"{key}_composition", None)


class SpotRepresentation(NamedTuple):
    """The fitted representation of the spots of an AnnData, with the rows that it was fitted to."""

    ssl: GPSSL
    rows: Array
    """Expression, place and color of each spot, in units of lengthscales. [n, D]"""
    columns: dict[str, slice]
    """The columns of each modality."""


def representation(adata: Any, *, key: str = "gpssl") -> SpotRepresentation:
    """Return the posterior that `embed` found, for draws or for rows of your own.

    The model that `embed` fitted to this object is used again. Where there is none, because `adata` was read from a file or copied, the
    same posterior is found by fitting to its fields. ValueError if a field was replaced or spots were removed since `embed`.
    """
    if key not in adata.uns or "n_inducing" not in adata.uns[key]:
        raise ValueError(f"There is no uns[{key!r}] from embed: call gpssl.spatial.embed(adata, key_added={key!r}) first.")
    params = adata.uns[key]["params"]
    fitted = _fit(adata, params, key, verbose=False)
    before, now = adata.obsm[f"X_{key}"], fitted.ssl.transform(fitted.rows)
    if before.shape != now.shape or np.abs(before - now).max() > SAME * np.abs(now).max():
        used = [params.get(name) for name in ("use_rep", "spatial_key", "image_key")]
        raise ValueError(
            f"obsm['X_{key}'] is not what the fields give now: {quoted(filter(None, used))} of obsm changed since embed, or spots were "
            f"removed. Call gpssl.spatial.embed(adata, key_added={key!r}) again."
        )
    return fitted


def modalities(adata: Any, params: Mapping[str, Any]) -> Modalities:
    """Return the rows that a representation with these parameters of `embed` is learned from."""
    return gather(
        adata,
        numbers(adata, params["use_rep"])[:, : params.get("n_comps")],
        spatial_key=params.get("spatial_key"),
        image_key=params.get("image_key"),
        batch_key=params.get("batch_key"),
        combine=params["combine"],
        neighborhood=float(params["neighborhood"]),
    )


def _fit(adata: Any, params: Mapping[str, Any], key: str, *, verbose: bool) -> SpotRepresentation:
    """Return the posterior for the present fields and these parameters: the model kept under `key` if it is theirs, else a new fit."""
    found = modalities(adata, params)
    weights = params.get("weights")
    if weights is not None and set(weights) != set(found.columns):
        raise ValueError(f"weights must be for {quoted(found.columns)}, got {quoted(weights)}.")
    fingerprint = _fingerprint(found, params)
    kept = _models_of(adata).get(key)
    if kept is None or kept.fingerprint != fingerprint:
        model = GPSSL(
            int(params["n_components"]),
            kernel=found.kernel(params["combine"], weights),
            temperature=params["temperature"],
            residual_tolerance=float(params["residual_tolerance"]),
            max_inducing=int(params["max_inducing"]),
            random_state=int(params["random_state"]),
            verbose=verbose,
        )
        kept = _models_of(adata)[key] = _KeptModel(fingerprint, model.fit(found.rows))
    # A copy, because callers may set parameters of what they get, or fit it to more rows.
    return SpotRepresentation(copy(kept.ssl), found.rows, found.columns)


class _KeptModel(NamedTuple):
    """A fitted model, and what it was fitted to."""

    fingerprint: bytes
    ssl: GPSSL


_kept_models: dict[int, dict[str, _KeptModel]] = {}
"""Fitted models by the identity of an AnnData object, which is not hashable, and by `key_added`; removed together with the object."""


def _models_of(adata: Any) -> dict[str, _KeptModel]:
    """Return the models that were fitted to this object in this process, by `key_added`."""
    identity = id(adata)
    if identity not in _kept_models:
        _kept_models[identity] = {}
        weakref.finalize(adata, _kept_models.pop, identity, None).atexit = False
    return _kept_models[identity]


def _fingerprint(found: Modalities, params: Mapping[str, Any]) -> bytes:
    """Return a hash of everything that a fit depends on."""
    described = repr((found.rows.shape, list(found.columns.items()), sorted(params.items())))
    digest = hashlib.blake2b(np.ascontiguousarray(found.rows).data, digest_size=32)
    digest.update(described.encode())
    return digest.digest()
