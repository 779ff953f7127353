"""Mondrian forests with the interface of `river <https://riverml.xyz>`_: rows as dictionaries, one at a time.

Install with ``pip install 'mondrian[river]'``. The models hold the rows they have learned. The first rows fix the root box and the
scale of each input: up to ``warm_up`` rows the forest is fitted anew whenever their number has doubled. A key that is missing from a
row counts as 0; a new key becomes a new input, which was 0 in all rows before.
"""

from __future__ import annotations

from collections import deque

import numpy as np

try:
    from river import base
except ImportError as error:  # pragma: no cover
    raise ImportError("mondrian.river needs river: pip install 'mondrian[river]'") from error

from . import _classification, _regression

__all__ = ["MondrianForestClassifier", "MondrianForestRegressor"]


class _Stream:
    """Rows as dictionaries, held in order of arrival, and the forest of them."""

    def _start(self, n_models, window, warm_up, seed):
        self.n_models, self.window, self.warm_up, self.seed = n_models, window, warm_up, seed
        self._forest, self._keys, self._held, self._n_learned = None, {}, deque(), 0

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
    window : int or None, default=None
        How many rows are held; older ones are forgotten exactly.
    warm_up : int, default=256
        Rows that fix root box and scale.
    seed : int, default=0
        Seed.
    """

    def __init__(self, n_models: int = 10, window: int | None = None, warm_up: int = 256, seed: int = 0):
        self._start(n_models, window, warm_up, seed)

    def _new_forest(self):
        return _regression.MondrianForestRegressor(**self._options())

    @staticmethod
    def _targets(y):
        return np.array(y, dtype=np.float64)

    def learn_one(self, x, y):
        self._learn(x, y)

    def learn_many(self, X, y):
        self._learn_many(X, y)

    def predict_one(self, x):
        if self._forest is None:
            return 0.0
        return float(self._forest.predict(self._vector(x))[0])


class MondrianForestClassifier(_Stream, base.Classifier):
    """A Mondrian forest that tells classes apart.

    Parameters
    ----------
    n_models : int, default=10
        Number of trees.
    window : int or None, default=None
        How many rows are held; older ones are forgotten exactly.
    warm_up : int, default=256
        Rows that fix root box and scale.
    seed : int, default=0
        Seed.
    """

    def __init__(self, n_models: int = 10, window: int | None = None, warm_up: int = 256, seed: int = 0):
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
        self._learn(x, y)

    def learn_many(self, X, y):
        self._learn_many(X, y)

    def predict_proba_one(self, x):
        if self._forest is None:
            return {}
        shares = self._forest.predict_proba(self._vector(x))[0].tolist()
        return {self._classes[number]: share for number, share in zip(self._forest.classes_.tolist(), shares)}
