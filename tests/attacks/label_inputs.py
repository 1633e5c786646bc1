"""Files of labels as the page of `gpssl annotate` writes them, and what else may come in their place."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from csv_inputs import ESCAPES, OF_BYTES, WORDS, Random
from table_runs import Input

N_ROWS = 60
KINDS = ("iris", "rose")
ODD_LABELS = (
    *(
        "iris ",
        "IRIS",
        "'=1+1",
        "=1+1",
        "+x",
        "-1",
        "@a",
        "'iris",
        "tulip",
        "NA",
        "",
        "?",
        "None",
        "x" * 5000,
        "1e999",
        "nan",
        "a\nb",
        "iris;rose",
    ),
    *ESCAPES,
    *WORDS,
)


def write_table(folder: Path, target_kind: str) -> Path:
    """Write the table that the labels belong to: every third row has a label."""
    rng = np.random.default_rng(0)
    kind = np.arange(N_ROWS) % 2
    frame = pd.DataFrame({"petal": rng.normal(3.0 * kind, 0.4).round(3), "place": rng.choice(["north", "south"], N_ROWS)})
    frame["species"] = [None if place % 3 else label_of(place, target_kind) for place in range(N_ROWS)]
    path = folder / f"table-{target_kind}.csv"
    frame.to_csv(path, index=False)
    return path


def label_of(place: int, target_kind: str) -> Any:
    """Return the label of a row."""
    return KINDS[place % 2] if target_kind == "class" else place * 0.25 + 0.1


def rows_and_checksums(table: Path) -> list[tuple[str, str]]:
    """Return what the page would write beside the label of each row."""
    from gpssl.workflows._row_checksums import row_checksums, row_names
    from gpssl.workflows._subject import Roles, open_subject

    subject, places = open_subject(table, Roles("species")), np.arange(N_ROWS)
    return list(zip(row_names(subject, places), row_checksums(subject, places), strict=True))


def known_labels(rng: Random, folder: Path, count: int) -> Iterator[Input]:
    """Yield files of labels that are right, in any order and form: exactly these rows get them."""
    yield from _inputs(rng, folder, count, damaged=False)


def damaged_labels(rng: Random, folder: Path, count: int) -> Iterator[Input]:
    """Yield files of labels with wrong checksums, repeated rows, other columns, odd labels, and damaged bytes."""
    yield from _inputs(rng, folder, count, damaged=True)


def _inputs(rng: Random, folder: Path, count: int, *, damaged: bool) -> Iterator[Input]:
    tables = {kind: write_table(folder, kind) for kind in ("class", "number")}
    keys = {kind: rows_and_checksums(table) for kind, table in tables.items()}
    for _ in range(count):
        kind = str(rng.choice(["class", "number"]))
        places = rng.permutation([place for place in range(N_ROWS) if place % 3])[: int(rng.integers(1, 20))].tolist()
        rows: list[list[Any]] = [[*keys[kind][place], label_of(place, kind)] for place in places]
        names, expected, what = ["row", "checksum", "species"], None, "known"
        if damaged:
            names, rows, what = _damaged(rng, names, rows)
        else:
            known = {*places, *range(0, N_ROWS, 3)}
            nothing = None if kind == "class" else "nan"
            expected = [label_of(place, kind) if place in known else nothing for place in range(N_ROWS)]
            rng.shuffle(rows)
            order = rng.permutation(3).tolist()
            names = [names[place] for place in order]
            rows = [[row[place] for place in order] for row in rows]
        name, content = _file(rng, names, rows)
        if damaged and rng.random() < 0.2:
            change = OF_BYTES[int(rng.integers(len(OF_BYTES)))]
            content, what = change(rng, content), f"{what} {change.__name__}"
        more = {"table": str(tables[kind]), "target": "species", "labels": expected}
        yield Input(name, content, f"{kind} {what}", must_be_read=not damaged, more=more)


def _file(rng: Random, names: list[str], rows: list[list[Any]]) -> tuple[str, bytes]:
    """Return the name and the bytes of a file with these rows."""
    pick = float(rng.random())
    if pick < 0.7:
        file = io.StringIO()
        csv.writer(file, delimiter=";" if pick < 0.2 else ",", lineterminator="\r\n" if pick < 0.4 else "\n").writerows([names, *rows])
        return "labels.csv", file.getvalue().encode("utf-8", "replace")
    if pick < 0.85:
        lines = [json.dumps(dict(zip(names, row, strict=False))) for row in rows]
        return "labels.jsonl", "\n".join(lines).encode()
    unique = [f"{name}.{place}" if name in names[:place] else name for place, name in enumerate(names)]
    file_of_bytes = io.BytesIO()
    frame = pd.DataFrame([(row + [None] * len(names))[: len(names)] for row in rows], columns=unique).astype("string")
    frame.to_parquet(file_of_bytes)
    return "labels.parquet", file_of_bytes.getvalue()


def _damaged(rng: Random, names: list[str], rows: list[list[Any]]) -> tuple[list[str], list[list[Any]], str]:
    """Return names and rows with some of what a person or an enemy may do to them."""
    what = []
    for change in rng.choice(9, int(rng.integers(1, 3))).tolist():
        row = rows[int(rng.integers(len(rows)))]
        if change == 0:
            row[1] = str(
                rng.choice(["", "c0000000000", "=1+1", "NA", "x" * 10_000, row[1].upper() if isinstance(row[1], str) else "1", "1e5"])
            )
        elif change == 1:
            row[0] = rng.choice(["", "0", "-1", "99999999999999999999", "1e3", "2.0", "=A1", "NaN", "x"]).item()
        elif change == 2:
            row[2] = str(rng.choice(ODD_LABELS))
        elif change == 3:
            rows = rows + [list(one) for one in rows] * int(rng.integers(1, 4))
            rows[-1][2] = str(rng.choice(ODD_LABELS))
        elif change == 4:
            names, rows = [*names, str(rng.choice(["petal", "species_predicted", "row", "x", ""]))], [[*one, "1"] for one in rows]
        elif change == 5:
            names = [*names[: int(rng.integers(0, 3))], "other", *names[3:], "more"][: max(1, len(names))]
        elif change == 6:
            rows = [[place, f"c{place:010x}", KINDS[place % 2]] for place in range(int(rng.integers(1, 3000)))]
        elif change == 7:
            for one in rows:
                one[0], one[1] = one[1], one[0]
        else:
            rows = rows * int(rng.choice([1, 100, 2000]))
        what.append(str(change))
    return names, [[*row, *[""] * (len(names) - len(row))][: len(names)] for row in rows], "damage " + " ".join(what)
