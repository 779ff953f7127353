"""Long calls say how far they are, and Ctrl-C ends them and changes nothing."""

import inspect
import os
import signal
import subprocess
import sys
import textwrap
import time

import estimators
import numpy as np
import pytest
from test_family import answer, small, target

import mondrian

WITH_SHARES = [cls for cls in estimators.ALL if "weights" in inspect.signature(cls).parameters]


@pytest.mark.parametrize("cls", WITH_SHARES)
def test_verbose_hears_the_share_of_work_done(cls, rng, capsys):
    X = rng.uniform(size=(60, 2))
    heard = []
    model = small(cls).set_params(verbose=heard.append).fit(X, target(cls, X))
    assert heard == sorted(heard) and heard and 0 <= heard[0] and heard[-1] == 1
    assert np.array_equal(answer(model, X), answer(small(cls).fit(X, target(cls, X)), X))
    small(cls).set_params(verbose=True, n_estimators=40).fit(X, target(cls, X))
    lines = capsys.readouterr().out.splitlines()
    assert 1 < len(lines) <= 11 and all(line.startswith(cls.__name__ + ": ") for line in lines)


@pytest.mark.parametrize("cls", WITH_SHARES)
def test_an_exception_of_the_listener_ends_the_fit(cls, rng):
    def refuse(share):
        raise RuntimeError("enough")

    X = rng.uniform(size=(60, 2))
    model = small(cls).set_params(verbose=refuse)
    with pytest.raises(RuntimeError, match="enough"):
        model.fit(X, target(cls, X))
    assert not model.__sklearn_is_fitted__()


@pytest.mark.parametrize("cls", [cls for cls in WITH_SHARES if hasattr(cls, "partial_fit")])
def test_a_cancelled_partial_fit_changes_nothing(cls, rng):
    X, more = rng.uniform(0.1, 0.9, size=(60, 2)), rng.uniform(0.1, 0.9, size=(100, 2))
    y, new = target(cls, X), target(cls, more)
    box = {"lower": [0, 0], "upper": [1, 1], "lifetime": 4.0}
    model = small(cls).set_params(n_estimators=30, **box).partial_fit(X, y)
    before, data = answer(model, X), model._model.to_bytes()
    heard = []

    def refuse(share):
        heard.append(share)
        if len(heard) == 2:
            raise RuntimeError("enough")

    model.verbose = refuse
    with pytest.raises(RuntimeError, match="enough"):
        model.partial_fit(more, new if not hasattr(model, "classes_") else new + 5)
    assert 0 < heard[0] < 1
    assert model._model.to_bytes() == data and np.array_equal(answer(model, X), before)
    model.verbose = False
    whole = small(cls).set_params(n_estimators=30, **box).partial_fit(np.concatenate([X, more]), np.concatenate([y, new]))
    learned, expected = answer(model.partial_fit(more, new), X), answer(whole, X)
    if cls is mondrian.MondrianFeatures:
        # Cells that come later are further columns: the same ones in another order.
        learned, expected = (columns[:, np.lexsort(columns)] for columns in (learned, expected))
    assert np.array_equal(learned, expected)


#: Work that would take minutes, and how to begin it.
LONG = {
    "forest": "mondrian.MondrianForestRegressor(600, lifetime=float('inf')).fit(X, y)",
    "automatic forest": "mondrian.MondrianForestRegressor(20000).fit(X, y)",
    "classifier": "mondrian.MondrianForestClassifier(600, lifetime=float('inf')).fit(X, y > 0)",
    "automatic classifier": "mondrian.MondrianForestClassifier(600).fit(X, y > 0)",
    "density": "mondrian.MondrianDensity(2000).fit(X)",
    "kernel": "mondrian.MondrianKernelRidge(2000, lifetime=50.0, alpha=1e-9, solver='cg').fit(X, y)",
    "features": "mondrian.MondrianFeatures(600, lifetime=100.0).fit(X)",
    "tuning": "mondrian.LaplaceKernelRidge(search='coordinate').fit(X[:5000], y[:5000])",
    "grid": "mondrian.MondrianGridRidge(50, search='bayes', budget=10**6, patience=10**6, search_rows=500).fit(X, y)",
    "online": "small.partial_fit(X, y)",
    "path": "small.path(X, y)",
    "predict": "small.predict(X)",
    "predict with std": "small.predict(X, return_std=True)",
    "classes": "mondrian.MondrianForestClassifier(100, lifetime=float('inf'), random_state=0).fit(X[:1000], y[:1000] > 1).predict_proba(X)",
}


def processor_seconds(pid):
    """What a process has used so far, where the system tells."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(os.name != "posix", reason="signals of another kind")
@pytest.mark.parametrize("name", LONG)
def test_ctrl_c(name):
    script = f"""
    import time
    import numpy as np
    import mondrian

    rng = np.random.default_rng(0)
    X = rng.uniform(size=(100_000, 8))
    y = np.sin(9 * X[:, 0]) + X[:, 1]
    small = mondrian.MondrianForestRegressor(1000, lifetime=float("inf"), random_state=0).partial_fit(X[:1000], y[:1000])
    before = small.predict(X[:50])
    print("ready", flush=True)
    try:
        {LONG[name]}
        print("done", flush=True)
    except KeyboardInterrupt:
        print("interrupted", time.process_time(), flush=True)
        assert np.array_equal(small.predict(X[:50]), before)
        assert np.isfinite(mondrian.MondrianForestRegressor(5).fit(X[:100], y[:100]).predict(X[:5])).all()
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.4)
        start, spent = time.monotonic(), processor_seconds(child.pid)
        child.send_signal(signal.SIGINT)
        word, at = child.stdout.readline().split()
        assert word == "interrupted"
        # Minutes without. The child works on one thread, so on a machine that is not busy this is the time that passes.
        assert spent is None or float(at) - spent < 1.0
        assert time.monotonic() - start < 10
        assert child.wait(timeout=30) == 0
    finally:
        child.kill()
        child.wait()
