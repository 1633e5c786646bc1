"""The same rows in any order, in any parts, and with weights in the place of copies lead to the same representation.

Where a table is symmetric or balanced, eigenvalues coincide, and rounding must not decide on their directions.
"""

from __future__ import annotations

import pytest
from budget import generator, n_inputs

from same_rows import TABLES, Trial

TABLES_OF_A_KIND = 3


@pytest.mark.parametrize("kind", TABLES)
def test_order_parts_and_weights_make_no_difference(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = generator(f"order, {kind}")
    found = {}
    for number in range(n_inputs(TABLES_OF_A_KIND)):
        trial = Trial.of_kind(kind, rng)
        found[f"{number}: {trial.model()}, {len(trial.X)} rows"] = trial.disagreements(rng, monkeypatch)
    assert not {name: faults for name, faults in found.items() if faults}
