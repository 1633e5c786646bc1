"""The tables and figures of the paper, and more of their kind: in the repository, not in the package."""
