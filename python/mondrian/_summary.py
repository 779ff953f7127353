"""Training in separate parts: moments, a domain shared by all parts, and summaries that add up to a forest."""

from __future__ import annotations

import json

import numpy as np
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import _get_feature_names, check_array

from . import _files, _mondrian
from . import _parameters as parameters
from ._base import numbers_of

TASKS = ("regression", "classification", "density")


class Moments:
    """Number, range, exact sums and a keyed sample of rows: one pass, distributed over any number of machines.

    Moments of parts, merged in any order, are those of all rows, bit for bit.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
        Targets or classes; texts, booleans and whole numbers are also used as classes.
    task : {{"regression", "classification", "density"}}, default=None
        The type of y. Default: both targets and classes, if possible.
    n_sample : int, default=2048
        Size of the sample that determines an automatic lifetime; it must be equal in all parts.

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian import Moments, summarize
    >>> X = np.random.default_rng(0).uniform(size=(300, 2))
    >>> y = X[:, 0] + X[:, 1]
    >>> moments = Moments(X[:100], y[:100]).merge(Moments(X[100:], y[100:]))
    >>> domain = moments.domain(n_estimators=20, lifetime=5.0, random_state=0)
    >>> parts = [summarize(X[i : i + 75], y[i : i + 75], domain) for i in range(0, 300, 75)]
    >>> summary = parts[2]
    >>> for part in (parts[0], parts[3], parts[1]):
    ...     summary = summary.merge(part)
    >>> forest = summary.finish()
    >>> forest.predict(X[:2]).shape
    (2,)
    """

    def __init__(self, X, y=None, *, task=None, n_sample=2048):
        if task is not None:
            parameters.choice("task", task, TASKS)
        names, X = _table(X)
        n_sample = parameters.integer("n_sample", n_sample, 1, 2**24)
        targets, self._single, self.classes_ = np.empty(0), True, None
        if y is not None and task != "density":
            y = np.asarray(y)
            if len(y) != len(X):
                raise ValueError(f"X has {len(X)} rows, but y has {len(y)}")
            if task != "regression" and y.ndim == 1 and (task == "classification" or y.dtype.kind in "OUSbiu"):
                self.classes_ = _classes(y)
            if task != "classification" and y.dtype.kind in "fiu":
                targets = np.ascontiguousarray(y, dtype=np.float64)
                self._single = y.ndim == 1
        self._names = names
        self._core = _mondrian.Moments.of(X, targets.ravel(), n_sample)

    @property
    def n_rows_(self):
        """Number of rows."""
        return self._core.n_rows

    @property
    def mean_(self):
        """Mean of each input."""
        return np.array([mean for mean, _ in self._core.mean_and_deviation])

    @property
    def std_(self):
        """Standard deviation of each input."""
        return np.array([deviation for _, deviation in self._core.mean_and_deviation])

    @property
    def sample_(self):
        """Inputs of the sampled rows, followed by their targets: shape (n_sample, n_features + n_targets)."""
        return self._core.sample()

    def merge(self, other):
        """Add the rows of another part.

        Parameters
        ----------
        other : Moments
            Moments of rows with the same columns.

        Returns
        -------
        self : object
        """
        if not isinstance(other, Moments):
            raise TypeError(f"cannot merge a {type(other).__name__} into moments")
        if self._names != other._names:
            raise ValueError(f"cannot combine: columns {self._names} and {other._names}")
        if (self.classes_ is None) != (other.classes_ is None) or self._single != other._single:
            raise ValueError("cannot combine: one has classes or several targets, the other not")
        self._core.merge(other._core)
        if self.classes_ is not None:
            self.classes_ = np.union1d(self.classes_, other.classes_)
        return self

    def domain(
        self, n_estimators=100, lifetime="auto", *, prior_mean="auto", prior_variance="auto", noise_variance="auto",
        kappa="auto", leaf_model="hierarchical", gamma="auto", lower=None, upper=None, margin=0.0, measure="uniform",
        weights="auto", random_state=None,
    ):  # fmt: skip
        """The settings shared by all parts of a training on these rows. Parameters are those of the forests.

        Parameters
        ----------
        n_estimators : int, default=100
            Number of trees.
        lifetime : float or "auto", default="auto"
            Lifetime of the trees, finite: larger values give finer partitions. "auto" is the time by which half of the
            cuts that separate the sampled rows have occurred, and a smaller lifetime is chosen on a fifth of the rows
            in the pass of the summaries.
        prior_mean, prior_variance, noise_variance, kappa : float or "auto", default="auto"
            For regression.
        leaf_model : {"hierarchical", "independent"}, default="hierarchical"
            For regression.
        gamma : float or "auto", default="auto"
            For classification and densities.
        lower, upper : array-like of shape (n_features,), default=None
            The root box. Default: the box of the rows.
        margin : float, default=0.0
            Margin of the box beyond the rows on each side, as a share of its width; 0.1 is recommended for a density.
        measure : {"uniform", "quantile"} or a list of knots per input, default="uniform"
            Measure of lengths; quantiles are those of the sample.
        weights : array-like of shape (n_features,), "auto", "std" or None, default="auto"
            One factor per input on the measure.
        random_state : int, RandomState or None, default=None
            The seed.

        Returns
        -------
        domain : Domain
        """
        n_dims = len(self._core.bounds[0])
        box = parameters.root_box(lower, upper, n_dims)
        notes = {"single": self._single, "names": self._names}
        if self.classes_ is not None:
            notes["classes"] = _files.classes_to_json(self.classes_)
        arguments = {
            "trees": {
                "n_trees": parameters.n_estimators(n_estimators),
                "lifetime": parameters.auto_or_real("lifetime", lifetime, infinite=True),
                "seed": parameters.seed_of(random_state),
                "lower": box[0],
                "upper": box[1],
                "measure": parameters.measure_of(measure, n_dims),
                "weights": parameters.weights_of(weights, n_dims),
                "validation": "hold-out",
                "window": None,
                "warm_up": None,
                "max_rows": None,
            },
            "margin": parameters.real("margin", margin),
            "mean": parameters.auto_or_real("prior_mean", prior_mean, -np.inf),
            "variance": parameters.auto_or_real("prior_variance", prior_variance),
            "noise": parameters.auto_or_real("noise_variance", noise_variance),
            "kappa": parameters.auto_or_real("kappa", kappa),
            "leaf_model": parameters.choice("leaf_model", leaf_model, ("hierarchical", "independent")),
            "gamma": parameters.auto_or_real("gamma", gamma, strict=True),
            "notes": {"python": json.dumps(notes, sort_keys=True)},
        }
        return Domain(self._core.domain(arguments))


