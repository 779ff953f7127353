"""Choosing a lifetime: one fit gives the error at every lifetime.

Training, validation and test rows are three different sets: the path chooses on the second, the third is used once.
"""

# %% Data: a curve with noise.
import numpy as np

from mondrian import MondrianForestRegressor

rng = np.random.default_rng(0)
X = rng.uniform(size=(600, 2))
y = np.sin(8 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.normal(size=600)
train, validation, test = np.split(np.arange(600), [300, 450])

# %% One fit, to a lifetime that is surely too large.
forest = MondrianForestRegressor(n_estimators=50, lifetime=60.0, random_state=0).fit(X[train], y[train])

# %% The error at every lifetime, without refitting.
path = forest.path(X[validation], y[validation])
print(path)
print(f"values: {len(path)}, best lifetime: {path.best_lifetime:.2f}, simplest within one error: {path.best_lifetime_1se:.2f}")

# %% The model at the best lifetime is a view: no retraining.
best = forest.at(path.best_lifetime)
for name, model in [("best", best), ("terminal", forest), ("trivial", forest.at(0.0))]:
    rmse = np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2))
    print(f"{name:9} lifetime {model.lifetime_:6.2f}  test RMSE {rmse:.3f}")

# %% The same choice, all by itself.
automatic = MondrianForestRegressor(n_estimators=50, random_state=0).fit(X[train], y[train])
print(f"automatic lifetime {automatic.lifetime_:.2f}, test R² {automatic.score(X[test], y[test]):.3f}")

# %% A picture, where matplotlib is installed.
try:
    path.plot()
except ImportError:
    pass
