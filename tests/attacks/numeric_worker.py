"""Work on one adversarial table after another, in a process of its own with little time for each.

Run as a program: each line of standard input names a kind of table, what is done with it and a seed; each line of standard output says how
that ended. A table that takes more than sixty seconds of work ends the process, also within compiled code.
"""

from __future__ import annotations

import json
import os
import signal
import sys

import numpy as np
from numeric_checks import outcome
from numeric_tables import ARRAYS, FRAMES

SECONDS = 60
"""Of work, in all threads together: a machine that is busy does not count."""


def main() -> None:
    """Answer requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    tables = {**ARRAYS, **FRAMES}
    for line in sys.stdin:
        kind, consumer, seed = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        found = outcome(consumer, tables[kind](np.random.default_rng(seed)), seed)
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(json.dumps(found) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
