"""The geometry of the tuned Laplace kernel as columns."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from . import _mondrian
from . import _parameters as parameters
from ._base import all_or_nothing, are_classes, numbers_of
from ._docs import documented
from ._laplace_kernel import KernelEstimator


@documented
class LaplaceMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """The geometry of the tuned kernel as columns, for forests and other models: distances reflect relevance.

    ``fit`` tunes the kernel of :class:`LaplaceKernelRidge` (or, for classes, of :class:`LaplaceKernelClassifier`);
    ``transform`` returns each axis times its lifetime, then ``n_directions`` Gaussian directions of the metric's image.

    Parameters
    ----------
    n_directions : int, default=64
        Number of Gaussian directions; none without a metric.
    task : {"auto", "regression", "classification"}, default="auto"
        The type of the targets; "auto" treats texts, booleans and few whole numbers as classes.
    {kernel_parameters}
    categorical_features : "from_dtype", None or array-like, default="from_dtype"
        Which inputs are categorical. They are used in the tuning and are not among the columns.
    max_rows : int, default=4000
        Largest number of rows used for tuning: the first in a keyed order.
    max_seconds : float or None, default=None
        Time limit of tuning. With a limit, results depend on the machine.
    random_state : int, RandomState or None, default=None
        Selects rows and directions; an integer is used as the seed.
    n_jobs : int or None, default=None
        Threads, in joblib's meaning, at most one per core; results do not depend on it.
    {step_verbose}

    Attributes
    ----------
    lifetimes_ : ndarray of shape (n_features_in_,)
        Lifetimes of the untransformed inputs.
    alpha_ : float
        Regularization, tuned.
    {kernel_attributes}
    {inputs}

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian import LaplaceMap
    >>> X = np.random.default_rng(0).uniform(size=(60, 2))
    >>> LaplaceMap(n_directions=8, metric="full", random_state=0).fit(X, np.sin(9 * X[:, 0])).transform(X).shape
    (60, 12)
    """

    def __init__(
        self, n_directions=64, task="auto", measure="auto", metric="auto", exponent="auto",
        categorical_features="from_dtype", max_rows=4000, max_seconds=None,
        random_state=None, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._keep(locals())

    #: Parameters of the estimators that a transformer does not use.
    alpha, fit_intercept, epsilon = "auto", True, 0.01
    solver, max_exact_rows, n_neighbors = "exact", 20_000, "auto"

    @all_or_nothing
    def fit(self, X, y):
        """Tune the kernel for these targets.

        {rows}
        y : array-like of shape (n_samples,)
            Targets or classes.

        {self}
        """
        X, y = self._labelled_rows(self._table(X, reset=True), y, reset=True)
        parameters.integer("n_directions", self.n_directions, 1, 2**16)
        task = parameters.choice("task", self.task, ("auto", "regression", "classification"))
        if task == "auto":
            task = "classification" if are_classes(y) else "regression"
        arguments = self._kernel_arguments(X.shape[1])
        self._seed = arguments["seed"]
        limit = parameters.integer("max_rows", self.max_rows)
        if len(X) > limit:
            chosen = np.sort(np.random.default_rng(self._seed).permutation(len(X))[:limit])
            X, y = X[chosen], y[chosen]
        if task == "classification":
            classes = np.unique(y)
            numbers = np.ascontiguousarray(numbers_of(y, classes))
            return self._take(_mondrian.LaplaceClassifier.fit((X, numbers, None), len(classes), arguments, self._work()))
        targets = np.ascontiguousarray(y, dtype=np.float64)
        return self._take(_mondrian.LaplaceRegressor.fit((X, targets, None), "identity", arguments, self._work()))

    def _take(self, model):
        self._model = model
        return super()._take(model)

    @property
    def _n_features_out(self):
        return self._model.transform(np.zeros((1, self.n_features_in_)), self.n_directions, self._seed, 1).shape[1]

    def transform(self, X):
        """The columns of rows.

        {rows}

        Returns
        -------
        columns : ndarray of shape (n_samples, n_columns)
        """
        X = self._query(X)
        found = self._model.transform(X, self.n_directions, self._seed, self._threads(len(X)))
        # Constant inputs give no columns, but still as many rows.
        return found.reshape(len(X), found.shape[1])

    def _state(self):
        return super()._state() | {"seed": self._seed}

    def _restore(self, model, state, target):
        self._seed = int(state.get("seed", 0))
        return super()._restore(model, state, target)

    def _program_target(self, name):
        return False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
