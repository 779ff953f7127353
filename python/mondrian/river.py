"""Mondrian forests with the interface of `river <https://riverml.xyz>`_: rows as dictionaries, one at a time.

Install with ``pip install 'mondrian[river]'``. The models hold the rows they have learned. The first rows fix the root box and the
scale of each input: up to ``warm_up`` rows the forest is fitted anew whenever their number has doubled. A key that is missing from a
row counts as 0; a new key becomes a new input, which was 0 in all rows before.

``window="adaptive"`` runs forests over the last 250, 1000 and 4000 rows and over all rows side by side, and weights them by their
recent losses. Its predictions depend on the order of the rows; those of every other forest here do not.
"""

from __future__ import annotations

from collections import deque

import numpy as np

try:
    from river import base
except ImportError as error:  # pragma: no cover
    raise ImportError("mondrian.river needs river: pip install 'mondrian[river]'") from error

from . import _adaptive, _classification, _density, _regression

__all__ = ["MondrianAnomaly", "MondrianForestClassifier", "MondrianForestRegressor"]

class _Stream:
    """Rows as dictionaries, held in order of arrival, and the forest of them."""

    def _start(self, n_models, window, warm_up, seed):
        self.n_models, self.window, self.warm_up, self.seed = n_models, window, warm_up, seed
        self._forest, self._keys, self._held, self._n_learned = None, {}, deque(), 0
        self._members, self._losses, self._asked = None, None, (None, None)
        if isinstance(window, str):
            if window != "adaptive":
                raise ValueError(f"window is {window!r}, but must be a number of rows, None or \"adaptive\"")
            self._members = [type(self)(n_models, size, warm_up, seed) for size in _adaptive.WINDOWS]
            self._losses = np.zeros(len(_adaptive.WINDOWS))

    def _said(self, x):
        """What the members predict of a row; asked once if it is learned next."""
        if self._asked[0] is not x:
            self._asked = x, [member._say(x) for member in self._members]
        return self._asked[1]

    def _shares(self):
        """Weights of the members by their recent losses."""
        return _adaptive.relative_shares(self._losses)

    def _learn_all(self, x, y):
        """Charges the members for what they would have said of a row, then lets them learn it."""
        said = self._said(x)
        self._asked = None, None
        for place, member in enumerate(self._members):
            self._losses[place] = _adaptive.DECAY * self._losses[place] + self._loss_of(said[place], y)
            member.learn_one(x, y)

    def _vector(self, x):
        """A row of the inputs known so far, as the forest takes it."""
        keys = self._keys
        row = np.zeros((1, len(keys)))
        for key, value in x.items():
            place = keys.get(key)
            if place is not None:
                row[0, place] = value
        return row

    def _learn(self, x, y):
        is_new = self._forest is None
        # New keys in the order of their names: the order within a dictionary must not matter.
        for key in sorted((key for key in x if key not in self._keys), key=str):
            self._keys[key] = len(self._keys)
            is_new = True
        row = self._vector(x)
        self._held.append((row, y))
        self._n_learned += 1
        is_scale = self._n_learned <= self.warm_up and self._n_learned & (self._n_learned - 1) == 0
        while self.window is not None and len(self._held) > self.window:
            old, target = self._held.popleft()
            if not (is_new or is_scale):
                self._forest.forget(old, self._targets([target]))
        if is_new or is_scale:
            self._refit()
        else:
            self._learn_rows(row, self._targets([y]))

    def _refit(self):
        """A forest of all rows held, on the box and in the scale of them."""
        X = np.zeros((len(self._held), len(self._keys)))
        for place, (row, _) in enumerate(self._held):
            X[place, : row.shape[1]] = row[0]
        self._held = deque((X[place : place + 1], y) for place, (_, y) in enumerate(self._held))
        self._forest = self._new_forest()
        self._learn_rows(X, self._targets([y for _, y in self._held]))

    def _learn_rows(self, X, y):
        self._forest.partial_fit(X, y)

    def _learn_many(self, X, y):
        for x, target in zip(X.to_dict(orient="records"), y):
            self.learn_one(x, target)

    def _options(self):
        return {"n_estimators": self.n_models, "random_state": self.seed, "n_jobs": 1}

    @classmethod
    def _unit_test_params(cls):
        yield {"n_models": 3, "seed": 1}


class MondrianForestRegressor(_Stream, base.Regressor):
    """A Mondrian forest that predicts numbers.

    Parameters
    ----------
    n_models : int, default=10
        Number of trees.
    window : int, None or "adaptive", default=None
        How many rows are held; older ones are forgotten exactly.
    warm_up : int, default=256
        Rows that fix root box and scale.
    seed : int, default=0
        Seed.
    """

    def __init__(self, n_models: int = 10, window: int | str | None = None, warm_up: int = 256, seed: int = 0):
        self._start(n_models, window, warm_up, seed)

    def _new_forest(self):
        return _regression.MondrianForestRegressor(**self._options())

    @staticmethod
    def _targets(y):
        return np.array(y, dtype=np.float64)

    def learn_one(self, x, y):
        if self._members is not None:
            return self._learn_all(x, y)
        self._learn(x, y)

    def learn_many(self, X, y):
        self._learn_many(X, y)

    def predict_one(self, x):
        if self._members is not None:
            return float(self._shares() @ self._said(x))
        return self._say(x)

    def _say(self, x):
        if self._forest is None:
            return 0.0
        return float(self._forest.predict(self._vector(x))[0])

    @staticmethod
    def _loss_of(said, y):
        return (said - y) ** 2


