"""Text messages from the command line: all methods run, and see only the labels that they may see."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from experiments import sms
from experiments.ledger import Record, Task
from experiments.plan import Plan
from messages import messages

has_data = (Path(os.environ.get("GPSSL_DATA", "")) / "sms_spam" / "SMSSpamCollection").is_file()
QUICK = Plan(splits=1, quick=True)


@pytest.mark.parametrize("method", sms.METHODS)
def test_methods_learn_from_the_labels_that_are_known_and_from_no_others(method: str) -> None:
    frame = messages(150)
    texts, y = frame["message"].to_numpy(dtype=object), frame["label"].to_numpy(dtype=str)
    known = np.arange(150) < 30
    predicted = sms.METHODS[method](texts, y, known, 0)
    assert (predicted != y)[~known].mean() <= 0.2
    scrambled = np.where(known, y, y[::-1])
    np.testing.assert_array_equal(sms.METHODS[method](texts, scrambled, known, 0)[~known], predicted[~known])


@pytest.mark.skipif(not has_data, reason="GPSSL_DATA names no folder with the data sets")
def test_errors_are_counted_on_messages_without_a_label() -> None:
    record = sms.run(Task("sms", 0, "naive Bayes"), QUICK)
    assert 0 < record["labeled spam"] < sms.N_LABELS
    assert 0 <= record["alarms"] <= record["error"] <= max(record["missed"], record["alarms"]) <= 1


def test_errors_are_reported() -> None:
    def record(split: int, error: float) -> Record:
        return {"data": "sms", "split": split, "method": "m", "error": error, "missed": 0.5, "alarms": 0.0}

    lines = sms.report([record(0, 0.02), record(1, 0.08)])["sms"].splitlines()
    assert [cell.strip() for cell in lines[2].split("|")[1:-1]] == ["m", "5.0 %", "8.0 %", "1 of 2", "50.0 %", "0.0 %"]
