"""The program's conversion of table columns to model inputs, repeated in Python."""

from __future__ import annotations

import datetime
import numbers

import numpy as np

from . import _parameters as parameters
from ._dates import days_of, days_of_cells


class Preparation:
    """Converts the columns of a table to the inputs of a model fitted by the program.

    Numbers are scaled; categories are one-hot encoded or, for the tuned Laplace kernel, one input of category numbers,
    as ``docs/program.md`` describes. Estimators loaded from such a file have one as ``preparation_`` and apply it to
    all rows.

    Attributes
    ----------
    columns : list of str
        The columns it needs, in the order in which arrays without names must have them.
    inputs : list of str
        The model's inputs.
    """

    def __init__(self, record):
        self._record = record
        self.columns = [_text(entry["name"]) for entry in record["inputs"]]
        self._encoders = [_encoder(entry) for entry in record["inputs"]]
        self.inputs = [name for encoder in self._encoders for name in encoder.inputs]
        self._missing = record["missing"]
        if not self.columns:
            raise ValueError("it has no columns")

    def transform(self, X):
        """The model's inputs.

        Parameters
        ----------
        X : frame, or array-like of shape (n_samples, n_columns)
            Columns of a frame are found by name and others are ignored; columns of an array are taken in order.

        Returns
        -------
        inputs : ndarray of shape (n_samples, n_inputs)
        """
        parts = [encoder(cells, self._missing) for encoder, cells in zip(self._encoders, self._columns_of(X))]
        return np.ascontiguousarray(np.column_stack(parts))

    def _columns_of(self, X):
        if hasattr(X, "columns") and hasattr(X, "__getitem__"):
            missing = [name for name in self.columns if name not in list(X.columns)]
            if missing:
                raise ValueError(f"X has no column {missing[0]!r}; the model was fitted on {', '.join(self.columns)}")
            return [np.asarray(X[name]) for name in self.columns]
        kinds = {encoder.kind for encoder in self._encoders}
        try:
            X = np.asarray(X, dtype=np.float64 if kinds == {"number"} else object)
        except (TypeError, ValueError):
            raise ValueError("X contains a value that is not a number") from None
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got an array with {X.ndim} dimensions instead. Reshape your data.")
        if X.shape[1] != len(self.columns):
            raise ValueError(f"X has {X.shape[1]} features, but the model is expecting {len(self.columns)} features")
        return list(X.T)

    def record(self, n_rows):
        """The program's record of it."""
        return {**self._record, "n_rows": n_rows}

    def __eq__(self, other):
        same = ("inputs", "target")
        return isinstance(other, Preparation) and all(self._record[key] == other._record[key] for key in same)

    __hash__ = None

    def __repr__(self):
        return f"Preparation({', '.join(self.columns)})"


class _Number:
    """A column of numbers or dates, scaled."""

    kind = "number"

    def __init__(self, name, fill, scaling, is_date):
        self.inputs, self._name, self._fill, self._scaling, self._is_date = [name], name, fill, scaling, is_date

    def _numbers(self, cells):
        if self._is_date and cells.dtype.kind == "M":
            return days_of(cells)
        if cells.dtype.kind in "OUT":
            cells = [None if _is_missing(cell) else cell for cell in cells]
            if self._is_date and any(isinstance(cell, (str, datetime.date)) for cell in cells):
                return days_of_cells(cells)
        if getattr(cells, "dtype", np.dtype(float)).kind == "M":
            raise ValueError("dates")
        return np.array(cells, dtype=np.float64)

    def __call__(self, cells, missing_cells):
        try:
            values = self._numbers(cells)
        except (TypeError, ValueError):
            what = "date" if self._is_date else "number"
            raise ValueError(f"column {self._name!r} contains a value that is not a {what}") from None
        missing = ~np.isfinite(values)
        if missing.any() and missing_cells == "model":
            return np.where(missing, np.nan, self._scaling(np.where(missing, 0.0, values)))
        if missing.any():
            if missing_cells != "mean" or self._fill is None:
                raise ValueError(f"row {np.argmax(missing)}, column {self._name!r} is missing or not finite")
            values[missing] = self._fill
        return self._scaling(values)


