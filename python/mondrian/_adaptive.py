"""``window="adaptive"``: windows of several lengths side by side, weighted by their recent losses."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

#: Lengths of the windows, and the discount of their losses per row.
WINDOWS = (250, 1000, 4000, None)
DECAY = 0.99
#: How fast the weight of a member decreases with its loss: by a factor of e at 10 % above the smallest.
SHARPNESS = 10.0
#: A batch is predicted and then learned this many rows at a time, fewer than the shortest window.
BLOCK = 250
#: Log densities are clipped from below at this value: a row outside a box must not determine the weights forever.
_LEAST_LOG = -700.0


def relative_shares(losses):
    """Weights of members from positive losses: only their ratios matter, so the weights do not depend on units."""
    least = losses.min()
    shares = np.exp(-SHARPNESS * (losses - least) / max(least, 1e-12))
    return shares / shares.sum()


def likelihood_shares(losses):
    """Weights of members from negative log likelihoods: their posterior, except that old rows are discounted."""
    shares = np.exp(losses.min() - losses)
    return shares / shares.sum()


class Adaptive:
    """The members of a fitted estimator; the last one has all rows."""

    def __init__(self, members, shares_of, losses_of):
        self._members, self._shares_of, self._losses_of = members, shares_of, losses_of
        self._losses = np.zeros(len(members))

    @property
    def whole(self):
        """The member with all rows."""
        return self._members[-1]

    def shares(self):
        """Weights of the members."""
        return self._shares_of(self._losses)

    def learn(self, X, y, first):
        """Learns validated rows block by block; the loss of each row is that of a prediction before it was learned."""
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            batch = (X[rows],) if y is None else (X[rows], y[rows])
            losses = np.zeros((len(self._members), 0)) if first else self._losses_of(self._members, *batch)
            for member in self._members:
                member.partial_fit(*batch)
            for row in losses.T:
                self._losses = DECAY * self._losses + row
            first = False

    def predict(self, method, X, arguments):
        """The combined prediction of all members."""
        if method not in ("predict", "predict_with_std", "predict_proba", "log_density"):
            raise ValueError(f'a forest with window="adaptive" consists of several forests: {method} is defined for one only')
        shares, predicted = self.shares(), [member._call(method, X, *arguments) for member in self._members]
        if method == "predict_with_std":
            mean = _mixed(shares, [mean for mean, _ in predicted])
            square = _mixed(shares, [std**2 + (each - mean) ** 2 for each, std in predicted])
            return mean, np.sqrt(square)
        if method == "log_density":
            with np.errstate(divide="ignore"):
                return np.log(_mixed(shares, [np.exp(logs) for logs in predicted]))
        return _mixed(shares, predicted)


def _mixed(shares, predicted):
    """The weighted mean of the members' predictions, summed in their order."""
    return sum(share * numbers for share, numbers in zip(shares.tolist(), predicted))


def squared_errors(members, X, y):
    """Squared errors of members, on average over targets, one row each."""
    errors = [(member.predict(X) - y) ** 2 for member in members]
    return np.array([error if error.ndim == 1 else error.mean(axis=1) for error in errors])


def log_losses(members, X, y):
    """Log losses of members, which have the same classes; a new class counts as one of probability 0.001."""
    classes = members[0].classes_
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    known = classes[places] == y
    rows = np.arange(len(X))
    shares = [np.where(known, member.predict_proba(X)[rows, places], 0.0) for member in members]
    return -np.log(np.maximum(shares, 1e-3))


def negative_logs(members, X):
    """Minus log densities of members."""
    return -np.maximum([member.score_samples(X) for member in members], _LEAST_LOG)


def members_of(estimator):
    """Unfitted members of an estimator; the last one keeps all rows."""
    return [clone(estimator).set_params(window=window, verbose=False) for window in WINDOWS]
