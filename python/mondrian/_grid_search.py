"""A search for the lifetimes of a Mondrian grid, with its state."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from . import _mondrian
from . import _parameters as parameters
from ._docs import documented
from ._grid import SEARCHES
from ._trajectory import Trajectory


@documented
class GridSearch:
    """A search for the lifetimes of a Mondrian grid that can be monitored, controlled manually, stopped and resumed.

    The state is ridge regression on the cells of grids at one configuration of lifetimes. Adding or removing a cut is a
    low-rank update of the exact solution, so neighbouring configurations need no refit: ``what_if`` returns their
    errors, ``raise_lifetime`` and ``lower_lifetime`` move there. The searches "greedy", "greedy-both" and "lookahead"
    use only such moves; the others evaluate arbitrary configurations with a fresh solve each.

    Parameters
    ----------
    X, y : array-like of shape (n_samples, n_features) and (n_samples,) or (n_samples, n_targets)
        Training rows.
    X_val, y_val : array-like
        Validation rows, with as many targets.
    n_estimators : int, default=50
        Number of grids.
    alpha : float, default=1.0
        Regularization, the report's δ².
    search : {"auto", "greedy", "greedy-both", "lookahead", "coordinate", "gradient", "spsa", "bayes"}, default="lookahead"
        How the next configuration is chosen.
    fit_intercept : bool, default=True
        Whether targets are centred.
    random_state : int, RandomState instance or None, default=None
        The key of the grids.

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian import GridSearch, MondrianGridRidge
    >>> X = np.random.default_rng(0).uniform(size=(150, 2))
    >>> y = np.sin(9 * X[:, 0])
    >>> search = GridSearch(X[:100], y[:100], X[100:], y[100:], n_estimators=20, alpha=0.1, random_state=0)
    >>> search.run(budget=30)
    'budget'
    >>> before = search.error
    >>> promised = search.what_if()[0, 1]
    >>> bool(abs(search.raise_lifetime(0) - promised) < 1e-8)
    True
    >>> search.run(budget=200) in ("budget", "patience", "finished")
    True
    >>> bool(search.best_error < before)
    True
    >>> model = MondrianGridRidge(20, lifetimes=search.best_lifetimes, alpha=0.1, random_state=0).fit(X, y)
    """

    def __init__(
        self, X, y, X_val, y_val, n_estimators=50, alpha=1.0, search="lookahead", fit_intercept=True, random_state=None
    ):
        train, shape = _labelled(X, y)
        validation, shape_of_validation = _labelled(X_val, y_val)
        if shape != shape_of_validation:
            raise ValueError(f"targets per row: y has shape {shape}, y_val {shape_of_validation}")
        self._targets = shape
        self._search = _mondrian.GridSearch(
            train, validation,
            parameters.integer("n_estimators", n_estimators),
            parameters.real("alpha", alpha, strict=True),
            parameters.choice("search", search, SEARCHES),
            parameters.boolean("fit_intercept", fit_intercept),
            parameters.seed_of(random_state),
        )  # fmt: skip

    def run(self, budget=400, patience=50, callback=None):
        """Run or resume the search until a limit is reached. Ctrl-C stops it at the current configuration.

        Parameters
        ----------
        budget : int, default=400
            Evaluations in all, counted from the first run.
        patience : int, default=50
            Steps without a new smallest error after which it stops.
        callback : callable, default=None
            Called with a dictionary of every step: lifetimes, alpha, error, cost, rows.

        Returns
        -------
        reason : str
            "budget", "patience" or "finished" (no candidates are left).
        """
        limits = parameters.integer("budget", budget), parameters.integer("patience", patience)
        return self._search.run(*limits, (1, callback))

    def tune_alpha(self, budget=400):
        """Tune alpha at the best configuration, by factors of the square root of ten while the error decreases; the next run uses the result.

        Parameters
        ----------
        budget : int, default=400
            Evaluations in all, counted from the first run.

        Returns
        -------
        alpha : float
        """
        self._search.tune_alpha(parameters.integer("budget", budget), (1, None))
        return self.alpha

    def what_if(self):
        """The error of each neighbouring configuration, without moving.

        Returns
        -------
        errors : ndarray of shape (n_features, 2)
            With one cut less, and one more, in each input; NaN if there is no such cut.
        """
        n_dims = len(self.lifetimes)
        errors = self._search.what_if([(d, raised) for d in range(n_dims) for raised in (False, True)])
        return np.array([np.nan if error is None else error for error in errors]).reshape(n_dims, 2)

    def raise_lifetime(self, feature):
        """Add the next cut of an input.

        Parameters
        ----------
        feature : int
            The input.

        Returns
        -------
        error : float
            The new error, or NaN if there is no further cut.
        """
        return self._make(feature, True)

    def lower_lifetime(self, feature):
        """Remove the last cut of an input.

        Parameters
        ----------
        feature : int
            The input.

        Returns
        -------
        error : float
            The new error, or NaN if there is no cut.
        """
        return self._make(feature, False)

    def _make(self, feature, raised):
        error = self._search.make(parameters.integer("feature", feature, 0, len(self.lifetimes) - 1), raised)
        return np.nan if error is None else error

    def jump(self, lifetimes):
        """Move to a configuration.

        Parameters
        ----------
        lifetimes : float or array-like of shape (n_features,)
            The lifetimes.

        Returns
        -------
        error : float
        """
        return self._search.jump(parameters.vector("lifetimes", lifetimes, len(self.lifetimes), low=0.0))

    def predictions(self):
        """Predictions of the current solution for the validation rows.

        Returns
        -------
        mean : ndarray of shape (n_samples,), or (n_samples, n_targets)
        """
        return self._search.predictions().reshape(-1, *self._targets)

    @property
    def lifetimes(self):
        """Current lifetimes, one per input."""
        return self._search.lifetimes

    @property
    def alpha(self):
        """Current regularization."""
        return self._search.alpha

    @property
    def n_cuts(self):
        """Current number of cuts of all grids, one per input."""
        return np.asarray(self._search.n_cuts)

    @property
    def n_cells(self):
        """Current number of cells with training rows, over all grids."""
        return self._search.n_cells

    @property
    def error(self):
        """Current root mean squared error on the validation rows, over all targets."""
        return self._search.error

    @property
    def evaluations(self):
        """Number of configurations whose error was computed, including what-ifs."""
        return self._search.evaluations

    @property
    def trajectory(self):
        """Every step, as a :class:`Trajectory`."""
        return Trajectory(self._search.trajectory())

    @property
    def best_error(self):
        """The smallest error of all steps."""
        return float(self.trajectory.error.min())

    @property
    def best_lifetimes(self):
        """The lifetimes of smallest error."""
        trajectory = self.trajectory
        return trajectory.lifetimes[trajectory.best_index]


def _labelled(X, y):
    """Rows and targets for the core, and the shape of one row's targets."""
    X = check_array(X, dtype=np.float64, order="C")
    y = check_array(y, dtype=np.float64, order="C", ensure_2d=False, input_name="y")
    if y.ndim == 2 and y.shape[1] == 1:
        y = column_or_1d(y, warn=True)
    check_consistent_length(X, y)
    return (X, y.ravel()), y.shape[1:]
