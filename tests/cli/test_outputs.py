"""Where results go: names are checked before any work, and files look as the person's did."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from command import FEW, done, refused, run
from gpssl.cli import app
from gpssl.data import write_table
from gpssl.data._outputs import Style
from people import two_groups, written


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return written(two_groups(), tmp_path / "things.csv")


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever opens the table does so too early."""

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("the table was opened before the names of the outputs were checked")

    for module in ("workflows._embed", "workflows._label", "report._making"):
        monkeypatch.setattr(f"gpssl.{module}.open_subject", fail)


WRONG = {
    "out.csv.bz2": "ends in .bz2; tables are written as .csv, .tsv",
    "out.xlsx": "ends in .xlsx; tables are written as",
    "out.parquet.gz": "ends in .gz; tables are written as",
    "out.h5ad": "ends in .h5ad; tables are written as",
    "out": "ends in nothing; tables are written as",
    "nowhere/out.csv": "There is no folder",
    "things.csv": "exists: pass --force",
}


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("command", ["embed", "label"])
def test_names_of_results_are_checked_before_the_table_is_opened(table: Path, tmp_path: Path, name: str, command: str) -> None:
    options = ["-t", "kind"] if command == "label" else []
    assert WRONG[name] in refused(command, table, *options, "-o", tmp_path / name)


@pytest.mark.usefixtures("no_work")
def test_names_of_models_and_reports_are_checked_first(table: Path, tmp_path: Path) -> None:
    (tmp_path / "old.gpssl").write_bytes(b"old")
    assert "exists" in refused("label", table, "-t", "kind", "-o", tmp_path / "out.csv", "-m", tmp_path / "old.gpssl")
    assert "There is no folder" in refused("embed", table, "-o", tmp_path / "out.csv", "-m", tmp_path / "no" / "m.gpssl")
    assert "ends in .pdf: choose a name that ends in .html" in refused("report", tmp_path / "m.gpssl", table, "-o", tmp_path / "r.pdf")
    assert "There is no folder" in refused("report", tmp_path / "m.gpssl", table, "-o", tmp_path / "no" / "r.html")
    assert "ends in .gz" in refused("transform", tmp_path / "m.gpssl", table, "-o", tmp_path / "out.gz")


@pytest.mark.parametrize("ending", ["csv.gz", "tsv.gz", "jsonl.gz"])
def test_compressed_results(table: Path, tmp_path: Path, ending: str) -> None:
    printed = done("label", table, "-t", "kind", "-o", tmp_path / f"out.{ending}", *FEW)
    assert f"wrote {tmp_path / 'out.gpssl'}" in printed
    packed = (tmp_path / f"out.{ending}").read_bytes()
    lines = gzip.decompress(packed).decode().splitlines()
    done("label", table, "-t", "kind", "-o", tmp_path / f"plain.{ending[:-3]}", *FEW)
    assert lines == (tmp_path / f"plain.{ending[:-3]}").read_text().splitlines()
    done("label", table, "-t", "kind", "-o", tmp_path / f"again.{ending}", *FEW)
    assert (tmp_path / f"again.{ending}").read_bytes() == packed
    assert "60 rows" in done("transform", tmp_path / "out.gpssl", tmp_path / f"out.{ending}", "-o", tmp_path / "more.csv")
    assert len(pd.read_csv(tmp_path / "more.csv")) == 60


def piped(text: bytes, *arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)


PLAIN = two_groups().to_csv(index=False).encode()


@pytest.mark.parametrize("content", [PLAIN, gzip.compress(PLAIN), PLAIN.replace(b",", b"\t")], ids=["plain", "gzip", "tabs"])
def test_standard_input_and_output(tmp_path: Path, content: bytes) -> None:
    result = piped(content, "embed", "-", "-o", "-", "--components", "2", "-m", tmp_path / "model.gpssl")
    assert result.exit_code == 0, result.output
    found = pd.read_csv(io.StringIO(result.stdout), sep=None, engine="python")
    assert len(found) == 60
    assert found.columns.tolist()[-4:] == ["gpssl_1", "gpssl_2", "gpssl_1_std", "gpssl_2_std"]
    assert "60 rows" in result.stderr
    assert f"wrote {tmp_path / 'model.gpssl'}" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["model.gpssl"]


def test_standard_output_has_the_table_alone_also_with_json(table: Path, tmp_path: Path) -> None:
    result = piped(b"", "embed", table, "-o", "-", "--components", "2", "--json")
    assert result.exit_code == 0
    assert result.stdout.startswith("number,size,weight,color,kind,gpssl_1")
    assert len(result.stdout.splitlines()) == 61
    assert json.loads(result.stderr[result.stderr.index("{") :])["n_rows"] == 60
    assert [path.name for path in tmp_path.iterdir()] == ["things.csv"]
    done("embed", table, "-o", tmp_path / "file.csv", "--components", "2")
    assert (tmp_path / "file.csv").read_text() == result.stdout


