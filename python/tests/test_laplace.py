"""The tuned Laplace kernel: categorical and missing inputs, weights, several targets, files, and what it says of itself."""

import pickle

import numpy as np
import pandas as pd
import pytest

import mondrian


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(150, 3))
    return X, np.sin(6 * X[:, 0]) + X[:, 1] + 0.05 * rng.normal(size=150)


def test_missing_cells_are_taken(rows):
    X, y = rows
    X = X.copy()
    X[::9, 1] = np.nan
    model = mondrian.LaplaceKernelRidge(random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert model.loo_score_ > 0.8
    with pytest.raises(ValueError, match="finite"):
        model.predict([[np.inf, 0, 0]])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_categories_come_from_the_type_of_a_column(library):
    frames = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    kinds = rng.choice(["a", "b", "c", "d"], size=200)
    x = rng.uniform(size=200)
    y = np.select([kinds == "a", kinds == "b", kinds == "c"], [0.0, 2.0, -1.0], 1.0) + x
    kind = frames.Series(kinds, dtype="category") if library == "pandas" else frames.Series(kinds).cast(frames.Categorical)
    X = frames.DataFrame({"kind": kind, "x": x})
    model = mondrian.LaplaceKernelRidge(random_state=0).fit(X, y)
    assert model.loo_score_ > 0.95
    assert list(model.feature_names_in_) == ["kind", "x"]
    given = mondrian.LaplaceKernelRidge(categorical_features=[0], random_state=0)
    codes = np.column_stack([np.searchsorted(["a", "b", "c", "d"], kinds), x])
    np.testing.assert_array_equal(given.fit(codes, y).predict(codes), model.predict(X))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_a_category_never_seen_and_a_missing_one_are_predicted():
    X = pd.DataFrame({"kind": pd.Series(["a", "b", None] * 20, dtype="category"), "x": np.linspace(0, 1, 60)})
    model = mondrian.LaplaceKernelClassifier(random_state=0).fit(X, np.array(["p", "q", "r"] * 20))
    assert model.score(X, np.array(["p", "q", "r"] * 20)) == 1.0
    new = pd.DataFrame({"kind": pd.Series(["z", None], dtype="category"), "x": [0.5, 0.5]})
    assert np.isfinite(model.predict_proba(new)).all()
    with pytest.raises(ValueError, match="categorical_features"):
        mondrian.LaplaceKernelRidge(categorical_features=[5]).fit(np.zeros((4, 2)), np.arange(4.0))


def test_several_targets_and_intervals(rows):
    X, y = rows
    model = mondrian.LaplaceKernelRidge(random_state=0).fit(X, np.column_stack([y, -y]))
    assert model.predict(X).shape == (150, 2) and model.dual_coef_.shape == (150, 2)
    mean, std = model.predict(X[:5], return_std=True)
    assert mean.shape == std.shape == (5, 2)
    single = mondrian.LaplaceKernelRidge(random_state=0).fit(X[:100], y[:100])
    held = []
    for coverage in (0.5, 0.9):
        lower, upper = single.predict_interval(X[100:], coverage)
        held.append(np.mean((lower <= y[100:]) & (y[100:] <= upper)))
    # 50 rows: three standard errors of a share are 0.21 at a half and 0.13 at nine tenths.
    assert 0.29 < held[0] < 0.71 and held[1] > 0.77


def test_a_file_keeps_the_model(rows, tmp_path):
    X, y = rows
    classes = np.where(y > 1, "high", "low")
    for model, target in [
        (mondrian.LaplaceKernelRidge(random_state=1), y),
        (mondrian.LaplaceKernelClassifier(random_state=1), classes),
        (mondrian.LaplaceMap(n_directions=5, random_state=1), y),
    ]:
        model.fit(X, target).save(tmp_path / "model")
        again = mondrian.load(tmp_path / "model")
        assert type(again) is type(model)
        question = "transform" if isinstance(model, mondrian.LaplaceMap) else "predict"
        np.testing.assert_array_equal(getattr(again, question)(X), getattr(model, question)(X))


def test_targets_of_orders_of_magnitude_are_mapped():
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(300, 2))
    y = np.exp(6 * X[:, 0] + np.sin(5 * X[:, 1]) + 0.1 * rng.normal(size=300))
    model = mondrian.LaplaceKernelRidge(random_state=0).fit(X, y)
    assert model.target_transform_ in ("sqrt", "log")
    plain = mondrian.LaplaceKernelRidge(target_transform=None, random_state=0).fit(X, y)
    assert plain.target_transform_ is None
    # On fresh rows: by leave-one-out, which the tuning itself has seen, the plain target looks better than it is.
    fresh = rng.uniform(size=(2000, 2))
    truth = np.exp(6 * fresh[:, 0] + np.sin(5 * fresh[:, 1]))
    error, without = (np.sqrt(np.mean((m.predict(fresh) - truth) ** 2)) for m in (model, plain))
    assert error < 0.9 * without


