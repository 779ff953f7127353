"""The Mondrian process itself: sampling, earlier views, restriction, extension.

Examples
--------
>>> from mondrian import process
>>> sample = process.sample([0, 0], [1, 1], lifetime=3.0, seed=7)
>>> part = sample.restrict([0.2, 0.2], [0.6, 0.6])
>>> part.extend([0, 0], [2, 1]).restrict([0.2, 0.2], [0.6, 0.6]) == part
True
"""

from __future__ import annotations

import numbers

import numpy as np
from sklearn.utils import check_array

from . import _mondrian
from . import _parameters as parameters
from ._core import made_by_core, of_core
from ._docs import documented
from ._plotting import axes_for, written

#: The largest number supported by trees.
_MOST_DIMS = 2**25

__all__ = ["InfiniteMondrian", "Partition", "poisson", "sample"]


@documented
def sample(lower, upper, lifetime, seed=0, weights=None, measure=None):
    """Sample a Mondrian process on a box up to a lifetime.

    {corners}
    lifetime : float
        The lifetime λ ≥ 0.
    seed : int, default=0
        The same seed gives the same process: a larger lifetime refines it.
    {length_weights}
    {data_measure}

    {partition}

    Examples
    --------
    >>> from mondrian.process import sample
    >>> fine = sample([0, 0], [1, 1], 4.0, seed=1)
    >>> fine.at(2.0) == sample([0, 0], [1, 1], 2.0, seed=1)
    True
    """
    lower, upper = _corners(lower, upper)
    if weights is not None:
        weights = parameters.vector("weights", weights, len(lower), low=0.0)
    lifetime = parameters.real("lifetime", lifetime, infinite=True)
    measure = _rows_of_measure(measure, len(lower))
    return Partition(_mondrian.Partition.sample(lower, upper, lifetime, _seed(seed), weights, measure))


def poisson(a, b, intensity, seed=0, measure=None):
    """A Poisson process on an interval: the Mondrian process in one dimension.

    Parameters
    ----------
    a, b : float
        The ends of the interval.
    intensity : float
        Points per unit of length, or of the measure.
    seed : int, default=0
        The same seed with a larger intensity gives the same points and more.
    measure : array-like of shape (n,), default=None
        Data whose distribution is the measure. Default: plain length.

    Returns
    -------
    points : structured ndarray with fields ``location`` (ascending) and ``time``
        Each point with the intensity at which it appears.

    Examples
    --------
    >>> from mondrian.process import poisson
    >>> points = poisson(0, 10, 2.0, seed=1)
    >>> fewer = poisson(0, 10, 1.0, seed=1)
    >>> bool((fewer == points[points["time"] <= 1.0]).all())
    True
    """
    a, b = parameters.real("a", a, -np.inf), parameters.real("b", b, -np.inf)
    intensity = parameters.real("intensity", intensity, infinite=True)
    if measure is not None:
        measure = check_array(measure, ensure_2d=False, dtype=np.float64).ravel().tolist()
    return _poisson_points(*_mondrian.poisson(a, b, intensity, _seed(seed), measure))


def _poisson_points(locations, times):
    points = np.empty(len(locations), dtype=[("location", np.float64), ("time", np.float64)])
    points["location"], points["time"] = locations, times
    return points


