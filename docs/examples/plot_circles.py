"""
The paper's circles: where to believe a representation
======================================================

Rows lie on two circles: 300 in the top right quadrant, 100 in the top left, 50 in the bottom left, none in the bottom right. Which circle a
row is of is not told. The standard deviation is low where there are rows and rises to one, the prior's, where there are none.
"""

# %%
# A representation of two dimensions. Above its mean at every place of the plane, below its standard deviation.

from gpssl import GPSSL, MarginalizedClassifier, plots
from gpssl.datasets import even_circles, quadrant_circles

X, _ = quadrant_circles()
ssl = GPSSL(2, random_state=0).fit(X)
figure = plots.plot_representation(ssl, X)[0, 0].figure

# %%
# Sixty labeled rows train the heads. The representation is the one from above, with five dimensions. Between the circles, the standard
# deviation of the probabilities is larger at the bottom, where unlabeled rows were few or none: drawn functions disagree there.

from sklearn.frozen import FrozenEstimator

places, circle = even_circles(60, seed=1)
classifier = MarginalizedClassifier(FrozenEstimator(ssl.refit(n_components=5)), weighting="equal", random_state=0).fit(places, circle)
figure = plots.plot_probabilities({"GPSSL-full": classifier}, places, circle, grid=plots.Grid.around(X, 81))[0, 0].figure

# %%
# On fresh rows from all quadrants:

fresh, truth = even_circles(500, seed=2)
print(f"accuracy {classifier.score(fresh, truth):.2f}")
