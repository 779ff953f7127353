"""Which columns of a table are categorical, and their categories as numbers."""

from __future__ import annotations

import numpy as np


def is_frame(X):
    """Whether X has named columns, as pandas' and polars' frames do."""
    return hasattr(X, "columns") and hasattr(X, "shape") and len(getattr(X, "shape", ())) == 2


def is_polars(X):
    """Whether X is a frame of polars."""
    return type(X).__module__.split(".")[0] == "polars"


class Categories:
    """The categorical columns of a table, learned once: code k is the k-th category, a missing cell stays missing, and an unseen category gets a separate code."""

    def __init__(self, X, categorical_features):
        # Lists and other array-likes are converted to arrays first; the checks of fit refuse anything that is not a
        # table.
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        n_columns = shape[1] if len(shape) == 2 else 0
        names = [str(name) for name in X.columns] if is_frame(X) else None
        self.mask = _mask(X, categorical_features, n_columns, names)
        self.levels = {}
        if is_frame(X):
            for number in np.flatnonzero(self.mask):
                self.levels[int(number)] = _levels(_column(X, int(number)))

    def encode(self, X):
        """The table with categories replaced by codes."""
        if not self.levels or not is_frame(X) or X.shape[1] != len(self.mask):
            return X
        codes = {number: _codes(_column(X, number), levels) for number, levels in self.levels.items()}
        if is_polars(X):
            import polars

            return X.with_columns([polars.Series(X.columns[number], column) for number, column in codes.items()])
        X = X.copy(deep=False)
        for number, column in codes.items():
            # The column's type changes, so it is replaced, not written into.
            X.isetitem(number, column)
        return X

    def to_json(self):
        """The content stored in a file."""
        return {"mask": self.mask.tolist(), "levels": {str(k): v for k, v in self.levels.items()}}

    @classmethod
    def from_json(cls, noted):
        """Restored from the content of a file."""
        made = cls.__new__(cls)
        made.mask = np.array(noted["mask"], dtype=bool)
        made.levels = {int(k): v for k, v in noted["levels"].items()}
        return made


def text_in(X):
    """The name of the first column of a frame with a text that is not a number, and that text; None if there is none."""
    for number in range(X.shape[1]) if is_frame(X) else ():
        for value in _values(_column(X, number)):
            if isinstance(value, str) and not _is_number(value):
                return str(X.columns[number]), value
    return None


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def _column(X, number):
    return X.to_series(number) if is_polars(X) else X.iloc[:, number]


def _is_categorical(column):
    name = str(column.dtype).lower()
    return name.startswith(("category", "categorical", "enum"))


def _mask(X, choice, n_columns, names):
    mask = np.zeros(n_columns, dtype=bool)
    if choice is None or n_columns == 0:
        return mask
    if isinstance(choice, str):
        if choice != "from_dtype":
            raise ValueError(f'categorical_features is {choice!r}, but must be "from_dtype", None, a mask, indices or names')
        if is_frame(X):
            return np.array([_is_categorical(_column(X, number)) for number in range(n_columns)], dtype=bool)
        return mask
    chosen = np.asarray(choice)
    if chosen.size == 0:
        return mask
    if chosen.dtype == bool:
        if chosen.shape != (n_columns,):
            raise ValueError(f"categorical_features has {chosen.size} marks, but X has {n_columns} columns")
        return chosen.copy()
    if chosen.dtype.kind in "iu":
        if chosen.min() < 0 or chosen.max() >= n_columns:
            raise ValueError(f"categorical_features must be column numbers from 0 to {n_columns - 1}")
        mask[chosen] = True
        return mask
    if chosen.dtype.kind in "UO" and names is not None:
        unknown = [str(name) for name in chosen.tolist() if str(name) not in names]
        if unknown:
            raise ValueError(f"categorical_features names {unknown}, which X does not have")
        mask[[names.index(str(name)) for name in chosen.tolist()]] = True
        return mask
    raise ValueError("categorical_features must be a mask, column numbers, or names of the columns of a frame")


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value


def _values(column):
    """The cells as plain values, None for missing ones."""
    if hasattr(column, "to_list") and type(column).__module__.split(".")[0] == "polars":
        return column.to_list()
    missing = column.isna().to_numpy()
    return [None if gone else _plain(value) for value, gone in zip(column.tolist(), missing)]


def _levels(column):
    return sorted({value for value in _values(column) if value is not None}, key=lambda value: (str(type(value)), value))


def _codes(column, levels):
    places = {value: float(place) for place, value in enumerate(levels)}
    unseen = float(len(levels))
    return np.array([np.nan if value is None else places.get(value, unseen) for value in _values(column)])
