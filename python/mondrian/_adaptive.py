"""``window="adaptive"``: windows of several lengths side by side, weighted by their recent losses."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

#: Windows that run side by side, and how fast their losses are forgotten, per row.
WINDOWS = (250, 1000, 4000, None)
DECAY = 0.99
#: How much a member counts whose loss is larger than the least: at 10 % more, a factor of e.
SHARPNESS = 10.0
#: A batch is asked about and then learned so many rows at a time, fewer than the shortest window holds.
BLOCK = 250
#: Log densities below this count as it: a row outside a box must not decide for ever.
_LEAST_LOG = -700.0


def relative_shares(losses):
    """Weights of members by positive losses: only their quotients matter, so that units do not."""
    least = losses.min()
    shares = np.exp(-SHARPNESS * (losses - least) / max(least, 1e-12))
    return shares / shares.sum()


def likelihood_shares(losses):
    """Weights of members by negative log likelihoods: their posterior, were old rows not forgotten."""
    shares = np.exp(losses.min() - losses)
    return shares / shares.sum()


class Adaptive:
    """The members of a fitted estimator, the one of all rows last."""

    def __init__(self, members, shares_of, losses_of):
        self._members, self._shares_of, self._losses_of = members, shares_of, losses_of
        self._losses = np.zeros(len(members))

    @property
    def whole(self):
        """The member that holds all rows."""
        return self._members[-1]

    def shares(self):
        """Weights of the members."""
        return self._shares_of(self._losses)

    def learn(self, X, y, first):
        """Learns validated rows, blocks of them after each other; each counts as predicted before it was learned."""
        for start in range(0, len(X), BLOCK):
            rows = slice(start, start + BLOCK)
            batch = (X[rows],) if y is None else (X[rows], y[rows])
            losses = np.zeros((len(self._members), 0)) if first else self._losses_of(self._members, *batch)
            for member in self._members:
                member.partial_fit(*batch)
            for row in losses.T:
                self._losses = DECAY * self._losses + row
            first = False

    def answer(self, question, X, arguments):
        """What all members together say of rows."""
        if question not in ("predict", "predict_with_std", "predict_proba", "log_density"):
            raise ValueError(f'a forest with window="adaptive" is several forests: {question} is a question about one')
        shares, said = self.shares(), [member._ask(question, X, *arguments) for member in self._members]
        if question == "predict_with_std":
            mean = _mixed(shares, [mean for mean, _ in said])
            square = _mixed(shares, [std**2 + (each - mean) ** 2 for each, std in said])
            return mean, np.sqrt(square)
        if question == "log_density":
            with np.errstate(divide="ignore"):
                return np.log(_mixed(shares, [np.exp(logs) for logs in said]))
        return _mixed(shares, said)


def _mixed(shares, said):
    """The weighted mean of what members say, added up in their order."""
    return sum(share * numbers for share, numbers in zip(shares.tolist(), said))


def squared_errors(members, X, y):
    """Squared errors of members, on average over targets, one row each."""
    errors = [(member.predict(X) - y) ** 2 for member in members]
    return np.array([error if error.ndim == 1 else error.mean(axis=1) for error in errors])


def log_losses(members, X, y):
    """Log losses of members, which know the same classes; a class that is new counts as one of probability 0.001."""
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
    """Unfitted members of an estimator, the one of all rows last."""
    return [clone(estimator).set_params(window=window, verbose=False) for window in WINDOWS]