@documented
class Partition:
    """A sample of a Mondrian process on a box: cells, and the history of cuts that made them.

    Made by :func:`sample`, :meth:`InfiniteMondrian.restrict` and the methods below; immutable.

    Examples
    --------
    >>> from mondrian.process import sample
    >>> partition = sample([0, 0], [1, 1], 3.0, seed=1)
    >>> lower, upper = partition.cells()
    >>> round(float((upper - lower).prod(axis=1).sum()), 12)
    1.0
    >>> partition.n_cuts + 1 == len(lower)
    True
    """

    def __init__(self, inner):
        self._inner = made_by_core(inner, _mondrian.Partition, "mondrian.process.sample")

    lower = of_core("lower", "Lower corner of the box.")
    upper = of_core("upper", "Upper corner of the box.")
    lifetime = of_core("lifetime", "The lifetime λ.")
    n_cuts = of_core("n_cuts", "Number of cuts.")

    @property
    def cuts(self):
        """All cuts by time: a structured array with time, dim, location, and the box each one cuts (birth, lower, upper)."""
        columns = self._inner.cuts()
        n_dims = len(self.lower)
        fields = [("time", "f8"), ("dim", "i8"), ("location", "f8"), ("lower", "f8", (n_dims,)),
                  ("upper", "f8", (n_dims,)), ("birth", "f8")]  # fmt: skip
        cuts = np.empty(self.n_cuts, dtype=fields)
        for name in cuts.dtype.names:
            cuts[name] = columns[name]
        return cuts

    def cells(self, time=None):
        """The boxes of all cells.

        Parameters
        ----------
        {time}

        Returns
        -------
        lower, upper : ndarray of shape (n_cells, n_dims)
        """
        return self._view(time).cells()

    def volumes(self, time=None):
        """The volume of each cell, in the order of :meth:`cells`.

        Parameters
        ----------
        {time}

        Returns
        -------
        volumes : ndarray of shape (n_cells,)
        """
        lower, upper = self.cells(time)
        return (upper - lower).prod(axis=1)

    def cell_of(self, X, time=None):
        """The number of each row's cell.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_dims)
            Rows inside the box.
        {time}

        Returns
        -------
        cells : ndarray of int of shape (n_samples,)
        """
        return self._view(time).cell_of(check_array(X, dtype=np.float64))

    def crossings(self, point, dim):
        """The cuts that cross a line along one dimension: a Poisson process of intensity ``lifetime``.

        Parameters
        ----------
        point : array-like of shape (n_dims,)
            A point on the line; its coordinate ``dim`` is ignored.
        dim : int
            The dimension along which the line runs.

        Returns
        -------
        points : structured ndarray with fields ``location`` (ascending) and ``time``
        """
        point = parameters.vector("point", point, len(self.lower))
        dim = parameters.integer("dim", dim, low=0, high=len(self.lower) - 1)
        return _poisson_points(*self._inner.crossings(point, dim))

    def at(self, time):
        """The partition at an earlier time.

        Parameters
        ----------
        time : float
            At most the lifetime.

        {partition}
        """
        return Partition(self._inner.at(parameters.real("time", time, infinite=True)))

    def grow(self, lifetime):
        """The same sample at another lifetime; a larger one refines it.

        Parameters
        ----------
        lifetime : float
            The new lifetime.

        {partition}
        """
        return Partition(self._inner.grown(parameters.real("lifetime", lifetime, infinite=True), 1))

    def restrict(self, lower, upper):
        """The restriction to a smaller box; a side of length zero gives a slice.

        Parameters
        ----------
        lower, upper : array-like of shape (n_dims,)
            The corners of the smaller box.

        {partition}
        """
        return Partition(self._inner.restrict(*_corners(lower, upper)))

    def extend(self, lower, upper, seed=None):
        """A sample on a larger box that agrees with this one inside.

        Parameters
        ----------
        lower, upper : array-like of shape (n_dims,)
            The corners of the larger box.
        seed : int, default=None
            Each seed gives another extension. Default: derived from the sample's seed.

        {partition}
        """
        return Partition(self._inner.extend(*_corners(lower, upper), None if seed is None else _seed(seed)))

    def plot(self, ax=None, axes=(0, 1), times=False):
        """Draw the partition: its cells in two dimensions, the time–location diagram in one.

        In more dimensions the slice through the middle of the box is drawn.

        {ax}
        axes : (int, int), default=(0, 1)
            The dimensions to draw.
        times : bool, default=False
            Whether to colour the cuts by their time.

        {drawn}
        """
        if len(self.lower) == 1:
            return _draw_diagram(self, axes_for(ax))
        axes, ax = parameters.dimensions("axes", axes, len(self.lower), (2,)), axes_for(ax)
        return _draw_plane(self._slice(axes), ax, axes, times)

    def _slice(self, axes):
        """The slice through the middle of the box in every dimension that is not drawn."""
        middle = (self.lower + self.upper) / 2
        lower, upper = middle.copy(), middle.copy()
        lower[list(axes)], upper[list(axes)] = self.lower[list(axes)], self.upper[list(axes)]
        return self if len(self.lower) == 2 else self.restrict(lower, upper)

    def to_svg(self, path=None, *, paint=False, times=False, axes=None):
        """The partition as an SVG picture.

        {svg_file}
        paint : bool, default=False
            Fill cells in the style of Piet Mondrian.
        times : bool, default=False
            Label cuts with birth times.
        axes : (int, int), default=None
            The dimensions to draw. Default: the first two.

        {svg}
        """
        if axes is not None:
            axes = parameters.dimensions("axes", axes, len(self.lower), (2,))
        return written(self._inner.to_svg(bool(paint), bool(times), axes), path)

    def _repr_svg_(self):
        return self.to_svg()

    def _view(self, time):
        return self._inner if time is None else self.at(time)._inner

    def __eq__(self, other):
        return self._inner.is_same_sample(other._inner) if isinstance(other, Partition) else NotImplemented

    def __hash__(self):
        return hash((self.lifetime, self.n_cuts, self.lower.tobytes(), self.upper.tobytes()))

    def __repr__(self):
        return f"Partition(n_dims={len(self.lower)}, lifetime={self.lifetime:g}, n_cuts={self.n_cuts})"


