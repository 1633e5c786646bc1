"""Texts and sequences of letters with classes."""

from __future__ import annotations

import numpy as np

from .examples import Examples, read_lines

SMS_SPAM = "sms_spam/SMSSpamCollection"
SPLICE = "dna_splice/splice.dat"
SPLICE_LENGTH = 60


def load_sms_spam() -> Examples:
    """Text messages, "ham" or "spam": 5,574 of them, of which 747 are spam."""
    file = read_lines(SMS_SPAM)
    cells = [line.split("\t", 1) for line in file.lines]
    for number, row in enumerate(cells, start=1):
        if len(row) != 2 or row[0] not in ("ham", "spam"):
            raise file.broken(f"has no label and text in row {number}")
    return Examples("sms_spam", [text for _, text in cells], np.array([label for label, _ in cells]))


def load_splice() -> Examples:
    """Splice junctions in DNA: 3,190 sequences of 60 letters; an exon ends (EI) or begins (IE) in the middle, or neither (N).

    Letters are A, C, G and T, and a few N, D, R and S where the base was not certain.
    """
    file = read_lines(SPLICE)
    rows = [[cell.strip() for cell in line.split(",")] for line in file.lines if not line.startswith("@")]
    for number, row in enumerate(rows, start=1):
        if len(row) != SPLICE_LENGTH + 1:
            raise file.broken(f"has {len(row)} cells in row {number} where {SPLICE_LENGTH} letters and a class are expected")
    return Examples("splice", ["".join(row[:-1]) for row in rows], np.array([row[-1] for row in rows]))
