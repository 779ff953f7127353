"""Mondrian forests with the interface of `river <https://riverml.xyz>`_: rows as dictionaries, one at a time.

Install with ``pip install 'mondrian[river]'``. The models keep the rows they have learned. The first ``warm_up``
rows determine the root box and the scale of each input, as they do for ``partial_fit`` of the estimators. A
key that is missing from a row counts as 0; a new key becomes a new input, which is 0 in all earlier rows.

``window="adaptive"`` trains forests on the last 250, 1000 and 4000 rows and on all rows, and weights them by their
recent losses. Its predictions depend on the order of the rows, and so do those of a regressor with ``tune=True``; those
of every other forest here do not.
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

#: Candidates for κ of a stream, the automatic one first, and the discount of their errors per row.
_KAPPAS = [None, 0.8, 3.2, 12.8]
_DECAY = 0.998
#: Units of the inputs: 1/standard deviation, or raw. They are chosen when the difference of squared errors exceeds two standard
#: errors, after at least and at most this many rows.
_UNITS = ("auto", None)
_LEAST_UNIT_ROWS, _MOST_UNIT_ROWS = 1024, 8192


class _Stream:
    """Rows as dictionaries, stored in order of arrival, and their forest."""

    def _start(self, n_models, window, warm_up, seed):
        self.n_models, self.window, self.warm_up, self.seed = n_models, window, warm_up, seed
        self._forest, self._keys, self._held, self._n_learned = None, {}, deque(), 0
        self._members, self._losses, self._last_query = None, None, (None, None)
        if isinstance(window, str):
            if window != "adaptive":
                raise ValueError(f"window is {window!r}, but must be a number of rows, None or \"adaptive\"")
            self._members = [self._member(size) for size in _adaptive.WINDOWS]
            self._losses = np.zeros(len(_adaptive.WINDOWS))

    def _member(self, window):
        return type(self)(self.n_models, window, self.warm_up, self.seed)

    def _member_predictions(self, x):
        """The members' predictions for a row; cached in case it is learned next."""
        if self._last_query[0] is not x:
            self._last_query = x, [member._predict(x) for member in self._members]
        return self._last_query[1]

    def _shares(self):
        """Weights of the members by their recent losses."""
        return _adaptive.relative_shares(self._losses)

    def _learn_all(self, x, y):
        """Adds the members' losses on a row, then learns it in all members."""
        predicted = self._member_predictions(x)
        self._last_query = None, None
        for place, member in enumerate(self._members):
            self._losses[place] = _adaptive.DECAY * self._losses[place] + self._loss_of(predicted[place], y)
            member.learn_one(x, y)

    def _vector(self, x):
        """A row as a vector of the known inputs."""
        keys = self._keys
        if len(x) == len(keys):
            try:
                return np.array([[x[key] for key in keys]], dtype=np.float64)
            except KeyError:
                pass
        row = np.zeros((1, len(keys)))
        for key, value in x.items():
            place = keys.get(key)
            if place is not None:
                row[0, place] = value
        return row

    def _take_keys(self, x):
        """Adds new keys of a row as inputs, and returns whether there were any.

        They are sorted by name, because the order within a dictionary must not matter.
        """
        keys = self._keys
        if x.keys() <= keys.keys():
            return False
        for key in sorted((key for key in x if key not in keys), key=str):
            keys[key] = len(keys)
        return True

    def _learn(self, x, y):
        is_new = self._take_keys(x) or self._forest is None
        row = self._vector(x)
        self._held.append((row, y))
        self._n_learned += 1
        while self.window is not None and len(self._held) > self.window:
            old, target = self._held.popleft()
            if not is_new:
                self._forest.forget(old, self._targets([target]))
        if is_new:
            self._refit()
        else:
            self._learn_rows(row, self._targets([y]))

    def _refit(self):
        """A forest of all stored rows, with their box and scale."""
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

    def _forest_options(self):
        return {**self._options(), "warm_up": self.warm_up}

    @classmethod
    def _unit_test_params(cls):
        yield {"n_models": 3, "seed": 1}


