"""The base of estimators with trees: root box, measure, weights, and views."""

from __future__ import annotations

import copy

import numpy as np
from sklearn.utils.validation import check_is_fitted

from . import _mondrian
from . import _parameters as parameters
from ._base import MondrianEstimator, Regressor
from ._docs import documented
from ._path import RegularizationPath
from ._retention import Retaining, rows_held


class TreeEstimator(MondrianEstimator):
    """Base of the estimators with trees."""

    def _tree_arguments(self, n_dims):
        lower, upper = parameters.root_box(self.lower, self.upper, n_dims)
        return {
            "n_trees": parameters.n_estimators(self.n_estimators),
            "lifetime": parameters.auto_or_real("lifetime", self.lifetime, infinite=True),
            "seed": parameters.seed_of(self.random_state),
            "lower": lower,
            "upper": upper,
            "measure": parameters.measure_of(self.measure, n_dims),
            "weights": parameters.weights_of(self.weights, n_dims),
            "validation": parameters.validation_of(getattr(self, "validation", "hold-out")),
            "warm_up": None,
            **rows_held(self),
        }

    def _online_tree_arguments(self, n_dims):
        """The same for a model that learns online: an automatic lifetime is infinite, and the first rows fix box and weights."""
        arguments = self._tree_arguments(n_dims)
        warm_up = getattr(self, "warm_up", None)
        arguments["warm_up"] = None if warm_up is None else parameters.integer("warm_up", warm_up)
        if arguments["lifetime"] is None:
            arguments["lifetime"] = float("inf")
        return arguments

    def _weighted_trees(self, trees, X, y, n_classes=None):
        """The arguments of trees, with weights tuned for these targets or numbers of classes if requested."""
        if not isinstance(trees["weights"], str) or trees["weights"] != "tuned":
            return trees
        if y is None:
            raise ValueError('weights="tuned" needs targets')
        targets = np.ascontiguousarray(np.asarray(y, dtype=np.float64).T).ravel()
        found = _mondrian.tuned_weights((X, targets), n_classes, trees["seed"], self._threads())
        return {**trees, "weights": "std" if found is None else found}

    @property
    def weights_(self):
        """Factors of the measure; None for the quantile measure."""
        check_is_fitted(self)
        weights = self._model.weights
        return None if weights is None else np.asarray(weights)


@documented
class ViewedEstimator(TreeEstimator):
    """An estimator that can be viewed at a smaller lifetime."""

    def _take(self, model):
        self.lifetime_ = model.lifetime
        return super()._take(model)

    def at(self, lifetime):
        """The fitted model at a smaller lifetime, without retraining.

        Parameters
        ----------
        lifetime : float
            At most ``lifetime_`` of the fit.

        Returns
        -------
        view : estimator
            A fitted estimator of the same kind; later learning does not change this one.
        """
        check_is_fitted(self)
        lifetime = parameters.real("lifetime", lifetime, infinite=True)
        if lifetime > self._model.grown:
            raise ValueError(f"lifetime is {lifetime}, but the trees are grown to {self._model.grown} only")
        if "_members" in self.__dict__:
            raise ValueError('a forest with window="adaptive" has no view: it consists of several forests')
        view = copy.copy(self)
        return view._take(self._model.at(lifetime))


@documented
class ViewedRegressor(Regressor, ViewedEstimator):
    """A regressor whose error is known at every lifetime."""

    def path(self, X_val, y_val, progress=None):
        """The error at every lifetime up to ``lifetime_``, without retraining and exact at every cut.

        The root box is first widened to contain the validation rows, so that the path is piecewise constant.

        {validation_rows}
        y_val : array-like of shape (n_samples,), or list of such
            Their targets.
        {progress}

        {path}
        """
        check_is_fitted(self)
        sets, several = labelled_sets(X_val, y_val, self._known)
        return self._path_of(self._model.path(sets, self._work(progress=progress)), several)

    def _known(self, X, y):
        """Rows and targets like those the model was fitted on."""
        return self._rows_and_targets(X, y)

    def _path_of(self, found, several):
        return RegularizationPath(found, several)


@documented
class OnlineEstimator(Retaining, ViewedEstimator):
    """An estimator whose models can be merged."""

    def merge(self, other):
        """Learn all rows of another model. The result is the model of both sets of rows.

        {mergeable}

        {self}
        """
        self._model.merge(self._mergeable(other), self._threads())
        return self

    def _mergeable(self, other):
        """The other's model, if it is a fitted estimator of the same kind."""
        check_is_fitted(self)
        if not isinstance(other, type(self)):
            raise TypeError(f"cannot merge a {type(other).__name__} into a {type(self).__name__}")
        check_is_fitted(other)
        self._refuse_members("merge"), other._refuse_members("merge")
        if self.n_features_in_ != other.n_features_in_:
            raise ValueError(f"cannot combine: {self.n_features_in_} and {other.n_features_in_} features")
        if self.__dict__.get("preparation_") != other.__dict__.get("preparation_"):
            raise ValueError("cannot combine: the rows of the two models are prepared differently")
        return other._model


@documented
class ForestEstimator(OnlineEstimator):
    """A forest that predicts a target from cells."""

    def apply(self, X):
        """The number of each row's cell in each tree; −1 for a cell without training rows.

        {rows}

        Returns
        -------
        cells : ndarray of int of shape (n_samples, n_estimators)
        """
        return self._call("apply", X)

    def forget(self, X, y):
        """Forget rows. The result is the model that never learned them; classes are kept. If a row was never learned, this is an error and nothing changes.

        {rows}
        y : array-like of shape (n_samples,)
            The targets or classes they were learned with.

        {self}
        """
        rows = self._plain(X) if "_members" not in self.__dict__ else None
        targets = None if rows is None else self._plain_target(y, len(rows))
        if targets is not None:
            # Callers that manage a window forget row by row: the core's checks are enough, and a failed call changes
            # nothing.
            self._model.forget(rows, targets, self._threads(len(rows)))
            return self
        check_is_fitted(self)
        self._refuse_members("forget")
        X, y = self._known(X, y)
        self._model.forget(X, y, self._threads(len(X)))
        return self

    @property
    def feature_importances_(self):
        """The share of each input in the error that cuts remove; sums to one."""
        check_is_fitted(self)
        return self._model.relevance(self._threads())


def several_sets(X_val):
    """Whether these are lists of validation sets, and not one set."""
    return isinstance(X_val, (list, tuple)) and len(X_val) > 0 and np.asarray(X_val[0]).ndim >= 2


def labelled_sets(X_val, y_val, check):
    """Validation sets, each checked, and whether there are several: one pair of arrays, or lists of them."""
    if not several_sets(X_val):
        return [check(X_val, y_val)], False
    if not isinstance(y_val, (list, tuple)) or len(y_val) != len(X_val):
        raise ValueError(f"X_val holds {len(X_val)} sets, so y_val must be a list of as many")
    return [check(X, y) for X, y in zip(X_val, y_val)], True
