"""One file per table or figure; each can be run with `python -m gpssl.experiments.NAME`."""
