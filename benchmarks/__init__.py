"""Benchmarks: gpssl against its peers, as ratios within one run. `python -m benchmarks` from the project's root."""
