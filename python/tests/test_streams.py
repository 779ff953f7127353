"""Streams: test-then-train with nothing given, unaligned arrays, river's interface."""

import pickle
from urllib.error import URLError

import numpy as np
import pytest

import mondrian
from mondrian import MondrianDensity, MondrianForestClassifier, MondrianForestRegressor


def unaligned(array):
    """The same numbers, at an address that no double has."""
    buffer = np.zeros(array.nbytes + 1, dtype=np.uint8)
    view = np.frombuffer(buffer.data, dtype=array.dtype, count=array.size, offset=1)
    view = view.reshape(array.shape)
    view[...] = array
    assert not view.flags.aligned
    return view


@pytest.fixture
def stream(rng):
    X = rng.normal(size=(300, 3)) * [1.0, 100.0, 1e-3]
    return X, X[:, 0] + 0.01 * X[:, 1]


def test_unaligned_arrays_are_copied(stream):
    X, y = stream
    forest = MondrianForestRegressor(n_estimators=5, random_state=0).fit(X, y)
    assert np.array_equal(forest.predict(unaligned(X)), forest.predict(X))
    assert np.array_equal(forest.predict(unaligned(np.asfortranarray(X))), forest.predict(X))
    other = MondrianForestRegressor(n_estimators=5, random_state=0).fit(X, y)
    forest.partial_fit(X[:7] + 1, y[:7])
    other.partial_fit(unaligned(X[:7] + 1), unaligned(y[:7]))
    assert np.array_equal(forest.predict(X), other.predict(X))
    single = unaligned(X.astype(np.float32))
    assert np.array_equal(forest.predict(single), forest.predict(X.astype(np.float32)))
    classes = MondrianForestClassifier(n_estimators=5, random_state=0).fit(X, y > 0)
    assert np.array_equal(classes.predict_proba(unaligned(X)), classes.predict_proba(X))


@pytest.mark.parametrize(("warm_up", "first"), [(None, 1), (64, 64)])
def test_streams_without_a_box_are_batches_on_the_first_rows(stream, warm_up, first):
    X, y = stream
    classes = (y > 0).astype(int) + (y > 1)
    for make, target, ask in (
        (MondrianForestRegressor, y, "predict"),
        (MondrianForestClassifier, classes, "predict_proba"),
    ):
        one, many = (make(n_estimators=5, random_state=0, warm_up=warm_up) for _ in range(2))
        given = {} if make is MondrianForestRegressor else {"classes": np.unique(classes)}
        one.partial_fit(X[:1], target[:1], **given)
        many.partial_fit(X[:first], target[:first], **given).partial_fit(X[first:], target[first:])
        for i in range(1, len(X)):
            getattr(one, ask)(X[i : i + 1])
            one.partial_fit(X[i : i + 1], target[i : i + 1])
        assert np.array_equal(getattr(one, ask)(X), getattr(many, ask)(X))
        assert np.array_equal(one.weights_, many.weights_)
    assert one.gamma_ == many.gamma_


def test_a_warm_up_fixes_the_scale_and_survives_a_file(stream, tmp_path):
    X, y = stream
    forest = MondrianForestRegressor(n_estimators=3, random_state=0, warm_up=100)
    for i in range(70):
        forest.partial_fit(X[i : i + 1], y[i : i + 1])
    assert np.allclose(forest.weights_, 1 / X[:64].std(axis=0))
    forest.save(tmp_path / "model")
    loaded = mondrian.load(tmp_path / "model")
    assert loaded.warm_up == 100
    for model in (forest, loaded, copy := pickle.loads(pickle.dumps(forest))):
        model.partial_fit(X[70:100], y[70:100])
        assert np.allclose(model.weights_, 1 / X[:100].std(axis=0))
        model.partial_fit(X[100:], y[100:])
        assert np.allclose(model.weights_, 1 / X[:100].std(axis=0))
    assert np.array_equal(forest.predict(X), loaded.predict(X)) and np.array_equal(forest.predict(X), copy.predict(X))
    with pytest.raises(ValueError, match="warm_up"):
        MondrianForestRegressor(warm_up=0).partial_fit(X, y)
    # A fit takes box and scale from its rows.
    assert np.allclose(MondrianForestRegressor(n_estimators=2).fit(X[:50], y[:50]).weights_, 1 / X[:50].std(axis=0))


