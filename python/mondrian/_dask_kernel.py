"""Ridge regression with a tuned Laplace kernel on Dask collections: rows stay on their workers."""

from __future__ import annotations

import copy

import dask
import dask.array
import numpy as np
from dask import delayed
from dask.base import tokenize
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from . import _parameters as parameters
from ._dask_collections import AT_ONCE, DaskEstimator, is_array, pairs_of, parts_of, r2_of, reduced, squares_of, total
from ._dask_laplace import _BITS, Geometry, KernelRows, kriged, merged_nearest
from ._laplace import LaplaceKernelRidge
from ._summary import Moments


def _stacked(X, y, n_sample):
    """The moments of rows with their targets as the last input, which adds the range and mean of the targets."""
    y = np.asarray(y, dtype=np.float64)
    if y.ndim != 1 or len(y) != len(X):
        raise ValueError(f"y has shape {y.shape}, but must have one target for each of {len(X)} rows")
    return Moments(np.column_stack([np.asarray(X, dtype=np.float64), y]), n_sample=n_sample) if len(X) else None


def _nearest(rows, queries, m):
    return rows.nearest(np.asarray(queries, dtype=np.float64), m)


def _nearest_of(parts, queries, geometry, m):
    return merged_nearest(parts, np.asarray(queries, dtype=np.float64), geometry, m)


def _kriged(found, queries, settings):
    return kriged(found, np.asarray(queries, dtype=np.float64), settings)


