"""Ridge regression on Mondrian features."""

from __future__ import annotations

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _mondrian
from . import _parameters as parameters
from ._path import RegularizationPath
from ._trees import ViewedEstimator, documented, pairs


@documented
class MondrianKernelRidge(RegressorMixin, ViewedEstimator):
    """Laplace-kernel ridge regression on Mondrian features, exact at every lifetime of a path.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    lifetime : float or "auto", default="auto"
        Lifetime of the kernel; "auto" chooses it on a held-out fifth along the regularization path.
    alpha : float, default=1.0
        Regularization, the report's δ².
    solver : {"auto", "primal", "dual", "cg"}, default="auto"
        The Cholesky factor of the features' or of the rows' matrix, or conjugate gradients; "auto" takes the cheapest.
    fit_intercept : bool, default=True
        Whether targets are centred.
    {tree_parameters}
    random_state : int, RandomState or None, default=None
        An integer is the core's seed.
    n_jobs : int or None, default=None
        Threads, in joblib's meaning.

    Attributes
    ----------
    lifetime_ : float
        The lifetime looked at.
    weights_ : ndarray of shape (n_features_in_,) or None
        Factors of the measure; None for the quantile measure.
    intercept_ : float
        The centre of the targets, or zero.
    solver_ : str
        The solver used.
    residual_ : float
        Its relative residual.
    n_features_in_ : int
        Number of inputs.

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian import MondrianKernelRidge
    >>> X = np.linspace(0, 5, 100)[:, None]
    >>> model = MondrianKernelRidge(lifetime=4.0, alpha=0.1, random_state=0).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[2.0]])[0] - np.sin(2.0)) < 0.1)
    True
    >>> bool(abs(model.at(0.0).predict([[2.0]])[0] - np.sin(X).mean()) < 1e-9)
    True
    """

    def __init__(
        self,
        n_estimators=100,
        lifetime="auto",
        alpha=1.0,
        solver="auto",
        fit_intercept=True,
        lower=None,
        upper=None,
        measure="uniform",
        weights="auto",
        random_state=None,
        n_jobs=None,
    ):
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.alpha = alpha
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.lower = lower
        self.upper = upper
        self.measure = measure
        self.weights = weights
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X, y):
        """Grow trees on rows and solve.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Targets.

        Returns
        -------
        self : MondrianKernelRidge
        """
        X, y = self._rows_and_targets(X, y, reset=True)
        model = _mondrian.KernelRidge.fit(
            X,
            y,
            self._tree_arguments(X.shape[1]),
            parameters.real("alpha", self.alpha, strict=True),
            parameters.choice("solver", self.solver, ("auto", "primal", "dual", "cg")),
            parameters.boolean("fit_intercept", self.fit_intercept),
            self._threads(),
        )
        return self._take(model)

    def _take(self, model):
        super()._take(model)
        self.intercept_ = model.intercept
        self.solver_, _, self.residual_ = model.report
        return self

    def predict(self, X, return_std=False):
        """Predict targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the standard deviation of a new target there too, noise included.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
        std : ndarray of shape (n_samples,)
            Only if ``return_std``.
        """
        X = self._query(X)
        mean = self._model.predict(X, self._threads(len(X)))
        if not return_std:
            return mean
        return mean, np.sqrt(self._model.predict_variance(X, self._threads(len(X))))

    def equivalent_kernel(self, X_query):
        """The smoothing matrix: predictions are this matrix times the training targets.

        Parameters
        ----------
        X_query : array-like of shape (n_query, n_features)
            Rows.

        Returns
        -------
        smoothing : ndarray of shape (n_query, n_samples)
        """
        X = self._query(X_query)
        return self._model.equivalent_kernel(X, self._threads(len(X)))

    def path(self, X_val, y_val, progress=None):
        """The error at every lifetime up to ``lifetime_``, exact at every cut.

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
            Its ``worst_residual`` says how well the solution was kept.
        """
        check_is_fitted(self)
        sets, several = pairs(X_val, y_val, ("X_val", "y_val"))
        checked = []
        for X, y in sets:
            X, y = validate_data(self, X, y, reset=False, dtype=np.float64, y_numeric=True)
            checked.append((X, np.ascontiguousarray(y, dtype=np.float64)))
        inner, residual = self._model.path(checked, self._threads(), progress)
        path = RegularizationPath(inner, several)
        path.worst_residual = residual
        return path
