"""Parts of docstrings shared by several estimators, inserted where ``{name}`` is on a line of its own."""

from __future__ import annotations

import inspect

PARTS = {
    # Parameters of constructors.
    "n_trees": """
n_estimators : int, default=100
    Number of trees.
""",
    "forest_lifetime": """
lifetime : float or "auto", default="auto"
    Lifetime of the trees: larger values give finer partitions; ``float("inf")`` separates all distinct rows. "auto"
    chooses it along the regularization path; with ``partial_fit`` it is infinite.
""",
    "tree_parameters": """
lower, upper : array-like of shape (n_features,), default=None
    The root box, fixed at the first call. Default: the box of the first data.
measure : {"uniform", "quantile"} or list, default="uniform"
    Measure of lengths: plain length, or the distribution of the first data on each axis. Or a user-defined measure: for
    each column at least two knots ``(x, F(x))`` of its distribution function, linear between them and with the mean
    slope beyond. Cuts are dense where F is steep.
weights : "auto", "std", "tuned", None or array-like of shape (n_features,), default="auto"
    One factor per dimension on the measure. "auto" is 1 (raw units) for a finite lifetime by value and 1/standard
    deviation when the lifetime is "auto" or infinite; None is 1. "tuned" (with targets) uses the lifetimes of the
    Laplace kernel, tuned on at most 2000 rows of the first call, if they improve a forest's predictions of held-out
    rows, else "std".
""",
    "unseen": """
unseen : {"keyed", "integrate"}, default="keyed"
    Whether cuts that were never instantiated are drawn from the key or integrated over.
""",
    "validation": """
validation : "hold-out" or int, default="hold-out"
    How automatic values are validated: on a held-out fifth of the rows, or in a number of folds. Rows are
    assigned by a hash of their coordinates, so their order does not matter.
""",
    "margin": """
margin : float, default=0.1
    Margin of the default box beyond the data on each side, as a share of its width.
""",
    "density_validation": """
validation : "hold-out", "leave-one-out" or int, default="hold-out"
    How an automatic lifetime is validated: on a held-out fifth of the rows, by leave-one-out, or in a number of folds.
    Rows are assigned by a hash of their coordinates, so their order does not matter.
""",
    "n_grids": """
n_estimators : int, default=100
    Number of grids.
""",
    "kernel_lifetime": """
lifetime : float or array-like of shape (n_features,), default=1.0
    Lifetime of the kernel, for all dimensions or one per dimension.
""",
    "sparse_output": """
sparse_output : bool, default=True
    Whether to return a sparse matrix.
""",
    "run_parameters": """
random_state : int, RandomState or None, default=None
    An integer is used as the seed.
n_jobs : int or None, default=None
    Threads, in joblib's meaning, at most one per core; results do not depend on it.
""",
    "verbose": """
verbose : bool or callable, default=False
    True prints the progress of long calls; a callable receives the share of work done, from 0 to 1. Ctrl-C cancels a
    call.
""",
    "step_verbose": """
verbose : bool or callable, default=False
    True prints every evaluation of the search; a callable receives it as a dictionary.
""",
    "forest_parameters": """
{tree_parameters}
{unseen}
{validation}
{retention}
{warm_up}
{run_parameters}
{verbose}
""",
    "retention": """
window : int, "adaptive" or None, default=None
    Number of rows to keep, the last ones: older rows are forgotten exactly. "adaptive" trains models on windows of 250,
    1000 and 4000 rows and on all rows, and predicts their mean, weighted by recent losses. It depends on the order of
    rows, and methods other than predictions use the model of all rows.
max_rows : int or None, default=None
    Number of rows to keep, a sample by keyed hash that does not depend on the order of the rows.
""",
    "warm_up": """
warm_up : int or None, default=1024
    For streams that start with ``partial_fit``: the number of rows that fix the root box and automatic weights, for a density also an
    automatic lifetime. Until then the model is fitted again whenever the number of rows has doubled, and the box has a margin
    around the rows. A forest's box is put around all rows again if later ones leave it. None fixes all of this at
    the first call. ``fit`` always takes them from its rows.
""",
    "density_parameters": """
{tree_parameters}
{margin}
{density_validation}
""",
    # Attributes.
    "tree_attributes": """
lifetime_ : float
    The lifetime of the view.
{ground_attributes}
""",
    "ground_attributes": """
{inputs}
""",
    "kernel_parameters": """
measure : {"auto", "uniform", "quantile", "normal", "both"}, default="auto"
    How distances along a continuous input are measured: in x, in its ranks, in the normal scores of the ranks, or in x
    and ranks with separate lifetimes; "auto" is "both" up to 64 inputs and "uniform" above.
metric : "auto", None, "diagonal", "full" or int, default="auto"
    The form of A. None omits it; an integer is a diagonal matrix above this many free rows; "auto" is None below 300
    rows, else "full" up to 40 inputs and 16 above.
exponent : float or "auto", default="auto"
    The exponent p, above 0 and at most 2; 1 is the Mondrian family.
""",
    "kernel_attributes": """
metric_ : ndarray of shape (n_directions, n_features_in_) or None
    A in the units of X; columns of inputs that are not numbers are zero.
exponent_ : float
    p.
feature_importances_ : ndarray of shape (n_features_in_,)
    Increase of the leave-one-out error when the input is permuted, relative to the largest.
trajectory_ : Trajectory
    Every evaluation of the tuning.
""",
    "inputs": """
n_features_in_ : int
    Number of inputs.
""",
    "map_attributes": """
Attributes
----------
{inputs}
""",
    # Examples of feature maps.
    "two_rows": """
Examples
--------
>>> import numpy as np
>>> X = np.array([[0.0, 0.0], [0.1, 0.2]])
""",
    "near_kernel": """
>>> bool(abs((Z @ Z.T)[0, 1] - np.exp(-0.3)) < 0.05)
True
""",
    # Parameters of methods, and what they return.
    "rows": """
Parameters
----------
X : array-like of shape (n_samples, n_features)
    Rows.
""",
    "only_rows": """
{rows}
y : ignored
""",
    "rows_and_targets": """
{rows}
y : array-like of shape (n_samples,)
    Targets.
""",
    "rows_and_classes": """
{rows}
y : array-like of shape (n_samples,)
    Classes.
""",
    "row_counts": """
sample_weight : array-like of shape (n_samples,), default=None
    Whole numbers: how many times each row counts.
""",
    "several_targets": """
{rows}
y : array-like of shape (n_samples,) or (n_samples, n_targets)
    Targets.
sample_weight : array-like of shape (n_samples,), default=None
    Weights ≥ 0: a row of weight 2 counts as two rows, a row of weight 0 is ignored.
""",
    "several_targets_unweighted": """
{rows}
y : array-like of shape (n_samples,) or (n_samples, n_targets)
    Targets.
""",
    "validation_rows": """
Parameters
----------
X_val : array-like of shape (n_samples, n_features), or list of such
    Validation rows.
""",
    "progress": """
progress : callable, default=None
    Called with the share of work done, instead of ``verbose``.
""",
    "path": """
Returns
-------
path : RegularizationPath
""",
    "mergeable": """
Parameters
----------
other : estimator of the same kind
    It must have the same ``random_state``, root box, measure and parameters.
""",
    "ax": """
Parameters
----------
ax : matplotlib axes, default=None
    The axes to draw on. Default: a new figure.
""",
    "drawn": """
Returns
-------
ax : matplotlib axes
""",
    "self": """
Returns
-------
self : estimator
""",
    "svg_file": """
Parameters
----------
path : str or path-like, default=None
    File to write.
""",
    "svg": """
Returns
-------
svg : str
""",
    # The process.
    "corners": """
Parameters
----------
lower, upper : array-like of shape (n_dims,)
    The corners of the box.
""",
    "length_weights": """
weights : array-like of shape (n_dims,), default=None
    One factor per dimension on lengths. Default: 1.
""",
    "data_measure": """
measure : array-like of shape (n, n_dims), default=None
    Rows whose distribution, one dimension at a time, replaces length. Default: plain length.
""",
    "time": """
time : float, default=None
    View at this earlier time instead of the lifetime.
""",
    "partition": """
Returns
-------
partition : Partition
""",
}


def documented(thing):
    """Fills in the shared parts of the docstring of a function, or of a class and of its methods."""
    if thing.__doc__ is not None:  # It is None under ``python -OO``.
        thing.__doc__ = "\n".join(_filled(thing.__doc__))
    if inspect.isclass(thing):
        for member in vars(thing).values():
            if inspect.isfunction(member):
                documented(member)
    return thing


def _filled(text):
    """The lines of a docstring; a part gets the indentation of its name and may contain other parts."""
    for line in text.split("\n"):
        name = line.strip()
        if name.startswith("{") and name.endswith("}"):
            indent = line[: len(line) - len(line.lstrip())]
            yield from (indent + part if part else "" for part in _filled(PARTS[name[1:-1]].strip("\n")))
        else:
            yield line
