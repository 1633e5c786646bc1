"""Pure spots: found where they are known to be, and never labeled without saying how sure."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import anndata
import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.metrics import roc_auc_score

from gpssl.spatial import pure_spots
from gpssl.spatial._pure_spots import find_archetypes, find_signatures, match_archetypes, signature_scores

Array = NDArray[np.float64]

N_TYPES, N_MARKERS, N_GENES = 4, 8, 200
TYPES = [f"type {t}" for t in range(N_TYPES)]
SIGNATURES = {name: [f"Gene{N_MARKERS * t + j}" for j in range(N_MARKERS)] for t, name in enumerate(TYPES)}


def made_up_slice(seed: int = 0, *, fold: float = 5.0, n: int = 400) -> anndata.AnnData:
    """Overdispersed counts of mixtures of four types, each with eight markers; a third of the spots are nearly pure."""
    rng = np.random.default_rng(seed)
    proportions = rng.dirichlet(np.full(N_TYPES, 0.35), size=n)
    profiles = np.tile(rng.gamma(0.8, 1.0, N_GENES) + 0.05, (N_TYPES, 1))
    for t in range(N_TYPES):
        profiles[t, N_MARKERS * t : N_MARKERS * (t + 1)] *= fold
    rates = proportions @ (profiles / profiles.sum(axis=1, keepdims=True)) * 1500 * rng.lognormal(0.0, 0.3, (n, 1))
    adata = anndata.AnnData(csr_matrix(rng.poisson(rng.gamma(2.0, rates / 2.0)).astype(np.float32)))
    adata.var_names = [f"Gene{j}" for j in range(N_GENES)]
    adata.obs_names = [f"spot {i}" for i in range(n)]
    adata.obsm["proportions"] = pd.DataFrame(proportions, index=adata.obs_names, columns=TYPES)
    adata.obs["cell_type"] = pd.Categorical.from_codes(proportions.argmax(axis=1), categories=TYPES)
    return adata


@pytest.fixture(scope="module")
def labeled() -> anndata.AnnData:
    adata = made_up_slice()
    pure_spots(adata, SIGNATURES)
    return adata


def right(adata: anndata.AnnData) -> tuple[NDArray[np.bool_], Array]:
    """Whether each label is the dominant type, and its certainty."""
    known = adata.obs["pure_label"].notna()
    same = adata.obs["pure_label"].astype(str)[known] == adata.obs["cell_type"].astype(str)[known]
    return same.to_numpy(), adata.obs["pure_certainty"][known].to_numpy()


# Archetypes


def test_archetypes_of_a_triangle_are_its_corners() -> None:
    corners = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]])
    shares = np.vstack([np.eye(3), np.random.default_rng(0).dirichlet(np.ones(3), 300)])
    found = find_archetypes(shares @ corners, 3, random_state=0)
    order = found.distances()[:3].argmin(axis=1)
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(found.corners[order], found.points[:3], atol=0.02)
    np.testing.assert_allclose(found.shares[:, order], shares, atol=0.02)


def test_shares_are_mixtures_and_distances_those_of_a_loop() -> None:
    scores = np.random.default_rng(1).normal(size=(60, 6))
    found = find_archetypes(scores, 4, random_state=0)
    assert found.points.shape == (60, 3)  # four corners span three dimensions
    np.testing.assert_allclose((found.points**2).sum(axis=1).mean(), 1.0)
    assert found.shares.min() >= 0
    np.testing.assert_allclose(found.shares.sum(axis=1), 1.0)
    expected = [[np.linalg.norm(point - corner) for corner in found.corners] for point in found.points]
    np.testing.assert_allclose(found.distances(), expected, atol=1e-7)


def test_noise_in_further_components_does_not_move_the_corners() -> None:
    rng = np.random.default_rng(2)
    shares = np.vstack([np.repeat(np.eye(3), 5, axis=0), rng.dirichlet(np.ones(3), 200)])
    scores = np.hstack([shares @ (10 * rng.normal(size=(3, 3))), rng.normal(size=(215, 15))])
    found = find_archetypes(scores, 3, random_state=0)
    assert {int(found.shares[5 * t : 5 * t + 5].mean(axis=0).argmax()) for t in range(3)} == {0, 1, 2}
    assert all(found.shares[5 * t : 5 * t + 5].mean(axis=0).max() > 0.85 for t in range(3))


def test_a_sample_of_many_points_has_the_same_corners(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = np.random.default_rng(3).dirichlet(np.full(3, 0.4), 2000)
    scores = shares @ np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 3.0]])
    whole = find_archetypes(scores, 3, random_state=0)
    monkeypatch.setattr("gpssl.spatial._pure_spots.MAX_FITTED", 300)
    sampled = find_archetypes(scores, 3, random_state=0)
    assert sampled.shares.shape == (2000, 3)
    gaps = np.linalg.norm(sampled.corners[:, None] - whole.corners, axis=2)
    assert gaps.min(axis=1).max() < 0.05


def test_equal_spots_have_no_archetypes() -> None:
    with pytest.raises(ValueError, match="same expression"):
        find_archetypes(np.ones((20, 4)), 3, random_state=0)


def test_matching_is_the_best_one_to_one() -> None:
    rng = np.random.default_rng(4)
    scores, near = rng.normal(size=(50, 3)), rng.integers(50, size=(10, 5))
    matching = match_archetypes(scores, near)
    totals = {some: sum(scores[near[:, k], t].mean() for t, k in enumerate(some)) for some in itertools.permutations(range(5), 3)}
    assert tuple(matching.archetypes) == max(totals, key=totals.__getitem__)
    for t, k in enumerate(matching.archetypes):
        assert matching.agreement[t] == np.mean([scores[i].argmax() == t for i in near[:, k]])


# Signatures


def test_scores_are_standardized_means_of_standardized_log_expression() -> None:
    adata = made_up_slice(n=30)
    some = {"a": ["Gene0", "Gene5"], "b": ["Gene9"]}
    counts = adata.X.toarray().astype(np.float64)
    logged = np.log1p(counts / counts.sum(axis=1, keepdims=True) * np.median(counts.sum(axis=1)))
    z = (logged - logged.mean(axis=0)) / logged.std(axis=0)
    mean = z[:, [0, 5]].mean(axis=1)
    found = signature_scores(adata, find_signatures(some, adata.var_names))
    np.testing.assert_allclose(found, np.column_stack([mean / mean.std(), z[:, 9]]), atol=1e-9)


def test_a_ragged_frame_is_the_same_as_lists() -> None:
    frame = pd.DataFrame({"a": ["Gene1", "Gene2", "Gene2"], "b": ["Gene3", np.nan, None]})
    found = find_signatures(frame, ["Gene1", "Gene2", "Gene3"])
    assert found.used == {"a": ["Gene1", "Gene2"], "b": ["Gene3"]}
    assert found.missing == {"a": [], "b": []}


def test_missing_genes_are_listed_and_left_out() -> None:
    adata = made_up_slice(n=100)
    some = {**SIGNATURES, "type 1": [*SIGNATURES["type 1"], "absent", "GENE3"]}
    with pytest.warns(UserWarning, match=r"type 1: absent, GENE3.*1 of them differ.*GENE3 is Gene3"):
        pure_spots(adata, some)
    genes = adata.uns["pure"]["genes"]
    assert genes[~genes["used"]]["gene"].tolist() == ["absent", "GENE3"]
    assert genes["used"].sum() == N_TYPES * N_MARKERS


@pytest.mark.parametrize(
    ("signatures", "error", "sentence"),
    [
        ({}, ValueError, "at least two"),
        ({"a": ["Gene1"]}, ValueError, "at least two"),
        (["Gene1"], TypeError, "names of types with their genes"),
        ({"a": "Gene1", "b": ["Gene2"]}, TypeError, "pass a list"),
        ({"a": ["Gene1"], "b": []}, ValueError, "No gene of 'b' is in the data: b: none given"),
        ({"a": ["Gene1"], "b": ["gene2", "nothing"]}, ValueError, "b: gene2, nothing.*gene2 is Gene2"),
        ({"a": ["Gene1"], "b": ["Gene1"]}, ValueError, "'a' and 'b' have the same genes"),
        (pd.DataFrame({"Unnamed: 0": [0, 1], "a": ["Gene1", "Gene2"]}), TypeError, "index_col=0"),
        (pd.DataFrame([["Gene1", "Gene2"]], columns=["a", "a"]), ValueError, "same name"),
    ],
)
def test_unusable_signatures_get_a_sentence(signatures: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        pure_spots(made_up_slice(n=30), signatures)


def test_genes_that_no_spot_expresses_get_a_sentence() -> None:
    adata = made_up_slice(n=60)
    adata.X = csr_matrix(adata.X.toarray() * ~np.isin(adata.var_names, SIGNATURES["type 2"]))
    with pytest.raises(ValueError, match="'type 2' do not vary"):
        pure_spots(adata, SIGNATURES)


# Labels


def test_labels_are_the_dominant_types(labeled: anndata.AnnData) -> None:
    # Chance is 1/4. Markers are five times as strong in their type, and over ten seeds 0.95 to 1.00 of the labels were right.
    same, _ = right(labeled)
    assert 40 <= len(same) <= 0.2 * labeled.n_obs
    assert same.mean() > 0.9
    own = labeled.obsm["proportions"].to_numpy()[labeled.obs["pure_label"].notna(), labeled.obs["pure_label"].dropna().cat.codes]
    assert own.mean() > labeled.obsm["proportions"].to_numpy().max(axis=1).mean() + 0.05


def test_certainty_is_higher_for_right_labels() -> None:
    # Weak markers, so that a fifth are wrong. Over four such triples of slices the area was 0.73 to 0.79, and of the surer half 0.91 to
    # 0.94 were right, of the other half 0.62 to 0.71.
    found = []
    for seed in range(3):
        adata = made_up_slice(seed, fold=2.5)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="No spot is labeled")
            pure_spots(adata, SIGNATURES)
        found.append(right(adata))
    same, certainty = (np.concatenate(parts) for parts in zip(*found, strict=True))
    assert (~same).sum() > 10
    assert roc_auc_score(same, certainty) > 0.65
    assert same[certainty > np.median(certainty)].mean() > same[certainty <= np.median(certainty)].mean() + 0.1


def test_certainty_is_there_where_a_label_is(labeled: anndata.AnnData) -> None:
    certainty = labeled.obs["pure_certainty"]
    assert (certainty.notna() == labeled.obs["pure_label"].notna()).all()
    assert certainty.dropna().between(0, 1).all()


def test_each_type_has_an_archetype_of_its_own(labeled: anndata.AnnData) -> None:
    matching = labeled.uns["pure"]["matching"]
    assert matching["type"].tolist() == TYPES
    assert matching["archetype"].is_unique
    assert labeled.uns["pure"]["archetype_scores"].shape == (N_TYPES + 1, N_TYPES)
    assert matching["n_labeled"].tolist() == labeled.obs["pure_label"].value_counts()[TYPES].tolist()


def test_a_label_is_the_strongest_signature_too(labeled: anndata.AnnData) -> None:
    known = labeled.obs["pure_label"].notna()
    assert (labeled.obsm["pure_scores"][known].idxmax(axis=1) == labeled.obs["pure_label"][known].astype(str)).all()


def test_types_without_a_signature_leave_the_others_right() -> None:
    adata = made_up_slice(1)
    pure_spots(adata, {name: SIGNATURES[name] for name in TYPES[:-1]})
    assert right(adata)[0].mean() > 0.9


def test_a_type_that_is_not_in_the_tissue_has_no_certain_label() -> None:
    adata = made_up_slice()
    foreign = {**SIGNATURES, "foreign": [f"Gene{j}" for j in range(100, 108)]}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="No spot is labeled")
        pure_spots(adata, foreign)
    foreign_certainty = adata.obs["pure_certainty"][adata.obs["pure_label"] == "foreign"].fillna(0.0).max()
    assert not foreign_certainty > adata.obs["pure_certainty"].median()
    assert adata.uns["pure"]["matching"].set_index("type")["agreement"].idxmin() == "foreign"


def test_the_same_seed_gives_the_same_labels(labeled: anndata.AnnData) -> None:
    again = made_up_slice()
    pure_spots(again, SIGNATURES, random_state=0)
    pd.testing.assert_frame_equal(again.obs, labeled.obs)


def test_fields_survive_a_file(labeled: anndata.AnnData, tmp_path: Path) -> None:
    labeled.write_h5ad(tmp_path / "slice.h5ad")
    read = anndata.read_h5ad(tmp_path / "slice.h5ad")
    pd.testing.assert_frame_equal(read.obs, labeled.obs)
    pd.testing.assert_frame_equal(read.obsm["pure_scores"], labeled.obsm["pure_scores"])
    for name in ("matching", "genes"):
        pd.testing.assert_frame_equal(read.uns["pure"][name], labeled.uns["pure"][name], check_dtype=False)
    np.testing.assert_array_equal(read.uns["pure"]["archetype_scores"], labeled.uns["pure"]["archetype_scores"])
    assert dict(read.uns["pure"]["params"]) == labeled.uns["pure"]["params"]


def test_layer_and_representation_and_key_are_used(labeled: anndata.AnnData) -> None:
    adata = made_up_slice()
    adata.layers["counts"], adata.obsm["other"] = adata.X, np.array(labeled.obsm["X_pca"])
    adata.X = csr_matrix(adata.shape)
    pure_spots(adata, SIGNATURES, layer="counts", use_rep="other", key_added="sure", n_spots=7)
    assert "X_pca" not in adata.obsm
    assert adata.uns["sure"]["params"]["n_spots"] == 7
    assert adata.obs["sure_label"].value_counts().max() <= 7
    both = adata.obs["sure_label"].notna() & labeled.obs["pure_label"].notna()
    assert both.sum() >= 20
    assert (adata.obs["sure_label"][both].astype(str) == labeled.obs["pure_label"][both].astype(str)).all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_archetypes": 3}, "at least 4 for 4 types"),
        ({"n_archetypes": 40}, "30 spots and 40 archetypes"),
        ({"n_spots": 0}, "n_spots must be a whole number of at least 1"),
        ({"use_rep": "nowhere"}, "There is no obsm"),
    ],
)
def test_unusable_arguments_get_a_sentence(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        pure_spots(made_up_slice(n=30), SIGNATURES, **arguments)


def test_duplicate_genes_and_nan_get_a_sentence() -> None:
    adata = made_up_slice(n=30)
    adata.X = adata.X.toarray()
    adata.X[3, 4] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        pure_spots(adata, SIGNATURES)
    adata.var_names = ["Gene1", *adata.var_names[1:]]
    with pytest.raises(ValueError, match="var_names_make_unique"):
        pure_spots(adata, {"a": ["Gene1"], "b": ["Gene2"]})


def test_the_package_for_archetypes_is_quiet() -> None:
    code = "import numpy as np; from gpssl.spatial._pure_spots import find_archetypes; find_archetypes(np.eye(9), 2, random_state=0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""


@pytest.mark.skipif("GPSSL_DATA" not in os.environ, reason="GPSSL_DATA is not set")
def test_a_breast_tumor_has_pure_spots_whose_markers_are_high() -> None:
    import scanpy

    folder = Path(os.environ["GPSSL_DATA"])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Variable names are not unique")
        adata = scanpy.read_10x_h5(folder / "tnbc_visium_gse210616" / "GSM6433617_396A_filtered_feature_bc_matrix.h5")
    adata.var_names_make_unique()
    signatures = pd.read_csv(folder / "starfysh_signatures" / "tnbc_signature.csv")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="These genes of the signatures|No spot is labeled")
        pure_spots(adata, signatures)
    labels = adata.obs["pure_label"]
    assert labels.value_counts()[["CAFs", "Cancer Epithelial"]].min() >= 10
    for name in set(labels.dropna()):
        assert adata.obsm["pure_scores"][name][labels == name].min() > 0
