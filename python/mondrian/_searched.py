"""What the estimators that look for a lifetime a dimension share."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._base import MondrianEstimator
from ._trajectory import Trajectory


class SearchedEstimator(MondrianEstimator):
    """Lifetimes, found or given, and the inputs that they say matter."""

    def _take(self, model):
        self.lifetimes_ = model.lifetimes
        self.alpha_ = model.alpha
        self.trajectory_ = Trajectory(model.trajectory(), self._input_names())
        return super()._take(model)

    def get_support(self, indices=False):
        """The inputs that matter, by ``epsilon``.

        An input that copies another may be left out although it would predict as well.

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
