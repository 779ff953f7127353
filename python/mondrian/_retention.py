"""The rows that a forest keeps: all, the last n, a sample of n, or windows of several lengths."""

from __future__ import annotations

from . import _parameters as parameters


def rows_held(estimator):
    """The arguments of the core for an estimator's ``window`` and ``max_rows``; without them it keeps all rows."""
    window, max_rows = getattr(estimator, "window", None), getattr(estimator, "max_rows", None)
    if window is not None and max_rows is not None:
        raise ValueError("window and max_rows cannot both be given")
    if isinstance(window, str):
        raise ValueError(f"window is {window!r}, but must be a number of rows, None or \"adaptive\"")
    given = {"window": window, "max_rows": max_rows}
    return {name: None if n is None else parameters.integer(name, n) for name, n in given.items()}


class Retaining:
    """Base of forests with ``window`` and ``max_rows``. The core keeps the rows; ``_members`` are the forests of an adaptive window."""

    def _is_adaptive(self):
        """Whether windows of several lengths are requested."""
        if not isinstance(self.window, str) or self.window != "adaptive":
            return False
        if self.max_rows is not None:
            raise ValueError("window and max_rows cannot both be given")
        return True

    def _refuse_weights(self, weights):
        if weights is not None and not (self.window is None and self.max_rows is None):
            raise ValueError("sample_weight is given, but rows of a window or of max_rows count once each")

    def _start_members(self, members, X, y):
        """Learns the first rows of windows of several lengths."""
        members.learn(X, y, first=True)
        self._members = members
        return self._take_whole()

    def _learn_members(self, X, y):
        self._members.learn(X, y, first=False)
        return self._take_whole()

    def _take_whole(self):
        """Attributes other than predictions are those of the forest of all rows."""
        return self._take(self._members.whole._model)

    def _refuse_members(self, what):
        if "_members" in self.__dict__:
            raise ValueError(f'a forest with window="adaptive" consists of several forests and cannot {what}')
