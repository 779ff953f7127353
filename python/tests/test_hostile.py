"""Hostile input gives ValueError or TypeError with the core's message: no panic, no change."""

import pickle

import estimators
import numpy as np
import pytest
from sklearn.base import is_classifier

import mondrian
from mondrian import process

BAD_ROWS = [
    np.full((4, 2), np.nan),
    np.array([[0.0, 1.0], [np.inf, 2.0]]),
    np.empty((0, 2)),
    np.empty((3, 0)),
    np.zeros(5),
    np.zeros((2, 2, 2)),
    [["a", "b"], ["c", "d"]],
    "rows",
    None,
]
EXTREME_ROWS = [
    np.array([[1e308, -1e308], [-1e308, 1e308], [0.0, 0.0]]),
    np.array([[5e-324, 0.0], [0.0, 5e-324], [1e-300, 1e-300]]),
    np.full((6, 2), 3.25),
    np.array([[1.7e9 + i, i % 3] for i in range(8)]),
    np.array([[0.0, -0.0], [-0.0, 0.0]]),
]
BAD_PARAMETERS = {
    "n_estimators": [0, -3, 1.5, "many", None, 2**40],
    "n_components": [0, -1, 2.5],
    "lifetime": [-1.0, float("nan"), "long", [1.0, 2.0, 3.0, 4.0], None],
    "lifetimes": [-1.0, float("nan"), "long", [1.0, 2.0, 3.0, 4.0]],
    "alpha": [0.0, -1.0, float("nan"), "some"],
    "gamma": [0.0, -1.0, float("nan"), "some"],
    "prior_variance": [-1.0, "wide"],
    "noise_variance": [-1.0, float("nan")],
    "leaf_model": ["free", None],
    "measure": ["lebesgue", 3, [[(0, 0), (1, 1)]] * 5, [[(0, 0)]] * 2, [[(0, 1), (1, 0)]] * 2, [[(1, 0), (0, 1)]] * 2],
    "weights": ["heavy", [1.0], [-1.0, 1.0], [float("nan"), 1.0]],
    "lower": [[0.0, 0.0], [0.0]],
    "random_state": [-1, 2**64, "seed"],
    "n_jobs": ["all", 0],
    "search": ["everywhere"],
    "budget": [0, "much"],
    "solver": ["guess"],
    "unseen": ["ignore"],
    "margin": [-0.1],
    "window": [0, "sliding", 1.5],
    "max_rows": [0, "all", True],
    "validation": ["none", 1, 0.2, -3, None],
    "fit_intercept": ["yes"],
}


def fitted(cls, rng):
    X = rng.uniform(size=(30, 2))
    y = (X[:, 0] > 0.5).astype(int) if is_classifier(cls()) else X[:, 0]
    return cls(random_state=0).fit(X, y)


@pytest.mark.parametrize("cls", estimators.ALL)
def test_bad_rows(cls, rng):
    model = fitted(cls, rng)
    missing_is_fine = cls().__sklearn_tags__().input_tags.allow_nan
    for bad in BAD_ROWS:
        if missing_is_fine and np.ndim(bad) == 2 and any(isinstance(cell, float) and np.isnan(cell) for row in bad for cell in row):
            continue
        with pytest.raises((ValueError, TypeError)):
            cls(random_state=0).fit(bad, [0, 1, 0, 1][: np.shape(bad)[0]] if np.ndim(bad) else [0])
        for method in ("predict", "predict_proba", "score_samples", "transform", "apply", "equivalent_kernel"):
            if hasattr(model, method):
                with pytest.raises((ValueError, TypeError)):
                    getattr(model, method)(bad)
    for method in ("predict", "score_samples", "transform"):
        if hasattr(model, method):
            with pytest.raises(ValueError, match="3"):
                getattr(model, method)(np.zeros((2, 3)))


@pytest.mark.parametrize("cls", estimators.ALL)
def test_extreme_rows_end_in_an_answer_or_a_plain_error(cls):
    for X in EXTREME_ROWS:
        y = np.arange(len(X)) % 2 if is_classifier(cls()) else np.linspace(-1e150, 1e150, len(X))
        try:
            model = cls(random_state=0).fit(X, y)
            ask = model.predict if hasattr(model, "predict") else getattr(model, "score_samples", None) or model.transform
            ask(X)
        except (ValueError, TypeError) as error:
            assert "mistake inside" not in str(error)


