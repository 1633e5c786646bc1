"""The command as a person meets it: options in, files and a few lines out, a sentence where something is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gpssl
from command import FEW, as_json, done, refused, run
from gpssl import __version__
from gpssl.cli import app
from people import prices, two_groups, written


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return written(two_groups(), tmp_path / "things.csv")


# The command itself


def test_version() -> None:
    assert done("--version") == f"gpssl {__version__}\n"


def test_help_of_each_command_has_examples() -> None:
    for name in ("embed", "transform", "label", "next", "compare", "report", "info", "datasets"):
        output = done(name, "--help")
        assert "Examples:" in output
        assert f"gpssl {name}" in output
        assert name in done("--help")


def test_completion_of_the_shell_knows_the_commands() -> None:
    environment = {"_GPSSL_COMPLETE": "complete_bash", "COMP_WORDS": "gpssl l", "COMP_CWORD": "1"}
    result = CliRunner().invoke(app, [], env=environment, prog_name="gpssl")
    assert "label" in result.output


def test_module_is_the_command() -> None:
    output = subprocess.run([sys.executable, "-m", "gpssl.cli", "--version"], capture_output=True, text=True, check=True).stdout
    assert output == f"gpssl {__version__}\n"


def test_mistake_of_ours_says_so_and_how_to_see_more(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("out of luck")

    monkeypatch.setattr("gpssl.workflows._embed.embed", fail)
    text = refused("embed", table, "-o", tmp_path / "out.csv")
    assert (
        text[text.index("Error") :] == "Error: RuntimeError: out of luck. This is likely a mistake in gpssl; GPSSL_TRACEBACK=1 shows where."
    )
    monkeypatch.setenv("GPSSL_TRACEBACK", "1")
    assert isinstance(run("embed", table, "-o", tmp_path / "out.csv").exception, RuntimeError)


def test_interruption_leaves_nothing_behind(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gpssl.workflows._embed.RepresentationColumns.__call__", interrupt)
    assert "Interrupted" in refused("embed", table, "-o", tmp_path / "out.csv", code=130)
    assert [file.name for file in tmp_path.iterdir()] == ["things.csv"]


# embed and transform


def test_embed_writes_the_table_with_new_columns_and_a_model(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    output = done("embed", table, "-o", out, "--components", "2", "--ignore", "kind")
    assert "60 rows, 3 columns, 2 dimensions" in output
    assert "'number' (it looks like an ID" in output
    before, after = pd.read_csv(table, dtype=str), pd.read_csv(out, dtype=str)
    pd.testing.assert_frame_equal(after[before.columns], before)
    assert list(after.columns[len(before.columns) :]) == ["gpssl_1", "gpssl_2", "gpssl_1_std", "gpssl_2_std"]
    model = gpssl.load(tmp_path / "out.gpssl")
    rows = pd.read_csv(table)[["size", "weight", "color"]]
    np.testing.assert_allclose(after[["gpssl_1", "gpssl_2"]].astype(float), model.transform(rows), rtol=1e-12)
    np.testing.assert_allclose(after[["gpssl_1_std", "gpssl_2_std"]].astype(float), model.std(rows), rtol=1e-12)


def test_embed_is_the_same_each_time_and_for_each_kind_of_file(table: Path, tmp_path: Path) -> None:
    parquet = tmp_path / "things.parquet"
    pd.read_csv(table).to_parquet(parquet)
    names = [f"gpssl_{j}{end}" for end in ("", "_std") for j in (1, 2)]
    results = []
    for place, source in enumerate((table, parquet, table)):
        out = tmp_path / f"out{place}.parquet"
        done("embed", source, "-o", out, "--components", "2", "--ignore", "kind")
        results.append(pd.read_parquet(out)[names].to_numpy())
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_allclose(results[0], results[1], rtol=1e-9)


def test_transform_gives_new_rows_the_same_functions_and_warns_outside_the_ranges(table: Path, tmp_path: Path) -> None:
    done("embed", table, "-o", tmp_path / "out.csv", "--components", "2", "--ignore", "kind")
    frame = pd.read_csv(table)[["size", "weight", "color"]]
    frame.loc[0, "size"] = 900.0
    frame.loc[1, "color"] = "green"
    new = written(frame, tmp_path / "new.csv")
    output = done("transform", tmp_path / "out.gpssl", new, "-o", tmp_path / "new.jsonl", "--draws", "3", "--only-new")
    assert "'size'" in output
    assert "green" in output
    result = pd.read_json(tmp_path / "new.jsonl", lines=True)
    assert result.shape == (60, 2 * 2 + 3 * 2)
    expected = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(result.loc[2:, "gpssl_1"], expected.loc[2:, "gpssl_1"], rtol=1e-9)
    assert result.loc[0, "gpssl_1_std"] == pytest.approx(1.0, abs=1e-3)  # far from all rows nothing is known


def test_transform_says_which_columns_are_missing(table: Path, tmp_path: Path) -> None:
    done("embed", table, "-o", tmp_path / "out.csv")
    new = written(pd.read_csv(table)[["size"]], tmp_path / "new.csv")
    assert "'weight'" in refused("transform", tmp_path / "out.gpssl", new, "-o", tmp_path / "new-out.csv")


def test_nothing_is_overwritten_without_force(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    out.write_text("mine\n")
    assert "--force" in refused("embed", table, "-o", out)
    assert out.read_text() == "mine\n"
    assert not (tmp_path / "out.gpssl").exists()
    done("embed", table, "-o", out, "--force")
    assert out.read_text() != "mine\n"
    assert "is what the command reads" in refused("embed", table, "-o", table, "--force")
    assert "--model" in refused("embed", table, "-o", out, "--model", out, "--force")


def test_results_may_not_go_to_an_unknown_kind_of_file(table: Path, tmp_path: Path) -> None:
    assert ".parquet" in refused("embed", table, "-o", tmp_path / "out.xlsx")
    assert "no folder" in refused("embed", table, "-o", tmp_path / "nowhere" / "out.csv")


# label


def test_label_fills_in_classes_and_says_what_to_expect(table: Path, tmp_path: Path) -> None:
    output = done("label", table, "-t", "kind", "-o", tmp_path / "out.csv", *FEW)
    assert "24 had a label in 'kind', 36 were predicted" in output
    assert "Expect 0.0 % errors among all predictions (cross-validation on 24 labels" in output
    result = pd.read_csv(tmp_path / "out.csv")
    is_open = result["kind"].isna()
    assert result.loc[~is_open, "kind_predicted"].isna().all()
    truth = np.where(result["color"] == "gray", "stone", "flower")
    assert (result.loc[is_open, "kind_predicted"] == truth[is_open]).all()
    assert result.loc[is_open, "kind_probability"].between(0.5, 1.0).all()
    assert (result.loc[is_open, "kind_std"] > 0).all()
    assert "kind_abstain" not in result


def test_label_abstains_to_hold_an_error_rate(tmp_path: Path) -> None:
    frame = two_groups(400, 200)
    rng = np.random.default_rng(1)
    doubtful = rng.random(400) < 0.3  # neither here nor there, and labeled by chance
    frame.loc[doubtful, ["size", "weight"]] = [3.0, 2.0]
    frame.loc[doubtful, "color"] = "white"
    known = frame["kind"].notna() & doubtful
    frame.loc[known, "kind"] = rng.choice(["stone", "flower"], known.sum())
    table = written(frame, tmp_path / "things.csv")
    output = done("label", table, "-t", "kind", "--max-risk", "0.05", "-o", tmp_path / "out.csv", *FEW)
    result = pd.read_csv(tmp_path / "out.csv")
    is_open = result["kind"].isna()
    abstained = result.loc[is_open, "kind_abstain"].astype(str) == "True"
    assert abstained[doubtful[is_open]].all()
    assert (~abstained[~doubtful[is_open]]).mean() > 0.8
    assert f"{(~abstained).sum()} predictions are kept, {abstained.sum()} are left to a person" in output


@pytest.mark.parametrize(
    ("options", "sure", "least"),
    [
        ((), "on average", "49 are the least that can do for all predictions"),
        (("--confidence", "95%"), "with 95 % confidence", "149 are the least"),
    ],
)
def test_promise_that_too_few_labels_cannot_give_gets_a_note(
    table: Path, tmp_path: Path, options: tuple[str, ...], sure: str, least: str
) -> None:
    output = done("label", table, "-t", "kind", "--max-risk", "0.02", *options, "-o", tmp_path / "out.csv", *FEW)
    assert f"cannot be promised {sure} from 24 labels" in output
    assert least in output
    assert "0 predictions are kept, 36 are left to a person" in output


def test_label_of_numbers_has_intervals(tmp_path: Path) -> None:
    table = written(prices(), tmp_path / "prices.csv")
    result = as_json("label", table, "-t", "price", "-o", tmp_path / "out.csv", "--only-new", *FEW)
    assert result["kind"] == "number"
    assert result["expectation"]["risk"] < 0.5 * result["expectation"]["baseline_risk"]
    written_columns = pd.read_csv(tmp_path / "out.csv")
    assert list(written_columns.columns) == ["price_predicted", "price_std", "price_lower", "price_upper"]
    known = written_columns.dropna()
    assert len(known) == 30
    assert (known["price_lower"] < known["price_predicted"]).all()
    assert (known["price_predicted"] < known["price_upper"]).all()


def test_numbers_with_a_largest_error_abstain_where_they_are_least_sure(tmp_path: Path) -> None:
    table = written(prices(120, 60), tmp_path / "prices.csv")
    everything = as_json("label", table, "-t", "price", "-o", tmp_path / "all.csv", *FEW)
    limit = 1.01 * everything["expectation"]["risk"]
    done("label", table, "-t", "price", "-o", tmp_path / "lax.csv", "--max-risk", limit, *FEW)
    assert not (pd.read_csv(tmp_path / "lax.csv")["price_abstain"].dropna().astype(str) == "True").any()
    output = done("label", table, "-t", "price", "-o", tmp_path / "strict.csv", "--max-risk", "0.001", *FEW)
    assert "No prediction is sure enough" in output


def test_labels_that_nothing_can_be_learned_from_get_a_sentence(tmp_path: Path) -> None:
    frame = two_groups()
    out = tmp_path / "out.csv"
    empty = written(frame.assign(kind=None), tmp_path / "empty.csv")
    assert "has a label in 'kind'" in refused("label", empty, "-t", "kind", "-o", out)
    constant = written(frame.assign(kind="stone"), tmp_path / "constant.csv")
    assert "are stone: there is nothing to tell apart" in refused("label", constant, "-t", "kind", "-o", out)
    table = written(frame, tmp_path / "things.csv")
    assert "'kind'" in refused("label", table, "-t", "kinds", "-o", out)
    assert refused("label", table, "-o", out, code=2)
    assert "200 % is no share between 0 and 100 %" in refused("label", table, "-t", "kind", "-o", out, "--max-risk", "200", code=2)
    assert "neither auto nor" in refused("label", table, "-t", "kind", "-o", out, "--temperature", "hot", code=2)
    assert not out.exists()


def test_class_with_one_row_is_noted(tmp_path: Path) -> None:
    frame = two_groups()
    frame.loc[frame["kind"].isna().idxmax(), "kind"] = "cloud"
    output = done("label", written(frame, tmp_path / "things.csv"), "-t", "kind", "-o", tmp_path / "out.csv", *FEW)
    assert "Classes with a single labeled row count as errors when it is held out: cloud." in output


def test_groups_are_held_out_together(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    mouse = np.repeat(np.arange(12), 5)
    frame = pd.DataFrame(rng.normal(size=(12, 6))[mouse] + 0.01 * rng.normal(size=(60, 6)), columns=list("abcdef"))
    frame["mouse"] = [f"mouse {number}" for number in mouse]
    frame["class"] = rng.permutation(np.repeat(["x", "y"], 6))[mouse]  # has nothing to do with what was measured
    table = written(frame, tmp_path / "mice.csv")
    leaking = as_json("label", table, "-t", "class", "--ignore", "mouse", "-o", tmp_path / "a.csv", *FEW)
    honest = as_json("label", table, "-t", "class", "--group", "mouse", "-o", tmp_path / "b.csv", *FEW)
    assert leaking["expectation"]["risk"] < 0.1
    assert honest["expectation"]["risk"] > 0.3


def test_promise_from_groups_counts_groups(tmp_path: Path) -> None:
    frame = two_groups(120, 100)
    frame["box"] = [f"box {place % 10}" for place in range(120)]
    table = written(frame, tmp_path / "things.csv")
    alone = as_json("label", table, "-t", "kind", "--ignore", "box", "--max-risk", "0.1", "-o", tmp_path / "a.csv", *FEW)
    asked = ("--group", "box", "--max-risk", "0.1", "--confidence", "0.95")
    together = done("label", table, "-t", "kind", *asked, "-o", tmp_path / "b.csv", *FEW)
    assert alone["n_abstained"] < 20
    assert "from 100 labels in 10 groups" in together
    assert "Label more groups (without any error, 29 are the least that can do)" in together


def test_second_run_does_not_learn_from_the_first(table: Path, tmp_path: Path) -> None:
    first = as_json("label", table, "-t", "kind", "-o", tmp_path / "a.csv", "--max-risk", "0.3", *FEW)
    again = as_json("label", tmp_path / "a.csv", "-t", "kind", "-o", tmp_path / "b.csv", "--max-risk", "0.3", *FEW)
    assert again["expectation"] == first["expectation"]
    assert any("Columns of an earlier run are not learned from" in note for note in again["notes"])
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "a.csv"), pd.read_csv(tmp_path / "b.csv"))


def test_model_of_labels_predicts_other_rows(table: Path, tmp_path: Path) -> None:
    done("label", table, "-t", "kind", "-o", tmp_path / "a.csv", "--max-risk", "0.3", *FEW)
    done("transform", tmp_path / "a.gpssl", table, "-o", tmp_path / "b.csv")
    labeled, predicted = pd.read_csv(tmp_path / "a.csv"), pd.read_csv(tmp_path / "b.csv")
    is_open = labeled["kind"].isna()
    for name in ("kind_predicted", "kind_abstain"):
        assert (labeled.loc[is_open, name].astype(str) == predicted.loc[is_open, name].astype(str)).all()
    np.testing.assert_allclose(predicted.loc[is_open, "kind_probability"], labeled.loc[is_open, "kind_probability"], rtol=1e-9)
    assert predicted["kind_predicted"].notna().all()


# compare


def test_compare_ends_with_a_recommendation(tmp_path: Path) -> None:
    table = written(two_groups(120, 60), tmp_path / "things.csv")
    output = done("compare", table, "-t", "kind", "--splits", "3", *FEW)
    for method in ("pool", "GPSSL-full", "GPSSL-mean", "columns", "random forest", "kernel PCA", "label spreading", "self-training"):
        assert f"\n{method} " in output
    assert output.strip().splitlines()[-1].startswith("Not decided: the labels do not tell the pool from columns, ")
    assert output.strip().endswith("use more splits, --splits 20.")


def test_compare_of_numbers_for_scripts(tmp_path: Path) -> None:
    table = written(prices(), tmp_path / "prices.csv")
    result = as_json("compare", table, "-t", "price", "--splits", "2", *FEW)
    assert set(result["scores"]) == {"pool", "columns", "random forest", "kernel PCA", "VICReg", "GP prior", "GPSSL-mean", "GPSSL-full"}
    assert set(result["differences"]) == set(result["scores"]) - {"pool"}
    assert result["deciding"] == "NLL"
    assert {"mean", "lower", "upper", "verdict", "words"} <= set(result["differences"]["columns"])
    assert set(result["scores"]["GPSSL-full"]) == {"RMSE", "NLL", "coverage"}
    assert result["n_splits"] == 2


def test_too_few_labels_to_compare_get_a_sentence(tmp_path: Path) -> None:
    frame = two_groups(40, 0)
    frame.loc[[0, 1], "kind"] = ["stone", "flower"]
    assert "too few to compare" in refused("compare", written(frame, tmp_path / "things.csv"), "-t", "kind")


# report, info, datasets


def test_report_and_info_of_a_model(table: Path, tmp_path: Path) -> None:
    done("label", table, "-t", "kind", "-o", tmp_path / "out.csv", *FEW)
    model = tmp_path / "out.gpssl"
    output = done("report", model, table, "-o", tmp_path / "out.html", "--no-rivals")
    assert "All 36 predictions are kept. Expect 0.0 % errors among all predictions" in output
    assert "things.csv" in (tmp_path / "out.html").read_text()
    assert "--force" in refused("report", model, table, "-o", tmp_path / "out.html", "--no-rivals")
    information = done("info", model)
    assert "MarginalizedClassifier" in information
    assert "color" in information
    card = as_json("info", model)
    assert card["notes"]["target"] == "kind"
    assert [column["name"] for column in card["columns"]] == ["size", "weight", "color"]


def test_report_of_a_representation_needs_no_labels(table: Path, tmp_path: Path) -> None:
    done("embed", table, "-o", tmp_path / "out.csv", "--ignore", "kind")
    output = done("report", tmp_path / "out.gpssl", table)
    assert "without looking at labels" in output
    assert (tmp_path / "out.html").exists()
    output = done("report", tmp_path / "out.gpssl", table, "--target", "kind", "--no-rivals", "--force")
    assert "All 36 predictions are kept. Expect 0.0 % errors among all predictions" in output


def test_report_refuses_a_target_that_the_model_has_seen(table: Path, tmp_path: Path) -> None:
    done("embed", table, "-o", tmp_path / "out.csv")
    assert "has looked at 'kind'" in refused("report", tmp_path / "out.gpssl", table, "--target", "kind")


def test_report_writes_over_neither_table_nor_model(table: Path, tmp_path: Path) -> None:
    done("embed", table, "-o", tmp_path / "out.csv")
    for path in (table, tmp_path / "out.gpssl"):
        before = path.read_bytes()
        assert "is what the command reads" in refused("report", tmp_path / "out.gpssl", table, "-o", path, "--force")
        assert path.read_bytes() == before


def test_report_holds_out_groups_as_label_did_and_can_have_another_target(tmp_path: Path) -> None:
    frame = two_groups(80, 60)
    frame["box"] = [f"box {place % 16}" for place in range(80)]
    frame["price"] = np.where(frame["size"] > 3, "dear", "cheap")
    table = written(frame, tmp_path / "things.csv")
    options = ("-t", "kind", "--group", "box", "--ignore", "price", "-o", tmp_path / "out.csv", *FEW)
    expected = as_json("label", table, *options)["expectation"]["risk"]
    output = done("report", tmp_path / "out.gpssl", table, "--no-rivals")
    assert f"Expect {100 * expected:.1f} % errors among all predictions" in output
    other = done("report", tmp_path / "out.gpssl", table, "--no-rivals", "--target", "price", "--force")
    assert "All rows have a label in 'price': nothing is left to predict." in other
    assert "dear" in (tmp_path / "out.html").read_text()


def test_what_is_no_model_gets_a_sentence(table: Path, tmp_path: Path) -> None:
    assert "things.csv" in refused("info", table)
    assert "nothing.gpssl" in refused("info", tmp_path / "nothing.gpssl")


def test_sentences_of_the_library_name_options_and_files(table: Path, tmp_path: Path) -> None:
    text = refused("embed", table, "-o", tmp_path / "out.csv", "--components", "500")
    assert "lower --components" in text
    assert str(tmp_path) in refused("info", tmp_path)


def test_datasets_are_listed_and_written(tmp_path: Path) -> None:
    assert "breast_cancer" in done("datasets")
    assert {"name": "wine", "rows": 178, "columns": 13, "predicts": "3 classes"} in as_json("datasets")
    done("datasets", "wine", "-o", tmp_path / "wine.csv", "--labels", "30")
    frame = pd.read_csv(tmp_path / "wine.csv")
    assert (len(frame), frame["target"].notna().sum()) == (178, 30)
    assert "There is no data set 'beer'; there are breast_cancer" in refused("datasets", "beer", "-o", tmp_path / "beer.csv")
    assert "--force" in refused("datasets", "wine", "-o", tmp_path / "wine.csv")
