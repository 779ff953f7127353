"""Densities by Pólya-tree forests, and the classifier made of one density per class."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin, DensityMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from . import _adaptive as adaptive
from . import _mondrian
from . import _parameters as parameters
from ._base import Classifier, all_or_nothing, numbers_of
from ._docs import documented
from ._path import RegularizationPath
from ._plotting import axes_for
from ._trees import OnlineEstimator, TreeEstimator, several_sets


class _DensityParameters:
    """The parameters of densities."""

    def _arguments(self, n_dims, warm_up=None):
        return {
            "trees": {**self._tree_arguments(n_dims), "warm_up": warm_up},
            "gamma": parameters.auto_or_real("gamma", self.gamma, strict=True),
            "margin": parameters.real("margin", self.margin),
        }

    def _fewest_rows(self):
        # One row has no box: its sides would have length zero.
        return {"ensure_min_samples": 2 if self.lower is None else 1}


@documented
class MondrianDensity(_DensityParameters, DensityMixin, OnlineEstimator):
    """A density: the average over Mondrian trees of Pólya-tree densities on a bounded box.

    Outside the box the log density is minus infinity.

    Parameters
    ----------
    {n_trees}
    lifetime : float or "auto", default="auto"
        Lifetime of the trees, finite: larger values give finer partitions. "auto" chooses it on the first data, or in the
        warm-up, and keeps it.
    gamma : float or "auto", default="auto"
        Weight of the prior of masses, in rows; "auto" chooses it by leave-one-out likelihood.
    {density_parameters}
    {retention}
    {warm_up}
    {run_parameters}
    {verbose}

    Attributes
    ----------
    lower_, upper_ : ndarray of shape (n_features_in_,)
        The box.
    {tree_attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian import MondrianDensity
    >>> X = np.random.default_rng(0).normal(size=(100, 1))
    >>> density = MondrianDensity(random_state=0).fit(X)
    >>> logs = density.score_samples([[0.0], [2.0], [1000.0]])
    >>> bool(logs[0] > logs[1] > logs[2] == -np.inf)
    True
    >>> density.sample(3, random_state=1).shape
    (3, 1)
    """

    def __init__(
        self, n_estimators=100, lifetime="auto", gamma="auto",
        lower=None, upper=None, measure="uniform", weights="auto", margin=0.1, validation="hold-out",
        window=None, max_rows=None, warm_up=1024, random_state=None, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._keep(locals())

    def fit(self, X, y=None):
        """Fit a density to rows.

        {only_rows}

        {self}
        """
        return self._fit(X, None, **self._fewest_rows())

    @all_or_nothing
    def _fit(self, X, warm_up, **fewest_rows):
        X = self._rows(X, reset=True, **fewest_rows)
        self.__dict__.pop("_members", None)
        if self._is_adaptive():
            return self._start_members(self._new_members(), X, None)
        arguments = self._arguments(X.shape[1], warm_up)
        return self._take(_mondrian.DensityForest.fit(X, arguments, self._work()))

    def _take(self, model):
        self._look_at_box(model)
        return super()._take(model)

    def _look_at_box(self, model):
        self.lower_, self.upper_ = (np.asarray(corner) for corner in model.bounds)

    def _program_target(self, name):
        return None

    def partial_fit(self, X, y=None):
        """Learn more rows; after the warm-up box, scale and lifetime are kept. A box derived from the first rows is widened for rows outside it; a given box refuses them. If it fails, nothing has changed.

        {only_rows}

        {self}
        """
        if not self.__sklearn_is_fitted__():
            if self.warm_up is None:
                return self.fit(X)
            return self._fit(X, parameters.integer("warm_up", self.warm_up))
        X = self._query(X)
        if "_members" in self.__dict__:
            return self._learn_in_members(X)
        # The core's checks are enough, and a call of it that fails changes nothing.
        self._model.learn(X, self._work(len(X)))
        self._look_at_box(self._model)
        self.lifetime_ = self._model.lifetime
        return self

    @all_or_nothing
    def _learn_in_members(self, X):
        return self._learn_members(X, None)

    def _new_members(self):
        return adaptive.Adaptive(adaptive.members_of(self), adaptive.likelihood_shares, adaptive.negative_logs)

    def forget(self, X):
        """Forget rows. The result is the model that never learned them. If a row was never learned, this is an error and nothing changes.

        {rows}

        {self}
        """
        X = self._query(X)
        self._refuse_members("forget")
        self._model.forget(X, self._threads(len(X)))
        self._look_at_box(self._model)
        return self

    def score_samples(self, X):
        """The log density of each row; minus infinity outside the box.

        {rows}

        Returns
        -------
        logs : ndarray of shape (n_samples,)
        """
        return self._call("log_density", X)

    def score(self, X, y=None):
        """The total log-likelihood of rows.

        {only_rows}

        Returns
        -------
        total : float
        """
        return float(np.sum(self.score_samples(X)))

    def leave_one_out_score(self):
        """The total log-likelihood of the learned rows, each under the density fitted without it.

        Returns
        -------
        total : float
        """
        check_is_fitted(self)
        score = self._model.leave_one_out_score(self._threads())
        if np.isnan(score) and self._model.n_rows > 0:
            raise ValueError("leave-one-out needs the training rows, which a density finished from a summary does not have")
        return score

    def path(self, X_val=None, progress=None):
        """Mean negative log densities at every lifetime the trees are grown to. The box is fixed.

        Parameters
        ----------
        X_val : array-like of shape (n_samples, n_features), list of such, or None, default=None
            Validation rows; those outside the box are skipped and counted in ``n_outside``.
        {progress}

        Returns
        -------
        path : RegularizationPath
            It includes ``leave_one_out``, which selects the best lifetime if no validation rows are given.
        """
        check_is_fitted(self)
        several = several_sets(X_val)
        sets = [] if X_val is None else list(X_val) if several else [X_val]
        sets = [self._rows(X) for X in sets]
        inner, n_outside = self._model.path(sets, self._work(progress=progress))
        return RegularizationPath(inner, several, n_outside=n_outside)

    def sample(self, n_samples=1, random_state=None):
        """Draw rows from the density.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState or None, default=None
            Which.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        return self._model.sample(parameters.integer("n_samples", n_samples), parameters.seed_of(random_state))

    def plot(self, ax=None, dims=(0, 1), n_points=200):
        """Draw the density along one dimension or over two, with the others fixed at the middle of the box.

        {ax}
        dims : tuple of int, default=(0, 1)
            The dimensions to draw; only the first is used with one input.
        n_points : int, default=200
            Points along each dimension.

        {drawn}
        """
        check_is_fitted(self)
        if isinstance(dims, (tuple, list)):
            dims = dims[: len(self.lower_)]
        dims = parameters.dimensions("dims", dims, len(self.lower_), (1, 2))
        n_points = parameters.integer("n_points", n_points, 2, 10_000)
        ax = axes_for(ax)
        sides = [np.linspace(self.lower_[d], self.upper_[d], n_points) for d in dims]
        mesh = np.meshgrid(*sides, indexing="ij")
        rows = np.tile((self.lower_ + self.upper_) / 2, (mesh[0].size, 1))
        for d, values in zip(dims, mesh):
            rows[:, d] = values.ravel()
        density = np.exp(self._model.log_density(rows, self._threads())).reshape(mesh[0].shape)
        names = self._input_names() or [f"feature {d}" for d in range(len(self.lower_))]
        ax.set_xlabel(names[dims[0]])
        if len(dims) == 1:
            ax.fill_between(sides[0], density, alpha=0.4, linewidth=0)
            ax.plot(sides[0], density, linewidth=1.4)
            ax.set_ylabel("density")
            ax.set_xlim(sides[0][0], sides[0][-1])
            ax.set_ylim(bottom=0)
            return ax
        image = ax.pcolormesh(*sides, density.T, shading="auto", cmap="viridis")
        ax.figure.colorbar(image, ax=ax, label="density")
        ax.set_ylabel(names[dims[1]])
        return ax

    @property
    def gamma_(self):
        """Weight of the prior, given or automatic."""
        check_is_fitted(self)
        return self._model.gamma(self._threads())


@documented
class MondrianDensityClassifier(_DensityParameters, ClassifierMixin, Classifier, TreeEstimator):
    """Predicts the class of highest density: one :class:`MondrianDensity` per class, on one box.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees of each class's density.
    lifetime : float or "auto", default="auto"
        Lifetime; finite. "auto" chooses one per class.
    gamma : float or "auto", default="auto"
        Weight of the prior of masses; "auto" chooses one per class.
    {density_parameters}
    class_prior : {"frequency", "equal"}, default="frequency"
        Prior probabilities of the classes: their frequencies in training, or equal (the report's rule).
    {run_parameters}
    {verbose}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    lifetimes_ : ndarray of shape (n_classes,)
        Lifetime of each class's density.
    {ground_attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian import MondrianDensityClassifier
    >>> X = np.concatenate([np.linspace(0, 4, 40), np.linspace(5, 9, 40)])[:, None]
    >>> y = np.repeat(["low", "high"], 40)
    >>> MondrianDensityClassifier(random_state=0).fit(X, y).predict([[1.0], [7.0]])
    array(['low', 'high'], dtype='<U4')
    """

    def __init__(
        self, n_estimators=100, lifetime="auto", gamma="auto",
        lower=None, upper=None, measure="uniform", weights="auto", margin=0.1, validation="hold-out",
        class_prior="frequency", random_state=None, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._keep(locals())

    @all_or_nothing
    def fit(self, X, y):
        """Fit a density to the rows of each class.

        {rows_and_classes}

        {self}
        """
        X, y = self._labelled_rows(X, y, reset=True, **self._fewest_rows())
        check_classification_targets(y)
        classes = np.unique(y)
        prior = parameters.choice("class_prior", self.class_prior, ("frequency", "equal"))
        arguments = self._arguments(X.shape[1])
        model = _mondrian.DensityClassifier.fit((X, numbers_of(y, classes)), prior, arguments, self._work())
        self.classes_ = classes
        return self._take(model)

    def _take(self, model):
        self.lifetimes_ = np.asarray(model.lifetimes)
        return super()._take(model)
