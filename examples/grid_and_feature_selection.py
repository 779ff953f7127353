"""Tuning a grid: a lifetime for every dimension, and which inputs matter."""

# %% Six inputs, of which two matter.
import numpy as np

from mondrian import LaplaceKernelRidge, MondrianForestRegressor, MondrianGridRidge

rng = np.random.default_rng(4)
X = rng.uniform(size=(400, 6))
y = np.sin(7 * X[:, 1]) + 2 * X[:, 4] + 0.1 * rng.normal(size=400)
train, test = np.arange(300), np.arange(300, 400)

# %% The grid with the lifetimes that its default search finds.
grid = MondrianGridRidge(random_state=0).fit(X[train], y[train])
print("grid lifetimes:   ", np.round(grid.lifetimes_, 2), " inputs by importance:", grid.ranking_)
print(grid.trajectory_)

# %% The exact kernel, tuned along derivatives: the estimator to try first.
exact = LaplaceKernelRidge(random_state=0).fit(X[train], y[train])
print("exact lifetimes:  ", np.round(exact.lifetimes_, 3), " inputs that matter:", exact.get_support(indices=True))

# %% Lifetimes carry over to a forest as weights of its measure.
plain = MondrianForestRegressor(random_state=0).fit(X[train], y[train])
weighted = MondrianForestRegressor(random_state=0, weights=exact.lifetimes_).fit(X[train], y[train])
for name, model in [("grid", grid), ("exact", exact), ("forest", plain), ("forest, weighted", weighted)]:
    print(f"{name:17} test R² {model.score(X[test], y[test]):.3f}")