class _Category:
    """A one-hot encoded column of categories: all inputs are 0 for an unseen category."""

    kind = "category"

    def __init__(self, name, levels):
        self.inputs, self._name = [f"{name}={level}" for level in levels], name
        self._places = {level: place for place, level in enumerate(levels)}
        # A numeric category may be given as a number: 1 and 1.0 are the category "1".
        self._numbers = {}
        for level, place in self._places.items():
            try:
                self._numbers.setdefault(float(level), place)
            except ValueError:
                continue

    def __call__(self, cells, missing_cells):
        inputs = np.zeros((len(cells), len(self._places)))
        for row, cell in enumerate(cells.tolist()):
            if not _is_missing(cell):
                place = self._place(cell)
                if place is not None:
                    inputs[row, place] = 1.0
            elif missing_cells != "mean":
                raise ValueError(f"row {row}, column {self._name!r} is missing")
        return inputs

    def _place(self, cell):
        """The number of a cell's category, by its text in a file; None for an unseen one."""
        for spelled in (str(cell), str(cell).lower() if isinstance(cell, bool) else None):
            if spelled in self._places:
                return self._places[spelled]
        return self._numbers.get(float(cell)) if isinstance(cell, numbers.Real) else None


class _Level(_Category):
    """A column of categories as one input: the number of the category, the next number for an unseen one, NaN for a missing one."""

    def __init__(self, name, levels):
        super().__init__(name, levels)
        self.inputs = [name]

    def __call__(self, cells, missing_cells):
        inputs = np.full(len(cells), np.nan)
        for row, cell in enumerate(cells.tolist()):
            if not _is_missing(cell):
                place = self._place(cell)
                inputs[row] = len(self._places) if place is None else place
            elif missing_cells not in ("mean", "model"):
                raise ValueError(f"row {row}, column {self._name!r} is missing")
        return inputs


def _is_missing(cell):
    """None, NaN, or the missing values of pandas."""
    try:
        return cell is None or bool(cell != cell)
    except TypeError:
        return True


def _encoder(entry):
    (kind, encoding), = entry["encoding"].items()
    if kind == "category":
        return _Category(entry["name"], [_text(level) for level in encoding["levels"]])
    if kind == "level":
        return _Level(entry["name"], [_text(level) for level in encoding["levels"]])
    fill = encoding["fill"]
    fill = None if fill is None else float(fill)
    return _Number(entry["name"], fill, _scaling(encoding["map"]), bool(entry.get("date", False)))


def _scaling(record):
    if record == "same":
        return _same
    (kind, knots), = record.items()
    if kind == "standard":
        centre = parameters.real("centre", knots["centre"], -np.inf)
        return _Standard(centre, parameters.real("spread", knots["spread"], strict=True))
    return _Quantiles(*(np.array(knots[name], dtype=np.float64) for name in ("values", "ranks")))


def _same(x):
    return x


class _Standard:
    """Subtract the centre, divide by the spread."""

    def __init__(self, centre, spread):
        self._centre, self._spread = centre, spread

    def __call__(self, x):
        return (x - self._centre) / self._spread


class _Quantiles:
    """Linear between knots; outside, the slope from end to end. The same bits as the program computes."""

    def __init__(self, values, ranks):
        if not len(values) or len(values) != len(ranks) or not _rises(values) or not _rises(ranks):
            raise ValueError("a quantile map is not increasing")
        self._values, self._ranks = values, ranks

    def __call__(self, x):
        values, ranks = self._values, self._ranks
        last = len(values) - 1
        slope = (ranks[last] - ranks[0]) / (values[last] - values[0]) if last else 1.0
        above = np.clip(np.searchsorted(values, x, side="right"), 1, max(last, 1))
        a, b = above - 1, np.minimum(above, last)
        with np.errstate(invalid="ignore", divide="ignore"):
            between = ranks[a] + (ranks[b] - ranks[a]) * ((x - values[a]) / (values[b] - values[a]))
        below, beyond = ranks[0] + slope * (x - values[0]), ranks[last] + slope * (x - values[last])
        return np.where(x <= values[0], below, np.where(x >= values[last], beyond, between))


def _rises(knots):
    return bool(np.isfinite(knots).all() and (np.diff(knots) > 0).all())


def _text(value):
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a name")
    return value
