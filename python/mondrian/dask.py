"""Forests trained on Dask collections, identical bit for bit to those of one machine.

Needs the extra ``mondrian[dask]``. Every partition is read twice, once for moments and once for its summary; only
moments, a domain and summaries are sent, whose size depends on the number of cells of the trees and not of rows
(docs/many-machines.md). The result does not depend on which worker executes a task, or how often.

>>> from mondrian.dask import DaskMondrianForestRegressor  # doctest: +SKIP
>>> forest = DaskMondrianForestRegressor(lifetime=5.0, random_state=0).fit(ddf[["a", "b"]], ddf["y"])  # doctest: +SKIP
>>> forest.predict(ddf[["a", "b"]])  # lazy  # doctest: +SKIP
"""

from __future__ import annotations

import copy

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from . import _parameters as parameters
from ._dask_collections import DaskEstimator, dask, delayed, is_array, is_frame, pairs_of, r2_of, reduced, squares_of, tokenize, total
from ._dask_kernel import DaskLaplaceKernelRidge
from ._summary import Domain, Moments, summarize

__all__ = [
    "DaskLaplaceKernelRidge",
    "DaskMondrianDensity",
    "DaskMondrianForestClassifier",
    "DaskMondrianForestRegressor",
]


def _moments_of(X, y, task, n_sample):
    return Moments(X, y, task=task, n_sample=n_sample) if len(X) else None


def _summary_of(X, y, domain, task):
    return summarize(X, y, Domain.from_json(domain), task)


class _DaskForest(DaskEstimator):
    """Base of the forests on Dask collections."""

    _task = None

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
        pairs = pairs_of(X, y)
        n_sample = parameters.integer("n_sample", self.n_sample, 1, 2**24)
        look, part = delayed(_moments_of, pure=True), delayed(_summary_of, pure=True)
        # Names group the tasks in the dashboard; numbers identify the partition.
        found = [
            look(x, y, self._task, n_sample, dask_key_name=f"mondrian-moments-{at}-{tokenize(x, y, self._task, n_sample)}")
            for at, (x, y) in enumerate(pairs)
        ]
        moments = self._result(reduced(found, "mondrian-moments"))
        if moments is None:
            raise ValueError("X has no rows")
        # Two graphs, though one would save a round trip: in one, partitions that are read from files would stay in memory between
        # the passes.
        domain = moments.domain(**self._domain_parameters())
        text = domain.to_json()
        found = [
            part(x, y, text, self._task, dask_key_name=f"mondrian-summary-{at}-{tokenize(x, y, text, self._task)}")
            for at, (x, y) in enumerate(pairs)
        ]
        summary = self._result(reduced(found, "mondrian-summary"))
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
        """The fitted forest as a separate estimator, without Dask.

        Returns
        -------
        estimator : MondrianForestRegressor, MondrianForestClassifier or MondrianDensity
        """
        check_is_fitted(self)
        return copy.copy(self._local)

    def _remote(self):
        """The local model on the workers: sent once, not with every task."""
        if self.client is not None:
            return self.client.scatter(self._local, hash=False)
        return delayed(self._local, pure=True, name=f"mondrian-model-{tokenize(self.domain_.to_json(), id(self._local))}")

    def _mapped(self, X, method, dtype, n_columns=None):
        """A method of the local model on every partition, lazily: the result has the partitions of the rows."""
        check_is_fitted(self)
        model = self._remote()
        if is_array(X):
            if X.numblocks[1] > 1:
                X = X.rechunk({1: -1})
            axes = {"drop_axis": 1} if n_columns is None else {"chunks": (X.chunks[0], (n_columns,))}
            meta = np.empty((0,) if n_columns is None else (0, 0), dtype=dtype)
            return X.map_blocks(_asked, model, method, dtype=dtype, meta=meta, **axes)
        if not is_frame(X):
            raise TypeError(f"X is a {type(X).__name__}, but must be a Dask array or frame")
        blocks = [delayed(_asked, pure=True)(part, model, method) for part in X.to_delayed()]
        shape = (np.nan,) if n_columns is None else (np.nan, n_columns)
        arrays = [dask.array.from_delayed(block, shape, dtype=dtype) for block in blocks]
        return dask.array.concatenate(arrays, axis=0)

    def _scored(self, X, y, measure):
        """A sum over partitions, in their order."""
        check_is_fitted(self)
        model = self._remote()
        parts = [delayed(measure, pure=True)(x, y, model) for x, y in pairs_of(X, y)]
        return self._result(delayed(total, pure=True)(parts))


def _asked(X, model, method):
    n = len(X)
    if n == 0:
        # Without rows the model is not called; the result has the usual shape.
        columns = getattr(model, "classes_", None)
        return np.empty((0,) if method != "predict_proba" else (0, len(columns)))
    return getattr(model, method)(X)


def _squares(X, y, model):
    return squares_of(y, model.predict(X), np.atleast_1d(model.prior_mean_)[0]) if len(X) else np.zeros(4)


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
        As for the forest. The lifetime is finite; "auto" chooses the best one up to an upper limit, see
        :meth:`mondrian.Moments.domain`.
    n_sample : int, default=2048
        Size of the sample that determines the upper limit of an automatic lifetime.
    n_jobs : int or None, default=None
        Threads for finishing and predicting in the calling process.
    client : dask.distributed.Client or None, default=None
        Executes the tasks. Default: the current client, or Dask's default scheduler.

    Attributes
    ----------
    domain_ : Domain
    lifetime_ : float
    weights_ : ndarray of shape (n_features_in_,)
    n_rows_, n_cells_ : int
        Number of rows, and of cells with rows over all trees.
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
        return r2_of(self._scored(X, y, _squares))


class DaskMondrianForestClassifier(ClassifierMixin, _DaskForest):
    """A Mondrian forest for classification on Dask arrays or frames.

    The same bits as :class:`mondrian.MondrianForestClassifier` on all rows with the domain's box, weights and lifetime.

    Parameters
    ----------
    n_estimators, lifetime, gamma, lower, upper, measure, weights, random_state
        As for the forest. The lifetime is finite; "auto" chooses the best one up to an upper limit, see
        :meth:`mondrian.Moments.domain`.
    n_sample : int, default=2048
        Size of the sample that determines the upper limit of an automatic lifetime.
    n_jobs : int or None, default=None
        Threads for finishing and predicting in the calling process.
    client : dask.distributed.Client or None, default=None
        Executes the tasks. Default: the current client, or Dask's default scheduler.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    domain_ : Domain
    lifetime_ : float
    weights_ : ndarray of shape (n_features_in_,)
    n_rows_, n_cells_ : int
        Number of rows, and of cells with rows over all trees.
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
        """The accuracy, computed immediately.

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
        As for the density. The lifetime is finite; "auto" chooses the best one up to an upper limit, see
        :meth:`mondrian.Moments.domain`.
    n_sample : int, default=2048
        Size of the sample that determines the upper limit of an automatic lifetime.
    n_jobs : int or None, default=None
        Threads for finishing and evaluating in the calling process.
    client : dask.distributed.Client or None, default=None
        Executes the tasks. Default: the current client, or Dask's default scheduler.

    Attributes
    ----------
    domain_ : Domain
    lifetime_ : float
    weights_ : ndarray of shape (n_features_in_,)
    n_rows_, n_cells_ : int
        Number of rows, and of cells with rows over all trees.
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
        """The total log-likelihood of rows, computed immediately.

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
