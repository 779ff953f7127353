"""Forests trained on Dask collections: the model that one machine would have given, bit for bit.

Needs the extra ``mondrian[dask]``. Every partition is read twice, once for moments and once for its summary; what moves are
moments, a domain and summaries, whose size follows the cells of the trees and not the rows (docs/many-machines.md).
Which worker does what, and how often a partition has to be done again, changes nothing.

>>> from mondrian.dask import DaskMondrianForestRegressor  # doctest: +SKIP
>>> forest = DaskMondrianForestRegressor(lifetime=5.0, random_state=0).fit(ddf[["a", "b"]], ddf["y"])  # doctest: +SKIP
>>> forest.predict(ddf[["a", "b"]])  # lazy  # doctest: +SKIP
"""

from __future__ import annotations

import copy

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from . import _parameters as parameters
from ._dask_laplace import _BITS, Geometry, KernelRows, kriged, merged_nearest
from ._laplace import LaplaceKernelRidge
from ._summary import Domain, Moments, summarize

try:
    import dask
    import dask.array
    from dask import delayed
    from dask.base import tokenize
except ImportError as error:
    raise ImportError("mondrian.dask needs Dask: pip install 'mondrian[dask]'") from error

__all__ = [
    "DaskLaplaceKernelRidge",
    "DaskMondrianDensity",
    "DaskMondrianForestClassifier",
    "DaskMondrianForestRegressor",
]

#: Summaries that one task merges: fewer tasks than pairs, little memory.
_AT_ONCE = 4


#: The name of the target beside the inputs.
_TARGET = "mondrian target"


def _inputs_of(frame):
    return frame.drop(columns=_TARGET)


def _target_of(frame):
    return frame[_TARGET]


def _is_frame(X):
    return hasattr(X, "to_delayed") and hasattr(X, "map_partitions") and hasattr(X, "npartitions") and not _is_array(X)


def _is_array(X):
    return isinstance(X, dask.array.Array)


def _parts(X, what):
    """The partitions of a collection in order, as delayed tables."""
    if _is_array(X):
        if X.ndim == 2 and X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        return list(X.to_delayed().ravel())
    if _is_frame(X):
        return list(X.to_delayed())
    raise TypeError(f"{what} is a {type(X).__name__}, but must be a Dask array or frame")


def _pairs(X, y):
    """Partitions of rows with those of their targets."""
    rows = _parts(X, "X")
    if y is None:
        return [(part, None) for part in rows]
    if _is_array(X) and _is_array(y) and X.chunks[0] != y.chunks[0]:
        if any(np.isnan(size) for size in (*X.chunks[0], *y.chunks[0])):
            raise ValueError("the chunks of X and y differ and are unknown: call compute_chunk_sizes on both")
        y = y.rechunk({0: X.chunks[0]})
    if _is_frame(X) and _is_frame(y) and y.ndim == 1:
        # One frame: read from files, the two might be partitioned differently.
        both = list(X.assign(**{_TARGET: y}).to_delayed())
        return [(delayed(_inputs_of, pure=True)(part), delayed(_target_of, pure=True)(part)) for part in both]
    targets = _parts(y, "y")
    if len(rows) != len(targets):
        raise ValueError(f"X has {len(rows)} partitions, but y has {len(targets)}: they must hold the same rows")
    return list(zip(rows, targets))


def _moments_of(X, y, task, n_sample):
    return Moments(X, y, task=task, n_sample=n_sample) if len(X) else None


def _summary_of(X, y, domain, task):
    return summarize(X, y, Domain.from_json(domain), task)


def _merged(parts):
    """What several parts add up to, in their order; those without rows are left out."""
    found = None
    for part in parts:
        if part is not None:
            # A task must not change its inputs: others may need them.
            found = copy.deepcopy(part) if found is None else found.merge(part)
    return found


def _reduced(parts, name):
    """One delayed value of many, merged in the order of partitions by a tree of tasks."""
    merge = delayed(_merged, pure=True)
    level = 0
    while len(parts) > 1:
        groups = [parts[at : at + _AT_ONCE] for at in range(0, len(parts), _AT_ONCE)]
        parts = [
            merge(group, dask_key_name=f"{name}-merge-{level}-{at}-{tokenize(group)}") if len(group) > 1 else group[0]
            for at, group in enumerate(groups)
        ]
        level += 1
    return parts[0]


