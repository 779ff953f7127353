"""The tuned kernel on more rows than are factorised at once: solvers, appended rows, files."""

import pickle

import mondrian
import numpy as np
import pytest


def _rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    return X, np.sin(5 * X[:, 0]) + X[:, 1] ** 2 + 0.05 * rng.normal(size=n)


# So few rows are factorised that everything else is quick.
SMALL = {"max_exact_rows": 60, "metric": None, "n_neighbors": 30, "max_seconds": 0.0, "random_state": 0}


@pytest.mark.parametrize("solver", ["auto", "exact", "cg", "local"])
def test_every_solver_predicts_and_says_what_it_did(solver):
    X, y = _rows(200)
    queries, answers = _rows(100, seed=1)
    model = mondrian.LaplaceKernelRidge(solver=solver, **SMALL).fit(X, y)
    assert model.solver_ in {"auto": ("cg", "local", "mean")}.get(solver, (solver,))
    assert (model.n_neighbors_ is None) == (solver == "exact")
    assert (model.n_iter_ is None) == (model.solver_ in ("exact", "local")) == (model.residual_ is None)
    assert (model.dual_coef_ is None) == (model.solver_ == "local")
    mean, std = model.predict(queries, return_std=True)
    assert np.sqrt(np.mean((mean - answers) ** 2)) < 0.2 and (std > 0).all() and model.loo_score_ > 0.8
    low, high = model.predict_interval(queries, coverage=0.9)
    assert ((low <= mean) & (mean <= high)).all()
    assert np.allclose(model.equivalent_kernel(queries[:5]) @ y, mean[:5], atol=0.01)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(queries), mean) and again.solver_ == model.solver_


def test_classes_by_every_solver():
    X, y = _rows(200)
    labels = np.where(y > 1, "high", "low")
    queries, answers = _rows(100, seed=1)
    for solver in ("auto", "exact", "cg", "local"):
        model = mondrian.LaplaceKernelClassifier(solver=solver, **SMALL).fit(X, labels)
        assert np.mean(model.predict(queries) == np.where(answers > 1, "high", "low")) > 0.85, solver
        assert np.allclose(model.predict_proba(queries).sum(axis=1), 1)


def test_given_lifetimes_and_the_reports_searches_work_beyond_the_limit():
    X, y = _rows(150)
    for options in ({"lifetime": 2.0}, {"lifetime": [3.0, 1.0, 0.1]}, {"search": "gradient"}, {"lifetime": "path"}):
        model = mondrian.LaplaceKernelRidge(**options, **SMALL).fit(X, y)
        assert model.solver_ != "exact" and np.corrcoef(model.predict(X), y)[0, 1] > 0.9
    assert np.allclose(mondrian.LaplaceKernelRidge(lifetime=2.0, **SMALL).fit(X, y).lifetimes_, 2.0)


def test_rows_are_appended_and_tuned_again_when_they_have_doubled():
    X, y = _rows(240)
    queries, _ = _rows(50, seed=1)
    kept = mondrian.LaplaceKernelRidge(retune=False, **SMALL).partial_fit(X[:80], y[:80])
    lifetimes = kept.lifetimes_
    kept.partial_fit(X[80:], y[80:])
    assert np.array_equal(kept.lifetimes_, lifetimes) and kept.solver_ == "local"
    pieces = mondrian.LaplaceKernelRidge(retune=False, **SMALL).partial_fit(X[:80], y[:80])
    for start in range(80, 240, 40):
        pieces.partial_fit(X[start : start + 40], y[start : start + 40])
    assert np.array_equal(pieces.predict(queries), kept.predict(queries))
    tuned = mondrian.LaplaceKernelRidge(**SMALL).partial_fit(X[:80], y[:80]).partial_fit(X[80:120], y[80:120])
    assert np.array_equal(tuned.lifetimes_, lifetimes)
    tuned.partial_fit(X[120:], y[120:])
    assert not np.array_equal(tuned.lifetimes_, lifetimes)
    again = pickle.loads(pickle.dumps(tuned)).partial_fit(X[:3], y[:3])
    assert again.predict(queries).shape == (50,)


def test_what_cannot_be_appended_changes_nothing():
    X, y = _rows(80)
    model = mondrian.LaplaceKernelRidge(**SMALL).partial_fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="shape"):
        model.partial_fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError):
        model.partial_fit(X[:, :2], y)
    with pytest.raises(ValueError):
        model.partial_fit(X[:2], [1.0, np.nan])
    assert np.array_equal(model.predict(X), before)
    exact = mondrian.LaplaceKernelRidge(random_state=0).fit(X[:30], y[:30])
    read = pickle.loads(pickle.dumps(exact))
    assert exact.solver_ == "exact" and exact.partial_fit(X[30:40], y[30:40]).solver_ == "local"
    with pytest.raises(ValueError, match="local"):
        read.partial_fit(X[30:40], y[30:40])
    with pytest.raises(ValueError, match="local"):
        mondrian.LaplaceKernelRidge(lifetime=1.0, alpha=0.1).fit(X, y).partial_fit(X, y)
    with pytest.raises(ValueError, match="local"):
        mondrian.LaplaceKernelRidge(solver="cg").partial_fit(X, y)


def test_classes_are_appended():
    X, y = _rows(200)
    labels = np.where(y > 1, "high", "low")
    model = mondrian.LaplaceKernelClassifier(**SMALL).partial_fit(X[:50], labels[:50], classes=["high", "low", "none"])
    model.partial_fit(X[50:], labels[50:])
    assert list(model.classes_) == ["high", "low", "none"] and model.score(X, labels) > 0.9
    with pytest.raises(ValueError, match="other"):
        model.partial_fit(X[:1], ["other"])


def test_memory_chooses_the_solver_and_limits_it():
    X, y = _rows(400)
    before = mondrian.get_config()["max_memory"]
    options = {"metric": None, "n_neighbors": 30, "max_seconds": 0.0, "random_state": 0}
    try:
        mondrian.set_config(max_memory="1 MB")
        assert mondrian.LaplaceKernelRidge(**options).fit(X, y).solver_ == "local"
        for solver in ("exact", "cg"):
            with pytest.raises(MemoryError, match="bytes"):
                mondrian.LaplaceKernelRidge(solver=solver, **options).fit(X, y)
        local = mondrian.LaplaceKernelRidge(solver="local", **options).fit(X, y)
        with pytest.raises(MemoryError, match="smoothing"):
            local.equivalent_kernel(X)
    finally:
        mondrian.set_config(max_memory=before)
