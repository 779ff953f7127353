"""Uncertainty far from data: predictions return to the prior, and say so."""

# %% Two clusters of rows with nothing between them.
import numpy as np

from mondrian import LaplaceKernelRidge, MondrianForestRegressor

rng = np.random.default_rng(2)
X = np.concatenate([rng.uniform(0, 1, 150), rng.uniform(3, 4, 150)])[:, None]
y = np.cos(3 * X[:, 0]) + 0.1 * rng.normal(size=300)
queries = np.array([[0.5], [2.0], [3.5], [40.0]])

# %% Both models are surest where the data are.
for model in (MondrianForestRegressor(random_state=0), LaplaceKernelRidge(random_state=0)):
    mean, std = model.fit(X, y).predict(queries, return_std=True)
    print(type(model).__name__)
    for x, m, s in zip(queries[:, 0], mean, std):
        print(f"  x = {x:5.1f}  mean {m:6.2f}  ± {s:.2f}")

# %% Intervals of the forest cover what they promise, on rows it has not seen.
forest = MondrianForestRegressor(random_state=0).fit(X, y)
fresh = np.concatenate([rng.uniform(0, 1, 200), rng.uniform(3, 4, 200)])[:, None]
truth = np.cos(3 * fresh[:, 0]) + 0.1 * rng.normal(size=400)
interval = forest.predict_interval(fresh, coverage=0.9)
inside = (interval[:, 0] <= truth) & (truth <= interval[:, 1])
print(f"90 % intervals cover {100 * inside.mean():.0f} % of new targets")
