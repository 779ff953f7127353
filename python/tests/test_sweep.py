"""Every estimator and method against every hostile row, target, weight and parameter.

A call may succeed or raise what scikit-learn's users expect; anything else, a panic above all, fails the test. What
succeeds must answer with numbers.
"""

import inspect
import warnings

import estimators
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from test_family import answer, small, target

from mondrian import process

#: NotFittedError is a ValueError.
PLAIN = (ValueError, TypeError)

ROWS = {
    "nan": np.full((6, 2), np.nan),
    "infinite": np.array([[0.0, 1.0], [np.inf, 2.0], [1.0, 1.0]]),
    "no rows": np.empty((0, 2)),
    "no columns": np.empty((5, 0)),
    "one row": np.array([[0.25, 0.75]]),
    "two equal rows": np.array([[0.25, 0.75], [0.25, 0.75]]),
    "constant": np.full((8, 2), 3.25),
    "one constant column": np.column_stack([np.arange(8.0), np.full(8, 7.0)]),
    "huge": np.array([[1e308, -1e308], [-1e308, 1e308], [0.0, 0.0], [1.7e308, 1.7e308]]),
    "tiny": np.array([[5e-324, 0.0], [0.0, 5e-324], [1e-300, 1e-300], [2e-308, -2e-308]]),
    "huge and tiny": np.array([[1e308, 5e-324], [-1e300, 0.0], [1.0, 1e-310], [0.0, 1.0]]),
    "zeros of both signs": np.array([[0.0, -0.0], [-0.0, 0.0], [0.0, 0.0], [-0.0, -0.0]]),
    "one-dimensional": np.zeros(5),
    "three-dimensional": np.zeros((2, 2, 2)),
    "scalar": 3.0,
    "nothing": None,
    "text": "rows",
    "texts": [["a", "b"], ["c", "d"]],
    "objects": np.array([[object(), 1.0], [2.0, 3.0]], dtype=object),
    "numbers as objects": np.array([[0.5, 1], [2.0, 3], [1, 1]], dtype=object),
    "numbers as texts": np.array([["0.5", "1"], ["2.0", "3"], ["1", "1"]]),
    "complex": np.array([[1j, 2.0], [3.0, 4.0]]),
    "dates": np.array([["2026-01-01", "2026-01-02"]], dtype="datetime64[D]"),
    "ragged": [[1.0, 2.0], [3.0]],
    "sparse": sparse.csr_matrix(np.eye(2)),
    "booleans": np.array([[True, False], [False, True], [True, True]]),
    "bytes": np.array([[1, 2], [250, 3], [7, 7]], dtype=np.uint8),
    "half precision": np.array([[0.5, 1.0], [2.0, 3.0], [4.0, 4.0]], dtype=np.float16),
    "long precision": np.array([[0.5, 1.0], [2.0, 3.0], [4.0, 4.0]], dtype=np.longdouble),
    "other byte order": np.array([[0.5, 1.0], [2.0, 3.0], [4.0, 4.0]]).astype(">f8"),
    "masked": np.ma.masked_greater(np.array([[0.5, 1.0], [2.0, 3.0], [4.0, 4.0]]), 3.5),
    "frame with gaps": pd.DataFrame({"a": [1.0, None, 2.0], "b": [1.0, 2.0, 3.0]}),
    "frame of texts": pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]}),
    "wrong width": np.zeros((4, 7)),
    "a dictionary": {"a": [1.0, 2.0]},
    "backwards": np.arange(12.0).reshape(6, 2)[::-1, ::-1],
    "broadcast": np.broadcast_to(np.array([0.5, 0.25]), (6, 2)),
}

METHODS = ("predict", "predict_proba", "score_samples", "transform", "apply", "equivalent_kernel")


