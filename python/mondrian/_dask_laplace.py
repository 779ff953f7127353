"""Ridge regression with a tuned Laplace kernel on Dask collections: rows stay on their workers, neighbours are merged."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

#: Bits below the largest target that sums of targets keep: integers add up to the same in any order.
_BITS = 40
#: Candidates within this share of the last neighbour's distance are kept: the tree's sums are rounded differently.
_SLACK = 1e-9
#: Size of the neighbours' matrices that are solved together, in numbers.
_AT_ONCE = 1 << 22


class Geometry:
    """Distances of the kernel: ``sum(lifetimes * |u|) + |A u|**exponent``, without the second term if there is no metric ``A``.

    Every number is computed by the same operations in the same order, independent of neighbouring rows, so no bit of a
    distance depends on partitions; a matrix product would not guarantee this.
    """

    def __init__(self, lifetimes, metric=None, exponent=1.0):
        self.lifetimes, self.metric, self.exponent = lifetimes, metric, exponent

    def __dask_tokenize__(self):
        return type(self).__name__, self.lifetimes, self.metric, self.exponent

    def image(self, X):
        """``A x`` of each row."""
        image = np.zeros((*X.shape[:-1], len(self.metric)))
        for column, direction in zip(np.moveaxis(X, -1, 0), self.metric.T):
            image += column[..., None] * direction
        return image

    def of(self, apart):
        """The distance for differences of rows, along the last axis."""
        distance = (np.abs(apart) * self.lifetimes).sum(axis=-1)
        if self.metric is not None:
            square = np.zeros(apart.shape[:-1])
            for part in np.moveaxis(self.image(apart), -1, 0):
                square += part * part
            distance += square ** (self.exponent / 2)
        return distance


class KernelRows:
    """The distinct rows of a partition, with the count of each and the sum of their targets in fixed point."""

    def __init__(self, X, y, geometry, unit):
        X = np.ascontiguousarray(X, dtype=np.float64) + 0.0
        if not np.isfinite(X).all():
            raise ValueError("X contains numbers that are not finite")
        units = np.rint(np.asarray(y, dtype=np.float64) / unit).astype(np.int64)
        self.points, of = np.unique(X, axis=0, return_inverse=True)
        self.counts = np.bincount(of.ravel(), minlength=len(self.points)).astype(np.int64)
        self.sums = np.zeros(len(self.points), dtype=np.int64)
        np.add.at(self.sums, of.ravel(), units)
        self.geometry = geometry
        self._tree = None

    def __getstate__(self):
        return {**self.__dict__, "_tree": None}

    def nearest(self, queries, m):
        """The points nearest to each query, at least ``m`` of them and all that tie with the last, as lists."""
        n_dims, m = len(self.geometry.lifetimes), min(m, len(self.points))
        if m == 0:
            return [(np.empty((0, n_dims)), np.empty(0, np.int64), np.empty(0, np.int64))] * len(queries)
        found = self._by_image(queries, m) if self.geometry.metric is not None else self._by_lifetimes(queries, m)
        return [(self.points[some], self.counts[some], self.sums[some]) for some in found]

    def _by_lifetimes(self, queries, m):
        if self._tree is None:
            self._tree = cKDTree(self.points * self.geometry.lifetimes)
        scaled = queries * self.geometry.lifetimes
        last = self._tree.query(scaled, k=[m], p=1)[0][:, 0]
        lists = self._tree.query_ball_point(scaled, last * (1 + _SLACK) + np.finfo(float).tiny, p=1)
        return [np.asarray(some, dtype=np.intp) for some in lists]

    def _by_image(self, queries, m):
        """No tree indexes the sum of both terms. The nearest points by the second term alone bound the distance of the ``m``-th, which bounds the second term of all nearer points."""
        geometry = self.geometry
        if self._tree is None:
            self._tree = cKDTree(geometry.image(self.points))
        images = geometry.image(queries)
        near = self._tree.query(images, k=list(range(1, m + 1)))[1]
        bound = geometry.of(self.points[near] - queries[:, None, :]).max(axis=1)
        radius = bound ** (1 / geometry.exponent) * (1 + _SLACK) + np.finfo(float).tiny
        found = []
        for query, image, some in zip(queries, images, radius):
            some = np.asarray(self._tree.query_ball_point(image, some), dtype=np.intp)
            distance = geometry.of(self.points[some] - query)
            last = np.partition(distance, m - 1)[m - 1]
            found.append(some[distance <= last * (1 + _SLACK)])
        return found


def merged_nearest(parts, queries, geometry, m):
    """The nearest of several parts' points to each query: nearest first, equal distances by coordinates, at most ``m``."""
    found = []
    for at, query in enumerate(queries):
        points = np.concatenate([part[at][0] for part in parts])
        counts = np.concatenate([part[at][1] for part in parts])
        sums = np.concatenate([part[at][2] for part in parts])
        distance = geometry.of(points - query)
        order = np.lexsort((*points.T[::-1], distance))
        points, counts, sums, distance = points[order], counts[order], sums[order], distance[order]
        # The same point may lie in several partitions.
        first = np.ones(len(points), dtype=bool)
        first[1:] = (points[1:] != points[:-1]).any(axis=1)
        start = np.flatnonzero(first)
        if len(start) < len(points):
            points, distance = points[start], distance[start]
            counts, sums = np.add.reduceat(counts, start), np.add.reduceat(sums, start)
        # Keep all ties with the last: a further merge may need them.
        end = len(points) if len(points) <= m else np.searchsorted(distance, distance[m - 1], side="right")
        found.append((points[:end], counts[:end], sums[:end]))
    return found


def kriged(found, queries, settings):
    """Predictions from the ``m`` nearest points of each query."""
    geometry, alpha, centre, unit, m = settings
    m = min(m, min(len(points) for points, _, _ in found)) if found else 0
    predicted = np.full(len(queries), centre)
    if m == 0:
        return predicted
    step = max(1, _AT_ONCE // (m * m * len(geometry.lifetimes)))
    for start in range(0, len(queries), step):
        some = found[start : start + step]
        points = np.stack([points[:m] for points, _, _ in some])
        counts = np.stack([counts[:m] for _, counts, _ in some]).astype(np.float64)
        targets = np.stack([sums[:m] for _, _, sums in some]) * unit / counts - centre
        block = queries[start : start + step]
        kernel = np.exp(-geometry.of(points[:, :, None, :] - points[:, None, :, :]))
        diagonal = np.arange(m)
        kernel[:, diagonal, diagonal] += alpha / counts
        to_query = np.exp(-geometry.of(points - block[:, None, :]))
        weights = np.linalg.solve(kernel, targets[:, :, None])[:, :, 0]
        predicted[start : start + step] = centre + (to_query * weights).sum(axis=1)
    return predicted
