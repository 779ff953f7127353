"""Order, batches, merging and forgetting give the same model: to the last bit."""

import numpy as np
import pytest

import mondrian

REGRESSOR = {"n_estimators": 8, "lifetime": 6.0, "random_state": 1}


def test_batches_in_any_order_are_one_fit(regression):
    X, y = regression
    box = {"lower": X.min(axis=0), "upper": X.max(axis=0)}
    whole = mondrian.MondrianForestRegressor(**REGRESSOR, **box).fit(X, y)
    order = np.random.default_rng(5).permutation(len(X))
    parts = mondrian.MondrianForestRegressor(**REGRESSOR, **box)
    for batch in np.array_split(order, 7):
        parts.partial_fit(X[batch], y[batch])
    queries = np.random.default_rng(6).uniform(-1, 2, size=(60, 3))
    assert np.abs(parts.predict(queries) - whole.predict(queries)).max() <= 1e-12 * np.abs(y).sum()
    assert np.array_equal(parts.apply(queries), whole.apply(queries))


def test_merge_and_forget_are_exact(regression):
    X, y = regression
    box = {"lower": X.min(axis=0), "upper": X.max(axis=0)}
    first = mondrian.MondrianForestRegressor(**REGRESSOR, **box).fit(X[:60], y[:60])
    second = mondrian.MondrianForestRegressor(**REGRESSOR, **box).fit(X[60:], y[60:])
    alone = first.predict(X)
    whole = mondrian.MondrianForestRegressor(**REGRESSOR, **box).fit(X, y)
    assert np.allclose(first.merge(second).predict(X), whole.predict(X), rtol=0, atol=1e-11)
    assert np.allclose(first.forget(X[60:], y[60:]).predict(X), alone, rtol=0, atol=1e-11)
    stranger = mondrian.MondrianForestRegressor(**{**REGRESSOR, "random_state": 2}, **box).fit(X, y)
    with pytest.raises(ValueError, match="seeds differ"):
        first.merge(stranger)
    with pytest.raises(TypeError):
        first.merge("another")


def test_a_view_is_the_fit_at_that_lifetime_and_a_model_of_its_own(regression):
    X, y = regression
    box = {"lower": X.min(axis=0), "upper": X.max(axis=0)}
    prior = {"prior_mean": 0.0, "prior_variance": 1.0, "noise_variance": 0.1}
    forest = mondrian.MondrianForestRegressor(**REGRESSOR, **box, **prior).fit(X, y)
    view = forest.at(2.0)
    refit = mondrian.MondrianForestRegressor(**{**REGRESSOR, "lifetime": 2.0}, **box, **prior).fit(X, y)
    # Cells agree to the last bit, sums of targets as the core promises: to 1e-12 of their absolute sum.
    assert view.lifetime_ == 2.0 and np.array_equal(view.apply(X), refit.apply(X))
    assert np.abs(view.predict(X) - refit.predict(X)).max() <= 1e-12 * np.abs(y).sum()
    before = forest.predict(X)
    view.partial_fit(X[:3], y[:3] + 5)
    assert np.array_equal(forest.predict(X), before)
    with pytest.raises(ValueError, match="grown to"):
        forest.at(7.0)


def test_weights_count_rows(regression):
    X, y = regression
    counts = np.arange(len(X)) % 3
    box = {"lower": X.min(axis=0), "upper": X.max(axis=0), "weights": None}
    weighted = mondrian.MondrianForestRegressor(**REGRESSOR, **box).fit(X, y, sample_weight=counts)
    repeated = mondrian.MondrianForestRegressor(**REGRESSOR, **box).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert np.allclose(weighted.predict(X), repeated.predict(X))
    for bad in ([-1.0] * len(X), [np.nan] * len(X), [1.0], np.zeros(len(X))):
        with pytest.raises(ValueError, match="sample_weight"):
            mondrian.MondrianForestRegressor(**REGRESSOR).fit(X, y, sample_weight=bad)


def test_several_targets_and_quantiles(regression):
    X, y = regression
    Y = np.column_stack([y, -2 * y])
    forest = mondrian.MondrianForestRegressor(**REGRESSOR).fit(X, Y)
    mean, std = forest.predict(X, return_std=True)
    assert mean.shape == std.shape == Y.shape
    assert forest.predict_quantiles(X, [0.1, 0.5, 0.9]).shape == (len(X), 2, 3)
    single = mondrian.MondrianForestRegressor(**REGRESSOR).fit(X, y)
    interval = single.predict_interval(X, coverage=0.8)
    assert interval.shape == (len(X), 2) and (interval[:, 0] < interval[:, 1]).all()
    with pytest.raises(ValueError):
        single.predict_quantiles(X, [1.5])
    with pytest.raises(ValueError, match="targets"):
        single.partial_fit(X, Y)


def test_classes_may_arrive_late(classes):
    X, y = classes
    box = {"lower": X.min(axis=0), "upper": X.max(axis=0), "n_estimators": 8, "lifetime": 5.0, "gamma": 2.0, "random_state": 0}
    order = np.argsort(y)[::-1]  # "below" first, then "above", which sorts before it
    late = mondrian.MondrianForestClassifier(**box)
    for batch in np.array_split(order, 6):
        late.partial_fit(X[batch], y[batch])
    whole = mondrian.MondrianForestClassifier(**box).fit(X, y)
    assert late.classes_.tolist() == ["above", "below"]
    assert np.array_equal(late.predict_proba(X), whole.predict_proba(X))
    assert np.allclose(whole.predict_proba(X).sum(axis=1), 1.0)
    part = mondrian.MondrianForestClassifier(**box).fit(X[y == "below"], y[y == "below"])
    other = mondrian.MondrianForestClassifier(**box).fit(X[y == "above"], y[y == "above"])
    assert np.array_equal(part.merge(other).predict_proba(X), whole.predict_proba(X))
    with pytest.raises(ValueError, match="never seen"):
        whole.forget(X[:1], ["elsewhere"])
    with pytest.raises(ValueError, match="not among"):
        late.partial_fit(X[:1], ["x"], classes=["y", "z"])


def test_the_interpreter_is_free_and_threads_may_share_a_model(regression):
    from threading import Thread

    X, y = regression
    forest = mondrian.MondrianForestRegressor(**REGRESSOR).fit(X, y)
    expected, wrong = forest.predict(X), []

    def ask():
        for _ in range(20):
            if not np.array_equal(forest.predict(X), expected):
                wrong.append(1)

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_progress_is_heard_and_can_stop_the_work(regression):
    X, y = regression
    steps = []
    mondrian.LaplaceKernelRidge(random_state=0, verbose=steps.append).fit(X, y)
    assert steps and {"lifetimes", "alpha", "error", "cost", "rows"} == set(steps[0])

    def enough(step):
        raise KeyboardInterrupt

    model = mondrian.LaplaceKernelRidge(random_state=0, verbose=enough)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "lifetimes_")
