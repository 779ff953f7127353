"""The process: views nest, cells tile, restriction and extension agree."""

import copy
import pickle

import numpy as np
import pytest

from mondrian import process


def test_cells_tile_the_box_and_every_point_has_one(rng):
    partition = process.sample([0, -1, 2], [1, 1, 4], 1.5, seed=3)
    lower, upper = partition.cells()
    assert np.isclose(np.prod(upper - lower, axis=1).sum(), 4.0)
    X = rng.uniform(partition.lower, partition.upper, size=(200, 3))
    cells = partition.cell_of(X)
    assert ((lower[cells] <= X) & (X <= upper[cells])).all()
    early = partition.cell_of(X, time=0.5)
    assert len(np.unique(early)) <= len(np.unique(cells))
    assert len(partition.cells(time=0.0)[0]) == 1


def test_cuts_carry_their_boxes():
    partition = process.sample([0, 0], [1, 1], 4.0, seed=1)
    cuts = partition.cuts
    assert set(cuts.dtype.names) >= {"time", "dim", "location", "lower", "upper"}
    assert len(cuts) == partition.n_cuts and (np.diff(cuts["time"]) >= 0).all()
    rows = np.arange(len(cuts))
    assert (cuts["lower"][rows, cuts["dim"]] <= cuts["location"]).all()
    assert (cuts["location"] <= cuts["upper"][rows, cuts["dim"]]).all()
    assert (cuts["birth"] < cuts["time"]).all()


def test_views_restrictions_and_extensions_agree():
    partition = process.sample([0, 0], [1, 1], 5.0, seed=2)
    assert partition.at(2.0) == process.sample([0, 0], [1, 1], 2.0, seed=2) != partition
    assert partition.at(2.0).grow(5.0) == partition
    part = partition.restrict([0.25, 0.25], [0.5, 0.75])
    wide = part.extend([-1, 0], [1, 2], seed=9)
    assert wide.restrict([0.25, 0.25], [0.5, 0.75]) == part
    assert part.extend([-1, 0], [1, 2], seed=10) != wide
    assert partition.restrict([0.5, 0.0], [0.5, 1.0]).cuts["dim"].tolist() == [1] * partition.restrict([0.5, 0.0], [0.5, 1.0]).n_cuts
    assert pickle.loads(pickle.dumps(wide)) == wide == copy.deepcopy(wide)
    assert "Partition(n_dims=2" in repr(wide) and (wide == "else") is False


def test_the_process_on_all_of_space_agrees_with_itself(rng):
    plane = process.InfiniteMondrian(2, 1.0, seed=4)
    X = rng.uniform(-20, 20, size=(50, 2))
    names = plane.cell_of(X)
    window = plane.restrict([-20, -20], [20, 20])
    cells = window.cell_of(X)
    assert ((names[:, None] == names[None]) == (cells[:, None] == cells[None])).all()
    assert np.array_equal(pickle.loads(pickle.dumps(plane)).cell_of(X[::-1]), names[::-1])


def test_poisson_is_one_dimension_of_it(rng):
    points = process.poisson(0, 100, 2.0, seed=1)
    # 200 expected; five standard deviations are 71: a false alarm in under 1e-6 of seeds.
    assert abs(len(points) - 200) < 71
    assert (np.diff(points["location"]) > 0).all() and (points["time"] <= 2.0).all()
    by_data = process.poisson(0, 1, 300.0, seed=1, measure=rng.beta(5, 1, size=500))
    assert np.median(by_data["location"]) > 0.7


@pytest.mark.parametrize("n_dims", [1, 2, 3])
def test_pictures(n_dims, tmp_path):
    partition = process.sample([0] * n_dims, [1] * n_dims, 2.0, seed=1)
    assert partition.plot() is not None
    assert partition.plot(times=True) is not None
    svg = partition.to_svg(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_text() == svg and svg.startswith("<svg")


def test_a_space_of_absurdly_many_dimensions_is_refused():
    for n_dims in (0, -1, 2**26, 10**30):
        with pytest.raises(ValueError, match="n_dims"):
            process.InfiniteMondrian(n_dims, 1.0, weights=1.0)


def test_cells_fill_the_box():
    sample = process.sample([0, 0, 0], [1, 2, 3], 1.5, seed=4)
    for time in (None, 0.5):
        assert abs(sample.volumes(time).sum() - 6.0) < 1e-12
        assert len(sample.volumes(time)) == len(sample.cells(time)[0])


def test_crossings_are_the_cuts_of_a_slice():
    sample = process.sample([0, 0], [1, 1], 6.0, seed=4)
    crossings = sample.crossings([0.3, 0.7], 0)
    line = sample.restrict([0.0, 0.7], [1.0, 0.7])
    assert crossings["location"].tolist() == sorted(line.cuts["location"].tolist())
    assert sorted(crossings["time"]) == line.cuts["time"].tolist()
    for bad in (lambda: sample.crossings([0.3], 0), lambda: sample.crossings([0.3, 0.7], 2), lambda: sample.crossings([0.3, 9.0], 0)):
        with pytest.raises(ValueError):
            bad()


def test_a_measure_of_data_is_that_of_ranks(rng):
    data = rng.exponential(size=(500, 2))
    lower, upper = data.min(axis=0), data.max(axis=0)
    sample = process.sample(lower, upper, 40.0, seed=2, measure=data)
    # Under the measure of ranks the first cut of an axis lies beyond the median as often as before it; under length, hardly ever.
    cuts = sample.cuts
    below = np.mean([location < np.median(data[:, dim]) for location, dim in zip(cuts["location"], cuts["dim"])])
    assert 0.3 < below < 0.7
    plain = process.sample(lower, upper, 40.0 / (upper - lower).mean(), seed=2).cuts
    assert np.mean([location < np.median(data[:, dim]) for location, dim in zip(plain["location"], plain["dim"])]) < 0.3
    everywhere = process.InfiniteMondrian(2, 3.0, seed=1, measure=data)
    assert everywhere.restrict([0, 0], [1, 1]) == everywhere.restrict([0, 0], [2, 2]).restrict([0, 0], [1, 1])
    with pytest.raises(ValueError, match="columns"):
        process.sample([0], [1], 1.0, measure=data)
