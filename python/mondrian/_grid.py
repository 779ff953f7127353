"""Ridge regression on Mondrian grids: one lifetime per dimension."""

from __future__ import annotations

import numpy as np
from sklearn.base import RegressorMixin

from . import _mondrian
from . import _parameters as parameters
from ._docs import documented
from ._ridge import SeveralTargetsRidge
from ._searched import SearchedEstimator

SEARCHES = ("auto", "greedy", "greedy-both", "lookahead", "coordinate", "gradient", "spsa", "bayes")


@documented
class MondrianGridRidge(RegressorMixin, SeveralTargetsRidge, SearchedEstimator):
    """Ridge regression on Mondrian-grid features with one lifetime per dimension.

    The searches "greedy", "greedy-both" and "lookahead" change one cut at a time and update the solution; the others,
    including "auto", evaluate arbitrary configurations with a fresh solve each. "greedy-both" stops when no single cut
    lowers the error, which is often far from the best configuration. :class:`GridSearch` runs searches interactively.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of grids.
    lifetimes : float, array-like of shape (n_features,) or "auto", default="auto"
        One lifetime for all dimensions, one per dimension, or "auto" to search for them.
    alpha : float or "auto", default=1.0
        Regularization, the report's δ²; "auto" starts with the value tuned for the exact kernel and tunes it again
        after the search.
    search : {"auto", "greedy", "greedy-both", "lookahead", "coordinate", "gradient", "spsa", "bayes"}, default="auto"
        The search for lifetimes.
    budget : int, default=400
        Largest number of evaluations of the search.
    patience : int, default=50
        Steps without a new smallest error after which the search stops.
    search_rows : int, default=3000
        Largest number of rows used by the search; a fifth of them is held out.
    epsilon : float, default=0.01
        ``get_support`` selects the inputs whose lifetime is at least this.
    fit_intercept : bool, default=True
        Whether targets are centred.
    {run_parameters}
    {step_verbose}

    Attributes
    ----------
    intercept_ : float, or ndarray of shape (n_targets,)
        The centre of the targets, or zero.
    lifetimes_ : ndarray of shape (n_features_in_,)
        Lifetimes, tuned or given. They can be used as ``weights`` of a forest or of Mondrian features.
    alpha_ : float
        Regularization.
    trajectory_ : Trajectory
        Every evaluation of the search.
    ranking_ : ndarray of shape (n_features_in_,)
        Column numbers, most important first.
    {inputs}

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian import MondrianGridRidge
    >>> X = np.random.default_rng(0).uniform(size=(200, 2))
    >>> model = MondrianGridRidge(random_state=0).fit(X, np.sin(9 * X[:, 0]))
    >>> int(model.ranking_[0])
    0
    """

    def __init__(
        self, n_estimators=50, lifetimes="auto", alpha=1.0, search="auto",
        budget=400, patience=50, search_rows=3000, epsilon=0.01, fit_intercept=True,
        random_state=None, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._keep(locals())

    def _solve(self, X, y):
        arguments = self._searched_arguments() | {
            "lifetimes": self._given("lifetimes", X.shape[1]),
            "search": parameters.choice("search", self.search, SEARCHES),
            "budget": parameters.integer("budget", self.budget),
            "patience": parameters.integer("patience", self.patience),
            "search_rows": parameters.integer("search_rows", self.search_rows, 10),
        }
        return _mondrian.GridRidge.fit((X, y), arguments, self._work())

    def _take(self, model):
        intercepts = np.asarray(model.intercepts)
        self.intercept_ = float(intercepts[0]) if self._single else intercepts
        self.ranking_ = np.asarray(model.ranking())
        return super()._take(model)

    def predict(self, X):
        """Predict targets.

        {rows}

        Returns
        -------
        mean : ndarray of shape (n_samples,), or (n_samples, n_targets) if several targets were learned
        """
        return self._shaped(self._call("predict", X))

    def _support(self):
        """A lifetime of at least ``epsilon``."""
        return np.asarray(self._model.support(parameters.real("epsilon", self.epsilon)))
