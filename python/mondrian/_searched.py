"""The base of estimators that search for one lifetime per dimension."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from . import _parameters as parameters
from ._progress import step_listener_of
from ._ridge import RidgeEstimator
from ._trajectory import Trajectory


class SearchedEstimator(RidgeEstimator):
    """Lifetimes, tuned or given, and the inputs they select."""

    def _listener(self, progress):
        return step_listener_of(self.verbose)

    def _searched_arguments(self):
        """Options of a search, for the core."""
        parameters.real("epsilon", self.epsilon)
        return {
            "alpha": parameters.auto_or_real("alpha", self.alpha, strict=True),
            "fit_intercept": parameters.boolean("fit_intercept", self.fit_intercept),
            "n_grids": parameters.n_estimators(getattr(self, "n_estimators", 1)),
            "seed": parameters.seed_of(self.random_state),
        }

    def _given(self, name, n_dims):
        """One lifetime per dimension, or None if they are tuned."""
        value = getattr(self, name)
        if isinstance(value, str):
            parameters.choice(name, value, ("auto",))
            return None
        return parameters.vector(name, value, n_dims, low=0.0)

    def _take(self, model):
        self.lifetimes_ = model.lifetimes
        self.alpha_ = model.alpha
        self.trajectory_ = Trajectory(model.trajectory(), self._input_names())
        return super()._take(model)

    def get_support(self, indices=False):
        """The relevant inputs, selected by ``epsilon``.

        A copy of another input may not be selected although it would predict as well.

        Parameters
        ----------
        indices : bool, default=False
            Whether to return column numbers instead of a mask.

        Returns
        -------
        support : ndarray
        """
        check_is_fitted(self)
        mask = self._support()
        return np.flatnonzero(mask) if indices else mask
