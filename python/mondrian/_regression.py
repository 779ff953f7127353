"""Mondrian forests for regression."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_is_fitted

from . import _adaptive as adaptive
from . import _mondrian
from . import _parameters as parameters
from ._base import SeveralTargets, all_or_nothing, as_doubles, levels_to_the_caller, repeated, sample_weights
from ._docs import documented
from ._trees import ForestEstimator, ViewedRegressor


@documented
class MondrianForestRegressor(RegressorMixin, SeveralTargets, ViewedRegressor, ForestEstimator):
    """A Mondrian forest for regression that learns online, forgets and merges exactly.

    Trees are a function of ``random_state``, root box and measure alone: rows in any order, in any batches and on any
    number of threads give the same model.

    Parameters
    ----------
    {n_trees}
    {forest_lifetime}
    prior_mean : float or "auto", default="auto"
        Mean of the prior, to which predictions return far from data.
    prior_variance : float or "auto", default="auto"
        Variance of the prior.
    noise_variance : float or "auto", default="auto"
        Variance of targets about their cell's mean.
    kappa : float or "auto", default="auto"
        How many rows the mean of a cell's parent counts as. "auto" is ``noise_variance / prior_variance`` if both are
        given, else the value of smallest leave-one-out error on a sample of the rows.
    leaf_model : {"hierarchical", "independent"}, default="hierarchical"
        Whether the prior of a cell's mean is centred at its parent's mean, or cells are independent as in the report.
    {forest_parameters}

    Attributes
    ----------
    {tree_attributes}

    Notes
    -----
    A fitted forest contains the training rows, and so do its pickle and its file.

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian import MondrianForestRegressor
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> forest = MondrianForestRegressor(random_state=0).fit(X, 3 * X[:, 0])
    >>> mean, std = forest.predict([[0.5], [90.0]], return_std=True)
    >>> bool(abs(mean[0] - 1.5) < 0.3 and std[1] > std[0])
    True
    """

    def __init__(
        self, n_estimators=100, lifetime="auto",
        prior_mean="auto", prior_variance="auto", noise_variance="auto", kappa="auto", leaf_model="hierarchical",
        lower=None, upper=None, measure="uniform", weights="auto", unseen="keyed", validation="hold-out",
        window=None, max_rows=None, warm_up=1024, random_state=None, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._keep(locals())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Learn rows, forgetting all learned before.

        {several_targets}

        {self}
        """
        X, y, weights = self._weighted(X, y, sample_weight, reset=True)
        self.__dict__.pop("_members", None)
        if self._is_adaptive():
            return self._start_members(self._new_members(y), X, y)
        return self._plant(X, y, weights, self._tree_arguments(X.shape[1]))

    def _new_members(self, y):
        self._single = y.ndim == 1
        return adaptive.Adaptive(adaptive.members_of(self), adaptive.relative_shares, adaptive.squared_errors)

    def partial_fit(self, X, y, sample_weight=None):
        """Learn more rows. The result is the model of all rows so far, in any order. If it fails, nothing has changed.

        {several_targets}

        {self}
        """
        rows = self._plain(X) if sample_weight is None and "_members" not in self.__dict__ else None
        targets = None if rows is None else self._plain_target(y, len(rows))
        if targets is not None:
            # Learning row by row makes a million calls: the core's checks are enough, and a failed call changes
            # nothing.
            self._model.learn((rows, targets, None), self._work(len(rows)))
            return self
        return self._learn(X, y, sample_weight)

    @all_or_nothing
    def _learn(self, X, y, sample_weight):
        first = not self.__sklearn_is_fitted__()
        X, y, weights = self._weighted(X, y, sample_weight, reset=first)
        if first and self._is_adaptive():
            return self._start_members(self._new_members(y), X, y)
        if first:
            return self._plant(X, y, weights, self._online_tree_arguments(X.shape[1]))
        self._check_targets(y)
        if "_members" in self.__dict__:
            return self._learn_members(X, y)
        self._model.learn((X, y.ravel(), weights), self._work(len(X)))
        return self

    def _weighted(self, X, y, sample_weight, *, reset):
        self._refuse_weights(sample_weight)
        X, y = self._learnable(X, y, reset=reset)
        return repeated(X, y, sample_weights(sample_weight, X))

    def _learnable(self, X, y, *, reset=False):
        X, y = self._rows_and_targets(X, y, reset=reset, multi_output=True)
        if y.ndim == 2 and y.shape[1] == 1:
            y = self._one_column(y)
        return X, y

    def _plain_target(self, y, n_rows):
        """The targets as doubles if they are a plain array of one number per row, for a model of one target; else None."""
        return as_doubles(y) if type(y) is np.ndarray and y.shape == (n_rows,) and self._n_targets == 1 else None

    def _one_column(self, y):
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), "
            "for example using ravel().",
            DataConversionWarning,
            stacklevel=levels_to_the_caller(),
        )
        return y.ravel()

    def _check_targets(self, y):
        n_targets = 1 if y.ndim == 1 else y.shape[1]
        if n_targets != self._n_targets:
            raise ValueError(f"y has {n_targets} targets, but the model was fitted with {self._n_targets}")

    def _plant(self, X, y, weights, trees):
        arguments = {
            "trees": self._weighted_trees(trees, X, y),
            "mean": parameters.auto_or_real("prior_mean", self.prior_mean, -np.inf),
            "variance": parameters.auto_or_real("prior_variance", self.prior_variance, infinite=True),
            "noise": parameters.auto_or_real("noise_variance", self.noise_variance),
            "kappa": parameters.auto_or_real("kappa", self.kappa),
            "leaf_model": parameters.choice("leaf_model", self.leaf_model, ("hierarchical", "independent")),
            "unseen": parameters.choice("unseen", self.unseen, ("keyed", "integrate")),
        }
        model = _mondrian.RegressionForest.fit((X, y.ravel(), weights), arguments, self._work())
        self._single = y.ndim == 1
        return self._take(model)

    def predict_quantiles(self, X, quantiles):
        """Quantiles of the predictive distribution, calibrated on leave-one-out residuals; not calibrated if the noise variance is given.

        {rows}
        quantiles : array-like of shape (n_quantiles,)
            Numbers between 0 and 1, both excluded.

        Returns
        -------
        values : ndarray of shape (n_samples, n_quantiles) or (n_samples, n_targets, n_quantiles)
        """
        quantiles = [parameters.real("quantiles", float(q), strict=True) for q in np.atleast_1d(quantiles)]
        return self._shaped(self._call("predict_quantiles", X, quantiles), len(quantiles))

    def predict_interval(self, X, coverage=0.9):
        """The central interval that contains a new target with a given probability.

        {rows}
        coverage : float, default=0.9
            The probability.

        Returns
        -------
        interval : ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends.
        """
        coverage = parameters.real("coverage", coverage, strict=True)
        if not coverage < 1.0:
            raise ValueError(f"coverage is {coverage}, but must be below 1")
        return self.predict_quantiles(X, [(1 - coverage) / 2, (1 + coverage) / 2])

    def _known(self, X, y):
        """Rows with as many targets as the model has."""
        X, y = self._learnable(X, y)
        self._check_targets(y)
        return X, y.ravel()

    def degrees_of_freedom(self):
        """Effective degrees of freedom: the trace of the smoothing matrix at the training rows."""
        check_is_fitted(self)
        return self._model.degrees_of_freedom(self._threads())

    @property
    def prior_mean_(self):
        """Mean of the prior, given or automatic; one per target if there are several."""
        return self._resolved(0)

    @property
    def prior_variance_(self):
        """Variance of the prior."""
        return self._resolved(1)

    @property
    def noise_variance_(self):
        """Variance of the noise, given or automatic: the residual variance of local linear fits to nearby rows."""
        check_is_fitted(self)
        values = self._model.noise_variances(self._threads())
        return float(values[0]) if self._single else values

    @property
    def kappa_(self):
        """How many rows a parent's mean counts as, given or automatic."""
        return self._resolved(3)

    def _resolved(self, which):
        check_is_fitted(self)
        values = np.array([numbers[which] for numbers in self._model.gaussians(self._threads())])
        return float(values[0]) if self._single else values
