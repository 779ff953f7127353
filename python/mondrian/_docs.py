"""The parts of docstrings that several estimators share, put in where ``{name}`` stands on a line of its own."""

from __future__ import annotations

PARTS = {
    "tree_parameters": """
lower, upper : array-like of shape (n_features,), default=None
    The root box, fixed at the first call; the box of the first data without.
measure : {"uniform", "quantile"}, default="uniform"
    What lengths mean: plain length, or the first data's own distribution on each axis.
weights : "auto", "std", None or array-like of shape (n_features,), default="auto"
    One factor a dimension on the measure. "auto" is 1 (raw units) for a finite lifetime by value and
    1/standard deviation when the lifetime is "auto" or infinite; None is 1.
""",
    "validation": """
validation : "hold-out" or int, default="hold-out"
    What is automatic is chosen on: a fifth of the rows, held out, or so many folds. Rows are assigned by a hash of their
    coordinates, so their order does not matter.
""",
    "density_validation": """
validation : "hold-out", "leave-one-out" or int, default="hold-out"
    What an automatic lifetime is chosen on: a fifth of the rows, held out, every row left out in turn, or so many folds.
    Rows are assigned by a hash of their coordinates, so their order does not matter.
""",
    "run_parameters": """
random_state : int, RandomState or None, default=None
    An integer is the core's seed.
n_jobs : int or None, default=None
    Threads, in joblib's meaning; results do not depend on it.
""",
    "verbose": """
verbose : bool or callable, default=False
    True prints how far a long call is; a callable gets the share of work done, from 0 to 1. Ctrl-C ends it.
""",
    "tree_attributes": """
lifetime_ : float
    The lifetime looked at.
weights_ : ndarray of shape (n_features_in_,) or None
    Factors of the measure; None for the quantile measure.
n_features_in_ : int
    Number of inputs.
""",
    "rows": """
X : array-like of shape (n_samples, n_features)
    Rows.
""",
}


def documented(cls):
    """Fills in the shared parts of a class's docstring."""
    lines = []
    for line in cls.__doc__.split("\n"):
        name = line.strip()
        if not (name.startswith("{") and name.endswith("}")):
            lines.append(line)
            continue
        indent = line[: len(line) - len(line.lstrip())]
        lines += [indent + part if part else "" for part in PARTS[name[1:-1]].strip("\n").split("\n")]
    cls.__doc__ = "\n".join(lines)
    return cls
