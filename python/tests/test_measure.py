"""A measure of one's own: a forest under it is the forest of rows that were mapped by hand."""

import numpy as np
import pytest

import mondrian

KNOTS = [[(0.0, 0.0), (0.5, 1.0), (1.0, 1.25)], [(0.0, 0.0), (1.0, 0.25)]]


def mapped(X):
    first = np.where(X[:, 0] < 0.5, X[:, 0] / 0.5, 1.0 + (X[:, 0] - 0.5) / 0.5 * 0.25)
    return np.column_stack([first, X[:, 1] * 0.25])


@pytest.fixture
def rows(rng):
    X = rng.uniform(size=(400, 2))
    return X, np.sin(8 * X[:, 0]) + X[:, 1]


@pytest.mark.parametrize("measure", [KNOTS, [np.array(axis) for axis in KNOTS], tuple(map(tuple, KNOTS))])
def test_a_forest_is_that_of_mapped_rows(rows, measure):
    X, y = rows
    options = {"n_estimators": 7, "lifetime": 6.0, "random_state": 3}
    own = mondrian.MondrianForestRegressor(measure=measure, lower=[0, 0], upper=[1, 1], **options).fit(X, y)
    plain = mondrian.MondrianForestRegressor(lower=[0, 0], upper=[1.25, 0.25], **options).fit(mapped(X), y)
    queries = np.random.default_rng(1).uniform(size=(300, 2))
    for ours, theirs in zip(own.predict(queries, return_std=True), plain.predict(mapped(queries), return_std=True)):
        assert np.array_equal(ours, theirs)
    uniform = mondrian.MondrianForestRegressor(lower=[0, 0], upper=[1, 1], **options).fit(X, y)
    assert not np.array_equal(own.predict(queries), uniform.predict(queries))


def test_features_classes_and_parts_take_it_too(rows):
    X, y = rows
    features = mondrian.MondrianFeatures(5, lifetime=4.0, measure=KNOTS, random_state=0).fit(X)
    plain = mondrian.MondrianFeatures(5, lifetime=4.0, random_state=0).fit(mapped(X))
    assert (features.transform(X) != plain.transform(mapped(X))).nnz == 0
    classes = mondrian.MondrianForestClassifier(5, measure=KNOTS, lifetime=5.0, random_state=0).fit(X, y > 1)
    assert classes.score(X, y > 1) > 0.8
    options = {"lifetime": 4.0, "measure": KNOTS, "random_state": 0}
    domain = mondrian.Moments(X, y).domain(n_estimators=5, **options)
    parts = mondrian.summarize(X[:100], y[:100], domain).merge(mondrian.summarize(X[100:], y[100:], domain))
    whole = mondrian.MondrianForestRegressor(5, **options).fit(X, y)
    assert np.array_equal(parts.finish().predict(X), whole.predict(X))


def test_it_is_kept_in_files(rows, tmp_path):
    X, y = rows
    forest = mondrian.MondrianForestRegressor(4, lifetime=3.0, measure=KNOTS, weights=[2.0, 1.0], random_state=0).fit(X, y)
    forest.save(tmp_path / "m.mondrian")
    loaded = mondrian.load(tmp_path / "m.mondrian")
    assert np.array_equal(loaded.predict(X), forest.predict(X))
    assert [[tuple(knot) for knot in axis] for axis in loaded.measure] == KNOTS
    again = mondrian.MondrianForestRegressor(**loaded.get_params()).fit(X, y)
    assert np.array_equal(again.predict(X), forest.predict(X))
    with pytest.raises(ValueError, match="knots of 1 columns, but X has 2"):
        mondrian.MondrianForestRegressor(measure=KNOTS[:1]).fit(X, y)
    with pytest.raises(ValueError, match="must not descend"):
        mondrian.MondrianForestRegressor(measure=[[(0, 1), (1, 0)]] * 2).fit(X, y)
