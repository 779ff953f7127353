"""Times against scikit-learn and river, one thread, printed as ratios: build the package in release first.

The forest path is timed against what it replaces: one fit and the predictions of both sets.

    maturin develop --release && python benches/against_others.py [--quick]

Each figure is the least processor time of several alternating runs, so that a busy neighbour does not decide.
"""

import gzip
import os
import sys
from time import process_time

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from mondrian import MondrianForestRegressor

QUICK = "--quick" in sys.argv
RUNS = 2 if QUICK else 9


def least(*calls, runs=RUNS):
    """The least time of each call, alternating."""
    times = [[] for _ in calls]
    for _ in range(runs):
        for slot, call in zip(times, calls):
            start = process_time()
            call()
            slot.append(process_time() - start)
    return [min(slot) for slot in times]


def batch():
    n = 20_000 if QUICK else 200_000
    rng = np.random.default_rng(0)
    X, queries = rng.uniform(size=(n, 10)), rng.uniform(size=(n, 10))
    y = X @ np.arange(10.0) + rng.normal(size=n)
    ours = MondrianForestRegressor(
        n_estimators=5, lifetime=5.0, lower=[0.0] * 10, upper=[1.0] * 10, random_state=0, n_jobs=1
    )
    theirs = ExtraTreesRegressor(n_estimators=5, max_features=1, random_state=0, n_jobs=1)
    fit = least(lambda: ours.fit(X, y), lambda: theirs.fit(X, y))
    predict = least(lambda: ours.predict(queries), lambda: theirs.predict(queries))
    for name, (a, b) in (("fit", fit), ("predict", predict)):
        print(f"{name}/n={n}/d=10/trees=5: ours {a:.3f} s, extra trees {b:.3f} s, ratio {b / a:.1f}")


def row_by_row():
    try:
        from river.forest import AMFRegressor
    except ImportError:
        print("row by row: river is not installed (pip install 'mondrian[bench]')")
        return
    n = 300 if QUICK else 1000
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(n, 10)), rng.uniform(size=n)
    dictionaries = [dict(enumerate(row)) for row in X]

    def ours():
        model = MondrianForestRegressor(n_estimators=10, random_state=0, lower=[0.0] * 10, upper=[1.0] * 10, weights=None, n_jobs=1)
        for i in range(n):
            model.partial_fit(X[i : i + 1], y[i : i + 1])

    def theirs():
        model = AMFRegressor(n_estimators=10, seed=0)
        for row, target in zip(dictionaries, y):
            model.learn_one(row, target)

    a, b = least(ours, theirs, runs=min(RUNS, 5))
    print(f"row_by_row/n={n}/d=10/trees=10: ours {n / a:.0f} rows/s, river {n / b:.0f} rows/s, ratio {b / a:.1f}")


def single_row():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(100, 10))
    # One tree that is one cell: what is left is the way from Python to the library and back.
    model = MondrianForestRegressor(n_estimators=1, lifetime=0.0, random_state=0, n_jobs=1).fit(X, X[:, 0])
    row, calls = X[:1].copy(), 2000

    def many(call):
        for _ in range(calls):
            call()

    bound, whole = least(
        lambda: many(lambda: model._model.predict(row, 1)),
        lambda: many(lambda: model.predict(row)),
    )
    print(f"single_row_predict: binding {bound / calls * 1e6:.1f} µs, whole predict {whole / calls * 1e6:.1f} µs")


def ccpp():
    """Inputs on the unit box and targets, shuffled; uniform rows of the same shape without the data folder."""
    folder = os.environ.get("MONDRIAN_DATA", os.path.join(os.path.dirname(__file__), "../../../shared/data"))
    rng = np.random.default_rng(0)
    try:
        with gzip.open(os.path.join(folder, "ccpp.csv.gz"), "rt") as file:
            table = rng.permutation(np.loadtxt(file, delimiter=",", skiprows=1))
    except FileNotFoundError:
        print("path: no data folder, uniform rows of the shape of ccpp")
        X = rng.uniform(size=(9568, 4))
        return X, np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2]
    X, y = table[:, :-1], table[:, -1]
    return (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0)), y


def path():
    X, y = ccpp()
    n = 700 if QUICK else 7000
    X, y, X_val, y_val = X[:n], y[:n], X[7000:], y[7000:]

    def model():
        return MondrianForestRegressor(n_estimators=50, lifetime=16.0, weights=None, random_state=0, n_jobs=1)

    def fit_and_predict():
        fitted = model().fit(X, y)
        fitted.predict(X)
        fitted.predict(X_val)

    fitted = model().fit(X, y)
    a, b = least(lambda: fitted.path(X_val, y_val), fit_and_predict)
    print(f"path/n={n}/validation={len(y_val)}/d=4/trees=50: path {a:.3f} s, fit and predict {b:.3f} s, ratio {a / b:.2f}")


if __name__ == "__main__":
    batch()
    row_by_row()
    single_row()
    path()
