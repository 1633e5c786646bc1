"""
At most 5 % errors, and the rest to a human
===========================================

Breast cancer with 60 labels. With 200 further labels that the classifier has not seen, a threshold is found that holds a share of errors.
"""

# %%
# The mark of a row without a label is −1.

import numpy as np
from sklearn.datasets import load_breast_cancer

from gpssl import GPSSL, MarginalizedClassifier, plots
from gpssl.baselines import KernelPCA
from gpssl.evaluation import predict_or_abstain, risk_controlled_threshold, risk_coverage_curve

X, y = load_breast_cancer(return_X_y=True)
labeled, calibration, new = np.split(np.random.default_rng(0).permutation(len(y)), [60, 260])
few = np.full(len(y), -1)
few[labeled] = y[labeled]

# %%
# Heads on 100 drawn functions, one head on their mean, and one head on kernel PCA with the same kernel. Risk is the share of errors among
# the rows that are kept, most certain first. On this table the three are alike; ``docs/results.md`` has tables where they are not.

methods = {
    "GPSSL-full": MarginalizedClassifier(GPSSL(5), weighting="equal", random_state=0),
    "GPSSL-mean": MarginalizedClassifier(GPSSL(5), n_draws=None, random_state=0),
    "kernel PCA": MarginalizedClassifier(KernelPCA(5), n_draws=None, random_state=0),
}
curves = {name: risk_coverage_curve(y[new], method.fit(X, few).predict_proba(X[new])) for name, method in methods.items()}
figure = plots.plot_risk_coverage(curves).figure

# %%
# The threshold: with 95 % confidence, at most 5 % of the predictions above it are wrong.

classifier = methods["GPSSL-full"]
threshold = risk_controlled_threshold(y[calibration], classifier.predict_proba(X[calibration]), max_risk=0.05, confidence=0.95)
predicted = predict_or_abstain(classifier, X[new], threshold)
kept = ~predicted.mask
print(f"of {len(new)} new rows {kept.sum()} are predicted, of these {(predicted[kept] != y[new][kept]).mean():.1%} wrongly")
print(f"without a threshold {1 - classifier.score(X[new], y[new]):.1%} would be wrong")
