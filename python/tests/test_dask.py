"""Forests on a real cluster of processes: however many workers, chunks and lost workers, the same bits as one process."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

import mondrian

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pytest.importorskip("dask.dataframe")

import dask.array as da  # noqa: E402
import dask.dataframe as dd  # noqa: E402
import pandas as pd  # noqa: E402
from sklearn.base import clone  # noqa: E402

from mondrian.dask import (  # noqa: E402
    DaskLaplaceKernelRidge,
    DaskMondrianDensity,
    DaskMondrianForestClassifier,
    DaskMondrianForestRegressor,
)

RANDOM = np.random.default_rng(8)
N = 6000
X = RANDOM.normal(size=(N, 4))
Y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * RANDOM.normal(size=N)
LABELS = np.where(Y > 0.5, "high", "low")
PARAMETERS = {"n_estimators": 8, "lifetime": 1.2, "random_state": 4}


def one_process(kind, domain, *rows):
    arguments = {"lower": domain.lower, "upper": domain.upper, "weights": domain.weights, "lifetime": domain.lifetime}
    return kind(n_estimators=8, random_state=4, **arguments).fit(*rows)


@pytest.fixture(scope="module", params=[1, 2, 7])
def client(request):
    with (
        distributed.LocalCluster(
            n_workers=request.param, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def whole():
    domain = mondrian.Moments(X, Y).domain(**PARAMETERS)
    return one_process(mondrian.MondrianForestRegressor, domain, X, Y).predict(X)


@pytest.mark.parametrize("size", [6000, 1700, 333])
def test_chunks_and_workers_change_nothing(client, whole, size):
    order = np.random.default_rng(size).permutation(N)
    rows, targets = da.from_array(X[order], chunks=(size, 4)), da.from_array(Y[order], chunks=size)
    forest = DaskMondrianForestRegressor(**PARAMETERS, client=client).fit(rows, targets)
    lazy = forest.predict(rows)
    assert isinstance(lazy, da.Array) and lazy.shape == (N,)
    assert np.array_equal(lazy.compute(), whole[order])
    assert np.array_equal(forest.to_local().predict(X), whole)
    assert abs(forest.score(rows, targets) - forest.to_local().score(X, Y)) < 1e-9


def test_frames_classes_and_densities(client):
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")).assign(y=Y, label=LABELS), npartitions=5)
    inputs = frame[list("abcd")]
    forest = DaskMondrianForestClassifier(**PARAMETERS, client=client).fit(inputs, frame["label"])
    local = one_process(mondrian.MondrianForestClassifier, forest.domain_, X, LABELS)
    assert forest.classes_.tolist() == ["high", "low"]
    assert np.array_equal(forest.predict_proba(inputs).compute(), local.predict_proba(X))
    assert (forest.predict(inputs).compute() == local.predict(X)).all()
    assert forest.score(inputs, frame["label"]) == local.score(X, LABELS)
    density = DaskMondrianDensity(**PARAMETERS, client=client).fit(inputs)
    local = one_process(mondrian.MondrianDensity, density.domain_, X)
    assert np.array_equal(density.score_samples(inputs).compute(), local.score_samples(X))
    assert np.isclose(density.score(inputs), local.score(X))


def test_a_lifetime_is_chosen_in_the_same_pass(client):
    found = []
    for size in (6000, 900):
        rows, targets = da.from_array(X, chunks=(size, 4)), da.from_array(Y, chunks=size)
        found.append(DaskMondrianForestRegressor(n_estimators=5, random_state=1, client=client).fit(rows, targets))
    assert 0 < found[0].lifetime_ == found[1].lifetime_ <= found[0].domain_.lifetime
    assert np.array_equal(found[0].to_local().predict(X), found[1].to_local().predict(X))


def test_partitions_come_from_parquet(client, tmp_path, whole):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=Y)
    for part in range(6):
        frame.iloc[part * 1000 : (part + 1) * 1000].to_parquet(tmp_path / f"part.{part}.parquet")
    read = dd.read_parquet(tmp_path)
    forest = DaskMondrianForestRegressor(**PARAMETERS, client=client).fit(read[list("abcd")], read["y"])
    assert np.array_equal(forest.to_local().predict(frame[list("abcd")]), whole)


@pytest.mark.parametrize("metric", [None, "full"])
def test_the_kernel_sees_the_nearest_rows_of_all_partitions(client, metric):
    lattice = np.round(X[:1500, :2], 1)  # Many rows at one point, and many points as far.
    targets = np.sin(2 * lattice[:, 0]) + lattice[:, 1] + 0.1 * RANDOM.normal(size=1500)
    queries = np.vstack([lattice[:40], X[:60, :2]])
    found = []
    for size in (1500, 200):
        order = np.random.default_rng(size).permutation(1500)
        rows, y = da.from_array(lattice[order], chunks=(size, 2)), da.from_array(targets[order], chunks=size)
        model = DaskLaplaceKernelRidge(metric=metric, n_neighbors=25, n_sample=600, random_state=0, client=client).fit(rows, y)
        found.append(model.predict(da.from_array(queries, chunks=(30, 2))).compute())
        assert model.score(rows, y) > 0.9
    assert np.array_equal(found[0], found[1])
    # The plainest way: every query by itself, all points sorted.
    lifetimes, alpha = model.lifetimes_, model.alpha_
    assert (model.metric_ is None) == (metric is None)

    def distances(apart):
        along = (np.abs(apart) * lifetimes).sum(axis=-1)
        return along if metric is None else along + np.linalg.norm(apart @ model.metric_.T, axis=-1) ** model.exponent_

    points, of = np.unique(lattice, axis=0, return_inverse=True)
    counts = np.bincount(of.ravel())
    means = np.bincount(of.ravel(), targets) / counts
    for query, predicted in zip(queries, found[0]):
        distance = distances(points - query)
        order = np.lexsort((points[:, 1], points[:, 0], distance))
        # Two points of the lattice as far, whose distances NumPy rounds apart: the last of the 25 is then either of them.
        gap = distance[order[25]] - distance[order[24]]
        choices = [order[:25]] + ([np.append(order[:24], order[25])] if 0 < gap < 1e-12 * distance[order[24]] else [])
        expected = []
        for near in choices:
            kernel = np.exp(-distances(points[near, None] - points[None, near]))
            weights = np.linalg.solve(kernel + np.diag(alpha / counts[near]), means[near] - model.intercept_)
            expected.append(model.intercept_ + np.exp(-distance[near]) @ weights)
        assert min(abs(np.array(expected) - predicted)) < 1e-8


def _slow(table):
    time.sleep(0.15)
    return table


def test_a_killed_worker_changes_nothing(whole):
    """A worker is killed while partitions are summarized; its work is done again elsewhere."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        rows = da.from_array(X, chunks=(300, 4)).map_blocks(_slow)
        targets = da.from_array(Y, chunks=300)
        killed = []

        def kill():
            # In the middle: 20 partitions of 0.15 s on two workers, twice.
            time.sleep(1.0)
            pid = next(iter(client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

        killer = threading.Thread(target=kill)
        killer.start()
        forest = DaskMondrianForestRegressor(**PARAMETERS, client=client).fit(rows, targets)
        killer.join()
        assert killed
        assert np.array_equal(forest.to_local().predict(X), whole)


def test_clones_and_pickles_have_no_client(client):
    rows, targets = da.from_array(X, chunks=(2000, 4)), da.from_array(Y, chunks=2000)
    forest = DaskMondrianForestRegressor(**PARAMETERS, client=client).fit(rows, targets)
    again = pickle.loads(pickle.dumps(forest))
    assert again.client is None and np.array_equal(again.to_local().predict(X), forest.to_local().predict(X))
    copied = clone(forest)
    assert copied.client is None and copied.get_params() == forest.get_params()
    assert copied.set_params(client=client, lifetime=0.5).client is client


def test_what_is_no_collection_is_refused():
    forest = DaskMondrianForestRegressor(**PARAMETERS)
    with pytest.raises(TypeError, match="Dask array or frame"):
        forest.fit(X, Y)
    with pytest.raises(ValueError, match="partitions"):
        forest.fit(da.from_array(X, chunks=(100, 4)), dd.from_pandas(pd.Series(Y), npartitions=2))
    rows = da.from_array(X, chunks=(3000, 4))
    with pytest.raises(ValueError, match="finite"):
        DaskMondrianForestRegressor(lifetime=np.inf).fit(rows, da.from_array(Y, chunks=3000))
