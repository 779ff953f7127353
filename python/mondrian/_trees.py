"""What every estimator with trees shares: root box, measure, weights, and the views of a path."""

from __future__ import annotations

import copy

import numpy as np
from sklearn.utils.validation import check_is_fitted

from . import _parameters as parameters
from ._base import MondrianEstimator

#: The part of docstrings that all estimators with trees share.
TREE_PARAMETERS = """lower, upper : array-like of shape (n_features,), default=None
        The root box, fixed at the first call; the box of the first data without.
    measure : {"uniform", "quantile"}, default="uniform"
        What lengths mean: plain length, or the first data's own distribution on each axis.
    weights : "auto", "std", None or array-like of shape (n_features,), default="auto"
        One factor a dimension on the measure. "auto" is 1 (raw units) for a finite lifetime by value and
        1/standard deviation when the lifetime is "auto" or infinite; None is 1."""


def documented(cls):
    """Puts the shared parameters into a docstring."""
    cls.__doc__ = cls.__doc__.replace("{tree_parameters}", TREE_PARAMETERS)
    return cls


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
            "measure": parameters.choice("measure", self.measure, ("uniform", "quantile")),
            "weights": parameters.weights_of(self.weights, n_dims),
        }

    def _online_tree_arguments(self, n_dims):
        """The same for a model that goes on learning: an automatic lifetime is infinite then."""
        arguments = self._tree_arguments(n_dims)
        if arguments["lifetime"] is None:
            arguments["lifetime"] = float("inf")
        return arguments

    def _take(self, model):
        self._model = model
        self.lifetime_ = model.lifetime
        weights = model.weights
        self.weights_ = None if weights is None else np.asarray(weights)
        return self


class ViewedEstimator(TreeEstimator):
    """An estimator that can be looked at with a smaller lifetime, and merged."""

    def at(self, lifetime):
        """The fitted model looked at with a smaller lifetime, without retraining.

        Parameters
        ----------
        lifetime : float
            At most ``lifetime_`` of the fit.

        Returns
        -------
        view : estimator
            A fitted estimator of the same kind; what it learns later does not change this one.
        """
        check_is_fitted(self)
        lifetime = parameters.real("lifetime", lifetime, infinite=True)
        if lifetime > self._model.grown:
            raise ValueError(f"lifetime is {lifetime}, but the trees are grown to {self._model.grown} only")
        view = copy.copy(self)
        return view._take(self._model.at(lifetime))

    def _mergeable(self, other):
        """The other's model, if it is a fitted estimator of the same kind."""
        check_is_fitted(self)
        if not isinstance(other, type(self)):
            raise TypeError(f"cannot merge a {type(other).__name__} into a {type(self).__name__}")
        check_is_fitted(other)
        if self.n_features_in_ != other.n_features_in_:
            raise ValueError(f"cannot combine: {self.n_features_in_} and {other.n_features_in_} features")
        return other._model


def pairs(first, second, names):
    """Validation sets: one pair of arrays, or lists of several."""
    several = isinstance(first, (list, tuple)) and len(first) > 0 and getattr(np.asarray(first[0]), "ndim", 0) >= 2
    if not several:
        return [(first, second)], False
    if not isinstance(second, (list, tuple)) or len(second) != len(first):
        raise ValueError(f"{names[0]} holds {len(first)} sets, so {names[1]} must be a list of as many")
    return list(zip(first, second)), True
