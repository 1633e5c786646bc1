"""
Numbers instead of classes: intervals
=====================================

Progression of diabetes from 100 patients with a known target and 342 without. Each of 100 drawn functions has a Bayesian linear regression
of its own; the prediction is their mixture.
"""

# %%
# NaN: no target.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from gpssl import GPSSL, MarginalizedRegressor
from gpssl.evaluation import interval_coverage

X, y = load_diabetes(return_X_y=True)
known = np.random.default_rng(0).permutation(len(y)) < 100
regressor = MarginalizedRegressor(GPSSL(5), random_state=0).fit(X, np.where(known, y, np.nan))

# %%
# Targets that were not shown, with the interval that holds each with a probability of 90 %.

found = regressor.predict_distribution(X[~known])
mean, interval = found.mean, found.interval(coverage=0.9)
print(f"{interval_coverage(y[~known], interval):.0%} of the targets lie in their interval")
order = np.argsort(mean)
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
ax.fill_between(np.arange(len(order)), *interval[order].T, color="#4477aa", alpha=0.25, linewidth=0, label="90 % interval")
ax.plot(mean[order], color="#4477aa", label="mean")
ax.plot(y[~known][order], ".", color="black", markersize=3, label="target")
ax.set(xlabel="patients without a known target, by prediction", ylabel="progression")
ax.legend(frameon=False)

# %%
# What the uncertainty is made of: noise and the weights of the heads, or not knowing the representation.

total, head, representation = found.uncertainty
print(f"share of the representation in the variance: {(representation / total).mean():.0%}")
