"""
A data frame that nobody prepared
=================================

Numbers in different units, a category, an answer with an order, and cells that are missing. `for_table` chooses a kernel for each kind of
column; nothing is filled in or encoded by hand.
"""

# %%
# Three kinds of customers, who differ a little in everything. The kind is not shown to the model.

import numpy as np
import pandas as pd

from gpssl import GPSSL, plots
from gpssl.kernels import for_table

rng = np.random.default_rng(0)
kind = rng.integers(3, size=300)
answers = ["never", "sometimes", "often", "always"]
customers = pd.DataFrame(
    {
        "age": rng.normal(30 + 12 * kind, 6),
        "income": np.exp(rng.normal(10 + 0.4 * kind, 0.4)),
        "city": np.where(rng.random(300) < 0.7, np.array(["Oslo", "Bergen", "Tromsø"])[kind], "Oslo"),
        "reads": pd.Categorical.from_codes(np.clip(kind + rng.integers(2, size=300), 0, 3), answers, ordered=True),
    }
)
customers = customers.mask(rng.random(customers.shape) < 0.1)
print(customers.head(4).to_string())

# %%
# The ellipses are one standard deviation of the posterior.

ssl = GPSSL(3, kernel=for_table(customers), random_state=0).fit(customers)
figure = plots.plot_pairs(ssl, customers, kind)[0, 0].figure
