"""The budget of memory: every request that is too large ends in an answer or a MemoryError."""

import subprocess
import sys

import mondrian
import numpy as np
import pytest


@pytest.fixture
def small():
    before = mondrian.get_config()["max_memory"]
    mondrian.set_config(max_memory="50 MB")
    yield
    mondrian.set_config(max_memory=before)


def _rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def test_sizes_are_read_and_refused():
    before = mondrian.get_config()["max_memory"]
    try:
        for text, expected in [("8 GB", 8 * 10**9), ("512MiB", 512 * 2**20), (1e6, 10**6), (None, None)]:
            mondrian.set_config(max_memory=text)
            assert mondrian.get_config() == {"max_memory": expected}
        for wrong in ["much", "-1 GB", 0, ""]:
            with pytest.raises(ValueError, match="max_memory"):
                mondrian.set_config(max_memory=wrong)
    finally:
        mondrian.set_config(max_memory=before)
    mondrian.set_config()
    assert mondrian.get_config()["max_memory"] > 10**6


def test_a_kernel_path_whose_matrix_does_not_fit_is_computed_another_way(small):
    X, y = _rows(60)
    model = mondrian.MondrianKernelRidge(lifetime=float("inf"), n_estimators=40, random_state=1).fit(X, y)
    path = model.path(X[:20], y[:20])
    assert path.lifetimes[0] == 0.0 and 2 < len(path.lifetimes) < 100
    assert np.isfinite(path.train).all()


def test_what_fits_nowhere_is_a_memory_error(small):
    X, y = _rows(60)
    with pytest.raises(MemoryError, match="primal"):
        mondrian.MondrianKernelRidge(lifetime=float("inf"), n_estimators=60, solver="primal", random_state=1).fit(X, y)
    forest = mondrian.MondrianForestRegressor(n_estimators=2, lifetime=1.0, random_state=1).fit(*_rows(3000))
    with pytest.raises(MemoryError, match="smoothing"):
        forest.equivalent_kernel(_rows(3000)[0])
    with pytest.raises(MemoryError, match="frequencies|features"):
        mondrian.RandomFourierFeatures(n_components=2**24).fit_transform(X)


def test_methods_of_a_kernel_path_agree_and_refuse_what_does_not_fit(small):
    X, y = _rows(40)
    model = mondrian.MondrianKernelRidge(lifetime=2.0, n_estimators=8, random_state=1).fit(X, y)
    exact = model.path(X[:20], y[:20])
    for method in ("addition", "cholesky"):
        other = model.path(X[:20], y[:20], method=method)
        assert np.allclose(other.validation, exact.validation, atol=1e-8)
    some = model.path(X[:20], y[:20], method="cg", lifetimes=[0.5, 1.0])
    assert list(some.lifetimes) == [0.0, 0.5, 1.0]
    assert all(abs(exact.value_at(t) - value) < 1e-3 for t, value in zip(some.lifetimes, some.validation, strict=True))
    assert len(model.path(X[:20], y[:20], method="cg").lifetimes) > 3
    with pytest.raises(ValueError, match="cg"):
        model.path(X, y, lifetimes=[1.0])
    with pytest.raises(ValueError, match="method"):
        model.path(X, y, method="guess")
    large = mondrian.MondrianKernelRidge(lifetime=float("inf"), n_estimators=40, random_state=1).fit(*_rows(60))
    with pytest.raises(MemoryError, match="path"):
        large.path(*_rows(60), method="addition")


def test_a_kernel_path_of_infinite_lifetime_on_600_rows_is_computed(small):
    X, y = _rows(600)
    model = mondrian.MondrianKernelRidge(lifetime=float("inf"), n_estimators=10, random_state=1).fit(X, y)
    assert np.isfinite(model.path(X[:20], y[:20]).validation).all()


@pytest.mark.skipif(sys.platform != "linux", reason="address spaces are limited by Linux")
@pytest.mark.parametrize("model", ["LaplaceKernelRidge", "LaplaceKernelClassifier"])
def test_a_fit_that_the_address_space_cannot_hold_is_a_memory_error(model):
    program = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000, 2_000_000_000))
import mondrian, numpy as np
X = np.random.default_rng(0).normal(size=(800_000, 12))
try:
    mondrian.{model}(random_state=0).fit(X, (X[:, 0] > 0).astype(int))
except MemoryError as error:
    print("refused:", error)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert told.returncode == 0 and told.stdout.startswith("refused: bytes of the rows"), told