def tolerated(call):
    """The call's answer, or None if it is refused as it should be."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except PLAIN as error:
            assert "mistake inside" not in str(error) and str(error), repr(error)
            return None


def labels(cls, n):
    return np.arange(n) % 2 if is_classifier(cls()) else np.linspace(-1.0, 2.0, n)


def length(rows):
    return rows.shape[0] if hasattr(rows, "shape") and len(rows.shape) else len(rows) if hasattr(rows, "__len__") else 1


@pytest.fixture(scope="module")
def fitted():
    """Every estimator, fitted on harmless rows."""
    X = np.random.default_rng(0).uniform(size=(30, 2))
    return {cls: small(cls).fit(X, target(cls, X)) for cls in estimators.ALL}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("cls", estimators.ALL)
def test_rows(cls, name, fitted):
    rows = ROWS[name]
    model = tolerated(lambda: small(cls).fit(rows, labels(cls, length(rows))))
    if model is not None and name not in ("masked",):
        X = np.asarray(rows, dtype=np.float64)
        found = tolerated(lambda: answer(model, X))
        assert found is None or (len(found) == len(X) and not np.isnan(found).any())
    for method in METHODS:
        if hasattr(cls, method):
            found = tolerated(lambda: getattr(fitted[cls], method)(rows))
            assert found is None or found.shape[0] == length(rows)


TARGETS = {
    "nan": [0.0, np.nan, 1.0, 2.0],
    "infinite": [0.0, np.inf, 1.0, 2.0],
    "huge": [1e308, -1e308, 1.7e308, 0.0],
    "tiny": [5e-324, -5e-324, 0.0, 1e-310],
    "constant": [7.0] * 4,
    "too few": [0.0, 1.0],
    "too many": [0.0] * 9,
    "none": [],
    "nothing": None,
    "texts": ["a", "b", "a", "b"],
    "mixed": ["a", 1, None, 2.0],
    "complex": [1j, 2.0, 3.0, 4.0],
    "two-dimensional": np.zeros((4, 2)),
    "three-dimensional": np.zeros((4, 1, 1)),
    "booleans": [True, False, True, False],
    "big integers": [2**70, 0, 1, 2],
}


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("cls", [cls for cls in estimators.ALL if hasattr(cls, "predict")])
def test_targets(cls, name):
    X = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5], [0.25, 0.75]])
    model = tolerated(lambda: small(cls).fit(X, TARGETS[name]))
    if model is not None:
        found = model.predict(X)
        assert len(found) == 4 and (found.dtype.kind not in "f" or not np.isnan(found).any())


WEIGHTS = [[-1.0] * 8, [0.0] * 8, [np.nan] * 8, [np.inf] * 8, [1.0] * 7, [1.0] * 9, [], [[1.0] * 8], "heavy", ["a"] * 8,
           [0.5] * 8, [1e308] * 8, [5e-324] * 8, [2**40] * 8, [1e-300, 1e300] * 4, 1j, {"a": 1}, -1.0, 0.0]  # fmt: skip


@pytest.mark.parametrize("cls", [cls for cls in estimators.ALL if "sample_weight" in inspect.signature(cls.fit).parameters])
def test_weights(cls, rng):
    X = rng.uniform(size=(8, 2))
    y = labels(cls, 8)
    for weights in WEIGHTS:
        for method in ("fit", "partial_fit") if hasattr(cls, "partial_fit") else ("fit",):
            model = tolerated(lambda: getattr(small(cls), method)(X, y, sample_weight=weights))
            assert model is None or not np.isnan(answer(model, X)).any(), weights
    for refused in ([-1.0] * 8, [0.0] * 8, [np.nan] * 8, [1.0] * 7, [[1.0] * 8], [1e308] * 8, "heavy"):
        with pytest.raises(PLAIN, match="sample_weight"):
            small(cls).fit(X, y, sample_weight=refused)


@pytest.mark.parametrize("cls", [cls for cls in estimators.ALL if "sample_weight" not in inspect.signature(cls.fit).parameters])
def test_weights_where_they_mean_nothing_are_refused_by_name(cls, rng):
    X = rng.uniform(size=(8, 2))
    with pytest.raises(TypeError, match="sample_weight"):
        small(cls).fit(X, labels(cls, 8), sample_weight=np.ones(8))


VALUES = [None, "", "x", "auto", b"bytes", -1, 0, 1, 2, 10**30, -1.0, 0.0, 0.5, 1.0, 1e-320, 1e300, 1e308, -1e308, float("inf"),
          float("-inf"), float("nan"), True, [], [1.0], [1.0, 1.0], [1.0, -1.0], [np.nan, 1.0], [np.inf, 1.0], [[1.0, 1.0]],
          [1e308, 1e308], [0.0, 0.0], (), {}, {"a": 1}, object(), 1j, np.float32(2.0), np.array(2.0), np.array(["a", "b"])]  # fmt: skip


def parameters(cls):
    return [name for name in cls().get_params() if name != "verbose"]


@pytest.mark.parametrize(("cls", "name"), [(cls, name) for cls in estimators.ALL for name in parameters(cls)])
def test_parameters(cls, name):
    X = np.random.default_rng(1).uniform(size=(12, 2))
    y = labels(cls, 12)
    for value in VALUES:
        model = tolerated(lambda: small(cls).set_params(**{name: value}).fit(X, y))
        found = None if model is None else tolerated(lambda: answer(model, X))
        assert found is None or not np.isnan(found).any(), f"{name}={value!r}"


@pytest.mark.parametrize("corner", ["lower", "upper"])
@pytest.mark.parametrize("cls", [cls for cls in estimators.ALL if "lower" in cls().get_params()])
def test_boxes(cls, corner):
    X = np.random.default_rng(1).uniform(size=(12, 2))
    harmless = {"lower": [0.0, 0.0], "upper": [1.0, 1.0]}
    for value in VALUES:
        model = tolerated(lambda: small(cls).set_params(**(harmless | {corner: value})).fit(X, labels(cls, 12)))
        assert model is None or not np.isnan(answer(model, X)).any(), f"{corner}={value!r}"


#: Arguments of methods beside rows, and what else they need.
ARGUMENTS = {
    "at": lambda model, X, value: model.at(value),
    "predict_quantiles": lambda model, X, value: model.predict_quantiles(X, value),
    "predict_interval": lambda model, X, value: model.predict_interval(X, value),
    "merge": lambda model, X, value: model.merge(value),
    "path": lambda model, X, value: model.path(value) if hasattr(model, "sample") else model.path(value, X[:, 0]),
    "sample": lambda model, X, value: model.sample(value) if not isinstance(value, int) or value < 100 else None,
    "plot": lambda model, X, value: model.plot(dims=value, n_points=3),
    "get_support": lambda model, X, value: model.get_support(bool(value)) if np.ndim(value) == 0 else None,
}


@pytest.mark.parametrize("cls", estimators.ALL)
def test_arguments_of_methods(cls, fitted):
    X = np.random.default_rng(1).uniform(size=(12, 2))
    before = answer(fitted[cls], X)
    for method, call in ARGUMENTS.items():
        if hasattr(cls, method):
            for value in VALUES:
                tolerated(lambda: call(fitted[cls], X, value))
    assert np.array_equal(answer(fitted[cls], X), before)
    plt.close("all")


PARTITION = process.sample([0, 0], [1, 1], 2.0, seed=1)
PLANE = process.InfiniteMondrian(2, 1.0, seed=1)
#: Calls of the process with one hostile thing each.
PROCESS = {
    "lower": lambda value: process.sample(value, [1.0, 1.0], 2.0),
    "upper": lambda value: process.sample([0.0, 0.0], value, 2.0),
    "lifetime": lambda value: process.sample([0.0, 0.0], [1.0, 1.0], value),
    "seed": lambda value: process.sample([0.0, 0.0], [1.0, 1.0], 2.0, seed=value),
    "weights": lambda value: process.sample([0.0, 0.0], [1.0, 1.0], 2.0, weights=value),
    "a": lambda value: process.poisson(value, 1.0, 2.0),
    "b": lambda value: process.poisson(0.0, value, 2.0),
    "intensity": lambda value: process.poisson(0.0, 1.0, value),
    "measure": lambda value: process.poisson(0.0, 1.0, 2.0, measure=value),
    "time": lambda value: PARTITION.at(value),
    "cells": lambda value: PARTITION.cells(value),
    "grow": lambda value: PARTITION.grow(value),
    "restrict": lambda value: PARTITION.restrict(value, [1.0, 1.0]),
    "extend": lambda value: PARTITION.extend([0.0, 0.0], value),
    "extend's seed": lambda value: PARTITION.extend([0.0, 0.0], [2.0, 2.0], seed=value),
    "cell_of": lambda value: PARTITION.cell_of(value),
    "plot": lambda value: PARTITION.plot(axes=value),
    "to_svg": lambda value: PARTITION.to_svg(axes=value),
    "n_dims": lambda value: process.InfiniteMondrian(value, 1.0),
    "of the plane": lambda value: process.InfiniteMondrian(2, value).cell_of([[0.5, 0.5]]),
    "weights of the plane": lambda value: process.InfiniteMondrian(2, 1.0, weights=value).cell_of([[0.5, 0.5]]),
    "window": lambda value: PLANE.restrict([0.0, 0.0], value),
    "places": lambda value: PLANE.cell_of(value),
}


@pytest.mark.parametrize("name", PROCESS)
def test_the_process(name):
    for value in [*VALUES, *ROWS.values()]:
        tolerated(lambda: PROCESS[name](value))
    plt.close("all")


@pytest.mark.parametrize("cls", estimators.ALL)
def test_a_fit_that_fails_leaves_the_estimator_as_it_was(cls, fitted):
    X = np.random.default_rng(1).uniform(size=(12, 2))
    bad_calls = [(np.full((6, 3), np.inf), np.zeros(6)), (np.zeros((0, 4)), []), (np.zeros((4, 1)), None), ("rows", [1.0])]
    for model in (fitted[cls], small(cls)):
        state = dict(vars(model))
        for rows, y in bad_calls:
            for method in ("fit", "partial_fit"):
                if hasattr(cls, method) and not (y is None and not hasattr(cls, "predict")):
                    with pytest.raises(PLAIN):
                        getattr(model, method)(rows, y)
                    assert vars(model).keys() == state.keys() and all(vars(model)[key] is state[key] for key in state)
        # A parameter that only the core or a later check refuses, after the rows have been looked at.
        model.set_params(random_state="seed")
        with pytest.raises(PLAIN):
            model.fit(np.zeros((5, 3)) + np.arange(5.0)[:, None], labels(cls, 5))
        model.set_params(random_state=0)
        assert getattr(model, "n_features_in_", None) == state.get("n_features_in_")
    assert answer(fitted[cls], X).shape[0] == 12
    with pytest.raises(NotFittedError):
        answer(small(cls), X)
