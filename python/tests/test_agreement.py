"""Independent implementations agree: scikit-learn's kernel ridge, its ridge on our features, its grid search."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, PredefinedSplit

import mondrian


@pytest.mark.parametrize(("lifetime", "alpha"), [(0.3, 1.0), (2.0, 0.01), (10.0, 1e-6)])
def test_exact_ridge_is_scikit_learns_kernel_ridge(regression, lifetime, alpha):
    X, y = regression
    queries = np.random.default_rng(1).uniform(-0.5, 1.5, size=(50, 3))
    ours = mondrian.LaplaceKernelRidge(lifetime=lifetime, alpha=alpha, fit_intercept=False).fit(X, y)
    theirs = KernelRidge(kernel="laplacian", gamma=lifetime, alpha=alpha).fit(X, y)
    assert np.abs(ours.predict(queries) - theirs.predict(queries)).max() < 1e-9
    # One lifetime per dimension is the same kernel on scaled inputs.
    scales = np.array([1.0, 0.25, 3.0])
    ours = mondrian.LaplaceKernelRidge(lifetime=lifetime * scales, alpha=alpha, fit_intercept=False).fit(X, y)
    theirs = KernelRidge(kernel="laplacian", gamma=lifetime, alpha=alpha).fit(X * scales, y)
    assert np.abs(ours.predict(queries) - theirs.predict(queries * scales)).max() < 1e-9


def test_the_equivalent_kernel_times_targets_is_the_prediction(regression):
    X, y = regression
    queries = np.random.default_rng(1).uniform(size=(20, 3))
    models = [
        mondrian.LaplaceKernelRidge(lifetime=2.0, alpha=0.1),
        mondrian.MondrianForestRegressor(n_estimators=10, lifetime=4.0, prior_mean=0.0, random_state=0),
    ]
    for model in models:
        model.fit(X, y)
        smoothing = model.equivalent_kernel(queries)
        assert smoothing.shape == (20, 120)
        assert np.abs(smoothing @ y - model.predict(queries)).max() < 1e-9


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_grid_ridge_is_scikit_learns_ridge_on_the_same_features(regression, fit_intercept):
    X, y = regression
    lifetimes = [3.0, 1.0, 0.5]
    features = mondrian.MondrianGridFeatures(n_estimators=20, lifetimes=lifetimes, random_state=5).fit(X)
    ours = mondrian.MondrianGridRidge(
        n_estimators=20, lifetimes=lifetimes, alpha=0.3, fit_intercept=fit_intercept, random_state=5
    ).fit(X, y)
    queries = np.random.default_rng(1).uniform(size=(30, 3))
    # Our intercept centres the targets and not the features (as a kernel method's does).
    centre = y.mean() if fit_intercept else 0.0
    theirs = Ridge(alpha=0.3, fit_intercept=False, solver="cholesky").fit(features.transform(X).toarray(), y - centre)
    expected = theirs.predict(features.transform(queries).toarray()) + centre
    assert np.abs(ours.predict(queries) - expected).max() < 1e-8


@pytest.mark.parametrize("solver", ["primal", "dual", "cg"])
def test_kernel_ridge_is_scikit_learns_ridge_on_mondrian_features(regression, solver):
    X, y = regression
    features = mondrian.MondrianFeatures(n_estimators=20, lifetime=3.0, random_state=5).fit(X)
    ours = mondrian.MondrianKernelRidge(20, lifetime=3.0, alpha=0.3, solver=solver, fit_intercept=False, random_state=5)
    ours.fit(X, y)
    theirs = Ridge(alpha=0.3, fit_intercept=False, solver="cholesky").fit(features.transform(X).toarray(), y)
    queries = np.random.default_rng(1).uniform(-0.2, 1.2, size=(30, 3))
    # Conjugate gradients stop at a relative residual of their own.
    tolerance = 1e-3 if solver == "cg" else 1e-8
    assert np.abs(ours.predict(queries) - theirs.predict(features.transform(queries).toarray())).max() < tolerance
    assert np.abs(ours.equivalent_kernel(queries) @ y - ours.predict(queries)).max() < tolerance
    assert ours.solver_ == solver and ours.predict(queries, return_std=True)[1].shape == (30,)


def test_inner_products_of_features_average_to_the_kernel(rng):
    # Each of 6 inner products is a mean of at least 4000 bounded terms: standard error below 0.016 (0.008 for cells);
    # five of them are a false alarm in under 1e-5 of seeds. Power: a lifetime wrong by a factor 1.3 shows as 0.07 or more.
    X = rng.uniform(size=(4, 2))
    kernel = np.exp(-1.5 * np.abs(X[:, None] - X[None]).sum(axis=2))
    maps = [
        mondrian.MondrianFeatures(n_estimators=4000, lifetime=1.5, random_state=0),
        mondrian.RandomBinningFeatures(n_estimators=4000, lifetime=1.5, random_state=0),
        mondrian.RandomFourierFeatures(n_components=8000, lifetime=1.5, random_state=0),
        mondrian.MondrianGridFeatures(n_estimators=4000, lifetimes=1.5, random_state=0),
    ]
    for transformer in maps:
        Z = transformer.fit_transform(X)
        assert np.abs(np.asarray((Z @ Z.T).todense() if hasattr(Z, "todense") else Z @ Z.T) - kernel).max() < 0.06


def test_grid_search_over_lifetimes_finds_what_the_path_knows(regression):
    X, y = regression
    train, validation = np.arange(80), np.arange(80, 120)
    lower, upper = X.min(axis=0), X.max(axis=0)
    params = {"n_estimators": 20, "lower": lower, "upper": upper, "weights": None, "random_state": 3,
              "prior_mean": 0.5, "prior_variance": 1.0, "noise_variance": 0.05}  # fmt: skip
    forest = mondrian.MondrianForestRegressor(lifetime=12.0, **params).fit(X[train], y[train])
    path = forest.path(X[validation], y[validation])
    lifetimes = [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0]
    split = PredefinedSplit(np.where(np.arange(120) < 80, -1, 0))
    search = GridSearchCV(
        mondrian.MondrianForestRegressor(**params),
        {"lifetime": lifetimes},
        cv=split,
        scoring="neg_root_mean_squared_error",
        refit=False,
    ).fit(X, y)
    known = [path.value_at(lifetime) for lifetime in lifetimes]
    assert np.allclose(-search.cv_results_["mean_test_score"], known, rtol=1e-9)
    assert search.best_params_["lifetime"] == lifetimes[int(np.argmin(known))]
    assert path.validation.min() <= min(known)
