"""
A slice of tissue
=================

Spots of a simulated slice hold mixtures of four types of cells. Spots that are nearly pure are found by marker genes; the composition of
the others is inferred from expression and place.
"""

# %%
# The truth is known here, because the slice is simulated.

from experiments.simulation import simulate, simulate_reference
from gpssl import plots
from gpssl.spatial import composition, embed, pure_spots

reference = simulate_reference(random_state=0)
adata = simulate(reference, shape=(14, 14), cells_per_spot=30, random_state=1)
pure_spots(adata, reference.uns["signatures"])
embed(adata)
composition(adata, "pure_label")
print(f"{adata.obs['pure_label'].notna().sum()} of {adata.n_obs} spots are labeled as pure")
print(f"the dominant type is right at {(adata.obs['gpssl_label'] == adata.obs['cell_type']).mean():.0%} of all spots")

# %%
# The dominant type of every spot, the standard deviation of its probability, and the probability of one type.

figure = plots.plot_composition(adata, bases=("spatial",))[0, 0].figure
