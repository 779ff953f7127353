"""Kernel approximation in a Pipeline: Laplace-kernel ridge in time linear in the rows."""

# %% Data, and the exact model to approach.
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mondrian import LaplaceKernelRidge, MondrianFeatures, RandomBinningFeatures, RandomFourierFeatures

rng = np.random.default_rng(3)
X = rng.normal(size=(600, 3))
y = np.abs(X[:, 0]) + np.sin(2 * X[:, 1]) + 0.1 * rng.normal(size=600)
train, test = np.arange(400), np.arange(400, 600)


def rmse(model):
    return np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2))


exact = make_pipeline(StandardScaler(), LaplaceKernelRidge(lifetime=0.5, alpha=0.1)).fit(X[train], y[train])
print(f"exact kernel                        test RMSE {rmse(exact):.3f}")

# %% Three random feature maps before an ordinary ridge regression.
for n in (20, 100, 500):
    maps = [
        MondrianFeatures(n_estimators=n, lifetime=0.5, random_state=0),
        RandomBinningFeatures(n_estimators=n, lifetime=0.5, random_state=0),
        RandomFourierFeatures(n_components=2 * n, lifetime=0.5, random_state=0),
    ]
    for features in maps:
        model = make_pipeline(StandardScaler(), features, Ridge(alpha=0.1)).fit(X[train], y[train])
        print(f"{type(features).__name__:22} of size {n:4}  test RMSE {rmse(model):.3f}")
