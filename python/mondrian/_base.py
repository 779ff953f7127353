"""What all estimators share: validated rows in, the bound model behind."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _parameters as parameters


class MondrianEstimator(BaseEstimator):
    """Base of every estimator; the fitted core model is ``_model``."""

    def _rows(self, X, *, reset, **options):
        return validate_data(self, X, reset=reset, dtype=np.float64, **options)

    def _rows_and_targets(self, X, y, *, reset, **options):
        X, y = validate_data(self, X, y, reset=reset, dtype=np.float64, y_numeric=True, **options)
        return X, np.ascontiguousarray(y, dtype=np.float64)

    def _query(self, X):
        """Rows to look up. A plain float64 array of the right shape needs no more checks than the core's own."""
        if (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype == np.float64
            and X.shape[0]
            and X.shape[1] == getattr(self, "n_features_in_", None)
            and "_model" in self.__dict__
            and not hasattr(self, "feature_names_in_")
        ):
            return X
        check_is_fitted(self)
        return self._rows(X, reset=False)

    def _threads(self, n_rows=None):
        """Threads for a call; few rows are looked up fastest by one."""
        if n_rows is not None and n_rows <= 16:
            return 1
        return parameters.threads_of(self.n_jobs)

    def __sklearn_is_fitted__(self):
        return "_model" in self.__dict__


def sample_weights(sample_weight, X):
    """Weights as an array of one nonnegative number a row, or None."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(X.shape[0], weights)
    if weights.shape != (X.shape[0],):
        raise ValueError(f"sample_weight has shape {weights.shape}, but must have one number a row: ({X.shape[0]},)")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must be finite and ≥ 0")
    if not weights.any():
        raise ValueError("sample_weight is zero for every row")
    return np.ascontiguousarray(weights)


def repeated(X, y, weights):
    """Rows of whole-number weights as so many rows, so that everything automatic sees them so; other weights stay."""
    if weights is None or (weights != np.floor(weights)).any():
        return X, y, weights
    if (weights == 1).all():
        return X, y, None
    counts = weights.astype(np.int64)
    return np.repeat(X, counts, axis=0), np.repeat(y, counts, axis=0), None
