"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

PROCESSOR_TIMES = Path("/proc/stat")
PACKAGES = ("numpy", "scipy", "scikit-learn", "dask", "pyarrow", "torch", "gpytorch")


def describe_machine() -> list[str]:
    """Describe processor, memory and versions: one line each, and nothing that tells whose machine it is."""
    versions = ", ".join([f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in PACKAGES)])
    return [
        f"Machine: {os.cpu_count()} cores, {_processor()}, {_memory_in_bytes() / 2**30:.0f} GB of memory.",
        f"Versions: {versions}.",
    ]


def _processor() -> str:
    """Look up the processor's name, from Linux where it is Linux."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _memory_in_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def busy_seconds_of_others() -> float:
    """Count the core-seconds that processes other than this one and its finished children have used since the start (Linux).

    Its growth over a run tells how far the machine was shared; where the system does not say, it stays zero.
    """
    if not PROCESSOR_TIMES.exists():
        return 0.0
    user, nice, system, _idle, _waiting, *interrupts = map(int, PROCESSOR_TIMES.read_text().splitlines()[0].split()[1:8])
    busy = (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")
    return busy - sum(os.times()[:4])