def test_a_class_not_seen_before_and_kappa(stream):
    X, y = stream
    forest = MondrianForestClassifier(n_estimators=3, random_state=0).partial_fit(X[:2], np.array(["b", "d"]))
    for label in ("b", "c", "a", "c"):
        forest.partial_fit(X[5:6], np.array([label]))
    assert forest.classes_.tolist() == ["a", "b", "c", "d"]
    regression = MondrianForestRegressor(n_estimators=3, random_state=0, kappa=0.5).fit(X, y)
    assert regression.kappa_ == 0.5 and regression.noise_variance_ > 0
    with pytest.raises(ValueError, match="kappa"):
        MondrianForestRegressor(kappa=-1.0).fit(X, y)


def test_a_column_that_is_constant_but_for_far_rows(rng):
    X = np.column_stack([rng.normal(size=200), np.zeros(200)])
    X[[3, 150], 1] = 1e9
    assert np.isfinite(MondrianForestRegressor(n_estimators=5, random_state=0).fit(X, X[:, 0]).predict(X)).all()


def test_progressive_predicts_before_it_learns(stream):
    X, y = stream
    found = mondrian.progressive(MondrianForestRegressor(n_estimators=5, random_state=0), X, y)
    twin = MondrianForestRegressor(n_estimators=5, random_state=0).partial_fit(X[:1], y[:1])
    assert np.isnan(found.losses[0]) and found.predictions[1] == twin.predict(X[1:2])[0]
    assert found.running().shape == (300,) and found.score < np.std(y)
    errors = mondrian.progressive(MondrianForestClassifier(n_estimators=5, random_state=0), X, y > 0)
    assert set(errors.losses[1:]) <= {0.0, 1.0} and errors.score < 0.5


@pytest.mark.parametrize("kind", ["regression", "classes", "density"])
def test_windows_and_samples_are_batches_of_the_rows_held(stream, kind, tmp_path):
    X, y = stream
    box = {"lower": X.min(0) - 1, "upper": X.max(0) + 1, "weights": None, "n_estimators": 4, "random_state": 3}
    make, ask, target = {
        "regression": (MondrianForestRegressor, "predict", y),
        "classes": (MondrianForestClassifier, "predict_proba", (y > 0).astype(int) + (y > 1)),
        "density": (mondrian.MondrianDensity, "score_samples", None),
    }[kind]
    box |= {"lifetime": 3.0, "gamma": 1.0} if kind == "density" else {"lifetime": np.inf}

    def learn(model, rows):
        return model.partial_fit(X[rows]) if target is None else model.partial_fit(X[rows], target[rows])

    windowed = make(window=60, **box)
    for i in range(150):
        learn(windowed, slice(i, i + 1))
        if i % 7 == 0:
            getattr(windowed, ask)(X[:1])
    learn(windowed, slice(150, 170))
    sampled, other, parts = (make(max_rows=50, **box) for _ in range(3))
    for i in range(200):
        learn(sampled, slice(i, i + 1))
    learn(other, np.arange(200)[::-1])
    learn(parts, slice(0, 90)).merge(learn(make(max_rows=50, **box), slice(90, 200)))
    said = {name: getattr(model, ask)(X) for name, model in {"sampled": sampled, "other": other, "parts": parts}.items()}
    assert np.array_equal(said["sampled"], said["other"]) and np.array_equal(said["sampled"], said["parts"])
    assert sampled._model.n_rows == other._model.n_rows == parts._model.n_rows == 50
    classes = (np.unique(target[:200]),) if kind == "classes" else ()
    rows = slice(110, 170)
    batch = make(**box).partial_fit(X[rows], *(() if target is None else (target[rows], *classes)))
    assert np.array_equal(getattr(windowed, ask)(X), getattr(batch, ask)(X))
    for model in (windowed, sampled):
        model.save(tmp_path / "model")
        for again in (pickle.loads(pickle.dumps(model)), mondrian.load(tmp_path / "model")):
            assert (again.window, again.max_rows) == (model.window, model.max_rows)
            # They go on as the model itself does.
            twin = pickle.loads(pickle.dumps(model))
            assert np.array_equal(getattr(again, ask)(X), getattr(model, ask)(X))
            learn(again, slice(200, 230)), learn(twin, slice(200, 230))
            assert np.array_equal(getattr(again, ask)(X), getattr(twin, ask)(X)) and again._model.n_rows == model._model.n_rows
    with pytest.raises(ValueError, match="rows held"):
        windowed.merge(sampled)
    with pytest.raises(ValueError, match="windows"):
        windowed.merge(pickle.loads(pickle.dumps(windowed)))
    if target is not None:
        with pytest.raises(ValueError, match="count once each"):
            make(window=5, **box).fit(X, target, sample_weight=np.ones(len(X)))


