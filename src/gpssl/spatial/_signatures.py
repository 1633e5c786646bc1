"""Find the marker genes of cell types in the data, and score how strongly each spot expresses them."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._expression import log_expression
from ._fields import need, quoted
from ._modalities import standardized

Array = NDArray[np.float64]


class Signatures(NamedTuple):
    """The marker genes of each type, divided into those that the data have and those that they lack."""

    used: dict[str, list[str]]
    missing: dict[str, list[str]]

    @property
    def types(self) -> list[str]:
        """The names of the types, in the order in which they were given."""
        return list(self.used)

    @property
    def genes(self) -> list[str]:
        """All genes that are used, each once."""
        return list(dict.fromkeys(gene for genes in self.used.values() for gene in genes))


def find_signatures(signatures: Any, gene_names: Iterable[str]) -> Signatures:
    """Return the marker genes of at least two types; a warning lists those that the data lack.

    Parameters
    ----------
    signatures
        Names of types with their genes, or a pandas DataFrame with a column for each type, shorter columns filled up with NaN.
    gene_names
        The genes of the data.
    """
    wanted = _read_signatures(signatures)
    present = set(gene_names)
    found = Signatures(
        {name: [gene for gene in genes if gene in present] for name, genes in wanted.items()},
        {name: [gene for gene in genes if gene not in present] for name, genes in wanted.items()},
    )
    _refuse_types_without_genes(found, present)
    _refuse_equal_types(found)
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
    genes = signatures.genes
    z = standardized(log_expression(adata, genes, layer=layer))
    place = {gene: j for j, gene in enumerate(genes)}
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


def _refuse_types_without_genes(found: Signatures, present: set[str]) -> None:
    lost = {name: found.missing[name] for name, genes in found.used.items() if not genes}
    if lost:
        raise ValueError(
            f"No gene of {quoted(lost)} is in the data: {_genes_by_type(lost)}. Leave these types out, or give genes by their names "
            f"in adata.var_names."
            f"{_case_hint(lost, present)}"
        )


def _refuse_equal_types(found: Signatures) -> None:
    seen: dict[frozenset[str], str] = {}
    for name, genes in found.used.items():
        other = seen.setdefault(frozenset(genes), name)
        if other != name:
            raise ValueError(f"{other!r} and {name!r} have the same genes in these data, and cannot be told apart: leave one of them out.")


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
