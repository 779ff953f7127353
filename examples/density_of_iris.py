"""The density of iris: leave-one-out likelihood at every lifetime, new flowers, and a classifier of densities."""

# %% The flowers.
import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score

from mondrian import MondrianDensity, MondrianDensityClassifier

X, species = load_iris(return_X_y=True)
setosa = X[species == 0][:, :2]

# %% The density of setosa's sepals, and its leave-one-out likelihood at every lifetime.
density = MondrianDensity(n_estimators=50, lifetime=8.0, gamma=1.0, weights="std", random_state=0).fit(setosa)
path = density.path()
print(path)
best = density.at(path.best_lifetime)
print(f"leave-one-out log-likelihood: {best.leave_one_out_score():.1f}, at the terminal lifetime {density.leave_one_out_score():.1f}")

# %% New flowers, drawn from it.
print(np.round(best.sample(3, random_state=1), 2))

# %% One density a species makes a classifier.
accuracy = cross_val_score(MondrianDensityClassifier(n_estimators=50, random_state=0), X, species, cv=5)
print(f"five-fold accuracy: {accuracy.mean():.3f}")
