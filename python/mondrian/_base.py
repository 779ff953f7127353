"""The base of all estimators: validation of rows, the bound core model, and saving."""

from __future__ import annotations

import functools
import sys

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from . import _files
from . import _parameters as parameters
from ._categories import text_in
from ._dates import with_days
from ._docs import documented
from ._progress import listener_of

#: The dtype of native doubles is a single object, so an identity test is fast.
FLOAT64 = np.dtype(np.float64)


def as_doubles(array):
    """An array of numbers as doubles: itself if it has them; None if it holds anything else."""
    if array.dtype is FLOAT64:
        return array
    return array.astype(np.float64) if array.dtype.kind in "fiub" and array.dtype.itemsize <= 8 else None


def all_or_nothing(method):
    """Decorator of methods that learn: if one fails, the estimator is left as it was, fitted or not."""

    @functools.wraps(method)
    def learning(self, *arguments, **options):
        before = self.__dict__.copy()
        try:
            return method(self, *arguments, **options)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return learning


def levels_to_the_caller():
    """The ``stacklevel`` at which a warning points to the caller of the package, seen from a function that calls this."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    return level


class MondrianEstimator(BaseEstimator):
    """Base of every estimator; the fitted core model is ``_model``."""

    def _keep(self, arguments):
        """Stores the constructor's arguments, given by its ``locals()``, unchanged: ``fit`` checks them."""
        for name, value in arguments.items():
            if name != "self":
                setattr(self, name, value)

    def _rows(self, X, *, reset=False, **options):
        """Validated rows; for a model written by the program they are prepared as in the program.

        The core checks that numbers are finite, and reports row and column of a non-finite number.
        """
        prepared = self._prepared(X, reset)
        if prepared is not None:
            return check_array(prepared, dtype=np.float64, ensure_all_finite=False, **options)
        return self._validated(X, reset=reset, **options)

    def _labelled_rows(self, X, y, *, reset=False, **options):
        """The same with targets."""
        prepared = self._prepared(X, reset)
        if prepared is not None:
            return check_X_y(prepared, y, dtype=np.float64, ensure_all_finite=False, **options)
        return self._validated(X, y, reset=reset, **options)

    def _validated(self, X, *y, **options):
        """Rows validated by scikit-learn, with the column added to its error about text in a frame."""
        X = with_days(X)
        try:
            return validate_data(self, X, *y, dtype=np.float64, ensure_all_finite=False, **options)
        except ValueError as error:
            found = text_in(X) if "could not convert string" in str(error) else None
            if found is None:
                raise
            name, text = found
            hint = "leave it out or encode it as numbers; LaplaceKernelRidge and LaplaceKernelClassifier take columns of the type category"
            raise ValueError(f"column {name!r} of X holds text such as {text!r}: {hint} (could not convert string to float)") from error

    def _rows_and_targets(self, X, y, *, reset=False, **options):
        """The same with numbers as targets."""
        X, y = self._labelled_rows(X, y, reset=reset, y_numeric=True, **options)
        return X, np.ascontiguousarray(y, dtype=np.float64)

    def _prepared(self, X, reset):
        if reset:
            # A new fit starts from unprepared rows.
            self.__dict__.pop("preparation_", None)
        preparation = self.__dict__.get("preparation_")
        return None if preparation is None else preparation.transform(X)

    def _input_names(self):
        """Names of the core model's inputs, or None."""
        if "preparation_" in self.__dict__:
            return self.preparation_.inputs
        names = self.__dict__.get("feature_names_in_")
        return None if names is None else list(names)

    def _query(self, X):
        """Rows of a query. A plain array of numbers of the right shape needs no checks besides the core's."""
        plain = self._plain(X)
        if plain is not None:
            return plain
        check_is_fitted(self)
        return self._rows(X)

    def _plain(self, X):
        """The rows as doubles if they are a plain array of numbers, of the width that the model was fitted on without names; else None."""
        if type(X) is not np.ndarray:
            return None
        shape, known = X.shape, self.__dict__
        if (
            len(shape) != 2
            or shape[0] == 0
            or shape[1] != known.get("n_features_in_")
            or "_model" not in known
            or "feature_names_in_" in known
            or "preparation_" in known
        ):
            return None
        return as_doubles(X)

    def _call(self, method, X, *arguments):
        """The result of a method of the core on rows."""
        X = self._query(X)
        if "_members" in self.__dict__:
            return self._members.predict(method, X, arguments)
        return getattr(self._model, method)(X, *arguments, self._threads(len(X)))

    def _work(self, n_rows=None, progress=None):
        """Options of long calls into the core: the number of threads and the progress callback."""
        return self._threads(n_rows), self._listener(progress)

    def _threads(self, n_rows=None):
        """Threads for a call; a single thread is fastest for few rows."""
        if n_rows is not None and n_rows <= 16:
            return 1
        return parameters.threads_of(self.n_jobs)

    def _listener(self, progress):
        return listener_of(getattr(self, "verbose", False) if progress is None else progress, type(self).__name__)

    def _take(self, model):
        self._model = model
        return self

    def __sklearn_is_fitted__(self):
        return "_model" in self.__dict__

    def save(self, path, *, target="target"):
        """Write the fitted model to a file, which :func:`mondrian.load` and the program ``mondrian`` open.

        The file is written completely or not at all. It contains no code: opening a file from an untrusted source is
        safe.

        Parameters
        ----------
        path : str or path-like
            The file.
        target : str, default="target"
            Name of the predicted column for the program. Inputs are named as in the frame the model was
            fitted on, else ``column1``, ``column2`` and so on, as in the program for columns without names.
        """
        check_is_fitted(self)
        if "_members" in self.__dict__:
            raise ValueError('a file contains one model, but window="adaptive" has several: pickle the forest instead')
        _files.write_whole(path, self._model.to_bytes(_files.notes_of(self, target)))

    def _state(self):
        """Notes stored in a file beside the core model and the parameters."""
        return {}

    def _restore(self, model, state, target):
        """Restores the estimator of a loaded model; ``target`` is the program's description of the target, or None."""
        return self._take(model)

    def _program_levels(self):
        """The categories of each input as in the program, None for an input of numbers."""
        return [None] * self.n_features_in_

    def _models_missing_cells(self):
        """Whether the model accepts rows with missing cells."""
        return False

    def _program_target(self, name):
        """The target's description for the program: None for no target, False for a model it cannot use."""
        return {"name": name, "classes": None}


