"""Messages of two kinds for tests: some sell something, others are between friends."""

from __future__ import annotations

import numpy as np
import pandas as pd

TITLES = [("end", "day"), ("queen", "sea"), ("house", "hill"), ("sound", "winter"), ("way", "water"), ("book", "night")]

SOLD = ["win", "free", "prize", "now", "call", "claim", "cash", "offer", "!", "£500", "txt", "to"]
TALK = ["see", "you", "later", "home", "ok", "dinner", "tonight", "love", "the", "i", "am", "to"]


def messages(n: int, seed: int = 0) -> pd.DataFrame:
    """Return messages of about eight words, every third of which sells something: the label tells which."""
    rng = np.random.default_rng(seed)
    sells = np.arange(n) % 3 == 0
    texts = [" ".join(rng.choice(SOLD if sell else TALK, rng.integers(6, 11))) for sell in sells]
    return pd.DataFrame({"label": np.where(sells, "spam", "ham"), "message": texts})
