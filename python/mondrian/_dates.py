"""Dates as numbers: days since 1970-01-01 in universal time, as in the program."""

from __future__ import annotations

import datetime

import numpy as np

from ._categories import is_frame, is_polars

_MICROSECONDS_PER_DAY = 86_400_000_000


def days_of(instants):
    """The days of an array of datetime64; NaN for missing ones."""
    instants = instants.astype("datetime64[us]")
    microseconds = instants.astype(np.int64)
    days, rest = np.divmod(microseconds, _MICROSECONDS_PER_DAY)
    return np.where(np.isnat(instants), np.nan, days + rest / 1e6 / 86_400.0)


def days_of_cells(cells):
    """The days of dates, or of texts in ISO 8601 form; NaN for missing ones."""
    return days_of(np.array([_instant(cell) for cell in cells], dtype="datetime64[us]"))


def _instant(cell):
    if cell is None or cell != cell:
        return np.datetime64("NaT")
    if isinstance(cell, str):
        cell = datetime.datetime.fromisoformat(cell.strip().replace("Z", "+00:00"))
    if isinstance(cell, datetime.datetime) and cell.tzinfo is not None:
        cell = cell.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return np.datetime64(cell, "us")


def with_days(X):
    """A frame with dates replaced by numbers of days; anything else unchanged."""
    if not is_frame(X):
        return X
    if is_polars(X):
        dates = [name for name, dtype in zip(X.columns, X.dtypes) if str(dtype).startswith("Date")]
        return X.with_columns([_polars_days(X[name]) for name in dates]) if dates else X
    dates = [number for number in range(X.shape[1]) if _holds_dates(X.iloc[:, number])]
    if not dates:
        return X
    X = X.copy(deep=False)
    for number in dates:
        # The column's type changes, so it is replaced, not written into.
        X.isetitem(number, _pandas_days(X.iloc[:, number]))
    return X


def _polars_days(column):
    import polars

    return polars.Series(column.name, days_of(column.dt.epoch("us").to_numpy().astype("datetime64[us]")))


def _holds_dates(column):
    """Whether a column of pandas has the type of dates, or is of objects that are dates."""
    kind = getattr(column.dtype, "kind", "")
    if kind == "O":
        first = column.first_valid_index()
        return first is not None and isinstance(column.loc[first], datetime.date)
    return kind == "M"


def _pandas_days(column):
    if column.dtype.kind == "O":
        return days_of_cells(column.where(column.notna(), None).tolist())
    if getattr(column.dtype, "tz", None) is not None:
        column = column.dt.tz_convert("UTC").dt.tz_localize(None)
    return days_of(column.to_numpy(dtype="datetime64[us]"))
