"""Ridge regression with the exact Laplace kernel."""

from __future__ import annotations

import warnings

from sklearn.base import RegressorMixin

from . import _mondrian
from . import _parameters as parameters
from ._base import Regressor, levels_to_the_caller
from ._docs import documented
from ._searched import SearchedEstimator


@documented
class LaplaceKernelRidge(RegressorMixin, Regressor, SearchedEstimator):
    """Ridge regression with the exact general Laplace kernel, its lifetimes and alpha tuned if asked.

    The kernel is ``exp(-sum(lifetimes * abs(x - z)))``. With ``lifetime="auto"`` each dimension has its own
    lifetime, found by descending the derivatives of the exact leave-one-out error, so that inputs that do not
    matter fade out: this is the estimator to try first.

    Parameters
    ----------
    lifetime : float, array-like of shape (n_features,), "auto" or "path", default="auto"
        Lifetime of the kernel, for all dimensions or one per dimension; "auto" tunes one per dimension. "path" chooses one
        for all dimensions, in units of their standard deviations, along the path of the kernel's Mondrian approximation:
        cheaper and cruder.
    alpha : float or "auto", default="auto"
        Regularization, the report's δ²; "auto" tunes it.
    search : {"auto", "gradient", "coordinate"}, default="auto"
        How lifetimes are looked for: along derivatives (what "auto" means) or one at a time.
    fit_intercept : bool, default=True
        Whether targets are centred; without it far predictions return to zero.
    max_exact_rows : int, default=20000
        The most training rows that are solved exactly. Beyond them the cells of Mondrian grids stand in for the kernel,
        solved by conjugate gradients; a warning says so, and standard deviations and the equivalent kernel are refused.
    n_estimators : int, default=200
        Number of grids that stand in for the kernel beyond ``max_exact_rows``.
    epsilon : float, default=0.01
        ``get_support`` names the inputs whose importance is at least this share of the largest.
    validation : "hold-out" or int, default="hold-out"
        What "path" chooses on: a fifth of the rows, held out, or so many folds.
    random_state : int, RandomState or None, default=None
        Which rows the tuning looks at; an integer is the core's seed.
    n_jobs : int or None, default=None
        Threads, in joblib's meaning, at most one a core.
    {step_verbose}

    Attributes
    ----------
    lifetimes_ : ndarray of shape (n_features_in_,)
        Lifetimes, tuned or given.
    alpha_ : float
        Regularization, tuned or given.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Lifetime times spread of each input, as a share of the largest.
    trajectory_ : Trajectory
        Every evaluation of the tuning; empty if nothing was tuned.
    is_exact_ : bool
        Whether the kernel is exact, or grids stand in for it.
    dual_coef_ : ndarray of shape (n_samples,) or None
        Weight of each training row; None where grids stand in.
    intercept_ : float or None
        The centre of the targets, or zero; None where grids stand in.
    {inputs}

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian import LaplaceKernelRidge
    >>> X = np.random.default_rng(0).uniform(size=(80, 2))
    >>> model = LaplaceKernelRidge(random_state=0).fit(X, np.sin(9 * X[:, 0]))
    >>> model.get_support()
    array([ True, False])
    >>> mean, std = model.predict([[0.5, 0.5], [40.0, 0.5]], return_std=True)
    >>> bool(std[1] > 3 * std[0])
    True
    """

    def __init__(
        self, lifetime="auto", alpha="auto", search="auto", fit_intercept=True, max_exact_rows=20_000,
        n_estimators=200, epsilon=0.01, validation="hold-out",
        random_state=None, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._keep(locals())

    def _lifetimes(self, n_dims):
        validation = parameters.validation_of(self.validation)
        if isinstance(self.lifetime, str) and self.lifetime == "path":
            return validation
        return self._given("lifetime", n_dims)

    def _solve(self, X, y):
        search = parameters.choice("search", self.search, ("auto", "gradient", "coordinate"))
        arguments = self._searched_arguments() | {
            "lifetimes": self._lifetimes(X.shape[1]),
            "search": "gradient" if search == "auto" else search,
            "exact_rows": parameters.integer("max_exact_rows", self.max_exact_rows),
        }
        model = _mondrian.LaplaceKernelRidge.fit((X, y), arguments, self._work())
        if not model.is_exact:
            warnings.warn(
                f"{len(X)} rows are more than max_exact_rows={self.max_exact_rows}: {self.n_estimators} Mondrian grids "
                "stand in for the exact kernel",
                stacklevel=levels_to_the_caller(),
            )
        return model

    def _take(self, model):
        self.is_exact_ = model.is_exact
        self.dual_coef_, self.intercept_ = model.solution() or (None, None)
        self.feature_importances_ = model.importances()
        return super()._take(model)

    def _support(self):
        """Importance at least ``epsilon`` times the largest."""
        return (self.feature_importances_ > 0) & (self.feature_importances_ >= self.epsilon)
