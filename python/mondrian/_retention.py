"""Which rows a forest holds: all, the last n, or a sample of n that no order of arrival changes."""

from __future__ import annotations

import hashlib
import heapq
from collections import deque

import numpy as np


def retention_of(estimator):
    """The rule of an estimator's ``window`` and ``max_rows``, without rows yet; None if it holds all rows."""
    window, most = estimator.window, estimator.max_rows
    if window is None and most is None:
        return None
    if window is not None and most is not None:
        raise ValueError("window and max_rows are both given, but a forest holds its rows by one rule")
    if isinstance(window, str):
        raise ValueError(f"window is {window!r}, but must be a number of rows, None or \"adaptive\"")
    if window is not None:
        return Window(_count("window", window))
    # Any key does, as long as models that are merged share it.
    state = estimator.random_state
    return Sample(_count("max_rows", most), int(state) if isinstance(state, (int, np.integer)) else 0)


def _count(name, value):
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be a whole number or None, not {type(value).__name__}")
    if value < 1:
        raise ValueError(f"{name} is {value}, but must be at least 1")
    return int(value)


class Window:
    """The last n rows, in the order they came."""

    def __init__(self, n):
        self._n, self._held = n, deque()

    def __len__(self):
        return len(self._held)

    def copy(self):
        other = type(self)(self._n)
        other._held = self._held.copy()
        return other

    def plan(self, X, y):
        """The arriving rows to learn, as a slice or indices, and the held ones to forget, as pairs."""
        n_learned = min(len(X), self._n)
        n_gone = max(len(self._held) + n_learned - self._n, 0)
        held = iter(self._held)
        return slice(len(X) - n_learned, None), [next(held) for _ in range(n_gone)]

    def commit(self, X, y, learned, forgotten):
        """Takes note of a plan that was carried out."""
        for _ in forgotten:
            self._held.popleft()
        X, y = X[learned].copy(), y[learned].copy()
        self._held.extend((X[row : row + 1], y[row : row + 1]) for row in range(len(X)))

    def remove(self, X, y):
        """Takes note of rows that were forgotten otherwise."""
        for row in range(len(X)):
            for place, (x, target) in enumerate(self._held):
                if np.array_equal(x[0], X[row]) and np.array_equal(target[0], y[row]):
                    del self._held[place]
                    break

    def rows(self):
        """All rows held."""
        return list(self._held)

    @property
    def is_mergeable(self):
        return False


class Sample:
    """The n rows of smallest keyed hash: a function of the set of rows, so that order and merging do not matter."""

    is_mergeable = True

    def __init__(self, n, seed):
        self._n, self._key, self._heap, self._n_taken = n, seed.to_bytes(8, "little"), [], 0

    def __len__(self):
        return len(self._heap)

    def copy(self):
        other = type(self)(self._n, int.from_bytes(self._key, "little"))
        other._heap, other._n_taken = self._heap.copy(), self._n_taken
        return other

    def _hash(self, x, y):
        # Zeros of either sign are one number.
        text = repr(y.tolist()).encode()
        return int.from_bytes(hashlib.blake2b((x + 0.0).tobytes() + text, digest_size=16, key=self._key).digest(), "little")

    def plan(self, X, y):
        arriving = sorted((self._hash(X[row], y[row]), row) for row in range(len(X)))
        if len(arriving) == 1 and len(self._heap) >= self._n:
            smallest, _ = arriving[0]
            is_in = smallest < -self._heap[0][0]
            return ([0], [self._heap[0][2]]) if is_in else ([], [])
        room = self._n - len(self._heap)
        learned = [row for _, row in arriving[: max(room, 0)]]
        held = sorted(self._heap)
        forgotten = []
        for smallest, row in arriving[max(room, 0) :]:
            if len(forgotten) == len(held) or smallest >= -held[len(forgotten)][0]:
                break
            forgotten.append(held[len(forgotten)][2])
            learned.append(row)
        return learned, forgotten

    def commit(self, X, y, learned, forgotten):
        for _ in forgotten:
            heapq.heappop(self._heap)
        for row in learned:
            self._n_taken += 1
            entry = (X[row : row + 1].copy(), y[row : row + 1].copy())
            heapq.heappush(self._heap, (-self._hash(X[row], y[row]), self._n_taken, entry))

    def remove(self, X, y):
        for row in range(len(X)):
            wanted = -self._hash(X[row], y[row])
            for place, held in enumerate(self._heap):
                if held[0] == wanted:
                    del self._heap[place]
                    break
        heapq.heapify(self._heap)

    def rows(self):
        return [entry for _, _, entry in self._heap]


class Retaining:
    """What forests do with a rule for the rows they hold: its state is ``_retention``."""

    def _first_rows(self, X, y, weights):
        """The rows of a first call that are held."""
        self._let_go_of_rows()
        retention = retention_of(self)
        if retention is None:
            return X, y
        refuse_weights(weights)
        learned, _ = retention.plan(X, y)
        retention.commit(X, y, learned, [])
        self._retention = retention
        return X[learned], y[learned]

    def _let_go_of_rows(self):
        for state in ("_retention", "_members"):
            self.__dict__.pop(state, None)

    def _is_adaptive(self):
        """Whether windows of several lengths are asked for."""
        if not isinstance(self.window, str) or self.window != "adaptive":
            return False
        if self.max_rows is not None:
            raise ValueError("window and max_rows are both given, but a forest holds its rows by one rule")
        return True

    def _start_members(self, members, X, y, weights=None):
        """The first rows of windows of several lengths."""
        refuse_weights(weights)
        self._let_go_of_rows()
        members.learn(X, y, first=True)
        self._members = self._retention = members
        return self._take_whole()

    def _learn_members(self, X, y):
        self._members.learn(X, y, first=False)
        return self._take_whole()

    def _take_whole(self):
        """Attributes other than predictions are those of the forest of all rows."""
        return self._take(self._members.whole._model)

    def _refuse_members(self, what):
        if "_members" in self.__dict__:
            raise ValueError(f'window="adaptive" is several forests, none of which is to {what}')

    def _learn_held(self, X, y, learn):
        """Learns those of validated rows that are to be held, and forgets what makes room for them."""
        learned, forgotten = self._retention.plan(X, y)
        rows = X[learned]
        if len(rows) > 0:
            learn(rows, y[learned])
        if forgotten:
            self._forget_rows(*(np.concatenate(columns) for columns in zip(*forgotten)))
        self._retention.commit(X, y, learned, forgotten)
        return self

    def _merge_held(self, other):
        """Merges where one of the two has a rule; whether that was so."""
        rules = [model.__dict__.get("_retention") for model in (self, other)]
        if rules == [None, None]:
            return False
        if not all(isinstance(rule, Sample) for rule in rules):
            raise ValueError("cannot combine: rows of a window have an order, so only forests with max_rows are merged")
        rows = rules[1].rows()
        if rows:
            self.partial_fit(*(np.concatenate(columns) for columns in zip(*rows)))
        return True


def refuse_weights(weights):
    if weights is not None:
        raise ValueError("sample_weight is given, but rows of a window or of max_rows count once each")