class MondrianForestRegressor(_Stream, base.Regressor):
    """A Mondrian forest for regression.

    Parameters
    ----------
    n_models : int, default=10
        Number of trees.
    window : int, None or "adaptive", default=None
        Number of rows to keep; older ones are forgotten exactly.
    warm_up : int, default=1024
        Number of rows that determine root box and scale.
    seed : int, default=0
        Seed.
    tune : bool, default=True
        Whether the units of the inputs (1/standard deviation, or raw) are chosen by the errors on the first 1024 to 8192
        rows, during which two forests are trained, and κ among four candidates by the errors on recent rows. Otherwise, and
        with ``window="adaptive"``, units are 1/standard deviation and κ is automatic.
    """

    def __init__(
        self, n_models: int = 10, window: int | str | None = None, warm_up: int = 1024, seed: int = 0, tune: bool = True
    ):
        self.tune = tune
        self._start(n_models, window, warm_up, seed)
        self._tuned = _Tuned() if tune and self._members is None else None

    def _member(self, window):
        return type(self)(self.n_models, window, self.warm_up, self.seed, tune=False)

    def _new_forest(self):
        if self._tuned is not None:
            return self._tuned.new_forest(self._forest_options())
        return _regression.MondrianForestRegressor(**self._forest_options())

    @staticmethod
    def _targets(y):
        return np.array(y, dtype=np.float64)

    def learn_one(self, x, y):
        if self._members is not None:
            return self._learn_all(x, y)
        if self._tuned is not None and self._forest is not None:
            row, means = self._last_query
            self._tuned.charge(means if row is x else self._means(x), y)
            self._last_query = None, None
        self._learn(x, y)

    def learn_many(self, X, y):
        self._learn_many(X, y)

    def predict_one(self, x):
        if self._members is not None:
            return float(self._shares() @ self._member_predictions(x))
        return self._predict(x)

    def _means(self, x):
        """The predictions of all candidates for a row; cached in case it is learned next."""
        means = self._forest.means(self._vector(x))
        self._last_query = x, means
        return means

    def _predict(self, x):
        if self._forest is None:
            return 0.0
        if self._tuned is not None:
            return self._tuned.chosen(self._means(x))
        return float(self._forest.predict(self._vector(x))[0])

    @staticmethod
    def _loss_of(predicted, y):
        return (predicted - y) ** 2


class _Tuned:
    """Selects the units and κ of a stream's predictions: those of the smallest recent squared errors."""

    def __init__(self):
        self._units, self._n_charged = list(_UNITS), 0
        #: Sum and sum of squares of the differences of squared errors, the first units' less the second's.
        self._difference, self._squares = 0.0, 0.0
        #: Decayed losses of each κ, by units.
        self._losses = [[0.0] * len(_KAPPAS) for _ in _UNITS]
        self._best = [0] * len(_UNITS)
        self._forests = None

    def new_forest(self, options):
        self._forests = _Forests([_regression.MondrianForestRegressor(**options, weights=weights) for weights in self._units])
        return self._forests

    def chosen(self, means):
        """The mean of the best candidate so far."""
        best = self._best
        if len(means) == 1:
            return means[0][best[0]]
        unit = min(range(len(means)), key=lambda unit: self._losses[unit][best[unit]])
        return means[unit][best[unit]]

    def charge(self, means, y):
        """Adds the losses of all candidates on a row."""
        if len(means) > 1:
            first, second = ((predicted[best] - y) ** 2 for predicted, best in zip(means, self._best))
            self._difference += first - second
            self._squares += (first - second) ** 2
        for unit, predicted in enumerate(means):
            losses = self._losses[unit]
            for place, mean in enumerate(predicted):
                losses[place] = _DECAY * losses[place] + (mean - y) ** 2
            self._best[unit] = min(range(len(losses)), key=losses.__getitem__)
        self._n_charged += 1
        if len(means) > 1 and self._n_charged >= _LEAST_UNIT_ROWS:
            is_clear = self._difference**2 > 4.0 * self._squares
            if is_clear or self._n_charged >= _MOST_UNIT_ROWS:
                self._keep(int(self._difference > 0.0))

    def _keep(self, unit):
        """Keeps one forest and drops the others."""
        self._forests.keep(unit)
        for state in (self._units, self._losses, self._best):
            state[:] = [state[unit]]


