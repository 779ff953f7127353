"""Progressive validation: every row is predicted before it is learned."""

from __future__ import annotations

import numpy as np

from ._plotting import axes_for


class Progression:
    """The losses of a stream, row by row, as :func:`progressive` gives them.

    Attributes
    ----------
    losses : ndarray of shape (n_samples,)
        The loss of each row, predicted before it was learned: squared errors of a regressor, 0 or 1 of a classifier.
        NaN for rows before the model had learned any.
    predictions : ndarray of shape (n_samples,)
        The predictions.
    loss : str
        "squared_error" or "error".
    """

    def __init__(self, losses, predictions, loss):
        self.losses, self.predictions, self.loss = losses, predictions, loss

    def running(self):
        """The mean loss up to each row; its root for a regressor.

        Returns
        -------
        means : ndarray of shape (n_samples,)
        """
        counted = ~np.isnan(self.losses)
        sums = np.cumsum(np.where(counted, self.losses, 0.0))
        means = sums / np.maximum(np.cumsum(counted), 1)
        return np.sqrt(means) if self.loss == "squared_error" else means

    @property
    def score(self):
        """The mean loss over the whole stream; its root for a regressor."""
        return float(self.running()[-1])

    def plot(self, ax=None):
        """Draw the mean loss up to each row.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            The axes to draw on. Default: a new figure.

        Returns
        -------
        ax : matplotlib axes
        """
        ax = axes_for(ax)
        ax.plot(np.arange(1, len(self.losses) + 1), self.running())
        ax.set_xlabel("rows")
        ax.set_ylabel("root mean squared error so far" if self.loss == "squared_error" else "share of errors so far")
        return ax


def progressive(model, X, y):
    """Predict each row and then learn it, in order, with a model that has ``partial_fit``.

    Parameters
    ----------
    model : estimator
        A regressor or classifier with ``partial_fit``; it continues from its current state.
    X : array-like of shape (n_samples, n_features)
        Rows, in the order of the stream.
    y : array-like of shape (n_samples,)
        Targets or classes.

    Returns
    -------
    progression : Progression

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian import MondrianForestRegressor, progressive
    >>> X = np.random.default_rng(0).uniform(size=(200, 1))
    >>> found = progressive(MondrianForestRegressor(n_estimators=10, random_state=0), X, 3 * X[:, 0])
    >>> bool(found.score < 0.5 and found.running()[-1] < found.running()[20])
    True
    """
    X, y = np.ascontiguousarray(X, dtype=np.float64), np.asarray(y)
    if X.ndim != 2 or y.shape != (len(X),):
        raise ValueError(f"X has shape {X.shape} and y {y.shape}, but must be (n_samples, n_features) and (n_samples,)")
    is_classifier = hasattr(model, "predict_proba")
    y = y if is_classifier else y.astype(np.float64)
    losses, predictions = np.full(len(X), np.nan), np.full(len(X), np.nan, dtype=object if is_classifier else np.float64)
    is_fitted = model.__sklearn_is_fitted__() if hasattr(model, "__sklearn_is_fitted__") else False
    for row in range(len(X)):
        x, target = X[row : row + 1], y[row : row + 1]
        if is_fitted:
            predictions[row] = found = model.predict(x)[0]
            losses[row] = float(found != target[0]) if is_classifier else (found - target[0]) ** 2
        model.partial_fit(x, target)
        is_fitted = True
    return Progression(losses, predictions, "error" if is_classifier else "squared_error")
