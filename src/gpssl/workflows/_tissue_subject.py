"""Spots of a slice of tissue, as AnnData."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Kernel

from ..data._errors import FileError, beginning, no_such_column
from ..data._frames import ColumnFacts
from ..data._labels import UNLABELED_WORDS, Target
from ..data._outputs import replacing
from ..downstream._pool import RepresentationPool
from ..estimator import GPSSL
from ..spatial._composition import spatial_blocks
from ..spatial._embedding import embed, modalities, representation
from ._choices import Alike, Settings
from ._subject import SPOTS, Array, NewColumnsOfPart, Roles, Step, Subject, SubjectPart, left_out_notes

if TYPE_CHECKING:
    from ._given_labels import GivenLabels

KEY = "gpssl"


class TissueSubject(Subject):
    """Expression, place and color of spots, as `gpssl.spatial.embed` takes them."""

    kind = "tissue"

    def __init__(self, tissue: Any, roles: Roles) -> None:
        if roles.keep or roles.ignore or roles.sheet is not None:
            what = "a sheet is" if roles.sheet is not None else "columns to keep and to ignore are"
            raise ValueError(f"Spots of tissue are compared by expression, place and color: {what} for tables.")
        super().__init__(tissue, roles)
        self.adata = _own(tissue) if self.path is None else _read(self.path)
        self.index = self.adata.obs_names
        self.n_rows = int(self.adata.n_obs)
        self.notes = [f"{self.n_rows:,} spots, {self.adata.n_vars:,} genes"]
        self.facts: list[ColumnFacts] = []
        self.dropped: dict[str, str] = {}
        self._spatial_key = "spatial" if "spatial" in self.adata.obsm else None
        self._fitted: dict[Settings, GPSSL] = {}
        for name in (roles.target, roles.group):
            if name is not None and name not in self.adata.obs:
                raise no_such_column(name, list(map(str, self.adata.obs.columns)), self.path or self.name)
        if self._spatial_key is None:
            self.notes.append('There is no obsm["spatial"]: rows are compared by their expression alone.')

    def kernel(self, settings: Settings) -> Kernel:
        """Return the kernel of expression, place and color."""
        return self.fit(settings).kernel_

    def fit(self, settings: Settings) -> GPSSL:
        """Return the representation of `gpssl.spatial.embed`; each is learned once."""
        if settings in self._fitted:
            return self._fitted[settings]
        if settings.alike is not Alike.COLUMNS:
            raise ValueError("Spots of tissue are compared by expression, place and color: alike='neighbors' is for tables.")
        embed(
            self.adata,
            settings.n_components_for(self.kind),
            temperature=settings.temperature,
            max_inducing=settings.max_inducing,
            random_state=settings.seed,
            spatial_key=self._spatial_key,
            key_added=KEY,
        )
        self._fitted[settings] = representation(self.adata, key=KEY).ssl
        return self._fitted[settings]

    def pool(self, ssl: GPSSL, seed: int) -> RepresentationPool:
        """Return the pool of `gpssl.spatial.composition`."""
        pool = RepresentationPool.around(ssl, random_state=seed).fit(next(self.parts()).rows)
        self.notes.extend(left_out_notes(pool))
        return pool

    def parts(self) -> Iterator[SubjectPart]:
        """Yield all spots at once, with the columns of `obs`."""
        if KEY not in self.adata.uns:
            raise FileError(
                f"{beginning(self.path or self.name)} has no uns[{KEY!r}]: a model of tissue belongs to the slices that it was learned "
                "from. Use the .h5ad file that gpssl embed or gpssl label wrote with it (-o FILE.h5ad)."
            )
        rows = modalities(self.adata, self.adata.uns[KEY]["params"]).rows
        yield SubjectPart(len(rows), lambda: rows, lambda **_: self._cells())

    def _cells(self) -> Any:
        cells = self.adata.obs.reset_index(drop=True)
        cells.insert(0, "spot", self.adata.obs_names.to_numpy())
        return cells

    def cells_at(self, places: NDArray[np.intp]) -> Any:
        """Return the columns of `obs`, also before a representation is learned."""
        return self._cells().iloc[places].reset_index(drop=True)

    def take(self, given: GivenLabels) -> None:
        """Merge labels into `obs`, which is written with the results."""
        super().take(given)
        column = self.adata.obs[self.roles.target]
        self.adata.obs[self.roles.target] = given.in_cells(column, slice(0, self.n_rows))
        self.__dict__.pop("tidy", None)  # of the labels before

    def _read_target(self) -> Target:
        """Return the column of `obs` to predict."""
        if self.roles.target is None:
            raise ValueError("Name the column of obs to predict.")
        column = self.adata.obs[self.roles.target]
        kind = self.roles.target_kind or ("number" if column.dtype.kind == "f" and (column.dropna() % 1 != 0).any() else "class")
        if kind == "number":
            return Target(self.roles.target, kind, column.to_numpy(dtype=np.float64), self.roles.target_kind is not None)
        texts = column.astype(object).where(column.notna(), None)
        values = [None if value is None or str(value) in UNLABELED_WORDS else str(value) for value in texts]
        return Target(self.roles.target, kind, np.array(values, dtype=object), self.roles.target_kind is not None)

    def groups(self) -> NDArray[Any] | None:
        """Return the groups that were named, else blocks of neighboring spots: nearby spots leak label information."""
        if self.roles.group is not None:
            return self.adata.obs[self.roles.group].astype(str).to_numpy()
        if self._spatial_key is None:
            return None
        return np.asarray(spatial_blocks(self.adata, spatial_key=self._spatial_key))

    def coordinates(self) -> Array | None:
        """Return where the spots lie. [n, 2]"""
        return None if self._spatial_key is None else np.asarray(self.adata.obsm[self._spatial_key], dtype=np.float64)[:, :2]

    def write(self, out: Path, new_columns: NewColumnsOfPart, *, only_new: bool, force: bool, finish: Step) -> None:
        """Write AnnData with the new columns in `obs`, or a table of them."""
        if out.suffix.lower() != SPOTS:
            super().write(out, new_columns, only_new=only_new, force=force, finish=finish)
            return
        new = new_columns(next(self.parts()), slice(0, self.n_rows))
        for name in new.columns:
            # Files of AnnData have no texts of which some are missing, but categories.
            self.adata.obs[name] = pd.Categorical(new[name]) if new[name].dtype == object else new[name].array
        with replacing(out, force=force) as beside:
            self.adata.write_h5ad(beside)
            finish()


def _own(adata: Any) -> Any:
    """Return AnnData to which fields can be added without changing what the person has; the counts are shared, not copied."""
    from anndata import AnnData

    fields = {name: dict(getattr(adata, name)) for name in ("uns", "obsm", "varm", "layers", "obsp", "varp")}
    return AnnData(adata.X, adata.obs.copy(), adata.var.copy(), raw=adata.raw, **fields)


def _read(path: Path) -> Any:
    if not path.is_file():
        raise FileError(f"There is no file {str(path)!r}.")
    try:
        import anndata
    except ImportError as error:
        raise ImportError('Files of AnnData need anndata and scanpy: pip install "gpssl[spatial]".') from error
    try:
        return anndata.read_h5ad(path)
    except Exception as error:  # h5py, anndata and zarr raise errors of many kinds
        raise FileError(f"{path} cannot be read as AnnData: {str(error).splitlines()[0]}") from error
