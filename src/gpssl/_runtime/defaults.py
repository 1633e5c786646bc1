"""Defaults that several rooms share. It imports nothing: `gpssl --help` is quick."""

N_DRAWS = 100
"""The paper's number of drawn representations."""
N_COMPONENTS_OF_TISSUE = 10
RESIDUAL_TOLERANCE = 1e-3
"""For expression and for tables that nobody prepared. They have many small directions: the last of them would take twice the inducing
points and change nothing that can be seen."""
CONFIDENCE = 0.95
