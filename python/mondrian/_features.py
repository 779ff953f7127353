"""Random features of the Laplace kernel, as transformers."""

from __future__ import annotations

from copy import copy

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from . import _mondrian
from . import _parameters as parameters
from ._base import MondrianEstimator, all_or_nothing, are_classes
from ._docs import documented
from ._trees import TreeEstimator


@documented
class _FeatureTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MondrianEstimator):
    """Fits a map of the core and applies it."""

    @all_or_nothing
    def fit(self, X, y=None):
        """Learn the cells of the rows.

        {only_rows}

        {self}
        """
        X = self._rows(X, reset=True)
        arguments = self._weighted_arguments(self._arguments(X.shape[1]), X, y)
        parameters.boolean("sparse_output", getattr(self, "sparse_output", False))
        return self._take(_mondrian.FeatureMap.fit(self._kind, X, arguments, self._work()))

    def _weighted_arguments(self, arguments, X, y):
        """Arguments computed from the targets."""
        return arguments

    def _take(self, model):
        self._n_features_out = model.n_columns
        return super()._take(model)

    def transform(self, X):
        """The features of rows; a cell without training rows contributes nothing.

        {rows}

        Returns
        -------
        Z : scipy.sparse.csr_matrix or ndarray of shape (n_samples, n_features_out)
            Dense if ``set_output`` requests a frame.
        """
        X = self._query(X)
        found = self._model.transform(X, self._threads(len(X)))
        if not isinstance(found, tuple):
            return found
        matrix = sparse.csr_matrix(found, shape=(len(X), self._n_features_out))
        return matrix if self.sparse_output and not self._goes_into_a_frame() else matrix.toarray()

    def _goes_into_a_frame(self):
        """Whether ``set_output`` or scikit-learn's configuration requests a frame, which has dense columns only."""
        requested = getattr(self, "_sklearn_output_config", {}).get("transform")
        return (requested or get_config().get("transform_output", "default")) != "default"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


@documented
class MondrianFeatures(_FeatureTransformer, TreeEstimator):
    """Cells of Mondrian trees as features: the expected inner product is the Laplace kernel.

    Entries are ``1/sqrt(n_estimators)``, and smaller for rows outside the root box, so that the expectation is the
    kernel there too.

    Parameters
    ----------
    {n_trees}
    lifetime : float, default=1.0
        Lifetime of the kernel ``exp(-lifetime * |x - z|₁)``.
    {tree_parameters}
    {sparse_output}
    {run_parameters}
    {verbose}

    Attributes
    ----------
    {ground_attributes}

    {two_rows}
    >>> from mondrian import MondrianFeatures
    >>> Z = MondrianFeatures(n_estimators=2000, random_state=0).fit_transform(X)
    {near_kernel}
    """

    _kind = "mondrian"

    def __init__(
        self, n_estimators=100, lifetime=1.0,
        lower=None, upper=None, measure="uniform", weights="auto",
        sparse_output=True, random_state=None, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._keep(locals())

    def _arguments(self, n_dims):
        arguments = self._tree_arguments(n_dims)
        arguments["lifetime"] = parameters.real("lifetime", self.lifetime, infinite=True)
        return arguments

    def _weighted_arguments(self, arguments, X, y):
        if not isinstance(self.weights, str) or self.weights != "tuned":
            return arguments
        if y is None or np.asarray(y).dtype.kind in "fiu" and np.asarray(y).ndim > 1:
            return self._weighted_trees(arguments, X, y)
        classes, numbers = np.unique(np.asarray(y), return_inverse=True)
        if are_classes(np.asarray(y)):
            return self._weighted_trees(arguments, X, numbers, len(classes))
        return self._weighted_trees(arguments, X, y)

    @all_or_nothing
    def partial_fit(self, X, y=None):
        """Learn more rows. The result is the map of all rows so far: existing columns are kept, new cells are appended.

        {only_rows}

        {self}
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y)
        X = self._rows(X)
        return self._take(self._model.learned(X, self._work(len(X))))

    @property
    def lifetime_(self):
        """The lifetime of the view."""
        check_is_fitted(self)
        return self._model.lifetime

    def at(self, lifetime):
        """The map at a smaller lifetime, with the cells of a fit at that lifetime; no trees are grown.

        Parameters
        ----------
        lifetime : float
            At most ``lifetime_``.

        Returns
        -------
        map : MondrianFeatures
        """
        check_is_fitted(self)
        viewed = copy(self)
        viewed.lifetime = parameters.real("lifetime", lifetime, infinite=True)
        return viewed._take(self._model.at(viewed.lifetime))


class _KernelFeatures(_FeatureTransformer):
    """A map with a given number of features or grids, and lifetimes."""

    def _arguments(self, n_dims):
        return {
            "n": parameters.n_estimators(getattr(self, self._count), self._count),
            "lifetimes": parameters.vector(self._lifetimes, getattr(self, self._lifetimes), n_dims, low=0.0),
            "seed": parameters.seed_of(self.random_state),
        }


@documented
class RandomBinningFeatures(_KernelFeatures):
    """Random binning for the Laplace kernel: regular grids with random pitch and shift.

    Parameters
    ----------
    {n_grids}
    {kernel_lifetime}
    {sparse_output}
    {run_parameters}

    {map_attributes}

    {two_rows}
    >>> from mondrian import RandomBinningFeatures
    >>> Z = RandomBinningFeatures(n_estimators=2000, random_state=0).fit_transform(X)
    {near_kernel}
    """

    _kind, _count, _lifetimes = "binning", "n_estimators", "lifetime"

    def __init__(self, n_estimators=100, lifetime=1.0, sparse_output=True, random_state=None, n_jobs=None):
        self._keep(locals())


@documented
class RandomFourierFeatures(_KernelFeatures):
    """Random Fourier features for the Laplace kernel: cosines and sines at Cauchy frequencies.

    Parameters
    ----------
    n_components : int, default=100
        Number of features.
    {kernel_lifetime}
    {run_parameters}

    {map_attributes}

    {two_rows}
    >>> from mondrian import RandomFourierFeatures
    >>> Z = RandomFourierFeatures(n_components=4000, random_state=0).fit_transform(X)
    {near_kernel}
    """

    _kind, _count, _lifetimes = "fourier", "n_components", "lifetime"

    def __init__(self, n_components=100, lifetime=1.0, random_state=None, n_jobs=None):
        self._keep(locals())


@documented
class MondrianGridFeatures(_KernelFeatures):
    """Cells of Mondrian grids as features: one lifetime per dimension.

    Parameters
    ----------
    {n_grids}
    lifetimes : float or array-like of shape (n_features,), default=1.0
        Lifetimes, for all dimensions or one per dimension.
    {sparse_output}
    {run_parameters}

    {map_attributes}

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian import MondrianGridFeatures
    >>> X = np.array([[0.0, 0.0], [0.1, 5.0]])
    >>> Z = MondrianGridFeatures(n_estimators=2000, lifetimes=[3.0, 0.0], random_state=0).fit_transform(X)
    >>> bool(abs((Z @ Z.T)[0, 1] - np.exp(-0.3)) < 0.05)
    True
    """

    _kind, _count, _lifetimes = "grid", "n_estimators", "lifetimes"

    def __init__(self, n_estimators=100, lifetimes=1.0, sparse_output=True, random_state=None, n_jobs=None):
        self._keep(locals())
