"""
Ten labels and two moons: a kernel that follows the neighbors
==============================================================

The kernel says which rows are alike. To the default one, rows are alike that are close. To `NeighborDiffusion`, rows are alike that a
random walk from neighbor to neighbor connects.
"""

# %%
# The same ten labels, two kernels.

import numpy as np
from sklearn.datasets import make_moons

from gpssl import GPSSL, MarginalizedClassifier, plots
from gpssl.kernels import NeighborDiffusion

X, y = make_moons(400, noise=0.06, random_state=0)
few = np.where(np.arange(400) < 10, y, -1)
classifiers = {
    "NeighborRBF": MarginalizedClassifier(GPSSL(5), random_state=0).fit(X, few),
    "NeighborDiffusion": MarginalizedClassifier(GPSSL(5, kernel=NeighborDiffusion()), random_state=0).fit(X, few),
}
for name, classifier in classifiers.items():
    print(f"{name}: accuracy {classifier.score(X, y):.3f}")
figure = plots.plot_probabilities(classifiers, X, few, grid=plots.Grid.around(X, 81))[0, 0].figure
