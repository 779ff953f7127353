"""The grid's state from Python: moves, what-if, stop and resume; maps that learn; ridge with several targets."""

import numpy as np
import pytest

import mondrian
from mondrian import GridSearch, MondrianFeatures, MondrianForestRegressor, MondrianKernelRidge


def waves(n=200, seed=0):
    X = np.random.default_rng(seed).uniform(size=(n, 2))
    return X, np.sin(9 * X[:, 0])


def search(kind="greedy", **parameters):
    X, y = waves()
    given = {"n_estimators": 15, "alpha": 0.1, "random_state": 3} | parameters
    return GridSearch(X[:120], y[:120], X[120:], y[120:], search=kind, **given)


def test_what_if_promises_what_moves_give():
    state = search()
    for _ in range(10):
        state.raise_lifetime(0)
    promised, before = state.what_if(), state.error
    assert np.isnan(promised[1, 0]), "input 1 has no cut to lose"
    for feature in (0, 1):
        assert state.raise_lifetime(feature) == pytest.approx(promised[feature, 1], abs=1e-8)
        assert state.lower_lifetime(feature) == pytest.approx(before, abs=1e-8)
    assert np.isnan(state.lower_lifetime(1)) and state.n_cuts.tolist() == [10, 0]
    assert state.lower_lifetime(0) == pytest.approx(promised[0, 0], abs=1e-8)
    with pytest.raises(ValueError):
        state.raise_lifetime(2)


def test_a_state_is_the_model_at_its_lifetimes():
    X, y = waves()
    state = search()
    error = state.jump([3.0, 0.5])
    model = mondrian.MondrianGridRidge(15, lifetimes=[3.0, 0.5], alpha=0.1, random_state=3).fit(X[:120], y[:120])
    assert np.allclose(state.predictions(), model.predict(X[120:]), atol=1e-7)
    assert error == pytest.approx(np.sqrt(np.mean((state.predictions() - y[120:]) ** 2)), rel=1e-9)
    assert state.lifetimes.tolist() == [3.0, 0.5] and state.n_cells > 15


@pytest.mark.parametrize("kind", ["greedy", "coordinate", "spsa"])
def test_a_search_in_parts_is_the_search_in_one(kind):
    whole, parts = search(kind), search(kind)
    whole.run(budget=60, patience=1000)
    for budget in (10, 25, 60):
        parts.run(budget=budget, patience=1000)
    assert np.array_equal(whole.trajectory.error, parts.trajectory.error)
    assert np.array_equal(whole.best_lifetimes, parts.best_lifetimes)


def test_a_search_is_watched_stopped_and_resumed():
    seen = []

    def watch(step):
        seen.append(step["error"])
        if len(seen) == 4:
            raise KeyboardInterrupt

    stopped = search()
    with pytest.raises(KeyboardInterrupt):
        stopped.run(budget=100_000, patience=100_000, callback=watch)
    # The callback runs beside the search, which goes on for a few steps.
    assert stopped.trajectory.error.tolist()[:4] == seen and stopped.evaluations < 100_000
    assert stopped.run(budget=stopped.evaluations + 40, patience=1000) == "budget"
    whole = search()
    whole.run(budget=stopped.evaluations, patience=1000)
    n = min(len(whole.trajectory), len(stopped.trajectory))
    assert abs(len(whole.trajectory) - len(stopped.trajectory)) <= 1
    assert np.array_equal(whole.trajectory.error[:n], stopped.trajectory.error[:n])
    assert stopped.best_error == stopped.trajectory.error.min()


def test_greedy_searches_tell_the_inputs_apart():
    for kind in ("greedy", "lookahead"):
        found = search(kind)
        found.run(budget=300, patience=1000)
        assert found.best_lifetimes[0] > 4 * found.best_lifetimes[1]
        assert found.best_error < 0.5 * found.trajectory.error[0]


def test_alpha_is_a_move():
    found = search(alpha=300.0)
    found.run(budget=60, patience=1000)
    before = found.best_error
    assert found.tune_alpha(budget=100) < 100 and found.best_error < 0.9 * before


def test_features_learn_more_rows_and_are_viewed():
    X, _ = waves()
    box = {"lower": [0.0, 0.0], "upper": [1.0, 1.0], "weights": None, "random_state": 1}
    one = MondrianFeatures(30, lifetime=6.0, **box).fit(X)
    two = MondrianFeatures(30, lifetime=6.0, **box).partial_fit(X[:50])
    before = two.transform(X[:5])
    two.partial_fit(X[50:])
    after = two.transform(X[:5])
    assert (after[:, : before.shape[1]] != before).nnz == 0, "columns stay"
    assert abs(one.transform(X) @ one.transform(X).T - two.transform(X) @ two.transform(X).T).max() < 1e-12
    small = MondrianFeatures(30, lifetime=2.0, **box).fit(X).transform(X)
    view = one.at(2.0)
    assert view.lifetime_ == 2.0 and one.lifetime_ == 6.0
    assert abs(view.transform(X) @ view.transform(X).T - small @ small.T).max() < 1e-12
    with pytest.raises(ValueError):
        one.at(7.0)


