"""The command on slices of tissue: AnnData in, AnnData or a table out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from experiments.simulation import simulate, simulate_reference
from gpssl import GPSSL, annotate
from gpssl.cli import app


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def done(*arguments: Any) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def tissue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A slice of which the purer spots have a label."""
    adata = simulate(simulate_reference(), shape=(12, 12), cells_per_spot=30, random_state=0)
    adata.obs["known"] = adata.obs["cell_type"].where(adata.obs["purity"] > 0.6)
    path = tmp_path_factory.mktemp("tissue") / "slice.h5ad"
    adata.write_h5ad(path)
    return path


def test_embed_adds_fields_that_transform_finds_again(tissue: Path, tmp_path: Path) -> None:
    out = tmp_path / "embedded.h5ad"
    assert "144 rows, 10 dimensions" in done("embed", tissue, "-o", out)
    adata = anndata.read_h5ad(out)
    assert adata.obsm["X_gpssl"].shape == (144, 10)
    done("transform", tmp_path / "embedded.gpssl", out, "-o", tmp_path / "again.csv", "--only-new", "--draws", "2")
    again = pd.read_csv(tmp_path / "again.csv")
    assert again.shape == (144, 20 + 20)
    assert again["gpssl_1"].to_numpy() == pytest.approx(adata.obsm["X_gpssl"][:, 0], abs=1e-8)
    elsewhere = run("transform", tmp_path / "embedded.gpssl", tissue, "-o", tmp_path / "no.csv")
    assert "a model of tissue belongs to the slices that it was learned from" in elsewhere.output
    assert elsewhere.exit_code == 1


def test_label_and_report_show_spots_where_they_are(tissue: Path, tmp_path: Path) -> None:
    out = tmp_path / "labeled.h5ad"
    result = json.loads(done("label", tissue, "-t", "known", "-o", out, "--max-risk", "0.3", "--draws", "10", "--json"))
    adata = anndata.read_h5ad(out)
    is_open = adata.obs["known"].isna()
    assert result["n_predicted"] == is_open.sum()
    assert adata.obs.loc[is_open, "known_predicted"].notna().all()
    assert adata.obs.loc[~is_open, "known_predicted"].isna().all()
    assert adata.obs.loc[is_open, "known_abstain"].sum() == result["n_abstained"]
    done("report", tmp_path / "labeled.gpssl", out, "--no-rivals")
    assert "place on the tissue" in (tmp_path / "labeled.html").read_text()


def test_label_fits_the_representation_once(tissue: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[GPSSL] = []
    fit = GPSSL.fit

    def counted(self: GPSSL, X: Any, *arguments: Any, **options: Any) -> GPSSL:
        fits.append(self)
        return fit(self, X, *arguments, **options)

    monkeypatch.setattr(GPSSL, "fit", counted)
    done("label", tissue, "-t", "known", "-o", tmp_path / "labeled.csv", "--draws", "5")
    assert len(fits) == 1


def test_sentences(tissue: Path, tmp_path: Path) -> None:
    assert "has no column 'typ'; its columns are 'cell_type'" in run("label", tissue, "-t", "typ", "-o", tmp_path / "out.csv").output
    broken = tmp_path / "broken.h5ad"
    broken.write_bytes(b"nothing")
    assert "cannot be read as AnnData" in run("embed", broken, "-o", tmp_path / "out.csv").output
    assert "There is no file" in run("embed", tmp_path / "none.h5ad", "-o", tmp_path / "out.csv").output
    assert "--alike neighbors is for tables" in run("embed", tissue, "-o", tmp_path / "out.h5ad", "--alike", "neighbors").output


def test_spots_are_labeled_in_the_page_by_their_names(tissue: Path, tmp_path: Path) -> None:
    """A categorical column of obs gets the labels that a page saved, a class that nobody had used among them."""
    page = annotate(tissue, "known", n=3)
    adata = anndata.read_h5ad(tissue)
    labels = page.frame()
    assert labels["row"].tolist() == [adata.obs_names[row.place] for row in page.rows]
    labels.assign(known=["T cell", str(adata.obs["known"].dropna().iloc[0]), None]).to_csv(tmp_path / "labels.csv", index=False)
    out = tmp_path / "labeled.h5ad"
    result = json.loads(done("label", tissue, "-t", "known", "--labels", tmp_path / "labels.csv", "-o", out, "--draws", "10", "--json"))
    merged = anndata.read_h5ad(out).obs["known"]
    assert result["n_labeled"] == adata.obs["known"].notna().sum() + 2 == merged.notna().sum()
    assert merged[labels["row"][0]] == "T cell"


def test_next_names_spots_and_writes_a_table_of_them(tissue: Path, tmp_path: Path) -> None:
    out = tmp_path / "to-label.csv"
    printed = done("next", tissue, "-t", "known", "-n", "3", "-o", out)
    spots, suggested = anndata.read_h5ad(tissue).obs, pd.read_csv(out)
    assert suggested["gpssl_rank"].tolist() == [1, 2, 3]
    assert spots.loc[suggested["gpssl_row"].astype(str), "known"].isna().all()
    assert all(str(name) in printed for name in suggested["gpssl_row"])


def test_labels_of_pure_spots_promise_nothing_for_the_others(tmp_path: Path) -> None:
    """Held-out labels are predicted without error, and a third of the other spots is not."""
    adata = simulate(simulate_reference(), shape=(20, 20))
    pure = np.random.default_rng(0).permutation(np.flatnonzero(adata.obs["purity"] > 0.9))[:60]
    truth = adata.obs["cell_type"].astype(str).to_numpy()
    adata.obs["known"] = pd.Categorical(np.where(np.isin(np.arange(adata.n_obs), pure), truth, None))
    adata.write_h5ad(tmp_path / "slice.h5ad")
    output = done("label", tmp_path / "slice.h5ad", "-t", "known", "-o", tmp_path / "out.h5ad", "--max-risk", "20%")
    assert "Nothing can be promised: the labels are not like the other rows." in output
    assert "(0.0 % errors), rows without a label with 6" in output
    assert "0 predictions are kept, 340 are left to a person" in output
    labeled = anndata.read_h5ad(tmp_path / "out.h5ad").obs
    is_open = ~np.isin(np.arange(adata.n_obs), pure)
    assert (labeled["known_predicted"].astype(str).to_numpy() != truth)[is_open].mean() > 0.3