def test_what_matters_is_what_permuting_says(rows):
    X, y = rows
    model = mondrian.LaplaceKernelRidge(random_state=0).fit(X, y)
    assert model.feature_importances_.argmax() == 0
    assert model.get_support().tolist() == [True, True, False]
    # Fewer than 300 rows are too few for a metric, unless it is asked for.
    assert model.metric_ is None
    assert mondrian.LaplaceKernelRidge(metric="full", random_state=0).fit(X, y).metric_.shape == (3, 3)


def test_a_time_budget_ends_the_steps(rows):
    X, y = rows
    model = mondrian.LaplaceKernelRidge(max_seconds=0.0, random_state=0).fit(X, y)
    assert len(model.trajectory_) < len(mondrian.LaplaceKernelRidge(random_state=0).fit(X, y).trajectory_)
    assert np.isfinite(model.predict(X)).all()


def test_tuned_weights_follow_what_matters_and_stay():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4)) * [1.0, 1.0, 100.0, 1.0]
    y = np.sin(3 * X[:, 0]) + 0.3 * X[:, 1]
    plain = mondrian.MondrianForestRegressor(20, weights="std", random_state=0).fit(X[:400], y[:400])
    tuned = mondrian.MondrianForestRegressor(20, weights="tuned", random_state=0).fit(X[:400], y[:400])
    scaled = tuned.weights_ * X[:400].std(axis=0)
    assert scaled[0] > 4 * scaled[2:].max() and abs(scaled.mean() - 1) < 0.1
    errors = [np.mean((model.predict(X[400:]) - y[400:]) ** 2) for model in (plain, tuned)]
    assert errors[1] < 0.8 * errors[0]
    online = mondrian.MondrianForestRegressor(5, weights="tuned", random_state=0).partial_fit(X[:300], y[:300])
    decided = online.weights_.copy()
    assert np.array_equal(online.partial_fit(X[300:], y[300:]).weights_, decided)
    classes = np.where(y > 0, "up", "down")
    forest = mondrian.MondrianForestClassifier(5, weights="tuned", random_state=0).fit(X, classes)
    assert (forest.weights_ * X.std(axis=0)).argmax() == 0
    features = mondrian.MondrianFeatures(5, weights="tuned", random_state=0).fit(X, y)
    assert (features.weights_ * X.std(axis=0)).argmax() == 0
    with pytest.raises(ValueError, match="needs targets"):
        mondrian.MondrianFeatures(5, weights="tuned").fit(X)
    # Noise: nothing wins, so the deviations stay.
    noise = mondrian.MondrianForestRegressor(5, weights="tuned", random_state=0).fit(X[:, [0, 1, 3]], rng.normal(size=600))
    assert noise.weights_.shape == (3,)


def test_warm_start_goes_on_tuning(rows, tmp_path):
    X, y = rows
    short = mondrian.LaplaceKernelRidge(max_seconds=0.0, warm_start=True, random_state=0).fit(X, y)
    steps, error = len(short.trajectory_), short.loo_rmse_
    short.save(tmp_path / "short.mondrian")
    loaded = mondrian.load(tmp_path / "short.mondrian").set_params(max_seconds=None, warm_start=True, random_state=0)
    before = short.trajectory_.error.copy()
    model = short.set_params(max_seconds=None).fit(X, y)
    assert model is short and len(model.trajectory_) > steps
    np.testing.assert_array_equal(model.trajectory_.error[:steps], before)
    assert model.loo_rmse_ <= error
    np.testing.assert_array_equal(loaded.fit(X, y).predict(X), model.predict(X))
    # A broken-off fit leaves the model as it was; so does a table of another width.
    predicted = model.predict(X)

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_params(verbose=stop).fit(X, y)
    with pytest.raises(ValueError, match="features"):
        model.set_params(verbose=False).fit(X[:, :2], y)
    np.testing.assert_array_equal(model.predict(X), predicted)
    cold = mondrian.LaplaceKernelRidge(random_state=0).fit(X, y)
    assert len(cold.trajectory_) == len(cold.fit(X, y).trajectory_)


def test_warm_start_of_classes(rows):
    X, y = rows
    labels = np.where(y > np.median(y), "high", "low")
    model = mondrian.LaplaceKernelClassifier(max_seconds=0.0, warm_start=True, random_state=0).fit(X, labels)
    steps, loss = len(model.trajectory_), model.loo_log_loss_
    model.set_params(max_seconds=None).fit(X, labels)
    assert len(model.trajectory_) > steps and model.loo_log_loss_ <= loss + 1e-6
    with pytest.raises(ValueError, match="not among"):
        model.fit(X, np.where(y > np.median(y), "high", "other"))
    assert list(model.classes_) == ["high", "low"]