def test_river(stream):
    pytest.importorskip("river")
    from river import checks, evaluate, metrics

    from mondrian.river import MondrianAnomaly as Anomaly
    from mondrian.river import MondrianForestClassifier as Classifier
    from mondrian.river import MondrianForestRegressor as Regressor

    X, y = stream
    rows = [dict(zip("abc", row)) for row in X.tolist()]
    score = evaluate.progressive_val_score(zip(rows, y.tolist()), Regressor(seed=1), metrics.RMSE())
    assert score.get() < np.std(y)
    score = evaluate.progressive_val_score(zip(rows, (y > 0).tolist()), Classifier(seed=1), metrics.Accuracy())
    assert score.get() > 0.6
    windowed = Regressor(n_models=3, window=50)
    for x, target in zip(rows, y.tolist()):
        windowed.learn_one(x, target)
    windowed.learn_one({"a": 1.0, "new": 2.0}, 0.0)
    assert windowed._forest._forests[0]._model.n_rows == 50 and np.isfinite(windowed.predict_one({"b": 1.0}))
    adaptive = Regressor(n_models=2, window="adaptive")
    score = evaluate.progressive_val_score(zip(rows, y.tolist()), adaptive, metrics.RMSE())
    assert score.get() < np.std(y) and adaptive._members[0]._forest._model.n_rows == 250
    anomalies = Anomaly(n_models=5, window=100)
    for x in rows:
        anomalies.learn_one(x)
    assert anomalies._forest._model.n_rows == 100
    assert anomalies.score_one({"a": 40.0, "b": 0.0, "c": 0.0}) > np.quantile([anomalies.score_one(x) for x in rows], 0.9)
    models = (Regressor(n_models=2), Classifier(n_models=2), Classifier(n_models=2, window="adaptive"), Anomaly(n_models=2))
    for model in models:
        for check in checks.yield_checks(model):
            try:
                check(model.clone())
            except URLError:
                # Those of anomaly detectors that learn download a table.
                assert isinstance(model, Anomaly)
                print(f"skipped: {check} needs the network")


def test_river_chooses_units_and_kappa(rng):
    pytest.importorskip("river")
    from mondrian import river

    X = rng.normal(size=(1100, 3)) * [1.0, 1.0, 200.0]
    y = X[:, 0] + rng.normal(size=1100)
    rows = [dict(enumerate(row)) for row in X.tolist()]
    forests = {}
    for place, weights in enumerate(river._UNITS):
        for kappa in river._KAPPAS:
            kappa = "auto" if kappa is None else kappa
            forests[place, kappa] = MondrianForestRegressor(3, kappa=kappa, weights=weights, random_state=0, n_jobs=1)
    losses, differences, is_chosen = dict.fromkeys(forests, 0.0), [], False
    stream = river.MondrianForestRegressor(n_models=3)
    for i, x in enumerate(rows):
        if i > 0:
            said = {case: float(forest.predict(X[i : i + 1])[0]) for case, forest in forests.items()}
            best = [min((case for case in forests if case[0] == unit), key=losses.get) for unit in range(2)]
            chosen = best[int(np.sum(differences) > 0)] if is_chosen else min(best, key=losses.get)
            asked = stream.predict_one(x) if i % 3 else stream.predict_one(dict(x))
            assert asked == said[chosen], i
            if not is_chosen:
                first, second = ((said[case] - y[i]) ** 2 for case in best)
                differences.append(first - second)
            losses = {case: 0.998 * loss + (said[case] - y[i]) ** 2 for case, loss in losses.items()}
            # Two standard errors of their sum, from row 1024 on.
            is_chosen = i >= 1024 and abs(np.sum(differences)) > 2 * np.sqrt(np.sum(np.square(differences)))
        stream.learn_one(x, y[i])
        for forest in forests.values():
            forest.partial_fit(X[i : i + 1], y[i : i + 1])
    assert is_chosen
    # The large input says nothing, so its units must not count.
    assert stream._tuned._units == ["auto"] and len(stream._forest._forests) == 1
    plain = river.MondrianForestRegressor(n_models=3, tune=False)
    for x, target in zip(rows[:300], y.tolist()):
        plain.learn_one(x, target)
    assert plain._tuned is None and plain.predict_one(rows[0]) == plain._forest.predict(X[:1])[0]


