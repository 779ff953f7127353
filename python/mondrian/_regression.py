"""Mondrian forests for regression."""

from __future__ import annotations

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _mondrian
from . import _parameters as parameters
from ._base import repeated, sample_weights
from ._path import RegularizationPath
from ._trees import ViewedEstimator, documented, pairs


@documented
class MondrianForestRegressor(RegressorMixin, ViewedEstimator):
    """A Mondrian forest for regression that learns online, forgets and merges exactly.

    Trees are a function of ``random_state``, root box and measure alone: rows in any order, in any batches and on any
    number of threads give the same model.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    lifetime : float or "auto", default="auto"
        How fine the partitions get; ``float("inf")`` parts all distinct rows. "auto" chooses on a held-out fifth
        along the regularization path; with ``partial_fit`` it is infinite.
    prior_mean : float or "auto", default="auto"
        Mean of the prior, to which predictions return far from data.
    prior_variance : float or "auto", default="auto"
        Variance of the prior.
    noise_variance : float or "auto", default="auto"
        Variance of targets about their cell's mean.
    leaf_model : {"hierarchical", "independent"}, default="hierarchical"
        Whether a cell's mean is drawn around its parent's, or each on its own as in the report.
    {tree_parameters}
    unseen : {"keyed", "integrate"}, default="keyed"
        Whether cuts that no training row has made anybody look at follow from the key or are integrated over.
    random_state : int, RandomState or None, default=None
        An integer is the core's seed.
    n_jobs : int or None, default=None
        Threads, in joblib's meaning; results do not depend on it.

    Attributes
    ----------
    lifetime_ : float
        The lifetime looked at.
    weights_ : ndarray of shape (n_features_in_,) or None
        Factors of the measure; None for the quantile measure.
    n_features_in_ : int
        Number of inputs.

    Notes
    -----
    A fitted forest, and so its pickle, contains the training rows.

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
        self,
        n_estimators=100,
        lifetime="auto",
        prior_mean="auto",
        prior_variance="auto",
        noise_variance="auto",
        leaf_model="hierarchical",
        lower=None,
        upper=None,
        measure="uniform",
        weights="auto",
        unseen="keyed",
        random_state=None,
        n_jobs=None,
    ):
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.prior_mean = prior_mean
        self.prior_variance = prior_variance
        self.noise_variance = noise_variance
        self.leaf_model = leaf_model
        self.lower = lower
        self.upper = upper
        self.measure = measure
        self.weights = weights
        self.unseen = unseen
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X, y, sample_weight=None):
        """Learn rows, forgetting all learned before.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights ≥ 0: a row of weight 2 counts as two rows, one of weight 0 is left out.

        Returns
        -------
        self : MondrianForestRegressor
        """
        X, y = self._learnable(X, y, reset=True)
        X, y, weights = repeated(X, y, sample_weights(sample_weight, X))
        return self._plant(X, y, weights, self._tree_arguments(X.shape[1]))

    def partial_fit(self, X, y, sample_weight=None):
        """Learn more rows: the model of all rows so far, whatever their order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights ≥ 0.

        Returns
        -------
        self : MondrianForestRegressor
        """
        if not self.__sklearn_is_fitted__():
            X, y = self._learnable(X, y, reset=True)
            X, y, weights = repeated(X, y, sample_weights(sample_weight, X))
            return self._plant(X, y, weights, self._online_tree_arguments(X.shape[1]))
        X, y = self._learnable(X, y, reset=False)
        X, y, weights = repeated(X, y, sample_weights(sample_weight, X))
        self._check_targets(y)
        self._model.learn(X, y.ravel(), weights, self._threads(len(X)))
        return self

    def _learnable(self, X, y, *, reset):
        if reset:
            X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        else:
            plain = self._plain(X, y)
            X, y = plain or validate_data(self, X, y, reset=False, dtype=np.float64, multi_output=True, y_numeric=True)
        if y.ndim == 2 and y.shape[1] == 1:
            y = self._one_column(y)
        return X, np.ascontiguousarray(y, dtype=np.float64)

    def _plain(self, X, y):
        """Arrays that need no more checks than the core's own: what learning row by row calls a million times."""
        if (
            type(X) is np.ndarray
            and type(y) is np.ndarray
            and X.ndim == 2
            and y.ndim == 1
            and X.dtype == y.dtype == np.float64
            and X.shape == (len(y), self.n_features_in_)
            and len(y)
            and not hasattr(self, "feature_names_in_")
        ):
            return X, y
        return None

    def _one_column(self, y):
        import warnings

        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), "
            "for example using ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        return y.ravel()

    def _check_targets(self, y):
        n_targets = 1 if y.ndim == 1 else y.shape[1]
        if n_targets != self._n_targets:
            raise ValueError(f"y has {n_targets} targets, but the model was fitted with {self._n_targets}")

    def _plant(self, X, y, weights, trees):
        model = _mondrian.RegressionForest.fit(
            X,
            y.ravel(),
            weights,
            trees,
            parameters.auto_or_real("prior_mean", self.prior_mean, -np.inf),
            parameters.auto_or_real("prior_variance", self.prior_variance, infinite=True),
            parameters.auto_or_real("noise_variance", self.noise_variance),
            parameters.choice("leaf_model", self.leaf_model, ("hierarchical", "independent")),
            parameters.choice("unseen", self.unseen, ("keyed", "integrate")),
            self._threads(),
        )
        self._n_targets = model.n_targets
        self._single = y.ndim == 1
        return self._take(model)

    def _shaped(self, numbers, *more):
        """One number a row, or one a row and target; then further dimensions."""
        if self._single and not more:
            return numbers
        targets = () if self._single else (self._n_targets,)
        return numbers.reshape((-1, *targets, *more))

    def predict(self, X, return_std=False):
        """Predict targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the predictive standard deviation too, noise included.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the same shape
            Only if ``return_std``.
        """
        X = self._query(X)
        if not return_std:
            return self._shaped(self._model.predict(X, self._threads(len(X))))
        mean, std = self._model.predict_with_std(X, self._threads(len(X)))
        return self._shaped(mean), self._shaped(std)

    def predict_quantiles(self, X, quantiles):
        """Quantiles of the predictive distribution, the mixture over trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        quantiles : array-like of shape (n_quantiles,)
            Numbers between 0 and 1, both excluded.

        Returns
        -------
        values : ndarray of shape (n_samples, n_quantiles) or (n_samples, n_targets, n_quantiles)
        """
        X = self._query(X)
        quantiles = [parameters.real("quantiles", float(q), strict=True) for q in np.atleast_1d(quantiles)]
        return self._shaped(self._model.predict_quantiles(X, quantiles, self._threads(len(X))), len(quantiles))

    def predict_interval(self, X, coverage=0.9):
        """The central interval that holds a new target with a given probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
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

    def apply(self, X):
        """The number of each row's cell in each tree; −1 for a cell without training rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        cells : ndarray of int of shape (n_samples, n_estimators)
        """
        X = self._query(X)
        return self._model.apply(X, self._threads(len(X)))

    def equivalent_kernel(self, X_query):
        """The smoothing matrix: with a prior mean of 0, predictions are this matrix times the training targets.

        Parameters
        ----------
        X_query : array-like of shape (n_query, n_features)
            Rows.

        Returns
        -------
        smoothing : ndarray of shape (n_query, n_train)
            In the order of the training rows; a row of whole-number weight w is w rows.
        """
        X = self._query(X_query)
        return self._model.equivalent_kernel(X, self._threads(len(X)))

    def path(self, X_val, y_val, progress=None):
        """The error at every lifetime up to ``lifetime_``, without retraining.

        The root box is first widened to hold the validation rows, so that the path is piecewise constant.

        Parameters
        ----------
        X_val : array-like of shape (n_samples, n_features), or list of such
            Validation rows.
        y_val : array-like of shape (n_samples,), or list of such
            Their targets.
        progress : callable, default=None
            Called with the share of work done.

        Returns
        -------
        path : RegularizationPath
        """
        check_is_fitted(self)
        sets, several = pairs(X_val, y_val, ("X_val", "y_val"))
        checked = []
        for X, y in sets:
            X, y = self._learnable(X, y, reset=False)
            self._check_targets(y)
            checked.append((X, y.ravel()))
        return RegularizationPath(self._model.path(checked, self._threads(), progress), several)

    def merge(self, other):
        """Learn all that another forest has learned: the model of both sets of rows.

        Parameters
        ----------
        other : MondrianForestRegressor
            With the same ``random_state``, root box, measure and parameters.

        Returns
        -------
        self : MondrianForestRegressor
        """
        self._model.merge(self._mergeable(other), self._threads())
        return self

    def forget(self, X, y):
        """Forget rows: the model that never saw them. If one was never learned, nothing changes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            The targets they were learned with.

        Returns
        -------
        self : MondrianForestRegressor
        """
        check_is_fitted(self)
        X, y = self._learnable(X, y, reset=False)
        self._check_targets(y)
        self._model.forget(X, y.ravel(), self._threads(len(X)))
        return self

    @property
    def feature_importances_(self):
        """How much of the squared error the cuts of each input remove; sums to one."""
        check_is_fitted(self)
        return self._model.relevance(self._threads())

    @property
    def prior_mean_(self):
        """Mean of the prior, given or found; one a target if there are several."""
        return self._resolved(0)

    @property
    def prior_variance_(self):
        """Variance of the prior."""
        return self._resolved(1)

    @property
    def noise_variance_(self):
        """Variance of the noise."""
        return self._resolved(2)

    def _resolved(self, which):
        check_is_fitted(self)
        values = np.array([triple[which] for triple in self._model.gaussians(self._threads())])
        return float(values[0]) if self._single else values
