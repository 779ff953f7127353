"""Checks of parameters, made when ``fit`` is called and never earlier."""

from __future__ import annotations

import functools
import numbers

import joblib
import numpy as np
from sklearn.utils import check_random_state

#: Seeds of the core are 64 bits wide.
_SEEDS = 2**64


def seed_of(random_state):
    """The core's seed: a given integer, else drawn from the generator.

    Examples
    --------
    >>> seed_of(7)
    7
    """
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        if not 0 <= random_state < _SEEDS:
            raise ValueError(f"random_state is {random_state}, but must be between 0 and 2**64 - 1")
        return int(random_state)
    return int(check_random_state(random_state).randint(0, 2**63 - 1, dtype=np.int64))


#: Cached: the call takes longer than a prediction of one row.
_cores = functools.cache(joblib.cpu_count)


def threads_of(n_jobs):
    """The number of threads that joblib's ``n_jobs`` means, in its current context: at most one per core.

    More would only wait for each other, and thousands take longer to start than most fits.

    Examples
    --------
    >>> threads_of(1), threads_of(10**9) == threads_of(-1)
    (1, True)
    """
    if n_jobs is not None and not isinstance(n_jobs, numbers.Integral):
        raise TypeError(f"n_jobs is {n_jobs!r}, but must be an integer or None")
    n_threads = joblib.effective_n_jobs(n_jobs)
    return n_threads if n_threads == 1 else min(n_threads, _cores())


#: More trees, grids, rows or steps than this are assumed to be a typing error.
_MANY = 2**31


def integer(name, value, low=1, high=_MANY):
    """``value`` as an integer from ``low`` to ``high``."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} is {value!r}, but must be an integer")
    if value < low:
        raise ValueError(f"{name} is {value}, but must be at least {low}")
    if value > high:
        raise ValueError(f"{name} is {value}, but must be at most {high}")
    return int(value)


def n_estimators(value, name="n_estimators"):
    """A number of trees, grids or features, within the core's limit."""
    return integer(name, value, 1, 2**24)


def measure_of(value, n_dims):
    """A measure by name, or a user-defined one as knots ``(x, F(x))`` of every column, which the core checks.

    Examples
    --------
    >>> measure_of([[(0, 0), (1, 3)]], 1)
    [[(0.0, 0.0), (1.0, 3.0)]]
    """
    if isinstance(value, str):
        return choice("measure", value, ("uniform", "quantile"))
    try:
        axes = [np.asarray(axis, dtype=np.float64) for axis in value]
    except (TypeError, ValueError):
        axes = None
    if axes is None or any(axis.ndim != 2 or axis.shape[1] != 2 for axis in axes):
        raise ValueError(
            f'measure is {value!r}, but must be "uniform", "quantile" or, for each column, a list of knots (x, F(x))'
        )
    if len(axes) != n_dims:
        raise ValueError(f"measure has knots of {len(axes)} columns, but X has {n_dims}")
    return [[(float(x), float(f)) for x, f in axis] for axis in axes]


def real(name, value, low=0.0, *, strict=False, infinite=False):
    """``value`` as a float of at least ``low`` (above it, if strict)."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} is {value!r}, but must be a number")
    value = float(value)
    above = value > low if strict else value >= low
    if not above or (not infinite and not np.isfinite(value)):
        kind = "number" if infinite else "finite number"
        raise ValueError(f"{name} is {value}, but must be a {kind} {'>' if strict else '≥'} {low}")
    return value


def auto_or_real(name, value, low=0.0, **limits):
    """None for "auto", else a checked float."""
    if isinstance(value, str):
        if value == "auto":
            return None
        raise ValueError(f'{name} is {value!r}, but must be "auto" or a number')
    return real(name, value, low, **limits)


def choice(name, value, choices):
    """``value`` if it is one of the strings."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} is {value!r}, but must be one of {', '.join(choices)}")
    return value


def boolean(name, value):
    """``value`` as a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}, but must be True or False")
    return bool(value)


def vector(name, value, n_dims, low=None):
    """A number for all dimensions or one per dimension, as a list of ``n_dims`` floats."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}, but must be numbers") from None
    if array.ndim == 0:
        array = np.full(n_dims, array)
    if array.shape != (n_dims,):
        raise ValueError(f"{name} has shape {array.shape}, but must have one number per dimension: ({n_dims},)")
    if not np.isfinite(array).all() or (low is not None and (array < low).any()):
        raise ValueError(f"{name} is {value!r}, but must be finite" + ("" if low is None else f" and ≥ {low}"))
    return array.tolist()


def root_box(lower, upper, n_dims):
    """The corners of the root box, or None twice for the box of the first data."""
    if lower is None and upper is None:
        return None, None
    if lower is None or upper is None:
        raise ValueError("lower and upper must be given together")
    return vector("lower", lower, n_dims), vector("upper", upper, n_dims)


def validation_of(validation):
    """``validation`` for the core: a word or a number of folds."""
    if isinstance(validation, str):
        return choice("validation", validation, ("hold-out", "leave-one-out"))
    return integer("validation", validation, 2, 10_000)


def weights_of(weights, n_dims):
    """``weights`` for the core: a word or a list."""
    if weights is None:
        return "raw"
    if isinstance(weights, str):
        return choice("weights", weights, ("auto", "std", "tuned"))
    return vector("weights", weights, n_dims, low=0.0)


def dimensions(name, value, n_dims, counts):
    """Different dimensions, each below ``n_dims``, their number one of ``counts``."""
    if not isinstance(value, (tuple, list)) or len(value) not in counts:
        raise ValueError(f"{name} is {value!r}, but must be {' or '.join(map(str, counts))} dimensions")
    dims = tuple(integer(name, dim, 0, n_dims - 1) for dim in value)
    if len(set(dims)) < len(dims):
        raise ValueError(f"{name} is {value!r}, but must be different dimensions")
    return dims
