"""Odd and damaged tables of every format are read as they are, or refused in a sentence: quickly, in little memory, and without litter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import book_inputs
import csv_inputs
import json_inputs
import pytest
import typed_inputs
from budget import generator, n_inputs
from csv_inputs import Random
from failed_tables import failed_tables
from table_runs import Input, tried


class Attack(NamedTuple):
    """Inputs, and what is done with each."""

    inputs: Callable[[Random, int], Iterator[Input]]
    n_usual: int
    deeds: tuple[str, ...] = ("open", "files")
    least_read: float = 0.0
    """The share of the inputs that must be read: an attack that is always refused attacks nothing."""


WRITE = ("open", "files", "write")
ATTACKS = {
    "known CSV": Attack(csv_inputs.known_tables, 120, ("open",), 1.0),
    "damaged CSV": Attack(csv_inputs.damaged_tables, 100, least_read=0.15),
    "damaged CSV, to the results": Attack(csv_inputs.damaged_tables, 8, ("open", "embed")),
    "known Parquet": Attack(lambda rng, n: typed_inputs.known_tables(rng, "parquet", n), 20, ("open",), 1.0),
    "known Arrow": Attack(lambda rng, n: typed_inputs.known_tables(rng, "feather", n), 20, ("open",), 1.0),
    "damaged Parquet": Attack(lambda rng, n: typed_inputs.damaged_tables(rng, "parquet", n), 45, WRITE, 0.15),
    "damaged Arrow": Attack(lambda rng, n: typed_inputs.damaged_tables(rng, "arrow", n), 50, WRITE, 0.15),
    "damaged stream": Attack(lambda rng, n: typed_inputs.damaged_tables(rng, "stream", n), 30, WRITE, 0.15),
    "known JSON lines": Attack(json_inputs.known_lines, 40, ("open",), 1.0),
    "damaged JSON lines": Attack(json_inputs.damaged_lines, 60, WRITE, 0.15),
    "archives": Attack(json_inputs.archives, 50, least_read=0.1),
    "workbooks": Attack(book_inputs.workbooks, 50, least_read=0.1),
    "databases": Attack(book_inputs.databases, 40, least_read=0.1),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_each_table_is_read_or_refused(name: str, tmp_path: Path) -> None:
    attack = ATTACKS[name]
    count = n_inputs(attack.n_usual)
    found = tried(tmp_path, attack.inputs(generator(name), count), attack.deeds)
    assert found.failures == [], "\n".join(found.failures[:20])
    assert found.n_inputs == count
    assert found.n_read >= attack.least_read * count


def test_what_once_failed_stays_mended(tmp_path: Path) -> None:
    found = tried(tmp_path, failed_tables(), WRITE)
    assert found.failures == [], "\n".join(found.failures)