class _DaskEstimator(BaseEstimator):
    """What all estimators on Dask collections share."""

    def _result(self, value):
        if self.client is not None:
            return self.client.compute(value).result()
        return dask.compute(value)[0]

    def get_params(self, deep=True):
        """The parameters, but for the client: a connection cannot be copied, so a clone uses the current one."""
        return {name: value for name, value in super().get_params(deep).items() if name != "client"}

    def set_params(self, **params):
        """Set parameters, the client among them."""
        if "client" in params:
            self.client = params.pop("client")
        return super().set_params(**params)

    def __getstate__(self):
        # A client is a connection of this process.
        return {**super().__getstate__(), "client": None}


class _DaskForest(_DaskEstimator):
    """Base of the forests on Dask collections."""

    _task = None

    def _domain(self, moments):
        return moments.domain(**self._domain_parameters())

    def _tree_parameters(self):
        return {
            "n_estimators": self.n_estimators,
            "lifetime": self.lifetime,
            "lower": self.lower,
            "upper": self.upper,
            "measure": self.measure,
            "weights": self.weights,
            "random_state": self.random_state,
        }

    def _fit(self, X, y):
        pairs = _pairs(X, y)
        n_sample = parameters.integer("n_sample", self.n_sample, 1, 2**24)
        look, part = delayed(_moments_of, pure=True), delayed(_summary_of, pure=True)
        # Names group the tasks in the dashboard; numbers say which partition.
        found = [
            look(x, y, self._task, n_sample, dask_key_name=f"mondrian-moments-{at}-{tokenize(x, y, self._task, n_sample)}")
            for at, (x, y) in enumerate(pairs)
        ]
        moments = self._result(_reduced(found, "mondrian-moments"))
        if moments is None:
            raise ValueError("X has no rows")
        domain = self._domain(moments)
        text = domain.to_json()
        found = [
            part(x, y, text, self._task, dask_key_name=f"mondrian-summary-{at}-{tokenize(x, y, text, self._task)}")
            for at, (x, y) in enumerate(pairs)
        ]
        summary = self._result(_reduced(found, "mondrian-summary"))
        self.n_rows_ = summary.n_rows
        self.n_cells_ = summary.n_cells
        self.domain_ = domain
        self._local = summary.finish(self.n_jobs)
        self.n_features_in_ = self._local.n_features_in_
        self.lifetime_ = self._local.lifetime_
        self.weights_ = self._local.weights_
        return self

    def __sklearn_is_fitted__(self):
        return "_local" in self.__dict__

    def to_local(self):
        """The fitted forest as an estimator of its own, without Dask.

        Returns
        -------
        estimator : MondrianForestRegressor, MondrianForestClassifier or MondrianDensity
        """
        check_is_fitted(self)
        return copy.copy(self._local)

    def _remote(self):
        """The local model where the work is done: sent once, not with every task."""
        if self.client is not None:
            return self.client.scatter(self._local, hash=False)
        return delayed(self._local, pure=True, name=f"mondrian-model-{tokenize(self.domain_.to_json(), id(self._local))}")

    def _mapped(self, X, method, dtype, n_columns=None):
        """A method of the local model on every partition, lazily: what comes out is partitioned as the rows are."""
        check_is_fitted(self)
        model = self._remote()
        if _is_array(X):
            if X.numblocks[1] > 1:
                X = X.rechunk({1: -1})
            axes = {"drop_axis": 1} if n_columns is None else {"chunks": (X.chunks[0], (n_columns,))}
            meta = np.empty((0,) if n_columns is None else (0, 0), dtype=dtype)
            return X.map_blocks(_asked, model, method, dtype=dtype, meta=meta, **axes)
        if not _is_frame(X):
            raise TypeError(f"X is a {type(X).__name__}, but must be a Dask array or frame")
        blocks = [delayed(_asked, pure=True)(part, model, method) for part in X.to_delayed()]
        shape = (np.nan,) if n_columns is None else (np.nan, n_columns)
        arrays = [dask.array.from_delayed(block, shape, dtype=dtype) for block in blocks]
        return dask.array.concatenate(arrays, axis=0)

    def _scored(self, X, y, measure):
        """A sum over partitions, in their order."""
        check_is_fitted(self)
        model = self._remote()
        parts = [delayed(measure, pure=True)(x, y, model) for x, y in _pairs(X, y)]
        return self._result(delayed(_total, pure=True)(parts))


