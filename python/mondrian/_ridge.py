"""The common ``fit`` of the ridge estimators."""

from __future__ import annotations

from ._base import MondrianEstimator, SeveralTargets, all_or_nothing
from ._docs import documented


@documented
class RidgeEstimator(MondrianEstimator):
    """An estimator that is fitted by solving for all rows at once."""

    @all_or_nothing
    def fit(self, X, y):
        """Choose automatic values, then solve on all rows.

        {rows_and_targets}

        {self}
        """
        X, y = self._rows_and_targets(X, y, reset=True)
        return self._take(self._solve(X, y))


@documented
class SeveralTargetsRidge(SeveralTargets, RidgeEstimator):
    """The same with one or several targets per row, which share every automatic value."""

    @all_or_nothing
    def fit(self, X, y):
        """Choose automatic values, then solve on all rows. Several targets share those values: their squared errors are added.

        {several_targets_unweighted}

        {self}
        """
        X, y = self._rows_and_targets(X, y, reset=True, multi_output=True)
        self._single = y.ndim == 1
        return self._take(self._solve(X, y.ravel()))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
