"""What stands above and below a table is left out with a note; what is a row of the table stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from command import done
from gpssl.data import FileError, FileTable, TableFiles, open_table

N_ROWS = 40


def patients() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "patient": [f"P{row:03d}" for row in range(N_ROWS)],
            "age": rng.integers(20, 80, N_ROWS),
            "bmi": rng.normal(25, 3, N_ROWS).round(1),
            "sex": rng.choice(["m", "f"], N_ROWS),
            "diagnosis": rng.choice(["sick", "well", ""], N_ROWS),
        }
    )


FRAME = patients()
TABLE = FRAME.to_csv(index=False)
TEXTS = FRAME[["patient", "sex", "diagnosis"]].to_csv(index=False)
AGES, WEIGHTS = int(FRAME["age"].sum()), round(float(FRAME["bmi"].sum()), 1)


def opened(folder: Path, text: str, name: str = "table.csv", target: str | None = "diagnosis") -> FileTable:
    (folder / name).write_text(text, encoding="utf-8")
    return open_table(folder / name, target=target)


ABOVE = {
    "Patients of 2024, exported by Anna, ward 3, room 5, floor 2\n" + TABLE: "'Patients of 2024, exported by",
    "Patients, of 2024, exported by, Anna, ward 3, room 5, floor 2\n" + TABLE: "1 line above",
    "diagnosis\n\n" + TABLE: "'diagnosis'",
    "Who,Measured,,Other,\n" + TABLE: "'Who,Measured,,Other'",
    "Report: Patients\nDate: 2024-01-01, by Anna\n\n"
    + TEXTS: "3 lines above the names of the columns were skipped: 'Report: Patients', 'Date:",
    "Report,Patients,,,\nDate,2024-01-01,,,\n,,,,\n" + TABLE: "'Report,Patients', 'Date,2024-01-01'",
    "% made by x\n// and by y\n" + TABLE: "'% made by x', '// and by y'",
    "Patients, of 2024, all, of, them\n" + TABLE.replace(",", ";"): "'Patients, of 2024, all, of, them'",
}


@pytest.mark.parametrize("text", ABOVE)
def test_titles_are_found_by_the_names_that_a_person_said(tmp_path: Path, text: str) -> None:
    table = opened(tmp_path, text)
    assert table.n_rows == N_ROWS
    assert "diagnosis" in table.names
    assert ABOVE[text] in table.notes[0]


@pytest.mark.parametrize("text", list(ABOVE)[1:])
def test_most_titles_are_found_without_them(tmp_path: Path, text: str) -> None:
    assert "diagnosis" in opened(tmp_path, text, target=None).names


BELOW = {
    f"Total,{AGES},,,\n": 1,
    f"Total,{AGES},{WEIGHTS},,\n": 1,
    f"Summe;{AGES};{WEIGHTS};;\n": 1,
    f"Gesamtergebnis,{AGES},{WEIGHTS},--,--\n": 1,
    f"Total: Ward 1,{AGES},,,\nTotal: Account,{AGES},,,\n": 2,
    f",,,,\nGrand total,{AGES},,,\n\nSource: our hospital\n": 3,
    "Source: our hospital\n": 1,
    "Source: our hospital,,,,\n": 1,
    "Quelle: unser Krankenhaus, 2024\n(40 rows)\n": 2,
    "* of which some are doubtful\n": 1,
    f"\n{N_ROWS} rows\n": 1,
    "All values were measured twice by us,,,,\n": 1,
    ",,,,\n,,,,\n": 2,
    f"Mittelwert,{AGES / N_ROWS:.1f},{WEIGHTS / N_ROWS:.2f},,\nSD,{FRAME['age'].std():.2f},{FRAME['bmi'].std():.2f},,\n": 2,
    f"Average:,{AGES / N_ROWS:.3f},,,\nTotal:,{AGES},,,\n": 2,
}


@pytest.mark.parametrize("text", BELOW)
def test_totals_and_footers_are_left_out_with_a_note(tmp_path: Path, text: str) -> None:
    semicolons = ";" in text
    table = opened(tmp_path, (TABLE.replace(",", ";") if semicolons else TABLE) + text)
    assert table.n_rows == len(table.frame()) == len(table.target()) == N_ROWS
    assert np.nanmax(table.frame()["age"]) < 100
    note = next(note for note in table.notes if note.startswith("Below the table, "))
    assert f"line{'s' * (BELOW[text] > 1)} " in note
    assert table.lines(np.array([0, N_ROWS - 1])).tolist() == [2, N_ROWS + 1]


KEPT = [
    "P040,,,,\n",
    "P040,33,25.0,m,\n",
    "Total,33,25.0,m,sick\n",
    "Total,33,25.0,m,sick\nTotal,,,,\n",
    "Summa,33,25.0,m,\n",
    "Mean,,,,\n",
    "Media,99,25.0,,\n",
    f"P040,{AGES},{WEIGHTS},m,\n",
]


@pytest.mark.parametrize("text", KEPT)
def test_rows_of_the_table_stay(tmp_path: Path, text: str) -> None:
    table = opened(tmp_path, TABLE + text)
    assert table.n_rows == N_ROWS + text.count("\n")
    assert not any("Below the table" in note for note in table.notes)


@pytest.mark.parametrize("total", ["Total,61.77,", "Total,61.8,2.31", "Mean,3,"])
def test_a_word_for_totals_in_a_column_of_numbers_is_no_row(tmp_path: Path, total: str) -> None:
    rows = "".join(f"{row},{row * 0.07:.1f},{'sick' if row % 3 else ''}\n" for row in range(1, 42))
    table = opened(tmp_path, f"number,dose,diagnosis\n{rows}{total}\n")
    assert table.n_rows == 41
    assert f"Below the table, line 43 is no row and left out: '{' '.join(filter(None, total.split(',')))}'." in table.notes
    words = rows.replace("41,", "none,")
    assert opened(tmp_path, f"number,dose,diagnosis\n{words}Total,61.8,well\n", "words.csv").n_rows == 42


def test_a_class_that_is_called_total_stays(tmp_path: Path) -> None:
    rows = "".join(f"{'total' if row % 3 else 'partial'},{row % 7},\n" for row in range(30))
    assert opened(tmp_path, f"surgery,days,remark\n{rows}total,,\n", target=None).n_rows == 31


def test_a_last_line_that_is_cut_off_is_told_as_before(tmp_path: Path) -> None:
    table = opened(tmp_path, TABLE + "44\n")
    assert any("too few or too many cells and were left out; line 42" in note for note in table.notes)


def test_line_numbers_of_notes_count_empty_lines(tmp_path: Path) -> None:
    table = opened(tmp_path, "Title\n\n" + TABLE.replace("P005", "\nP005") + "\nSource: us\n")
    assert "Below the table, line 46 is no row and left out: 'Source: us'." in table.notes
    assert table.lines(np.array([0, N_ROWS - 1])).tolist() == [4, 44]


def test_a_fit_to_a_file_warns_of_totals(tmp_path: Path) -> None:
    numbers = FRAME[["age", "bmi"]].to_csv(index=False)
    (tmp_path / "table.csv").write_text(f"{numbers}\nSource: us\n")
    with pytest.warns(UserWarning, match="Below the table, line 43 is no row"):
        assert TableFiles(tmp_path / "table.csv").n_rows == N_ROWS


def test_the_command_says_what_it_left_out(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(f"Patients, of 2024, all, of, them\n{TABLE}Total,{AGES},,,\n")
    printed = done("embed", tmp_path / "table.csv", "--ignore", "diagnosis", "-o", tmp_path / "out.csv", "--components", "2")
    assert "1 line above the names of the columns was skipped: 'Patients, of 2024, all, of, them'." in printed
    assert f"Below the table, line 43 is no row and left out: 'Total {AGES}'." in printed
    assert pd.read_csv(tmp_path / "out.csv")["patient"].tolist() == FRAME["patient"].tolist()


GOOGLE_ADS = (
    'Campaign performance report\n"January 1, 2024 - January 31, 2024"\n'
    "Campaign\tBudget\tClicks\tCost\n"
    + "".join(f"Campaign {row}\t{row % 5}.50\t{row * 3}\t{row % 9}.25\n" for row in range(30))
    + f"Total: Campaigns\t--\t{sum(row * 3 for row in range(30))}\t{sum(row % 9 + 0.25 for row in range(30))}\n"
    + f"Total: Account\t--\t{sum(row * 3 for row in range(30))}\t{sum(row % 9 + 0.25 for row in range(30))}\n"
)


def test_an_export_of_google_ads(tmp_path: Path) -> None:
    (tmp_path / "report.csv").write_bytes(GOOGLE_ADS.encode("utf-16"))
    table = open_table(tmp_path / "report.csv")
    assert table.names == ["Campaign", "Budget", "Clicks", "Cost"]
    assert (table.n_rows, table.used) == (30, ["Budget", "Clicks", "Cost"])
    assert [note for note in table.notes if "UTF-16" in note or "tabs" in note or "Below the table, lines 34 to 35" in note] == table.notes[
        1:
    ]


def test_an_export_of_google_forms(tmp_path: Path) -> None:
    moments = [f"2024/01/{1 + row % 28:02d} {1 + row % 12}:30:07 {'AP'[row % 2]}M GMT+1" for row in range(60)]
    rows = [f'"{moment}","{row % 9}","{["Yes", "No"][row % 2]}"' for row, moment in enumerate(moments)]
    (tmp_path / "form.csv").write_text("\n".join(['"Timestamp","How many?","Do you like tea?"', *rows]), encoding="utf-8")
    table = open_table(tmp_path / "form.csv")
    assert {fact.name: fact.kind for fact in table.facts} == {"Timestamp": "date", "How many?": "number", "Do you like tea?": "boolean"}
    assert table.frame()["Timestamp"].tolist()[:2] == [pd.Timestamp("2024-01-01 00:30:07"), pd.Timestamp("2024-01-02 13:30:07")]


PAGES = [f"/page/{row % 9},{['DE', 'FR'][row % 2]},{3 * row + 1},{row % 7}" for row in range(60)]
VIEWS, USERS = sum(3 * row + 1 for row in range(60)), sum(row % 7 for row in range(60))


def test_exports_of_google_analytics(tmp_path: Path) -> None:
    comments = ["# ----", "# Pages", "# 20240101-20240131", "# ----", ""]
    (tmp_path / "new.csv").write_text("\n".join([*comments, "Page,Country,Views,Users", f",Grand total,{VIEWS},{USERS}", *PAGES]))
    table = open_table(tmp_path / "new.csv")
    assert table.n_rows == 60
    assert f"The line below the names of the columns is no row and left out: 'Grand total {VIEWS} {USERS}'." in table.notes
    assert table.lines(np.array([0, 59])).tolist() == [8, 67]
    days = ["", "Day,Views", *(f"1/{day}/24,{3 * day}" for day in range(1, 32))]
    (tmp_path / "old.csv").write_text("\n".join([*comments, "Page,Country,Views,Users", *PAGES, f",,{VIEWS},{USERS}", *days]))
    table = open_table(tmp_path / "old.csv")
    assert table.n_rows == len(table.frame()) == 60
    assert f"Below the table, line 67 is no row and left out: '{VIEWS} {USERS}'." in table.notes
    assert "Another table below, of 32 lines from line 69 on, is left out: 'Day,Views'." in table.notes
    assert table.lines(np.array([0, 59])).tolist() == [7, 66]


def test_rows_that_change_their_length_are_no_other_table(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("\n".join(["Page,Country,Views,Users", *PAGES, *(f"/page/{row},DE,3" for row in range(30))]))
    with pytest.raises(FileError, match=r"30 of 90 rows .* line 62 has 3 cells instead of 4"):
        open_table(tmp_path / "table.csv")


def test_a_row_without_a_name_that_is_no_sum_stays(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("\n".join(["Page,Country,Views,Users", *PAGES, f",,{VIEWS + 1},3"]))
    assert open_table(tmp_path / "table.csv").n_rows == 61


def test_sums_with_money_and_thousands(tmp_path: Path) -> None:
    prices = [1000 + 17.5 * row for row in range(40)]
    rows = [f'shop {row % 6},{row % 5},"€ {price:,.2f}"' for row, price in enumerate(prices)]
    (tmp_path / "table.csv").write_text("\n".join(["shop,kind,price", *rows, f'Total,,"€ {sum(prices):,.2f}"']), encoding="utf-8")
    table = open_table(tmp_path / "table.csv")
    assert (table.n_rows, table.frame()["price"].max()) == (40, prices[-1])


def test_sentences_in_one_column_are_no_columns_though_its_name_was_said(tmp_path: Path) -> None:
    text = "message\n" + "".join(f"call me about thing {row % 17} {'please' if row % 2 else 'now'}\n" for row in range(40))
    assert opened(tmp_path, text, target=None).names == ["message"]
    (tmp_path / "table.csv").write_text(text)
    assert open_table(tmp_path / "table.csv", keep=["message"]).names == ["message"]