def test_standard_input_that_is_no_table_gets_a_sentence(tmp_path: Path) -> None:
    for content, sentence in {b"": "standard input is empty", b"1,2\n3,4\n": "The first line of standard input holds numbers"}.items():
        result = piped(content, "embed", "-", "-o", tmp_path / "out.csv")
        assert result.exit_code == 1
        assert sentence in result.output


@pytest.mark.parametrize("name", ["things.parquet", "things.xlsx", "things.zip", "things.jsonl"])
def test_standard_input_of_other_kinds_is_known_by_its_content(tmp_path: Path, name: str) -> None:
    path, frame = tmp_path / name, two_groups()
    if name.endswith(".parquet"):
        frame.to_parquet(path)
    elif name.endswith(".xlsx"):
        frame.to_excel(path, index=False)
    elif name.endswith(".jsonl"):
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, compression={"method": "zip", "archive_name": "things.csv"})
    result = piped(path.read_bytes(), "embed", "-", "-o", "-", "--components", "2")
    assert result.exit_code == 0, result.output
    assert len(pd.read_csv(io.StringIO(result.stdout))) == 60


def european(frame: pd.DataFrame) -> str:
    return frame.to_csv(index=False, sep=";", decimal=",").replace("gray", "grün")


@pytest.mark.parametrize(("encoding", "note"), [("utf-8", ""), ("cp1252", "Windows-1252"), ("utf-16", "UTF-16"), ("utf-8-sig", "mark")])
@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_the_dialect_of_the_table_comes_back(tmp_path: Path, encoding: str, note: str, ending: str) -> None:
    text = european(two_groups())
    (tmp_path / "things.csv").write_bytes(text.encode(encoding))
    printed = done("label", tmp_path / "things.csv", "-t", "kind", "-o", tmp_path / f"out.{ending}", *FEW)
    assert note in printed
    content = (tmp_path / f"out.{ending}").read_bytes()
    lines = (gzip.decompress(content) if ending.endswith("gz") else content).decode(encoding).splitlines()
    assert lines[0] == "number;size;weight;color;kind;kind_predicted;kind_probability;kind_std"
    assert [line.split(";")[:5] for line in lines] == [line.split(";") for line in text.splitlines()]
    predicted = [cells for cells in (line.split(";") for line in lines[1:]) if cells[5]]
    assert len(predicted) == 36
    assert all("," in cells[6] and 0.0 < float(cells[6].replace(",", ".")) <= 1.0 for cells in predicted)
    done("transform", tmp_path / "out.gpssl", tmp_path / f"out.{ending}", "-o", tmp_path / "again.csv")


def test_points_stay_points_and_other_endings_have_their_own_dialect(tmp_path: Path) -> None:
    (tmp_path / "things.csv").write_text(european(two_groups()), encoding="utf-8")
    done("embed", tmp_path / "things.csv", "-o", tmp_path / "out.tsv", "--components", "2")
    frame = pd.read_csv(tmp_path / "out.tsv", sep="\t", decimal=",")
    assert frame["size"].dtype == frame["gpssl_1"].dtype == float
    done("embed", tmp_path / "things.csv", "-o", tmp_path / "typed.parquet", "--components", "2")
    assert pd.read_parquet(tmp_path / "typed.parquet")["size"].dtype == float
    (tmp_path / "points.csv").write_text(two_groups().to_csv(index=False, sep=";"), encoding="utf-8")
    done("embed", tmp_path / "points.csv", "-o", tmp_path / "semicolons.csv", "--components", "2")
    assert pd.read_csv(tmp_path / "semicolons.csv", sep=";")["gpssl_1"].dtype == float
    written(two_groups(), tmp_path / "things.tsv", sep="\t")
    done("embed", tmp_path / "things.tsv", "-o", tmp_path / "commas.csv", "--components", "2")
    assert "gpssl_1" in pd.read_csv(tmp_path / "commas.csv")


def test_a_letter_that_the_encoding_lacks_makes_the_results_utf_8(tmp_path: Path) -> None:
    frames = [pd.DataFrame({"a": ["grün", "blau"]}), pd.DataFrame({"a": ["Ωmega", "grün"]})]
    for name in ("out.csv", "out.csv.gz"):
        with pytest.warns(UserWarning, match="written in UTF-8, as the encoding of the table lacks the letter 'Ω'"):
            write_table(tmp_path / name, iter(frames), style=Style(encoding="cp1252"))
        content = (tmp_path / name).read_bytes()
        assert (gzip.decompress(content) if name.endswith("gz") else content).decode() == "a\ngrün\nblau\nΩmega\ngrün\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.csv.gz"]


