"""Types at every spot from a few labels: truth of a simulated slice, fields, and abstention."""

from __future__ import annotations

from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from experiments.simulation import simulate, simulate_reference
from gpssl import MarginalizedClassifier
from gpssl.spatial import composition, embed, representation


@pytest.fixture(scope="module")
def embedded() -> anndata.AnnData:
    adata = simulate(simulate_reference(), shape=(20, 20))
    pure = np.random.default_rng(0).permutation(np.flatnonzero(adata.obs["purity"] > 0.8))
    adata.obs["known"] = adata.obs["cell_type"].where(np.isin(np.arange(adata.n_obs), pure[:80]))
    embed(adata)
    return adata


@pytest.fixture
def adata(embedded: anndata.AnnData) -> anndata.AnnData:
    return embedded.copy()


def some_of_all_spots(adata: anndata.AnnData) -> pd.Series:
    """The types of 120 spots, pure and mixed ones, chosen at random."""
    chosen = np.random.default_rng(1).permutation(adata.n_obs)[:120]
    return adata.obs["cell_type"].where(np.isin(np.arange(adata.n_obs), chosen))


def test_probabilities_are_close_to_the_proportions(adata: anndata.AnnData) -> None:
    composition(adata, "known")
    truth, found = adata.obsm["proportions"], adata.obsm["gpssl_proba"]
    assert list(found.columns) == sorted(truth.columns)
    others = adata.obs["known"].isna().to_numpy()
    error = ((found[truth.columns] - truth)[others] ** 2).to_numpy().mean()
    shares = adata.obs["known"].value_counts(normalize=True)[truth.columns].to_numpy()
    guess = ((truth[others] - shares) ** 2).to_numpy().mean()
    assert error < guess / 4
    right = adata.obs["gpssl_label"].astype(str) == adata.obs["cell_type"].astype(str)
    assert right[others].mean() > 0.75
    assert adata.obs["gpssl_certainty"][right].mean() > adata.obs["gpssl_certainty"][~right].mean() + 0.1


def test_labels_weigh_a_pool_around_the_representation(adata: anndata.AnnData) -> None:
    composition(adata, "known", n_draws=None)
    shares = adata.uns["gpssl_composition"]["shares"]
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["columns"] < 0.1 < max(shares.values())
    others = adata.obs["known"].isna().to_numpy()
    right = adata.obs["gpssl_label"].astype(str) == adata.obs["cell_type"].astype(str)
    assert right[others].mean() > 0.7


def test_probabilities_are_the_classifier_s_on_the_posterior(adata: anndata.AnnData) -> None:
    composition(adata, "known", n_draws=20, random_state=5)
    fitted = representation(adata)
    labels = adata.obs["known"].astype(object).where(adata.obs["known"].notna(), None).to_numpy()
    model = MarginalizedClassifier(FrozenEstimator(fitted.ssl), n_draws=20, weighting="equal", random_state=5).fit(fitted.rows, labels)
    np.testing.assert_array_equal(adata.obsm["gpssl_proba"], model.predict_proba(fitted.rows))
    np.testing.assert_array_equal(adata.obsm["gpssl_proba_std"], model.predict_proba_std(fitted.rows))
    np.testing.assert_array_equal(adata.obs["gpssl_label"].astype(str), model.predict(fitted.rows))


def test_file_keeps_every_field_and_gives_the_same_again(adata: anndata.AnnData, tmp_path: Path) -> None:
    composition(adata, "known", n_draws=10, max_risk=0.3)
    adata.write_h5ad(tmp_path / "slice.h5ad")
    again = anndata.read_h5ad(tmp_path / "slice.h5ad")
    pd.testing.assert_frame_equal(again.obs, adata.obs, check_categorical=False)
    for name in ("gpssl_proba", "gpssl_proba_std"):
        pd.testing.assert_frame_equal(again.obsm[name], adata.obsm[name])
    assert again.uns["gpssl_composition"] == adata.uns["gpssl_composition"]
    expected = adata.obsm["gpssl_proba"].copy()
    composition(again, "known", n_draws=10)
    pd.testing.assert_frame_equal(again.obsm["gpssl_proba"], expected)


def test_marks_of_unlabeled_spots(adata: anndata.AnnData) -> None:
    composition(adata, "known", n_draws=5)
    expected = adata.obsm["gpssl_proba"].to_numpy()
    codes = adata.obs["known"].cat.codes
    adata.obs["numbers"] = codes
    adata.obs["text"] = adata.obs["known"].astype(object).where(adata.obs["known"].notna(), "not known")
    adata.obs["fractions"] = codes.where(codes >= 0)
    adata.obs["empty"] = adata.obs["text"].replace("not known", "")
    adata.obs["word"] = adata.obs["text"].replace("not known", "NA")
    for key, unlabeled in (("numbers", None), ("text", "not known"), ("fractions", None), ("empty", None), ("word", None)):
        composition(adata, key, n_draws=5, unlabeled=unlabeled)
        np.testing.assert_allclose(adata.obsm["gpssl_proba"], expected, atol=1e-12)


def test_whole_numbers_stay_whole_and_all_categories_stay(adata: anndata.AnnData) -> None:
    codes = adata.obs["known"].cat.codes
    adata.obs["fractions"] = codes.where(codes >= 0)
    composition(adata, "fractions", n_draws=3)
    assert list(adata.obsm["gpssl_proba"].columns) == ["0", "1", "2", "3"]
    adata.obs["known"] = adata.obs["known"].cat.add_categories(["absent"])
    composition(adata, "known", n_draws=3)
    assert list(adata.obs["gpssl_label"].cat.categories) == sorted(["absent", *adata.obsm["gpssl_proba"].columns])


