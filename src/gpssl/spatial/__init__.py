"""Spatial transcriptomics, on AnnData: cell types with uncertainty. Needs `pip install "gpssl[spatial]"`."""
