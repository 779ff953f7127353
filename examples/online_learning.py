"""Online learning: rows in any order, forests merged, rows forgotten, and always the same model."""

# %% Two sources of rows that share a seed and a root box.
import numpy as np

from mondrian import MondrianForestRegressor

rng = np.random.default_rng(1)
X = rng.uniform(size=(400, 3))
y = 10 * np.sin(X[:, 0] * X[:, 1] * 3) + X[:, 2]
settings = {"n_estimators": 20, "lifetime": 8.0, "random_state": 7, "lower": [0, 0, 0], "upper": [1, 1, 1]}

# %% One learns row by row, the other in a batch.
here = MondrianForestRegressor(**settings)
for i in range(200):
    here.partial_fit(X[i : i + 1], y[i : i + 1])
there = MondrianForestRegressor(**settings).fit(X[200:], y[200:])

# %% Merged, they are the forest that saw everything.
here.merge(there)
whole = MondrianForestRegressor(**settings).fit(X, y)
print("merged = fitted on all:", np.abs(here.predict(X) - whole.predict(X)).max() < 1e-10)

# %% A customer asks to be forgotten: the forest becomes the one that never learned the row.
here.forget(X[[13]], y[[13]])
without = MondrianForestRegressor(**settings).fit(np.delete(X, 13, axis=0), np.delete(y, 13))
print("forgotten = never seen:", np.abs(here.predict(X) - without.predict(X)).max() < 1e-10)

# %% Rows outside the box extend it; far rows are no problem.
here.partial_fit([[5.0, 0.5, -3.0]], [42.0])
print(f"near the far row: {here.predict([[5.0, 0.5, -3.0]])[0]:.1f}")