@pytest.mark.parametrize("kind", ["regression", "classes", "density"])
def test_adaptive_windows(rng, kind):
    X = rng.uniform(size=(1500, 2))
    # What is learned changes in the middle of the stream.
    y = np.where(np.arange(1500) < 900, X[:, 0], 3.0 - X[:, 0])
    make, ask, target = {
        "regression": (MondrianForestRegressor, "predict", y),
        "classes": (MondrianForestClassifier, "predict_proba", y > np.where(np.arange(1500) < 900, 0.5, 2.5)),
        "density": (mondrian.MondrianDensity, "score_samples", None),
    }[kind]
    if kind == "density":
        X[900:] = 0.3 * X[900:] + 0.6
    options = {"n_estimators": 3, "random_state": 1, "lower": [-0.1, -0.1], "upper": [1.1, 1.1], "weights": None}
    options |= {"lifetime": 3.0} if kind == "density" else {}

    def learn(model, rows):
        return model.partial_fit(X[rows]) if target is None else model.partial_fit(X[rows], target[rows])

    adaptive, alone, batch = (make(window=window, **options) for window in ("adaptive", 250, "adaptive"))
    for start in range(0, 1500, 100):
        learn(adaptive, slice(start, start + 100))
        learn(alone, slice(start, start + 100))
    short, whole = adaptive._members._members[0], adaptive._members.whole
    assert np.array_equal(getattr(short, ask)(X), getattr(alone, ask)(X))
    assert whole._model.n_rows == 1500 and short._model.n_rows == 250
    shares = adaptive._members.shares()
    assert abs(shares.sum() - 1) < 1e-12 and shares[0] > 0.5 > shares[-1]
    again = pickle.loads(pickle.dumps(adaptive))
    assert np.array_equal(getattr(again, ask)(X), getattr(adaptive, ask)(X))
    # One call is so many blocks, of which the first is a first call.
    batch = batch.fit(X) if target is None else batch.fit(X, target)
    learned = learn(make(window="adaptive", **options), slice(0, 250))
    for start in range(250, 1500, 250):
        learn(learned, slice(start, start + 250))
    assert np.array_equal(getattr(batch, ask)(X), getattr(learned, ask)(X))
    if kind == "regression":
        mean, std = adaptive.predict(X, return_std=True)
        assert np.array_equal(mean, adaptive.predict(X)) and (std > 0).all()
    row = (X[:1],) if target is None else (X[:1], target[:1])
    for refused in (lambda: adaptive.forget(*row), lambda: adaptive.at(1.0), lambda: adaptive.save("nowhere")):
        with pytest.raises(ValueError):
            refused()
    with pytest.raises(ValueError, match="max_rows"):
        learn(make(window="adaptive", max_rows=5, **options), slice(0, 20))


def test_forgetting_plain_arrays_is_forgetting_lists(stream):
    X, y = stream
    for make, target in ((MondrianForestRegressor, y), (MondrianForestClassifier, (y > 0).astype(int))):
        forests = [make(n_estimators=3, random_state=0).partial_fit(X, target) for _ in range(2)]
        forests[0].forget(X[3:4], target[3:4])
        forests[1].forget(X[3:4].tolist(), target[3:4].tolist())
        assert np.array_equal(forests[0].predict(X), forests[1].predict(X)) and forests[0]._model.n_rows == len(X) - 1
        for gone in (X[3:4], X[3:4].tolist()):
            with pytest.raises(ValueError, match="row 0"):
                forests[0].forget(gone, target[3:4])


