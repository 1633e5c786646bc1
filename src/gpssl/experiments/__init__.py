"""One file per table or figure, run with `gpssl reproduce NAME`; `plan.py` says what an experiment is."""