@documented
class Regressor(MondrianEstimator):
    """Predictions with standard deviations, which are linear in the targets."""

    def predict(self, X, return_std=False):
        """Predict targets.

        {rows}
        return_std : bool, default=False
            Whether to return the standard deviation of a new target there too, noise included.

        Returns
        -------
        mean : ndarray of shape (n_samples,), or (n_samples, n_targets) if several targets were learned
        std : ndarray of the same shape
            Only if ``return_std``.
        """
        if not return_std:
            return self._shaped(self._call("predict", X))
        mean, std = self._call("predict_with_std", X)
        return self._shaped(mean), self._shaped(std)

    def _shaped(self, numbers):
        return numbers

    def equivalent_kernel(self, X_query):
        """The smoothing matrix: predictions are this matrix times the training targets, less the prior mean in a forest.

        Parameters
        ----------
        X_query : array-like of shape (n_query, n_features)
            Rows.

        Returns
        -------
        smoothing : ndarray of shape (n_query, n_train)
            In the order of the training rows; a forest counts a row of whole-number weight w as w rows.
        """
        return self._call("equivalent_kernel", X_query)


@documented
class Classifier(MondrianEstimator):
    """Probabilities of classes."""

    def predict_proba(self, X):
        """The probability of each class; the prior where the data are uninformative.

        {rows}

        Returns
        -------
        shares : ndarray of shape (n_samples, n_classes)
        """
        return self._call("predict_proba", X)

    def predict(self, X):
        """The most probable class of each row.

        {rows}

        Returns
        -------
        classes : ndarray of shape (n_samples,)
        """
        shares = self.predict_proba(X)
        return self.classes_[np.argmax(shares, axis=1)]

    def _state(self):
        return {"classes": _files.classes_to_json(self.classes_)}

    def _restore(self, model, state, target):
        self.classes_ = _files.classes_from_json(state.get("classes"), target)
        return super()._restore(model, state, target)

    def _program_target(self, name):
        return {"name": name, "classes": [str(label) for label in self.classes_.tolist()]}


def are_classes(y):
    """Whether targets are probably classes: texts, booleans, or few whole numbers."""
    if y.dtype.kind not in "fiu":
        return True
    return len(np.unique(y)) <= min(20, max(2, len(y) // 10)) and bool((y == np.round(y)).all())


def numbers_of(y, classes):
    """The number of each label's class among the sorted ones, as the core expects it."""
    return np.searchsorted(classes, y).astype(np.uint32)


def sample_weights(sample_weight, X):
    """Weights as an array of one nonnegative number per row, or None."""
    if sample_weight is None:
        return None
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError("sample_weight must be numbers, one per row") from None
    if weights.ndim == 0:
        weights = np.full(X.shape[0], weights)
    if weights.shape != (X.shape[0],):
        raise ValueError(f"sample_weight has shape {weights.shape}, but must have one number per row: ({X.shape[0]},)")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must be finite and ≥ 0")
    if not weights.any():
        raise ValueError("sample_weight is zero for every row")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if total > 2.0**53:
        raise ValueError(f"sample_weight sums to {total:.6g}, but must sum to at most 2**53")
    return np.ascontiguousarray(weights)


#: Largest number of copies of rows.
_MOST_COPIES = 2**24


def repeated(X, y, weights):
    """Rows repeated by whole-number weights, so that automatic values count them so; other weights are kept."""
    if weights is None or (weights != np.floor(weights)).any():
        return X, y, weights
    if weights.sum() > max(_MOST_COPIES, 2 * len(X)):
        return X, y, weights
    if (weights == 1).all():
        return X, y, None
    counts = weights.astype(np.int64)
    return np.repeat(X, counts, axis=0), np.repeat(y, counts, axis=0), None


class SeveralTargets:
    """For estimators of one or several targets per row: predictions have the shape of the targets."""

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

    def _shaped(self, numbers, *more):
        """One number per row, or one per row and target; then further dimensions."""
        if self._single and not more:
            return numbers
        targets = () if self._single else (self._n_targets,)
        return numbers.reshape((-1, *targets, *more))