@documented
class InfiniteMondrian:
    """The process on all of space, computed only where queried; two windows agree where they overlap.

    Parameters
    ----------
    n_dims : int
        Number of dimensions.
    lifetime : float
        The lifetime λ.
    seed : int, default=0
        All randomness is a function of it.
    {length_weights}
    {data_measure}

    Examples
    --------
    >>> from mondrian.process import InfiniteMondrian
    >>> plane = InfiniteMondrian(2, lifetime=1.0, seed=3)
    >>> near, wide = plane.restrict([0, 0], [2, 2]), plane.restrict([-50, -9], [2, 70])
    >>> wide.restrict([0, 0], [2, 2]) == near
    True
    """

    def __init__(self, n_dims, lifetime, seed=0, weights=None, measure=None):
        self.n_dims = parameters.integer("n_dims", n_dims, high=_MOST_DIMS)
        self.lifetime = parameters.real("lifetime", lifetime, infinite=True)
        self.seed = _seed(seed)
        self.weights = None if weights is None else parameters.vector("weights", weights, self.n_dims, low=0.0)
        self.measure = _rows_of_measure(measure, self.n_dims)
        self._inner = _mondrian.InfiniteMondrian(self.n_dims, self.lifetime, self.seed, self.weights, self.measure)

    def restrict(self, lower, upper):
        """The sample in a box.

        {corners}

        {partition}
        """
        return Partition(self._inner.restrict(*_corners(lower, upper)))

    def cell_of(self, X):
        """A name for each row's cell: equal names mean equal cells, in every call.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_dims)
            Rows anywhere.

        Returns
        -------
        cells : ndarray of uint64 of shape (n_samples,)
        """
        return self._inner.cell_of(check_array(X, dtype=np.float64))

    def __reduce__(self):
        return InfiniteMondrian, (self.n_dims, self.lifetime, self.seed, self.weights, self.measure)

    def __repr__(self):
        return f"InfiniteMondrian(n_dims={self.n_dims}, lifetime={self.lifetime:g}, seed={self.seed})"


def _seed(seed):
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral):
        raise TypeError(f"seed is {seed!r}, but must be an integer")
    return parameters.seed_of(seed)


def _rows_of_measure(data, n_dims):
    """Rows whose distribution is the measure, or None for plain length."""
    if data is None:
        return None
    data = check_array(data, dtype=np.float64)
    if data.shape[1] != n_dims:
        raise ValueError(f"measure has {data.shape[1]} columns, but the process has {n_dims} dimensions")
    return data


def _corners(lower, upper):
    n_dims = np.size(lower)
    return parameters.vector("lower", lower, n_dims), parameters.vector("upper", upper, n_dims)


def _draw_diagram(partition, ax):
    """Cuts over location and time, each with the interval that it splits."""
    cuts = partition.cuts
    ax.hlines(cuts["time"], cuts["lower"][:, 0], cuts["upper"][:, 0], color="0.8", linewidth=0.8)
    ax.vlines(cuts["location"], cuts["time"], partition.lifetime, color="black", linewidth=1.0)
    ax.set_xlim(partition.lower[0], partition.upper[0])
    ax.set_ylim(0, partition.lifetime)
    ax.set_xlabel("location")
    ax.set_ylabel("time")
    return ax


def _draw_plane(partition, ax, axes, times):
    """The cuts of a two-dimensional partition."""
    cuts = partition.cuts
    first, second = axes
    upright = cuts["dim"] == first
    starts = np.where(upright[:, None], np.column_stack([cuts["location"], cuts["lower"][:, second]]),
                      np.column_stack([cuts["lower"][:, first], cuts["location"]]))  # fmt: skip
    ends = np.where(upright[:, None], np.column_stack([cuts["location"], cuts["upper"][:, second]]),
                    np.column_stack([cuts["upper"][:, first], cuts["location"]]))  # fmt: skip
    from matplotlib.collections import LineCollection

    lines = LineCollection(np.stack([starts, ends], axis=1), linewidths=1.2, colors=None if times else "black")
    if times:
        lines.set_array(cuts["time"])
        ax.figure.colorbar(lines, ax=ax, label="time of the cut")
    ax.add_collection(lines)
    ax.set_xlim(partition.lower[first], partition.upper[first])
    ax.set_ylim(partition.lower[second], partition.upper[second])
    ax.set_xlabel(f"dimension {first}")
    ax.set_ylabel(f"dimension {second}")
    return ax
