"""Ridge regression with a tuned Laplace kernel on Dask collections: rows stay where they are, neighbours are merged."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

#: Bits below the largest target that sums of targets keep: integers add up to the same in any order.
_BITS = 40
#: Candidates within this share of the last neighbour's distance are looked at: the tree's sums round otherwise than ours.
_SLACK = 1e-9
#: Numbers of neighbours' matrices that are solved together.
_AT_ONCE = 1 << 22


class KernelRows:
    """The distinct rows of a partition, with how many there are of each and the sum of their targets in fixed point."""

    def __init__(self, X, y, lifetimes, unit):
        X = np.ascontiguousarray(X, dtype=np.float64) + 0.0
        if not np.isfinite(X).all():
            raise ValueError("X holds numbers that are not finite")
        units = np.rint(np.asarray(y, dtype=np.float64) / unit).astype(np.int64)
        self.points, of = np.unique(X, axis=0, return_inverse=True)
        self.counts = np.bincount(of.ravel(), minlength=len(self.points)).astype(np.int64)
        self.sums = np.zeros(len(self.points), dtype=np.int64)
        np.add.at(self.sums, of.ravel(), units)
        self.lifetimes = lifetimes
        self._tree = None

    def __getstate__(self):
        return {**self.__dict__, "_tree": None}

    def nearest(self, queries, m):
        """The points nearest to each query, at least ``m`` of them with all that are as far as the last, as lists."""
        if len(self.points) == 0:
            return [(np.empty((0, len(self.lifetimes))), np.empty(0, np.int64), np.empty(0, np.int64))] * len(queries)
        if self._tree is None:
            self._tree = cKDTree(self.points * self.lifetimes)
        scaled = queries * self.lifetimes
        last = self._tree.query(scaled, k=[min(m, len(self.points))], p=1)[0][:, 0]
        lists = self._tree.query_ball_point(scaled, last * (1 + _SLACK) + np.finfo(float).tiny, p=1)
        found = [np.asarray(some, dtype=np.intp) for some in lists]
        return [(self.points[some], self.counts[some], self.sums[some]) for some in found]


def merged_nearest(parts, queries, lifetimes, m):
    """The nearest of several parts' points to each query: nearest first, equal distances by coordinates, at most ``m``."""
    found = []
    for at, query in enumerate(queries):
        points = np.concatenate([part[at][0] for part in parts])
        counts = np.concatenate([part[at][1] for part in parts])
        sums = np.concatenate([part[at][2] for part in parts])
        distance = (np.abs(points - query) * lifetimes).sum(axis=1)
        order = np.lexsort((*points.T[::-1], distance))
        points, counts, sums, distance = points[order], counts[order], sums[order], distance[order]
        # The same point may lie in several partitions.
        first = np.ones(len(points), dtype=bool)
        first[1:] = (points[1:] != points[:-1]).any(axis=1)
        start = np.flatnonzero(first)
        if len(start) < len(points):
            points, distance = points[start], distance[start]
            counts, sums = np.add.reduceat(counts, start), np.add.reduceat(sums, start)
        # All as far as the last stay: a further merge may need them.
        end = len(points) if len(points) <= m else np.searchsorted(distance, distance[m - 1], side="right")
        found.append((points[:end], counts[:end], sums[:end]))
    return found


def kriged(found, queries, settings):
    """What the ``m`` nearest points of each query say."""
    lifetimes, alpha, centre, unit, m = settings
    m = min(m, min(len(points) for points, _, _ in found)) if found else 0
    predicted = np.full(len(queries), centre)
    if m == 0:
        return predicted
    step = max(1, _AT_ONCE // (m * m * len(lifetimes)))
    for start in range(0, len(queries), step):
        some = found[start : start + step]
        points = np.stack([points[:m] for points, _, _ in some]) * lifetimes
        counts = np.stack([counts[:m] for _, counts, _ in some]).astype(np.float64)
        targets = np.stack([sums[:m] for _, _, sums in some]) * unit / counts - centre
        scaled = queries[start : start + step] * lifetimes
        kernel = np.exp(-np.abs(points[:, :, None, :] - points[:, None, :, :]).sum(axis=3))
        diagonal = np.arange(m)
        kernel[:, diagonal, diagonal] += alpha / counts
        to_query = np.exp(-np.abs(points - scaled[:, None, :]).sum(axis=2))
        weights = np.linalg.solve(kernel, targets[:, :, None])[:, :, 0]
        predicted[start : start + step] = centre + (to_query * weights).sum(axis=1)
    return predicted