class _Forests:
    """Forests of the same rows in different units, with the interface of one forest."""

    def __init__(self, forests):
        self._forests = forests

    def keep(self, place):
        self._forests = [self._forests[place]]

    def partial_fit(self, X, y):
        for forest in self._forests:
            forest.partial_fit(X, y)

    def forget(self, X, y):
        for forest in self._forests:
            forest.forget(X, y)

    def means(self, row):
        """Means at all κ, by forest."""
        return [forest._model.predict_at_kappas(row, _KAPPAS, 1)[0].tolist() for forest in self._forests]


class MondrianForestClassifier(_Stream, base.Classifier):
    """A Mondrian forest for classification.

    Parameters
    ----------
    n_models : int, default=10
        Number of trees.
    window : int, None or "adaptive", default=None
        Number of rows to keep; older ones are forgotten exactly.
    warm_up : int, default=1024
        Number of rows that determine root box and scale.
    seed : int, default=0
        Seed.
    """

    def __init__(self, n_models: int = 10, window: int | str | None = None, warm_up: int = 1024, seed: int = 0):
        self._start(n_models, window, warm_up, seed)
        # Classes are numbered in the order of their first occurrence, so that a new one renumbers none.
        self._numbers, self._classes = {}, []

    @property
    def _multiclass(self):
        return True

    def _new_forest(self):
        return _classification.MondrianForestClassifier(**self._forest_options())

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
            for share, predicted in zip(self._shares().tolist(), self._member_predictions(x)):
                for label, probability in predicted.items():
                    mixed[label] = mixed.get(label, 0.0) + share * probability
            return mixed
        return self._predict(x)

    @staticmethod
    def _loss_of(predicted, y):
        return -np.log(max(predicted.get(y, 0.0), 1e-3))

    def _predict(self, x):
        if self._forest is None:
            return {}
        shares = self._forest.predict_proba(self._vector(x))[0].tolist()
        return {self._classes[number]: share for number, share in zip(self._forest.classes_.tolist(), shares)}


class MondrianAnomaly(_Stream, base.AnomalyDetector):
    """Anomaly detection by low density.

    The score is minus the log density, plus one and the distance in widths of the box for a row outside of it. Box,
    scale, lifetime and γ are those of the stored rows, recomputed whenever the number of learned rows has doubled; in
    between a row outside the box is learned as the nearest point of the box. The score is 0 until two different rows were
    learned.

    Parameters
    ----------
    n_models : int, default=10
        Number of trees.
    window : int or None, default=1000
        Number of rows to keep; older ones are forgotten exactly.
    warm_up : int, default=16
        Number of rows before the first score.
    seed : int, default=0
        Seed.
    """

    def __init__(self, n_models: int = 10, window: int | None = 1000, warm_up: int = 16, seed: int = 0):
        if isinstance(window, str):
            raise ValueError(f"window is {window!r}, but must be a number of rows or None")
        self._start(n_models, window, warm_up, seed)

    def _inside(self, row):
        """The point of the box nearest to a row, and its distance in widths of the box."""
        lower, upper = self._forest.lower_, self._forest.upper_
        width = upper - lower
        inside = np.clip(row, lower + 1e-9 * width, upper)
        return inside, float((np.abs(row - inside) / width)[np.abs(row - inside) > 1e-8 * width].sum())

    def learn_one(self, x):
        is_new = self._take_keys(x)
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
        options = {**self._options(), "lower": lower - margin, "upper": upper + margin}
        chosen = _density.MondrianDensity(**options).fit(X)
        # Until the next refit γ stays as it is, like box, scale and lifetime: finding it anew takes far longer than a row.
        found = {"lifetime": chosen.lifetime_, "gamma": chosen.gamma_, "weights": chosen.weights_}
        self._forest = _density.MondrianDensity(**options, **found).fit(X)

    def score_one(self, x):
        if self._forest is None:
            return 0.0
        row, distance = self._inside(self._vector(x)[:, : self._forest.n_features_in_])
        score = -float(self._forest.score_samples(row)[0])
        return score + 1.0 + distance if distance > 0.0 else score
