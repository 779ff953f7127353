"""Forests with ``weights="tuned"`` beside the default: test error and seconds of the fit.

    MONDRIAN_DATA=folder python benches/tuned_weights.py [--trees 100] [SET ...]

Splits as in laplace_table.py, ``random_state=0``, infinite lifetime for classes as in docs/benchmarks/accuracy.md, automatic for
regression. "kept" says whether the lifetimes won on the held-out rows of the training set; where they did not, both
forests are the same."""

import argparse
import time

import numpy as np
from laplace_table import CLASSES, load
from sklearn.metrics import log_loss

import mondrian

SETS = ("cpu_act", "house_16h", "kin8nm", "dna", "letter", "satimage")


def forest(name, weights, trees):
    options = {"n_estimators": trees, "weights": weights, "random_state": 0, "n_jobs": -1}
    if name in CLASSES:
        return mondrian.MondrianForestClassifier(lifetime=np.inf, **options)
    return mondrian.MondrianForestRegressor(**options)


def measured(name, weights, trees, rows):
    """The test error as text, and seconds of the fit."""
    X, y, X_test, y_test = rows
    model = forest(name, weights, trees)
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    if name not in CLASSES:
        return f"{np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)):.5g}", seconds
    shares = model.predict_proba(X_test)
    right = (model.classes_[shares.argmax(1)] == y_test).mean()
    return f"{right:.4f} / {log_loss(y_test, np.clip(shares, 1e-9, None), labels=model.classes_):.4f}", seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--trees", type=int, default=100)
    arguments = parser.parse_args()
    print("| set | default | fit, s | tuned | fit, s | kept |\n| --- | ---: | ---: | ---: | ---: | --- |")
    for name in arguments.sets:
        rows = load(name)
        (plain, first), (tuned, second) = (measured(name, weights, arguments.trees, rows) for weights in ("auto", "tuned"))
        print(f"| {name} | {plain} | {first:.1f} | {tuned} | {second:.1f} | {'no' if plain == tuned else 'yes'} |", flush=True)


if __name__ == "__main__":
    main()
