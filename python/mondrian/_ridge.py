"""The common ``fit`` of the ridge estimators."""

from __future__ import annotations

from ._base import MondrianEstimator, all_or_nothing
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