def nested_rows() -> list[dict[str, Any]]:
    rows = []
    for row in range(60):
        tags: list[Any] = ["a", {"b": row}] if row % 3 else []
        rows.append({"key": f"k{row % 5}", "size": row % 7 / 2, "tags": tags, "place": {"x": row, "name": f"é{row}"}, "same": "one"})
    return rows


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "csv", "parquet"])
def test_nested_columns_of_json_lines_come_back(tmp_path: Path, ending: str) -> None:
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in nested_rows()), encoding="utf-8")
    printed = done("embed", tmp_path / "rows.jsonl", "-o", tmp_path / f"out.{ending}", "--components", "2")
    assert "'tags' (holds lists or records, neither numbers, text nor dates)" in printed
    if ending.startswith("jsonl"):
        content = (tmp_path / f"out.{ending}").read_bytes()
        lines = (gzip.decompress(content) if ending.endswith("gz") else content).decode().splitlines()
        found = [{name: json.loads(line)[name] for name in nested_rows()[0]} for line in lines]
        assert found == nested_rows()
        return
    frame = pd.read_parquet(tmp_path / "out.parquet") if ending == "parquet" else pd.read_csv(tmp_path / "out.csv")
    assert [json.loads(cell) for cell in frame["place"]] == [row["place"] for row in nested_rows()]
    assert frame["same"].tolist() == ["one"] * 60


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet", "arrow"])
@pytest.mark.parametrize("in_memory", [True, False])
def test_nested_columns_of_typed_files_come_back(tmp_path: Path, ending: str, in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_memory:
        monkeypatch.setattr("gpssl.data._table.MEMORY_BYTES", 1000)
        monkeypatch.setattr("gpssl.data._formats.PART_ROWS", (7, 7))
    rows = nested_rows()
    columns = {"key": [row["key"] for row in rows], "size": [row["size"] for row in rows], "place": [row["place"] for row in rows]}
    table = pa.table(
        columns | {"tags": [[row["size"]] * (place % 3) for place, row in enumerate(rows)], "blob": [b"\x00\xff", b"text"] * 30}
    )
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    done("embed", tmp_path / "rows.parquet", "-o", tmp_path / f"out.{ending}", "--components", "2")
    if ending in ("parquet", "arrow"):
        read = pyarrow.parquet.read_table if ending == "parquet" else pyarrow.feather.read_table
        found = read(tmp_path / f"out.{ending}").select(table.column_names)
        assert found.to_pydict() == table.to_pydict()
    elif ending == "jsonl":
        lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
        assert [line["place"] for line in lines] == columns["place"]
        assert [line["tags"] for line in lines] == table["tags"].to_pylist()
    else:
        frame = pd.read_csv(tmp_path / "out.csv")
        assert [json.loads(cell) for cell in frame["tags"]] == table["tags"].to_pylist()
        assert frame["blob"].tolist() == ["\\x00ff", "text"] * 30


def test_names_of_files_and_columns_cannot_move_the_cursor(tmp_path: Path) -> None:
    table = written(two_groups().rename(columns={"number": "num\x1b[31mber"}), tmp_path / "thi\x1b[2Jngs.csv")
    out = tmp_path / "o\x1b[2Ju\nt.csv"
    result = run("embed", table, "-o", out, "--components", "2")
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    assert "o\\x1b[2Ju\\nt.csv" in result.output
    assert "num\\x1b[31mber" in result.output
    assert out.exists()
    assert "\x1b" not in refused("embed", tmp_path / "no\x1b[2Jthing.csv", "-o", tmp_path / "out.csv")


def test_names_are_shown_on_one_line_and_in_valid_json(tmp_path: Path) -> None:
    strange = "a\x9b2J\x7f\u202e\U000e0001[red]\nNote: all is well"
    table = written(two_groups().rename(columns={"number": strange}), tmp_path / "things\nError: x.csv")
    found = run("embed", table, "-o", tmp_path / f"{strange}.csv", "--components", "2", "--json")
    assert found.exit_code == 0, found.output
    assert str(tmp_path / f"{strange}.csv") in json.loads(found.stdout)["written"]
    assert not any(sign in found.output for sign in "\x9b\x7f\u202e\U000e0001")
    shown = done("info", (tmp_path / f"{strange}.csv").with_suffix(".gpssl"))
    assert "[red]" in shown
    assert not any(line.startswith(("Note: all", "Error: x")) for line in (shown + found.output).splitlines())
    for arguments in (
        ["embed", "x", "--\x1b[2J"],
        ["\x1b[2J"],
        ["embed", "x", "-o", "y", "\x1b[2J"],
        ["embed", "x", "--components", "\x1b"],
    ):
        assert "\x1b" not in refused(*arguments, code=2)
