"""
Temperature: how much the draws agree
=====================================

The same rows on a line, three temperatures. Low, and all drawn functions show the same; high, and they are hardly more than draws from the
prior.
"""

# %%
# One pass over the rows serves all three: `refit` needs no data. The losses see how the representation varies over the rows, and not by how
# much all of it is shifted, so that a shift stays as open as in the prior. It is taken off each draw here; heads do not notice it.

import matplotlib.pyplot as plt
import numpy as np

from gpssl import GPSSL
from gpssl.kernels import NeighborRBF

rng = np.random.default_rng(0)
X = np.concatenate([rng.normal(-2, 0.5, 150), rng.normal(2, 0.5, 150)])[:, None]
line = np.linspace(-6, 6, 300)[:, None]
ssl = GPSSL(1, kernel=NeighborRBF(5), random_state=0).fit(X)

spread = {}
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True, layout="constrained")
for ax, temperature in zip(axes, [1 / 300, 3.0, 30.0], strict=True):
    functions = ssl.refit(temperature=temperature).draw_functions(100, random_state=1)
    at_rows, on_line = functions(X)[:, :, 0], functions(line)[:, :, 0]
    shift = at_rows.mean(axis=1, keepdims=True)
    spread[temperature] = (at_rows - shift).std(axis=0).mean()
    ax.plot(line, (on_line - shift)[:12].T, color="#4477aa", linewidth=0.8)
    ax.plot(X, np.full(len(X), -3.5), "|", color="gray", markersize=6)
    ax.set(title=f"τ = {temperature:.3g}", xlabel="x")
axes[0].set_ylabel("12 drawn functions, centered")

# %%
# How far the draws are from each other at the rows, on average:

for temperature, value in spread.items():
    print(f"τ = {temperature:7.3g}: standard deviation over draws {value:.2f}")