@pytest.mark.parametrize("cls", [MondrianForestRegressor, MondrianForestClassifier])
@pytest.mark.parametrize("lifetime", [3.0, float("inf")])
def test_rows_of_any_type_of_number_are_learned_alike(rng, cls, lifetime):
    X = rng.integers(0, 30, size=(60, 3))
    y = X[:, 0] % 3
    held = [cls(5, lifetime=lifetime, weights=None, random_state=0).partial_fit(X[:20], y[:20]) for _ in range(4)]
    for i in range(20, 60):
        row, target = X[i : i + 1], y[i : i + 1]
        held[0].partial_fit(row.tolist(), target.tolist())
        held[1].partial_fit(row.astype(np.float64), target.astype(np.float64) if cls is MondrianForestRegressor else target)
        held[2].partial_fit(row.astype(np.float32), target.astype(np.uint8))
        held[3].partial_fit(row.astype(">i2"), target)
    for model in held[1:]:
        model.forget(X[30:31].astype(np.int8), y[30:31])
    held[0].forget(X[30:31].tolist(), y[30:31].tolist())
    expected = held[0].predict(X.tolist())
    for model in held[1:]:
        assert np.array_equal(model.predict(X), expected) and model.lifetime_ == lifetime
    for bad in (X[:1].astype(complex), X[:1].astype(object) * [[1, 2, "x"]], X[:1].astype(np.float64) * np.nan, X[:1, :2]):
        with pytest.raises((ValueError, TypeError)):
            held[0].partial_fit(bad, y[:1])
    assert np.array_equal(held[0].predict(X), expected)


def test_a_stream_of_a_density_starts_with_one_row(rng, tmp_path):
    X = rng.uniform(size=(300, 2))
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    density = MondrianDensity(5, warm_up=128, random_state=0)
    for i in range(100):
        density.partial_fit(X[i : i + 1])
        assert np.isfinite(density.score_samples(X[i : i + 1])).all()
    density.save(tmp_path / "model")
    density = mondrian.load(tmp_path / "model")
    assert density.warm_up == 128
    for i in range(100, 300):
        density.partial_fit(X[i : i + 1])
    batch = MondrianDensity(
        5, lifetime=density.lifetime_, lower=density.lower_, upper=density.upper_, weights=density.weights_, random_state=0
    ).fit(X)
    assert density.lifetime_ > 0.0 and np.array_equal(density.score_samples(X), batch.score_samples(X))
    assert density.score(X) > MondrianDensity(5, warm_up=None, random_state=0).partial_fit(X[:2]).partial_fit(X[2:]).score(X) + 100
    with pytest.raises(ValueError, match="minimum of 2"):
        MondrianDensity(warm_up=None).partial_fit(X[:1])
    with pytest.raises(ValueError, match="warm_up"):
        MondrianDensity(warm_up=0).partial_fit(X[:3])


def test_a_density_widens_a_box_that_was_not_given(rng):
    X, far = rng.normal(size=(80, 2)), np.array([[40.0, 0.0], [0.0, -90.0]])
    options = {"n_estimators": 4, "lifetime": 2.0, "gamma": 0.5, "random_state": 1}
    density = mondrian.MondrianDensity(**options).fit(X)
    before, box = density.score_samples(X), (density.lower_, density.upper_)
    assert np.isneginf(density.score_samples(far)).all()
    density.partial_fit(far)
    assert (density.lower_ < far.min(axis=0)).all() and (density.upper_ > far.max(axis=0)).all()
    assert np.isfinite(density.score_samples(far)).all()
    again = pickle.loads(pickle.dumps(density))
    assert np.array_equal(again.score_samples(X), density.score_samples(X)) and np.array_equal(again.upper_, density.upper_)
    density.forget(far)
    assert np.array_equal(density.score_samples(X), before) and np.array_equal(box, (density.lower_, density.upper_))
    given = mondrian.MondrianDensity(**options, lower=[-9, -9], upper=[9, 9]).fit(X)
    with pytest.raises(ValueError, match="outside the box"):
        given.partial_fit(far)
