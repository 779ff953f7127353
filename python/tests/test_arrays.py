"""Arrays and threads: what crosses the border, how, and who works meanwhile."""

import threading
import time
import tracemalloc

import estimators
import joblib
import numpy as np
import pytest
from test_family import answer, small, target

import mondrian
from mondrian import _parameters as parameters


@pytest.mark.parametrize("cls", estimators.ALL)
def test_single_precision_means_the_numbers_it_holds(cls, rng):
    X = rng.uniform(size=(40, 3)).astype(np.float32)
    y = target(cls, X.astype(np.float64))
    plain = answer(small(cls).fit(X.astype(np.float64), y), X.astype(np.float64))
    assert np.array_equal(answer(small(cls).fit(X, y), X), plain)
    fortran = np.asfortranarray(X)
    assert np.array_equal(answer(small(cls).fit(fortran, y), fortran), plain)
    assert plain.dtype == np.float64


@pytest.mark.parametrize("cls", estimators.ALL)
def test_other_layouts_and_types_give_the_same(cls, rng):
    X = np.floor(rng.uniform(0, 200, size=(40, 2)))
    y = target(cls, X / 200)
    plain = answer(small(cls).fit(X, y), X)
    read_only = X.copy()
    read_only.flags.writeable = False
    wide = np.zeros((40, 4))
    wide[:, 1:3] = X
    for same in (X.astype(np.int64), X.astype(np.uint8), X.astype(object), X.astype(">f8"), X.tolist(), read_only, wide[:, 1:3],
                 np.asfortranarray(X), X[::-1][::-1]):  # fmt: skip
        assert np.array_equal(answer(small(cls).fit(same, y), same), plain)


@pytest.mark.parametrize("order", ["C", "F"])
def test_doubles_are_not_copied_by_python(order):
    # 16 MB of rows: what Python allocates meanwhile is a fraction of them. The binding borrows the same arrays (arrays.rs).
    X = np.asarray(np.random.default_rng(0).uniform(size=(200_000, 10)), order=order)
    y = np.ascontiguousarray(X[:, 0])
    box = {"lower": [0.0] * 10, "upper": [1.0] * 10}
    forest = mondrian.MondrianForestRegressor(1, lifetime=0.1, prior_mean=0.0, prior_variance=1.0, noise_variance=1.0, **box)
    for call in (lambda: forest.fit(X, y), lambda: forest.predict(X), lambda: forest.apply(X)):
        tracemalloc.start()
        call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < X.nbytes / 3


def test_n_jobs_has_joblib_s_meaning(regression):
    cores = joblib.cpu_count()
    two = min(2, cores)
    assert [parameters.threads_of(n) for n in (None, 1, 2, np.int64(2), -1)] == [1, 1, two, two, cores]
    assert parameters.threads_of(-2) == max(1, cores - 1)
    # Thousands of threads would take longer to start than the fit does.
    assert [parameters.threads_of(n) for n in (10**5, 2**70, -(2**70))] == [cores, cores, 1]
    with joblib.parallel_config("threading", n_jobs=2):
        assert parameters.threads_of(None) == two and parameters.threads_of(1) == 1
    with pytest.raises(ValueError):
        parameters.threads_of(0)
    for bad in ("all", 1.5, [1]):
        with pytest.raises(TypeError, match="n_jobs"):
            parameters.threads_of(bad)
    X, y = regression
    plain = mondrian.MondrianForestRegressor(10, random_state=0).fit(X, y).predict(X)
    for n_jobs in (None, 1, 2, -1, -2, 10**9):
        assert np.array_equal(mondrian.MondrianForestRegressor(10, random_state=0, n_jobs=n_jobs).fit(X, y).predict(X), plain)
    with joblib.parallel_config("threading", n_jobs=2):
        assert np.array_equal(mondrian.MondrianForestRegressor(10, random_state=0).fit(X, y).predict(X), plain)
    with pytest.raises(ValueError, match="n_jobs"):
        mondrian.MondrianForestRegressor(10, n_jobs=0).fit(X, y)


def breaths_during(call, *arguments):
    """How often another thread of Python wakes up while a call works."""
    working = threading.Thread(target=call, args=arguments)
    working.start()
    breaths = 0
    while working.is_alive():
        breaths += 1
        time.sleep(0.002)
    return breaths


def test_others_work_while_the_library_does():
    X = np.random.default_rng(0).uniform(size=(20_000, 6))
    forest = mondrian.MondrianForestRegressor(60, lifetime=float("inf"), random_state=0, n_jobs=1)
    # With the interpreter's lock held, the other thread would wake once or twice in the second that these take.
    assert breaths_during(forest.fit, X, X[:, 0]) > 20
    assert breaths_during(forest.predict, np.repeat(X, 4, axis=0)) > 20


def test_forked_and_spawned_workers(regression):
    X, y = regression
    plain = mondrian.MondrianForestRegressor(10, random_state=0, n_jobs=2).fit(X, y)
    expected = plain.predict(X)
    for backend in ("loky", "multiprocessing"):
        with joblib.parallel_config(backend, n_jobs=2):
            found = joblib.Parallel()(joblib.delayed(fit_and_ask)(X, y) for _ in range(3))
        assert all(np.array_equal(one, expected) for one in found)


def fit_and_ask(X, y):
    return mondrian.MondrianForestRegressor(10, random_state=0, n_jobs=2).fit(X, y).predict(X)