def test_ridge_takes_several_targets():
    X, y = waves()
    Y = np.c_[y, X[:, 1], y + X[:, 1]]
    together = MondrianKernelRidge(20, lifetime=3.0, alpha=0.1, random_state=0).fit(X, Y)
    mean, std = together.predict(X[:9], return_std=True)
    assert mean.shape == std.shape == (9, 3) and together.intercept_.shape == (3,)
    for target in range(3):
        alone = MondrianKernelRidge(20, lifetime=3.0, alpha=0.1, random_state=0).fit(X, Y[:, target])
        assert np.allclose(alone.predict(X[:9]), mean[:, target], atol=1e-10)
        assert np.allclose(alone.predict(X[:9], return_std=True)[1], std[:, target], atol=1e-10)
        assert alone.intercept_ == pytest.approx(together.intercept_[target])
    path = together.path(X, Y)
    assert path.validation[-1] == pytest.approx(np.sqrt(np.mean((together.predict(X) - Y) ** 2)), rel=1e-6)
    with pytest.raises(ValueError):
        together.path(X, y)


def test_the_grid_takes_several_targets(tmp_path):
    X, y = waves()
    Y = np.c_[y, X[:, 1], y + X[:, 1]]
    given = {"n_estimators": 20, "lifetimes": [3.0, 1.0], "alpha": 0.1, "random_state": 0}
    together = mondrian.MondrianGridRidge(**given).fit(X, Y)
    mean = together.predict(X[:9])
    assert mean.shape == (9, 3) and together.intercept_.shape == (3,)
    for target in range(3):
        alone = mondrian.MondrianGridRidge(**given).fit(X, Y[:, target])
        assert np.allclose(alone.predict(X[:9]), mean[:, target], atol=1e-10)
        assert alone.intercept_ == pytest.approx(together.intercept_[target])
    together.save(tmp_path / "three.mondrian")
    assert np.array_equal(mondrian.load(tmp_path / "three.mondrian").predict(X[:9]), mean)
    column = mondrian.MondrianGridRidge(**given).fit(X, Y[:, :1])
    assert column.predict(X[:9]).shape == (9, 1)
    found = mondrian.MondrianGridRidge(20, alpha=0.1, random_state=0).fit(X, Y)
    assert found.score(X, Y) > 0.9 and min(found.lifetimes_) > 0
    with pytest.raises(ValueError, match="NaN"):
        together.fit(X, np.where(Y > 0.5, np.nan, Y))


def test_a_search_is_judged_on_all_targets():
    X, y = waves()
    Y = np.c_[y, X[:, 1]]
    state = GridSearch(X[:120], Y[:120], X[120:], Y[120:], n_estimators=15, alpha=0.1, random_state=3)
    state.run(budget=60)
    assert state.predictions().shape == (80, 2)
    assert state.error == pytest.approx(np.sqrt(np.mean((state.predictions() - Y[120:]) ** 2)), rel=1e-9)
    promised = state.what_if()[1, 1]
    assert state.raise_lifetime(1) == pytest.approx(promised, abs=1e-8)
    with pytest.raises(ValueError, match="per row"):
        GridSearch(X[:120], Y[:120], X[120:], y[120:])
    with pytest.raises(ValueError):
        GridSearch(X[:120], np.full((120, 2), np.nan), X[120:], Y[120:])


def test_degrees_of_freedom_are_traces():
    X, y = waves(60)
    for model in (
        MondrianKernelRidge(20, lifetime=3.0, alpha=0.1, fit_intercept=False, random_state=0),
        MondrianForestRegressor(10, lifetime=3.0, random_state=0),
    ):
        model.fit(X, y)
        trace = np.trace(model.equivalent_kernel(X))
        assert model.degrees_of_freedom() == pytest.approx(trace, rel=1e-9) and 1 < trace < 60


def test_the_forest_tells_noise_and_relevance():
    generator = np.random.default_rng(5)
    X = generator.uniform(size=(1200, 6))
    y = np.sin(6 * X[:, 0]) + 0.3 * generator.normal(size=1200)
    model = MondrianForestRegressor(30, random_state=0).fit(X[:800], y[:800])
    assert model.noise_variance_**0.5 == pytest.approx(0.3, rel=0.15)
    assert model.feature_importances_[0] > 0.9 and model.feature_importances_[1:].max() <= 0.02
    # 400 rows: three standard deviations of the share inside are 7.5 points, and those of the calibration half as much.
    lower, upper = model.predict_interval(X[800:], 0.5).T
    assert np.mean((lower <= y[800:]) & (y[800:] <= upper)) == pytest.approx(0.5, abs=0.08)
