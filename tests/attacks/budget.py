"""How many inputs an attack tries, and with which seed: few and always the same by default, more and others with `make attack`."""

import os
import zlib

import numpy as np


def n_inputs(usual: int) -> int:
    """Return the number of inputs to try, GPSSL_ATTACK_FACTOR times as many as usual, and at least one."""
    return max(1, round(usual * float(os.environ.get("GPSSL_ATTACK_FACTOR", "1"))))


def generator(name: str) -> np.random.Generator:
    """Return the random numbers of an attack. They follow from its name and GPSSL_ATTACK_SEED alone, not from the order of tests."""
    return np.random.default_rng([int(os.environ.get("GPSSL_ATTACK_SEED", "0")), zlib.crc32(name.encode())])