class DaskLaplaceKernelRidge(RegressorMixin, DaskEstimator):
    """Ridge regression with a tuned Laplace kernel on Dask arrays or frames.

    The kernel is ``exp(-sum(lifetime * |x - z|) - |A (x - z)|**exponent)`` with one lifetime per input and a learned
    metric A, as in :class:`mondrian.LaplaceKernelRidge`; without A it is the report's kernel. The whole kernel is tuned
    by leave-one-out on a sample taken in the pass for moments. The rows stay partitioned, and a prediction uses the
    nearest rows of all partitions. The result does not depend on the partitions or their order, bit for bit.

    Parameters
    ----------
    lifetime : float, array-like of shape (n_features,) or "auto", default="auto"
        In the units of X; "auto" tunes one per input.
    alpha : float or "auto", default="auto"
        Regularization; "auto" tunes it.
    metric : {"auto", "full", None}, default="auto"
        The learned metric, as for the kernel in one process; there is none with None or with given lifetimes.
    n_neighbors : int, default=64
        Number of distinct rows used by a prediction.
    n_sample : int, default=4000
        Number of rows used for tuning.
    random_state : int, RandomState or None, default=None
        Seed of the tuning.
    n_jobs : int or None, default=None
        Threads for the tuning, which runs in the calling process.
    client : dask.distributed.Client or None, default=None
        Executes the tasks. Default: the current client, or Dask's default scheduler.

    Attributes
    ----------
    lifetimes_ : ndarray of shape (n_features_in_,)
    metric_ : ndarray of shape (n_directions, n_features_in_) or None
        The metric A, in the units of X.
    exponent_ : float
    alpha_ : float
    intercept_ : float
        The mean of the targets, to which predictions return far from the rows.
    n_rows_ : int
    """

    def __init__(
        self, lifetime="auto", alpha="auto", metric="auto", n_neighbors=64, n_sample=4000, random_state=None, n_jobs=None,
        client=None,
    ):  # fmt: skip
        self.lifetime = lifetime
        self.alpha = alpha
        self.metric = metric
        self.n_neighbors = n_neighbors
        self.n_sample = n_sample
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.client = client

    def fit(self, X, y):
        """Tune the kernel on a sample; the rows stay on their workers.

        Parameters
        ----------
        X : Dask array or frame of shape (n_samples, n_features)
            Rows of numbers.
        y : Dask array or series of shape (n_samples,)
            Targets, partitioned as the rows are.

        Returns
        -------
        self : object
        """
        n_sample = parameters.integer("n_sample", self.n_sample, 2, 2**24)
        m = parameters.integer("n_neighbors", self.n_neighbors, 1, 4096)
        pairs = pairs_of(X, y)
        look = delayed(_stacked, pure=True)
        found = [
            look(x, y, n_sample, dask_key_name=f"mondrian-moments-{at}-{tokenize(x, y, n_sample)}")
            for at, (x, y) in enumerate(pairs)
        ]
        moments = self._result(reduced(found, "mondrian-moments"))
        if moments is None:
            raise ValueError("X has no rows")
        sample = moments.sample_
        n_dims = sample.shape[1] - 1
        given = parameters.auto_or_real("alpha", self.alpha, strict=True)
        lifetimes, metric = self.lifetime, self.metric
        if not (isinstance(lifetimes, str) and lifetimes == "auto"):
            lifetimes, metric = np.asarray(parameters.vector("lifetime", lifetimes, n_dims, low=0.0)), None
        self._local = LaplaceKernelRidge(
            lifetime="auto", alpha="auto" if given is None else given, measure="uniform", metric=metric,
            exponent=1.0 if metric is None else "auto", target_transform=None, max_exact_rows=max(20_000, n_sample), random_state=self.random_state, n_jobs=self.n_jobs,
        ).fit(sample[:, :-1], sample[:, -1])  # fmt: skip
        self.lifetimes_ = np.asarray(self._local.lifetimes_) if isinstance(lifetimes, str) else lifetimes
        self.alpha_ = float(self._local.alpha_) if given is None else given
        self.metric_ = None if self._local.metric_ is None else np.asarray(self._local.metric_)
        self.exponent_ = float(self._local.exponent_)
        self.intercept_ = float(moments.mean_[-1])
        self.n_features_in_ = n_dims
        self.n_rows_ = moments.n_rows_
        lower, upper = moments._core.bounds
        largest = max(abs(lower[-1]), abs(upper[-1]), np.finfo(float).tiny)
        unit = float(2.0 ** (np.ceil(np.log2(largest)) - _BITS))
        geometry = Geometry(self.lifetimes_, self.metric_, self.exponent_)
        self._settings = (geometry, self.alpha_, self.intercept_, unit, m)
        keep = delayed(KernelRows, pure=True)
        rows = [
            keep(x, y, geometry, unit, dask_key_name=f"mondrian-rows-{at}-{tokenize(x, y, geometry, unit)}")
            for at, (x, y) in enumerate(pairs)
        ]
        self._rows = self.client.persist(rows) if self.client is not None else list(dask.persist(*rows))
        return self

    def __sklearn_is_fitted__(self):
        return "_rows" in self.__dict__

    def predict(self, X):
        """Predict targets, lazily.

        Parameters
        ----------
        X : Dask array or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        mean : Dask array of shape (n_samples,)
        """
        check_is_fitted(self)
        blocks = parts_of(X, "X")
        sizes = X.chunks[0] if is_array(X) else (np.nan,) * len(blocks)
        arrays = [
            dask.array.from_delayed(self._predicted(block), (size,), dtype=np.float64)
            for block, size in zip(blocks, sizes)
        ]
        return dask.array.concatenate(arrays, axis=0)

    def _predicted(self, block):
        geometry, m = self._settings[0], self._settings[-1]
        near, merge = delayed(_nearest, pure=True), delayed(_nearest_of, pure=True)
        parts = [near(rows, block, m) for rows in self._rows]
        while len(parts) > 1:
            parts = [merge(parts[at : at + AT_ONCE], block, geometry, m) for at in range(0, len(parts), AT_ONCE)]
        # Also for a single partition: neighbours have the order of a merge.
        found = merge(parts, block, geometry, m)
        return delayed(_kriged, pure=True)(found, block, self._settings)

    def score(self, X, y):
        """The coefficient of determination R², computed immediately.

        Parameters
        ----------
        X : Dask array or frame of shape (n_samples, n_features)
            Rows.
        y : Dask array or series of shape (n_samples,)
            Targets.

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        parts = [delayed(squares_of, pure=True)(y, self._predicted(x), self.intercept_) for x, y in pairs_of(X, y)]
        return r2_of(self._result(delayed(total, pure=True)(parts)))

    def to_local(self):
        """The kernel tuned and solved on the sample alone, without Dask.

        Returns
        -------
        estimator : LaplaceKernelRidge
        """
        check_is_fitted(self)
        return copy.copy(self._local)
