"""Dask collections as partitioned tables, the merging of parts, and the base of all estimators on collections."""

from __future__ import annotations

import copy

import numpy as np
from sklearn.base import BaseEstimator

try:
    import dask
    import dask.array
    from dask import delayed
    from dask.base import tokenize
except ImportError as error:
    raise ImportError("mondrian.dask needs Dask: pip install 'mondrian[dask]'") from error

#: Summaries that one task merges: fewer tasks than pairs, little memory.
AT_ONCE = 4


#: The column name of the target next to the inputs.
_TARGET = "mondrian target"


def _inputs_of(frame):
    return frame.drop(columns=_TARGET)


def _target_of(frame):
    return frame[_TARGET]


def is_frame(X):
    return hasattr(X, "to_delayed") and hasattr(X, "map_partitions") and hasattr(X, "npartitions") and not is_array(X)


def is_array(X):
    return isinstance(X, dask.array.Array)


def parts_of(X, what):
    """The partitions of a collection in order, as delayed tables."""
    if is_array(X):
        if X.ndim == 2 and X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        return list(X.to_delayed().ravel())
    if is_frame(X):
        return list(X.to_delayed())
    raise TypeError(f"{what} is a {type(X).__name__}, but must be a Dask array or frame")


def pairs_of(X, y):
    """Partitions of rows with those of their targets."""
    rows = parts_of(X, "X")
    if y is None:
        return [(part, None) for part in rows]
    if is_array(X) and is_array(y) and X.chunks[0] != y.chunks[0]:
        if any(np.isnan(size) for size in (*X.chunks[0], *y.chunks[0])):
            raise ValueError("the chunks of X and y differ and are unknown: call compute_chunk_sizes on both")
        y = y.rechunk({0: X.chunks[0]})
    if is_frame(X) and is_frame(y) and y.ndim == 1:
        # One frame: read from files, rows and targets might be partitioned differently.
        both = list(X.assign(**{_TARGET: y}).to_delayed())
        return [(delayed(_inputs_of, pure=True)(part), delayed(_target_of, pure=True)(part)) for part in both]
    targets = parts_of(y, "y")
    if len(rows) != len(targets):
        raise ValueError(f"X has {len(rows)} partitions, but y has {len(targets)}: they must hold the same rows")
    return list(zip(rows, targets))


def _merged(parts):
    """The sum of several parts, in their order; those without rows are skipped."""
    found = None
    for part in parts:
        if part is not None:
            # A task must not change its inputs: others may need them.
            found = copy.deepcopy(part) if found is None else found.merge(part)
    return found


def reduced(parts, name):
    """Many delayed values merged to one, in the order of partitions, by a tree of tasks."""
    merge = delayed(_merged, pure=True)
    level = 0
    while len(parts) > 1:
        groups = [parts[at : at + AT_ONCE] for at in range(0, len(parts), AT_ONCE)]
        parts = [
            merge(group, dask_key_name=f"{name}-merge-{level}-{at}-{tokenize(group)}") if len(group) > 1 else group[0]
            for at, group in enumerate(groups)
        ]
        level += 1
    return parts[0]


def total(parts):
    return np.sum(parts, axis=0)


def squares_of(y, predicted, about):
    """Number, Σy, Σy², and Σ of squared errors of a partition, relative to a common centre."""
    y = np.asarray(y, dtype=np.float64)
    away, error = y - about, y - predicted
    return np.array([away.size, away.sum(), (away**2).sum(), (error**2).sum()])


def r2_of(squares):
    """The coefficient of determination of added up :func:`squares_of`."""
    n, away, squares, errors = squares
    return float(1.0 - errors / (squares - away**2 / n))


class DaskEstimator(BaseEstimator):
    """Base of all estimators on Dask collections."""

    def _result(self, value):
        if self.client is not None:
            return self.client.compute(value).result()
        return dask.compute(value)[0]

    def get_params(self, deep=True):
        """The parameters except the client: a connection cannot be copied, so a clone uses the current one."""
        return {name: value for name, value in super().get_params(deep).items() if name != "client"}

    def set_params(self, **params):
        """Set parameters, including the client."""
        if "client" in params:
            self.client = params.pop("client")
        return super().set_params(**params)

    def __getstate__(self):
        # A client is a connection of this process.
        return {**super().__getstate__(), "client": None}