def _asked(X, model, method):
    n = len(X)
    if n == 0:
        # No rows, no question; the shape is that of an answer.
        columns = getattr(model, "classes_", None)
        return np.empty((0,) if method != "predict_proba" else (0, len(columns)))
    return getattr(model, method)(X)


def _total(parts):
    return np.sum(parts, axis=0)


def _squares(X, y, model):
    """Number, Σy, Σy², and Σ of squared errors of a partition, about a place that all share."""
    if len(X) == 0:
        return np.zeros(4)
    y = np.asarray(y, dtype=np.float64)
    about = np.atleast_1d(model.prior_mean_)[0]
    error = y - model.predict(X)
    away = y - about
    return np.array([away.size, away.sum(), (away**2).sum(), (error**2).sum()])


def _hits(X, y, model):
    return np.array([len(X), np.sum(model.predict(X) == np.asarray(y)) if len(X) else 0])


def _log_likelihood(X, y, model):
    return np.array([model.score(X) if len(X) else 0.0])


class DaskMondrianForestRegressor(RegressorMixin, _DaskForest):
    """A Mondrian forest for regression on Dask arrays or frames.

    The same bits as :class:`mondrian.MondrianForestRegressor` on all rows with the domain's box, weights and lifetime.

    Parameters
    ----------
    n_estimators, lifetime, prior_mean, prior_variance, noise_variance, kappa, leaf_model, lower, upper, measure, weights, \
random_state
        As for the forest. The lifetime is finite; "auto" looks for the best one below an upper end, see
        :meth:`mondrian.Moments.domain`.
    n_sample : int, default=2048
        Rows of the sample that an automatic lifetime's upper end comes from.
    n_jobs : int or None, default=None
        Threads for finishing and predicting here.
    client : dask.distributed.Client or None, default=None
        Where the work is done; the current one, or Dask's default scheduler, without.

    Attributes
    ----------
    domain_ : Domain
    lifetime_ : float
    weights_ : ndarray of shape (n_features_in_,)
    n_rows_, n_cells_ : int
        Rows, and cells that hold rows over all trees.
    """

    _task = "regression"

    def __init__(
        self, n_estimators=100, lifetime="auto", prior_mean="auto", prior_variance="auto", noise_variance="auto",
        kappa="auto", leaf_model="hierarchical", lower=None, upper=None, measure="uniform", weights="auto",
        random_state=None, n_sample=2048, n_jobs=None, client=None,
    ):  # fmt: skip
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.prior_mean = prior_mean
        self.prior_variance = prior_variance
        self.noise_variance = noise_variance
        self.kappa = kappa
        self.leaf_model = leaf_model
        self.lower = lower
        self.upper = upper
        self.measure = measure
        self.weights = weights
        self.random_state = random_state
        self.n_sample = n_sample
        self.n_jobs = n_jobs
        self.client = client

    def _domain_parameters(self):
        names = ("prior_mean", "prior_variance", "noise_variance", "kappa", "leaf_model")
        return {**self._tree_parameters(), **{name: getattr(self, name) for name in names}}

    def fit(self, X, y):
        """Learn all rows.

        Parameters
        ----------
        X : Dask array or frame of shape (n_samples, n_features)
            Rows.
        y : Dask array or series of shape (n_samples,)
            Targets, partitioned as the rows are.

        Returns
        -------
        self : object
        """
        return self._fit(X, y)

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
        return self._mapped(X, "predict", np.float64)

    def score(self, X, y):
        """The coefficient of determination R², computed now.

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
        n, total, squares, errors = self._scored(X, y, _squares)
        return float(1.0 - errors / (squares - total**2 / n))


class DaskMondrianForestClassifier(ClassifierMixin, _DaskForest):
    """A Mondrian forest for classification on Dask arrays or frames.

    The same bits as :class:`mondrian.MondrianForestClassifier` on all rows with the domain's box, weights and lifetime.

    Parameters
    ----------
    n_estimators, lifetime, gamma, lower, upper, measure, weights, random_state
        As for the forest. The lifetime is finite; "auto" looks for the best one below an upper end, see
        :meth:`mondrian.Moments.domain`.
    n_sample : int, default=2048
        Rows of the sample that an automatic lifetime's upper end comes from.
    n_jobs : int or None, default=None
        Threads for finishing and predicting here.
    client : dask.distributed.Client or None, default=None
        Where the work is done; the current one, or Dask's default scheduler, without.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    domain_ : Domain
    lifetime_ : float
    weights_ : ndarray of shape (n_features_in_,)
    n_rows_, n_cells_ : int
        Rows, and cells that hold rows over all trees.
    """

    _task = "classification"

    def __init__(
        self, n_estimators=100, lifetime="auto", gamma="auto", lower=None, upper=None, measure="uniform", weights="auto",
        random_state=None, n_sample=2048, n_jobs=None, client=None,
    ):  # fmt: skip
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.gamma = gamma
        self.lower = lower
        self.upper = upper
        self.measure = measure
        self.weights = weights
        self.random_state = random_state
        self.n_sample = n_sample
        self.n_jobs = n_jobs
        self.client = client

    def _domain_parameters(self):
        return {**self._tree_parameters(), "gamma": self.gamma}

    def fit(self, X, y):
        """Learn all rows.

        Parameters
        ----------
        X : Dask array or frame of shape (n_samples, n_features)
            Rows.
        y : Dask array or series of shape (n_samples,)
            Classes, partitioned as the rows are.

        Returns
        -------
        self : object
        """
        self._fit(X, y)
        self.classes_ = self._local.classes_
        return self

    def predict(self, X):
        """The most probable class of each row, lazily.

        Parameters
        ----------
        X : Dask array or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        classes : Dask array of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._mapped(X, "predict", self.classes_.dtype)

    def predict_proba(self, X):
        """The probability of each class, lazily.

        Parameters
        ----------
        X : Dask array or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        shares : Dask array of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self._mapped(X, "predict_proba", np.float64, len(self.classes_))

    def score(self, X, y):
        """The share of rows put into the right class, computed now.

        Parameters
        ----------
        X : Dask array or frame of shape (n_samples, n_features)
            Rows.
        y : Dask array or series of shape (n_samples,)
            Classes.

        Returns
        -------
        score : float
        """
        n, hits = self._scored(X, y, _hits)
        return float(hits / n)


class DaskMondrianDensity(_DaskForest):
    """A density on Dask arrays or frames.

    The same bits as :class:`mondrian.MondrianDensity` on all rows with the domain's box, weights and lifetime.

    Parameters
    ----------
    n_estimators, lifetime, gamma, lower, upper, measure, weights, margin, random_state
        As for the density. The lifetime is finite; "auto" looks for the best one below an upper end, see
        :meth:`mondrian.Moments.domain`.
    n_sample : int, default=2048
        Rows of the sample that an automatic lifetime's upper end comes from.
    n_jobs : int or None, default=None
        Threads for finishing and evaluating here.
    client : dask.distributed.Client or None, default=None
        Where the work is done; the current one, or Dask's default scheduler, without.

    Attributes
    ----------
    domain_ : Domain
    lifetime_ : float
    weights_ : ndarray of shape (n_features_in_,)
    n_rows_, n_cells_ : int
        Rows, and cells that hold rows over all trees.
    """

    _task = "density"

    def __init__(
        self, n_estimators=100, lifetime="auto", gamma="auto", lower=None, upper=None, measure="uniform", weights="auto",
        margin=0.1, random_state=None, n_sample=2048, n_jobs=None, client=None,
    ):  # fmt: skip
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.gamma = gamma
        self.lower = lower
        self.upper = upper
        self.measure = measure
        self.weights = weights
        self.margin = margin
        self.random_state = random_state
        self.n_sample = n_sample
        self.n_jobs = n_jobs
        self.client = client

    def _domain_parameters(self):
        return {**self._tree_parameters(), "gamma": self.gamma, "margin": self.margin}

    def fit(self, X, y=None):
        """Learn all rows.

        Parameters
        ----------
        X : Dask array or frame of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.

        Returns
        -------
        self : object
        """
        return self._fit(X, None)

    def score_samples(self, X):
        """The log density of each row, lazily.

        Parameters
        ----------
        X : Dask array or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        logs : Dask array of shape (n_samples,)
        """
        return self._mapped(X, "score_samples", np.float64)

    def predict(self, X):
        """The same as ``score_samples``.

        Parameters
        ----------
        X : Dask array or frame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        logs : Dask array of shape (n_samples,)
        """
        return self.score_samples(X)

    def score(self, X, y=None):
        """The total log-likelihood of rows, computed now.

        Parameters
        ----------
        X : Dask array or frame of shape (n_samples, n_features)
            Rows.
        y : None
            Ignored.

        Returns
        -------
        total : float
        """
        return float(self._scored(X, None, _log_likelihood)[0])


def _stacked(X, y, n_sample):
    """The moments of rows with their targets as the last input, so that its range and mean are known too."""
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


class DaskLaplaceKernelRidge(RegressorMixin, _DaskEstimator):
    """Ridge regression with a tuned Laplace kernel on Dask arrays or frames.

    The kernel is ``exp(-sum(lifetime * |x - z|) - |A (x - z)|**exponent)`` with one lifetime per input and a learned metric A, as
    :class:`mondrian.LaplaceKernelRidge` has it; without A it is the report's. All of it is tuned by leave-one-out on a sample that
    the pass of moments brings; the rows stay partitioned, and a prediction is that of the nearest rows of all partitions. Neither
    the partitions nor their order change a bit of it.

    Parameters
    ----------
    lifetime : float, array-like of shape (n_features,) or "auto", default="auto"
        In the units of X; "auto" tunes one per input.
    alpha : float or "auto", default="auto"
        Regularization; "auto" tunes it.
    metric : {"auto", "full", None}, default="auto"
        The learned metric, as for the kernel in one process; None, and lifetimes that are given, do without.
    n_neighbors : int, default=64
        Distinct rows that a prediction looks at.
    n_sample : int, default=4000
        Rows that the tuning looks at.
    random_state : int, RandomState or None, default=None
        Of the tuning.
    n_jobs : int or None, default=None
        Threads for the tuning, which runs here.
    client : dask.distributed.Client or None, default=None
        Where the work is done; the current one, or Dask's default scheduler, without.

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
        """Tune the kernel on a sample and keep the rows where they are.

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
        pairs = _pairs(X, y)
        look = delayed(_stacked, pure=True)
        found = [
            look(x, y, n_sample, dask_key_name=f"mondrian-moments-{at}-{tokenize(x, y, n_sample)}")
            for at, (x, y) in enumerate(pairs)
        ]
        moments = self._result(_reduced(found, "mondrian-moments"))
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
        blocks = _parts(X, "X")
        sizes = X.chunks[0] if _is_array(X) else (np.nan,) * len(blocks)
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
            parts = [merge(parts[at : at + _AT_ONCE], block, geometry, m) for at in range(0, len(parts), _AT_ONCE)]
        # Once more for a single partition: the order of neighbours is that of a merge.
        found = merge(parts, block, geometry, m)
        return delayed(_kriged, pure=True)(found, block, self._settings)

    def score(self, X, y):
        """The coefficient of determination R², computed now.

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
        parts = [delayed(_errors, pure=True)(self._predicted(x), y, self.intercept_) for x, y in _pairs(X, y)]
        n, total, squares, errors = self._result(delayed(_total, pure=True)(parts))
        return float(1.0 - errors / (squares - total**2 / n))

    def to_local(self):
        """The kernel tuned and solved on the sample alone, without Dask.

        Returns
        -------
        estimator : LaplaceKernelRidge
        """
        check_is_fitted(self)
        return copy.copy(self._local)


def _errors(predicted, y, about):
    y = np.asarray(y, dtype=np.float64)
    away, error = y - about, y - predicted
    return np.array([away.size, away.sum(), (away**2).sum(), (error**2).sum()])