class Domain:
    """Seed, root box, weights, number of trees and lifetime of a forest that is trained in parts.

    Made by :meth:`Moments.domain`; it can be serialised as text.
    """

    def __init__(self, core):
        if not isinstance(core, _mondrian.Domain):
            raise TypeError("a domain is made by Moments.domain or Domain.from_json")
        self._core = core

    @staticmethod
    def from_json(text):
        """The domain of a text.

        Parameters
        ----------
        text : str
            The result of ``to_json``.

        Returns
        -------
        domain : Domain
        """
        return Domain(_mondrian.Domain.from_json(text))

    def to_json(self):
        """The domain as a text.

        Returns
        -------
        text : str
        """
        return self._core.to_json()

    def shard(self, first, end):
        """Only the trees ``first`` to ``end - 1``; their summaries are joined with those of other shards.

        Parameters
        ----------
        first, end : int
            Numbers of trees.

        Returns
        -------
        domain : Domain
        """
        n_trees = self.n_estimators
        first, end = parameters.integer("first", first, 0, n_trees - 1), parameters.integer("end", end, 1, n_trees)
        if first >= end:
            raise ValueError(f"first is {first}, but must be below end, which is {end}")
        return Domain(self._core.shard(first, end))

    def __eq__(self, other):
        return isinstance(other, Domain) and self._core == other._core

    __hash__ = None

    def __repr__(self):
        return f"Domain({self.to_json()})"

    @property
    def seed(self):
        """The seed."""
        return self._core.params[0]

    @property
    def n_estimators(self):
        """Number of trees."""
        return self._core.params[1]

    @property
    def weights(self):
        """One factor per input on the measure; None under the quantile measure."""
        weights = self._core.params[2]
        return None if weights is None else np.asarray(weights)

    @property
    def lifetime(self):
        """The lifetime of the trees."""
        return self._core.lifetime

    @property
    def lower(self):
        """Lower corner of the root box."""
        return np.asarray(self._core.bounds[0])

    @property
    def upper(self):
        """Upper corner of the root box."""
        return np.asarray(self._core.bounds[1])

    @property
    def classes(self):
        """All classes, sorted; None if the moments have none."""
        classes = self._notes().get("classes")
        return None if classes is None else _files.classes_from_json(classes, None)

    def _notes(self):
        return json.loads(self._core.notes.get("python", "{}"))


def summarize(X, y, domain, task="regression", *, trees=None, n_jobs=None):
    """The statistics of rows in the trees of a domain, without the rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows inside the domain's box.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), or None
        Targets or classes; None for a density.
    domain : Domain
        The settings shared by all parts.
    task : {"regression", "classification", "density"}, default="regression"
        The task of the forest.
    trees : tuple of two int, default=None
        First tree of a shard and the one after its last. Default: all trees.
    n_jobs : int or None, default=None
        Threads.

    Returns
    -------
    summary : Summary
    """
    if not isinstance(domain, Domain):
        raise TypeError("domain must be a Domain, as Moments.domain makes it")
    parameters.choice("task", task, TASKS)
    if trees is not None:
        domain = domain.shard(*trees)
    names, X = _table(X)
    notes, threads = domain._notes(), parameters.threads_of(n_jobs)
    if names is not None and notes.get("names") not in (None, names):
        raise ValueError(f"the columns are {names}, but those of the domain are {notes['names']}")
    if task == "density":
        return Summary(_mondrian.Summary.of_density(domain._core, X, threads))
    if y is None or len(y) != len(X):
        raise ValueError(f"X has {len(X)} rows, but y has {0 if y is None else len(y)}")
    if task == "regression":
        y = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0)
        y = np.ascontiguousarray(y, dtype=np.float64)
        return Summary(_mondrian.Summary.of_regression(domain._core, X, y.ravel(), threads))
    classes, y = domain.classes, np.asarray(y)
    if classes is None:
        raise ValueError("the domain has no classes: make its moments with y, and task='classification' if y is float")
    numbers = numbers_of(y, classes)
    known = classes[np.minimum(numbers, len(classes) - 1)] == y
    if not np.all(known):
        raise ValueError(f"y contains {np.unique(y[~known]).tolist()}, classes that are not in the domain's moments")
    return Summary(_mondrian.Summary.of_classification(domain._core, X, numbers, len(classes), threads))


