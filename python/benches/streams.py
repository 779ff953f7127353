"""Test-then-train, one row at a time, with nothing given: build the package in release first.

    maturin develop --release && python benches/streams.py [--quick] [--rows N] [--no-river]

Defaults but for the number of trees: no box, automatic prior, noise, κ and γ; 10 trees, 10 inputs, one thread. A model is first
taught so many rows, in one batch on a box of its first row, and then asked and taught one by one; the figure is processor
time per row, of predicting and of learning. river's AMF beside it in the same run, where it is installed.
"""

import sys
from time import process_time

import numpy as np

from mondrian import MondrianForestClassifier, MondrianForestRegressor

QUICK = "--quick" in sys.argv
WITH_RIVER = "--no-river" not in sys.argv
PLACES = (1_000, 10_000) if QUICK else (1_000, 100_000)
STEPS = 100 if QUICK else 500
TREES, DIMS = 10, 10


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, DIMS))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    return X, y, (y > 0).astype(int) + (y > 1)


def measured(model, ask, X, y, place):
    """Microseconds per row of asking and of learning, from row ``place`` on."""
    model.partial_fit(X[:1], y[:1])
    model.partial_fit(X[1:place], y[1:place])
    ask(X[:1])
    asking = learning = 0.0
    for i in range(place, place + STEPS):
        start = process_time()
        ask(X[i : i + 1])
        middle = process_time()
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        asking, learning = asking + middle - start, learning + process_time() - middle
    return 1e6 * asking / STEPS, 1e6 * learning / STEPS


def measured_amf(model, ask, X, y, place):
    dictionaries = [dict(enumerate(row)) for row in X[: place + STEPS].tolist()]
    values = y.tolist()
    for i in range(place):
        model.learn_one(dictionaries[i], values[i])
    start = process_time()
    for i in range(place, place + STEPS):
        getattr(model, ask)(dictionaries[i])
        model.learn_one(dictionaries[i], values[i])
    return 1e6 * (process_time() - start) / STEPS


def main():
    X, y, classes = rows(max(PLACES) + STEPS)
    totals = {}
    for name, make, ask, target in (
        ("regressor", MondrianForestRegressor, "predict", y),
        ("classifier", MondrianForestClassifier, "predict_proba", classes),
    ):
        for place in PLACES:
            model = make(n_estimators=TREES, random_state=0, n_jobs=1)
            asking, learning = measured(model, getattr(model, ask), X, target, place)
            totals[name, place] = asking + learning
            print(
                f"{name}/row={place}/d={DIMS}/trees={TREES}: {asking + learning:.1f} us per row "
                f"(predict {asking:.1f}, learn {learning:.1f})",
                flush=True,
            )
        print(f"{name}: growth {totals[name, PLACES[1]] / totals[name, PLACES[0]]:.2f}", flush=True)
    if WITH_RIVER:
        against_river(X, y, classes, totals)


def against_river(X, y, classes, totals):
    try:
        from river.forest import AMFClassifier, AMFRegressor
    except ImportError:
        print("river is not installed (pip install 'mondrian[bench]')")
        return
    # AMF needs minutes for 100 000 rows: it is measured at the first place alone.
    place = PLACES[0]
    for name, model, ask, target in (
        ("regressor", AMFRegressor(n_estimators=TREES, seed=0), "predict_one", y),
        ("classifier", AMFClassifier(n_estimators=TREES, seed=0), "predict_proba_one", classes),
    ):
        amf = measured_amf(model, ask, X, target, place)
        print(f"{name}/row={place}: AMF {amf:.0f} us per row, {amf / totals[name, place]:.0f} times ours", flush=True)


if __name__ == "__main__":
    main()
