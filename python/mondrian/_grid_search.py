"""A search for the lifetimes of a Mondrian grid, with the state that it moves."""

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
    """A search for the lifetimes of a Mondrian grid that can be watched, steered by hand, stopped and resumed.

    Ridge regression on the cells of grids at one configuration of lifetimes. One cut more or less is a rank-one change of the exact
    solution, so neighbouring configurations cost no refit: ``what_if`` tells their errors, ``raise_lifetime`` and ``lower_lifetime`` go
    there. The searches "greedy", "greedy-both" and "lookahead" do nothing else; the others evaluate configurations anywhere, which
    solves from scratch.

    Parameters
    ----------
    X, y : array-like of shape (n_samples, n_features) and (n_samples,) or (n_samples, n_targets)
        Training rows.
    X_val, y_val : array-like
        Rows that configurations are judged on, with as many targets.
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
        """Run, or resume, until a limit is met. Ctrl-C stops it where it is.

        Parameters
        ----------
        budget : int, default=400
            Evaluations in all, counted from the first run.
        patience : int, default=50
            Steps without a new least error after which it ends.
        callback : callable, default=None
            Called with a dictionary of every step: lifetimes, alpha, error, cost, rows.

        Returns
        -------
        reason : str
            "budget", "patience" or "finished": there is nothing left to try.
        """
        limits = parameters.integer("budget", budget), parameters.integer("patience", patience)
        return self._search.run(*limits, (1, callback))

    def tune_alpha(self, budget=400):
        """Move alpha where the error was least, by factors of the root of ten, while that lowers it; the next run goes on with it.

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
        """The error after each neighbouring configuration, without going there.

        Returns
        -------
        errors : ndarray of shape (n_features, 2)
            With one cut less, and one more, of each input; NaN where there is none.
        """
        n_dims = len(self.lifetimes)
        errors = self._search.what_if([(d, raised) for d in range(n_dims) for raised in (False, True)])
        return np.array([np.nan if error is None else error for error in errors]).reshape(n_dims, 2)

    def raise_lifetime(self, feature):
        """Let the next cut of an input appear.

        Parameters
        ----------
        feature : int
            The input.

        Returns
        -------
        error : float
            The error there, or NaN where there is no further cut.
        """
        return self._make(feature, True)

    def lower_lifetime(self, feature):
        """Take the last cut of an input away.

        Parameters
        ----------
        feature : int
            The input.

        Returns
        -------
        error : float
            The error there, or NaN where there is no cut.
        """
        return self._make(feature, False)

    def _make(self, feature, raised):
        error = self._search.make(parameters.integer("feature", feature, 0, len(self.lifetimes) - 1), raised)
        return np.nan if error is None else error

    def jump(self, lifetimes):
        """Go to a configuration.

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
        """What the solution here predicts for the validation rows.

        Returns
        -------
        mean : ndarray of shape (n_samples,), or (n_samples, n_targets)
        """
        return self._search.predictions().reshape(-1, *self._targets)

    @property
    def lifetimes(self):
        """Lifetimes here, one per input."""
        return self._search.lifetimes

    @property
    def alpha(self):
        """Regularization here."""
        return self._search.alpha

    @property
    def n_cuts(self):
        """Cuts of all grids here, one number per input."""
        return np.asarray(self._search.n_cuts)

    @property
    def n_cells(self):
        """Cells of all grids that hold training rows."""
        return self._search.n_cells

    @property
    def error(self):
        """Root mean squared error of the validation rows here, over all targets."""
        return self._search.error

    @property
    def evaluations(self):
        """Configurations whose error was computed, those of what-ifs included."""
        return self._search.evaluations

    @property
    def trajectory(self):
        """Every step, as a :class:`Trajectory`."""
        return Trajectory(self._search.trajectory())

    @property
    def best_error(self):
        """The least error of all steps."""
        return float(self.trajectory.error.min())

    @property
    def best_lifetimes(self):
        """The lifetimes of least error."""
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
