"""Ridge regression on Mondrian features."""

from __future__ import annotations

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from . import _mondrian
from . import _parameters as parameters
from ._docs import documented
from ._ridge import SeveralTargetsRidge
from ._trees import ViewedRegressor, labelled_sets


@documented
class MondrianKernelRidge(RegressorMixin, SeveralTargetsRidge, ViewedRegressor):
    """Laplace-kernel ridge regression on Mondrian features, exact at every lifetime of a path.

    Parameters
    ----------
    {n_trees}
    lifetime : float or "auto", default="auto"
        Lifetime of the kernel; "auto" chooses it along the regularization path.
    alpha : float or "auto", default=1.0
        Regularization, the report's δ²; "auto" chooses a power of ten, together with the lifetime if that is automatic.
    solver : {"auto", "primal", "dual", "cg"}, default="auto"
        The Cholesky factor of the features' or of the rows' matrix, or conjugate gradients; "auto" selects the
        cheapest.
    fit_intercept : bool, default=True
        Whether targets are centred.
    {tree_parameters}
    {validation}
    {run_parameters}
    {verbose}

    Attributes
    ----------
    alpha_ : float
        Regularization, given or chosen.
    intercept_ : float, or ndarray of shape (n_targets,)
        The centre of the targets, or zero.
    solver_ : str
        The solver used.
    residual_ : float
        Its relative residual.
    {tree_attributes}

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
        self, n_estimators=100, lifetime="auto", alpha=1.0, solver="auto", fit_intercept=True,
        lower=None, upper=None, measure="uniform", weights="auto", validation="hold-out",
        random_state=None, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._keep(locals())

    def _solve(self, X, y):
        arguments = {
            "trees": self._weighted_trees(self._tree_arguments(X.shape[1]), X, y),
            "alpha": parameters.auto_or_real("alpha", self.alpha, strict=True),
            "solver": parameters.choice("solver", self.solver, ("auto", "primal", "dual", "cg")),
            "fit_intercept": parameters.boolean("fit_intercept", self.fit_intercept),
        }
        return _mondrian.KernelRidge.fit((X, y), arguments, self._work())

    def _known(self, X, y):
        X, y = self._rows_and_targets(X, y, multi_output=True)
        if y.size != len(X) * self._n_targets:
            raise ValueError(f"y has {y.size // len(X)} targets per row, but the model learned {self._n_targets}")
        return X, y.ravel()

    def degrees_of_freedom(self):
        """Effective degrees of freedom: the trace of the smoothing matrix at the training rows, without the intercept."""
        check_is_fitted(self)
        return self._model.degrees_of_freedom(self._threads())

    def _take(self, model):
        self.alpha_ = model.alpha
        intercepts = np.asarray(model.intercepts)
        self.intercept_ = float(intercepts[0]) if self._single else intercepts
        self.solver_, _, self.residual_ = model.report
        return super()._take(model)

    def path(self, X_val, y_val, progress=None, *, method="auto", lifetimes=None):
        """The error at every lifetime up to ``lifetime_``, without retraining and exact at every cut.

        The root box is first widened to contain the validation rows, so that the path is piecewise constant.

        {validation_rows}
        y_val : array-like of shape (n_samples,), or list of such
            Their targets.
        {progress}
        method : {"auto", "addition", "cholesky", "cg"}, default="auto"
            "auto" merges features from the largest lifetime down, updating the inverse; if its C² numbers exceed
            ``mondrian.set_config(max_memory=...)``, it is "cg". "addition" and "cholesky" split features from lifetime
            0 up, updating the inverse or the Cholesky factor; "cg" solves by conjugate gradients at some lifetimes
            only.
        lifetimes : array-like of float, default=None
            Lifetimes at which "cg" solves, besides 0; None is 64 quantiles of the lifetimes at which features split.

        {path}
        """
        check_is_fitted(self)
        parameters.choice("method", method, ("auto", "addition", "cholesky", "cg"))
        if lifetimes is not None and method != "cg":
            raise ValueError('lifetimes are for method="cg" alone: the others solve at every cut')
        chosen = [] if lifetimes is None else [parameters.real("lifetimes", value) for value in lifetimes]
        sets, several = labelled_sets(X_val, y_val, self._known)
        return self._path_of(self._model.path(sets, method, chosen, self._work(progress=progress)), several)

    def _path_of(self, found, several):
        inner, residual = found
        path = super()._path_of(inner, several)
        path.worst_residual = residual
        return path