def test_rare_type_does_not_keep_others_from_being_judged(adata: anndata.AnnData) -> None:
    first = adata.obs["cell_type"].iloc[0]
    known = some_of_all_spots(adata)
    rare = (known == first) & (np.cumsum(known == first) > 1)
    adata.obs["known"] = known.mask(rare)
    assert adata.obs["known"].value_counts()[first] == 1
    composition(adata, "known", n_draws=3, max_risk=0.4)
    assert adata.obs["gpssl_kept"].any()


def test_without_places_each_spot_is_judged_alone(adata: anndata.AnnData) -> None:
    embed(adata, spatial_key=None)
    adata.obs["known"] = some_of_all_spots(adata)
    composition(adata, "known", n_draws=3, max_risk=0.4)
    assert adata.obs["gpssl_kept"].any()


def test_labels_of_pure_spots_promise_nothing_for_the_others(adata: anndata.AnnData) -> None:
    """They are predicted without error when they are held out; a quarter of the other spots is not."""
    adata.obs["known"] = adata.obs["cell_type"].where(adata.obs["purity"] > 0.8)
    with pytest.warns(UserWarning, match="labeled spots are not like the others: .* No error rate can be promised there"):
        composition(adata, "known", n_draws=20, max_risk=0.2)
    assert not adata.obs["gpssl_kept"].any()
    shift = adata.uns["gpssl_composition"]["shift"]
    assert shift["others"] < shift["held_out"] - 0.1
    others = adata.obs["known"].isna()
    wrong = adata.obs["gpssl_label"].astype(str) != adata.obs["cell_type"].astype(str)
    assert wrong[others].mean() > 0.2
    adata.obs["known"] = some_of_all_spots(adata)
    composition(adata, "known", n_draws=20, max_risk=0.4)  # labels that are a random sample are no such case
    assert "shift" not in adata.uns["gpssl_composition"]


def test_any_head_will_do(adata: anndata.AnnData) -> None:
    composition(adata, "known", head=LogisticRegression(), n_draws=5)
    np.testing.assert_allclose(adata.obsm["gpssl_proba"].sum(axis=1), 1.0)


def test_abstention_holds_the_risk(adata: anndata.AnnData) -> None:
    """Among the other spots, which the labeled ones are like, kept labels are wrong less often than allowed."""
    adata.obs["known"] = some_of_all_spots(adata)
    composition(adata, "known", max_risk=0.3)
    facts = adata.uns["gpssl_composition"]
    kept = adata.obs["gpssl_kept"]
    np.testing.assert_array_equal(kept, adata.obs["gpssl_certainty"] > facts["threshold"])
    others = adata.obs["known"].isna()
    wrong = adata.obs["gpssl_label"].astype(str) != adata.obs["cell_type"].astype(str)
    assert (kept & others).sum() > 50
    assert wrong[kept & others].mean() <= 0.3
    composition(adata, "known", n_draws=5)
    assert "gpssl_kept" not in adata.obs  # of an earlier call, and no longer true


def test_stricter_risk_keeps_fewer(adata: anndata.AnnData) -> None:
    mixed_too = np.random.default_rng(0).random(adata.n_obs) < 0.6  # whose dominant type is not always seen
    adata.obs["dominant"] = adata.obs["cell_type"].where(mixed_too)
    counts = []
    for risk in (0.4, 0.2, 0.1):
        composition(adata, "dominant", n_draws=10, max_risk=risk)
        counts.append(adata.obs["gpssl_kept"].sum())
    assert counts[0] >= counts[1] >= counts[2]
    assert counts[0] > counts[2]


def test_what_does_not_fit_is_said(adata: anndata.AnnData) -> None:
    adata.obs["nothing"] = pd.Series(np.nan, index=adata.obs_names)
    adata.obs["one"] = adata.obs["known"].where(adata.obs["known"] == adata.obs["known"].dropna().iloc[0])
    with pytest.raises(ValueError, match=r"No spot has a label in obs\['nothing'\].*pure_spots"):
        composition(adata, "nothing")
    with pytest.raises(ValueError, match="label_key='typo' is no column of obs; the columns are 'cell_type'"):
        composition(adata, "typo")
    with pytest.raises(ValueError, match=r"unlabeled='unknow' does not occur in obs\['known'\], which has"):
        composition(adata, "known", unlabeled="unknow")
    adata.obs["few"] = adata.obs["cell_type"].where(~adata.obs["cell_type"].duplicated())
    with pytest.raises(ValueError, match="4 labels are too few to hold some of them out"):
        composition(adata, "few", n_draws=3, max_risk=0.1)
    with pytest.raises(ValueError, match=r"obs\['purity'\] has fractions, such as 0.*measurements, not types"):
        composition(adata, "purity")
    with pytest.raises(ValueError, match="only one class"):
        composition(adata, "one")
    with pytest.raises(ValueError, match=r"call gpssl\.spatial\.embed"):
        composition(adata, "known", key="other")
    with pytest.raises(TypeError, match="Expected AnnData, got DataFrame"):
        composition(adata.obs, "known")
    assert "gpssl_proba" not in adata.obsm
