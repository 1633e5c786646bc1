"""Files of labels change the labels of the rows whose checksums they have, or are refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import label_inputs
from budget import generator, n_inputs
from table_runs import tried


def test_right_labels_reach_their_rows_and_no_others(tmp_path: Path) -> None:
    found = tried(tmp_path, label_inputs.known_labels(generator("known labels"), tmp_path, n_inputs(30)), ("labels",))
    assert found.failures == [], "\n".join(found.failures[:20])


def test_wrong_labels_are_refused_or_left_out(tmp_path: Path) -> None:
    found = tried(tmp_path, label_inputs.damaged_labels(generator("damaged labels"), tmp_path, n_inputs(60)), ("labels",))
    assert found.failures == [], "\n".join(found.failures[:20])
    assert found.n_inputs == n_inputs(60)
