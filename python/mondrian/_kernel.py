"""Ridge regression on Mondrian features."""

from __future__ import annotations

from sklearn.base import RegressorMixin

from . import _mondrian
from . import _parameters as parameters
from ._docs import documented
from ._ridge import RidgeEstimator
from ._trees import ViewedRegressor


@documented
class MondrianKernelRidge(RegressorMixin, RidgeEstimator, ViewedRegressor):
    """Laplace-kernel ridge regression on Mondrian features, exact at every lifetime of a path.

    Parameters
    ----------
    {n_trees}
    lifetime : float or "auto", default="auto"
        Lifetime of the kernel; "auto" chooses it along the regularization path.
    alpha : float or "auto", default=1.0
        Regularization, the report's δ²; "auto" chooses a power of ten, together with the lifetime if that is automatic.
    solver : {"auto", "primal", "dual", "cg"}, default="auto"
        The Cholesky factor of the features' or of the rows' matrix, or conjugate gradients; "auto" takes the cheapest.
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
    intercept_ : float
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
            "trees": self._tree_arguments(X.shape[1]),
            "alpha": parameters.auto_or_real("alpha", self.alpha, strict=True),
            "solver": parameters.choice("solver", self.solver, ("auto", "primal", "dual", "cg")),
            "fit_intercept": parameters.boolean("fit_intercept", self.fit_intercept),
        }
        return _mondrian.KernelRidge.fit((X, y), arguments, self._work())

    def _take(self, model):
        self.alpha_ = model.alpha
        self.intercept_ = model.intercept
        self.solver_, _, self.residual_ = model.report
        return super()._take(model)

    def _path_of(self, found, several):
        inner, residual = found
        path = super()._path_of(inner, several)
        path.worst_residual = residual
        return path