@pytest.mark.parametrize("cls", estimators.ALL)
def test_bad_parameters_are_named_at_fit_and_not_before(cls, rng):
    X = rng.uniform(size=(20, 2))
    y = np.arange(20) % 2 if is_classifier(cls()) else X[:, 0]
    for name in set(cls().get_params()) & set(BAD_PARAMETERS):
        for bad in BAD_PARAMETERS[name]:
            model = cls(**{name: bad})
            with pytest.raises((ValueError, TypeError)):
                model.fit(X, y)


@pytest.mark.parametrize("cls", [cls for cls in estimators.ALL if hasattr(cls, "partial_fit")])
def test_a_failed_partial_fit_changes_nothing(cls, rng):
    model = fitted(cls, rng)
    before = pickle.dumps(model)
    rows = rng.uniform(size=(3, 2))
    labels = [0, 1, 0]
    bad_calls = [(np.zeros((3, 5)), labels), (np.zeros((0, 2)), [])]
    # A cell that is no number is a missing one to the tuned kernel; one that is infinite is none.
    missing = model.__sklearn_tags__().input_tags.allow_nan
    bad_calls.append((np.full((3, 2), np.inf if missing else np.nan), labels))
    if cls not in (mondrian.MondrianDensity, mondrian.MondrianFeatures):
        bad_calls.append((rows, labels[:2]))
    if cls is mondrian.MondrianForestRegressor:
        bad_calls += [(rows, [0.0, np.nan, 1.0]), (np.full((3, 2), 1e300), labels)]
        # Plain arrays, which only the core looks at.
        bad_calls += [(rows, np.array([0.0, np.nan, 1.0])), (np.full((3, 2), np.inf), np.zeros(3)), (rows, np.zeros((3, 2)))]
    if cls is mondrian.MondrianDensity:
        bad_calls.append((np.full((3, 2), 1e300), None))
    for X, y in bad_calls:
        with pytest.raises((ValueError, TypeError)):
            model.partial_fit(X, y)
        assert pickle.dumps(model) == before


@pytest.mark.parametrize("cls", [cls for cls in estimators.ALL if hasattr(cls, "forget")])
def test_forgetting_what_was_never_learned_changes_nothing(cls, rng):
    model = fitted(cls, rng)
    before = pickle.dumps(model)
    stranger = np.array([[0.123, 0.456]])
    with pytest.raises(ValueError, match="never learned"):
        model.forget(stranger) if cls is mondrian.MondrianDensity else model.forget(stranger, [0])
    assert pickle.dumps(model) == before


def test_torn_pickles_of_the_core_are_refused(rng):
    model = fitted(mondrian.MondrianForestRegressor, rng)
    whole = model._model.to_bytes()
    flipped = whole[:-1] + bytes([whole[-1] ^ 1])
    for torn in (b"", whole[: len(whole) // 2], flipped, b"\xff" * 64):
        with pytest.raises(ValueError):
            type(model._model).from_bytes(torn)


def test_bad_boxes_and_times_of_the_process():
    cases = [
        ([0, 0], [1], 1.0),
        ([1, 0], [0, 1], 1.0),
        ([0, float("nan")], [1, 1], 1.0),
        ([0, 0], [1, float("inf")], 1.0),
        ([0, 0], [1, 1], -1.0),
        ([0, 0], [1, 1], float("nan")),
        ([0, 0], [1, 1], 1e9),
        ([], [], 1.0),
    ]
    for lower, upper, lifetime in cases:
        with pytest.raises(ValueError):
            process.sample(lower, upper, lifetime)
    partition = process.sample([0, 0], [1, 1], 2.0)
    for bad in (lambda: partition.at(3.0), lambda: partition.restrict([0, 0], [2, 1]), lambda: partition.extend([0, 0], [1, 0.5])):
        with pytest.raises(ValueError):
            bad()
    for bad in (lambda: partition.cell_of([[2.0, 0.5]]), lambda: partition.cell_of([[0.5]])):
        with pytest.raises(ValueError):
            bad()
    with pytest.raises(TypeError):
        process.sample([0], [1], 1.0, seed=1.5)


@pytest.mark.parametrize("made", [mondrian.process.Partition, mondrian.RegularizationPath, mondrian.Trajectory])
def test_what_others_make_says_so(made):
    for by_hand in (None, 1.0, [[0.0, 1.0]], "path"):
        with pytest.raises(TypeError, match="made by"):
            made(by_hand)
