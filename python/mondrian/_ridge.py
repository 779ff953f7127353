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


@documented
class SeveralTargetsRidge(RidgeEstimator):
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

    def _take(self, model):
        self._n_targets = model.n_targets
        return super()._take(model)

    def _state(self):
        return {"single": self._single}

    def _restore(self, model, state, target):
        self._single = bool(state.get("single", model.n_targets == 1))
        return super()._restore(model, state, target)

    def _program_target(self, name):
        return super()._program_target(name) if self._n_targets == 1 else False

    def _shaped(self, numbers):
        return numbers if self._single else numbers.reshape(-1, self._n_targets)