class MondrianForestClassifier(_Stream, base.Classifier):
    """A Mondrian forest that tells classes apart.

    Parameters
    ----------
    n_models : int, default=10
        Number of trees.
    window : int, None or "adaptive", default=None
        How many rows are held; older ones are forgotten exactly.
    warm_up : int, default=256
        Rows that fix root box and scale.
    seed : int, default=0
        Seed.
    """

    def __init__(self, n_models: int = 10, window: int | str | None = None, warm_up: int = 256, seed: int = 0):
        self._start(n_models, window, warm_up, seed)
        # Numbers of classes in the order they were first seen, so that a new one renumbers none.
        self._numbers, self._classes = {}, []

    @property
    def _multiclass(self):
        return True

    def _new_forest(self):
        return _classification.MondrianForestClassifier(**self._options())

    def _targets(self, y):
        return np.array([self._numbers[label] for label in y])

    def learn_one(self, x, y):
        if y not in self._numbers:
            self._numbers[y] = len(self._classes)
            self._classes.append(y)
        if self._members is not None:
            return self._learn_all(x, y)
        self._learn(x, y)

    def learn_many(self, X, y):
        self._learn_many(X, y)

    def predict_proba_one(self, x):
        if self._members is not None:
            mixed = {}
            for share, said in zip(self._shares().tolist(), self._said(x)):
                for label, probability in said.items():
                    mixed[label] = mixed.get(label, 0.0) + share * probability
            return mixed
        return self._say(x)

    @staticmethod
    def _loss_of(said, y):
        return -np.log(max(said.get(y, 0.0), 1e-3))

    def _say(self, x):
        if self._forest is None:
            return {}
        shares = self._forest.predict_proba(self._vector(x))[0].tolist()
        return {self._classes[number]: share for number, share in zip(self._forest.classes_.tolist(), shares)}


class MondrianAnomaly(_Stream, base.AnomalyDetector):
    """Anomalies as rows of low density.

    The score is minus the log density, plus one and the distance in widths of the box for a row outside of it. The box and the
    scale are those of the rows held, found anew whenever the number of rows learned has doubled; in between a row outside the box is learned
    as the point of the box nearest to it. 0 until two different rows were learned.

    Parameters
    ----------
    n_models : int, default=10
        Number of trees.
    window : int or None, default=1000
        How many rows are held; older ones are forgotten exactly.
    warm_up : int, default=16
        Rows before which nothing is scored.
    seed : int, default=0
        Seed.
    """

    def __init__(self, n_models: int = 10, window: int | None = 1000, warm_up: int = 16, seed: int = 0):
        if isinstance(window, str):
            raise ValueError(f"window is {window!r}, but must be a number of rows or None")
        self._start(n_models, window, warm_up, seed)

    def _inside(self, row):
        """The point of the box nearest to a row, and how far that is in widths of the box."""
        lower, upper = self._forest.lower_, self._forest.upper_
        width = upper - lower
        inside = np.clip(row, lower + 1e-9 * width, upper)
        return inside, float((np.abs(row - inside) / width)[np.abs(row - inside) > 1e-8 * width].sum())

    def learn_one(self, x):
        is_new = False
        for key in sorted((key for key in x if key not in self._keys), key=str):
            self._keys[key] = len(self._keys)
            is_new = True
        row = self._vector(x)
        self._n_learned += 1
        if not is_new and self._forest is not None and self._n_learned & (self._n_learned - 1) != 0:
            row, _ = self._inside(row)
            self._forest.partial_fit(row)
            self._held.append((row, None))
            while self.window is not None and len(self._held) > self.window:
                self._forest.forget(self._held.popleft()[0])
            return
        self._held.append((row, None))
        while self.window is not None and len(self._held) > self.window:
            self._held.popleft()
        if self._n_learned >= self.warm_up:
            self._refit_density()

    def _refit_density(self):
        X = np.zeros((len(self._held), len(self._keys)))
        for place, (row, _) in enumerate(self._held):
            X[place, : row.shape[1]] = row[0]
        self._held = deque((X[place : place + 1], None) for place in range(len(X)))
        lower, upper = X.min(axis=0), X.max(axis=0)
        margin = np.where(upper > lower, 0.1 * (upper - lower), 1.0)
        self._forest = _density.MondrianDensity(**self._options(), lower=lower - margin, upper=upper + margin).fit(X)

    def score_one(self, x):
        if self._forest is None:
            return 0.0
        row, distance = self._inside(self._vector(x)[:, : self._forest.n_features_in_])
        score = -float(self._forest.score_samples(row)[0])
        return score + 1.0 + distance if distance > 0.0 else score