class Summary:
    """The cells that contain rows in every tree of a domain, with their numbers of rows, sums of targets or classes.

    Made by :func:`summarize`. Summaries of parts can be merged in any order; the predictions of the finished forest
    equal those of a fit on all rows, bit for bit. It cannot learn, forget, or grow beyond the domain's lifetime.
    """

    def __init__(self, core):
        if not isinstance(core, _mondrian.Summary):
            raise TypeError("a summary is made by summarize or Summary.from_bytes")
        self._core = core

    def merge(self, other):
        """Add the rows of another summary on the same domain.

        Parameters
        ----------
        other : Summary
            A summary of other rows.

        Returns
        -------
        self : object
        """
        self._core.merge(self._other(other), 1)
        return self

    def join(self, other):
        """Append the trees of the next shard of the same rows.

        Parameters
        ----------
        other : Summary
            A summary of the same rows and other trees.

        Returns
        -------
        self : object
        """
        self._core.join(self._other(other))
        return self

    def _other(self, other):
        if not isinstance(other, Summary):
            raise TypeError(f"cannot merge a {type(other).__name__} into a summary")
        return other._core

    def to_bytes(self):
        """The summary as bytes: it contains no code, and equal rows give equal bytes.

        Returns
        -------
        data : bytes
        """
        return self._core.to_bytes()

    @staticmethod
    def from_bytes(data):
        """The summary of untrusted bytes, which are checked.

        Parameters
        ----------
        data : bytes
            The result of ``to_bytes``.

        Returns
        -------
        summary : Summary
        """
        return Summary(_mondrian.Summary.from_bytes(bytes(data)))

    def __reduce__(self):
        return Summary.from_bytes, (self.to_bytes(),)

    def __copy__(self):
        return Summary(self._core.copy())

    def __deepcopy__(self, memo):
        return self.__copy__()

    @property
    def domain(self):
        """The domain."""
        return Domain(self._core.domain())

    @property
    def task(self):
        """The task of the forest."""
        return self._core.task

    @property
    def n_rows(self):
        """Number of rows."""
        return self._core.n_rows

    @property
    def n_cells(self):
        """Number of cells with rows, over all trees."""
        return self._core.n_cells

    def finish(self, n_jobs=None):
        """The forest of all rows.

        Parameters
        ----------
        n_jobs : int or None, default=None
            Threads; also those of the forest.

        Returns
        -------
        forest : MondrianForestRegressor, MondrianForestClassifier or MondrianDensity
            A fitted estimator with predictions, paths, views and files.
        """
        model = self._core.finish(parameters.threads_of(n_jobs))
        return _estimator(self.domain, self.task, model, n_jobs)


def _estimator(domain, task, model, n_jobs):
    """The fitted estimator of a core model that was finished on a domain."""
    from ._classification import MondrianForestClassifier
    from ._density import MondrianDensity
    from ._regression import MondrianForestRegressor

    notes, weights = domain._notes(), domain.weights
    kind = {
        "regression": MondrianForestRegressor,
        "classification": MondrianForestClassifier,
        "density": MondrianDensity,
    }[task]
    estimator = kind(
        n_estimators=domain.n_estimators,
        lifetime=domain.lifetime,
        lower=domain.lower.tolist(),
        upper=domain.upper.tolist(),
        weights="auto" if weights is None else weights.tolist(),
        measure="quantile" if weights is None else "uniform",
        random_state=domain.seed,
        n_jobs=n_jobs,
    )
    estimator.n_features_in_ = len(domain.lower)
    if notes.get("names") is not None:
        estimator.feature_names_in_ = np.asarray(notes["names"], dtype=object)
    if task == "regression":
        estimator._single = bool(notes.get("single", model.n_targets == 1))
    if task == "classification":
        estimator.classes_ = domain.classes
    return estimator._take(model)


def _table(X):
    """Names of columns, if there are any, and a table of doubles, which the core checks to be finite."""
    names = _get_feature_names(X)
    X = check_array(X, dtype=np.float64, ensure_all_finite=False, ensure_min_samples=0)
    return (None if names is None else [str(name) for name in names]), X


def _classes(y):
    """The classes of a part, sorted."""
    kind = type_of_target(y[:1000])
    if kind not in ("binary", "multiclass", "unknown"):
        raise ValueError(f"y is {kind}, not classes")
    return np.unique(y)
