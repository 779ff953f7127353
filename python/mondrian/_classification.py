"""Mondrian forests for classification."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from . import _adaptive as adaptive
from . import _mondrian
from . import _parameters as parameters
from ._base import Classifier, all_or_nothing, numbers_of, sample_weights
from ._docs import documented
from ._path import RegularizationPath
from ._trees import ForestEstimator, labelled_sets


@documented
class MondrianForestClassifier(ClassifierMixin, Classifier, ForestEstimator):
    """A Mondrian forest for classification that learns online, forgets and merges exactly.

    The class probabilities of a cell have a prior centred at those of its parent, a hierarchical normalized stable
    process.

    Parameters
    ----------
    {n_trees}
    {forest_lifetime}
    gamma : float or "auto", default="auto"
        The decay rate of a block's dependence on its parent; "auto" chooses it by leave-one-out log loss.
    {forest_parameters}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    {tree_attributes}

    Notes
    -----
    A fitted forest, and so its pickle, contains the training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian import MondrianForestClassifier
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> y = np.where(X[:, 0] < 0.5, "low", "high")
    >>> MondrianForestClassifier(random_state=0).fit(X, y).predict([[0.1], [0.9]])
    array(['low', 'high'], dtype='<U4')
    """

    def __init__(
        self, n_estimators=100, lifetime="auto", gamma="auto",
        lower=None, upper=None, measure="uniform", weights="auto",
        unseen="keyed", validation="hold-out", window=None, max_rows=None, warm_up=1024, random_state=None, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._keep(locals())

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Learn rows, forgetting all learned before.

        {rows_and_classes}
        {row_counts}

        {self}
        """
        X, y, weights = self._weighted(X, y, sample_weight, reset=True)
        if weights is not None:
            # Classes of rows of weight zero are unknown, as if the rows did not exist.
            X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        classes = np.unique(y)
        self.__dict__.pop("_members", None)
        if self._is_adaptive():
            return self._start_members(self._new_members(), X, y)
        return self._plant(X, y, classes, weights, self._tree_arguments(X.shape[1]))

    def _new_members(self):
        return adaptive.Adaptive(adaptive.members_of(self), adaptive.relative_shares, adaptive.log_losses)

    def _take_whole(self):
        whole = self._members.whole
        return self._renamed(whole._model, whole.classes_)

    def _weighted(self, X, y, sample_weight, *, reset):
        self._refuse_weights(sample_weight)
        X, y = self._labelled_rows(X, y, reset=reset)
        check_classification_targets(y)
        return X, y, sample_weights(sample_weight, X)

    def _plant(self, X, y, classes, weights, trees):
        arguments = {
            "trees": self._weighted_trees(trees, X, numbers_of(y, classes), len(classes)),
            "n_classes": len(classes),
            "gamma": parameters.auto_or_real("gamma", self.gamma, strict=True),
            "unseen": parameters.choice("unseen", self.unseen, ("keyed", "integrate")),
        }
        model = _mondrian.ClassificationForest.fit((X, numbers_of(y, classes), weights), arguments, self._work())
        self.classes_ = classes
        return self._take(model)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Learn more rows. The result is the model of all rows so far, in any order. If it fails, nothing has changed.

        {rows}
        y : array-like of shape (n_samples,)
            Classes; they may be new.
        classes : array-like of shape (n_classes,), default=None
            Classes that may occur in later calls.
        {row_counts}

        {self}
        """
        is_simple = classes is None and sample_weight is None and "_members" not in self.__dict__
        rows = self._plain(X) if is_simple else None
        numbers = None if rows is None else self._plain_target(y, len(rows))
        if numbers is not None:
            # Learning row by row makes a million calls: the core's checks are enough, and a failed call changes
            # nothing.
            self._model.learn((rows, numbers, None), self._work(1))
            if self.lifetime_ != np.inf:
                self.lifetime_ = self._model.lifetime
            return self
        return self._learn(X, y, classes, sample_weight)

    def _plain_target(self, y, n_rows):
        return self._number_of_one(y) if n_rows == 1 else None

    def _number_of_one(self, y):
        """The number of the class of one row, if it is known already; else None."""
        if type(y) is not np.ndarray or y.shape != (1,):
            return None
        known, numbers = self.__dict__.get("_numbers", (None, None))
        if known is not self.classes_:
            numbers = {label: np.array([k], dtype=np.uint32) for k, label in enumerate(self.classes_.tolist())}
            self._numbers = self.classes_, numbers
        label = y.item()
        return numbers.get(label) if label.__hash__ is not None else None

    @all_or_nothing
    def _learn(self, X, y, classes, sample_weight):
        first = not self.__sklearn_is_fitted__()
        X, y, weights = self._weighted(X, y, sample_weight, reset=first)
        known = np.unique(y) if classes is None else np.unique(column_or_1d(classes))
        if classes is not None and not np.isin(y, known).all():
            raise ValueError(f"y contains {np.setdiff1d(y, known).tolist()}, not among the given classes")
        if first and self._is_adaptive():
            return self._start_members(self._new_members(), X, y)
        if "_members" in self.__dict__:
            return self._learn_members(X, y)
        if first:
            return self._plant(X, y, known, weights, self._online_tree_arguments(X.shape[1]))
        all_classes = np.union1d(self.classes_, known)
        model = self._numbered_for(all_classes)
        model.learn((X, numbers_of(y, all_classes), weights), self._work(len(X)))
        return self._renamed(model, all_classes)

    def _renamed(self, model, classes):
        self.classes_ = classes
        self._model = model
        self.lifetime_ = model.lifetime
        return self

    def _numbered_for(self, classes):
        """The model with its classes numbered as in a larger sorted list; itself if the numbers stay."""
        places = np.searchsorted(classes, self.classes_)
        if np.array_equal(places, np.arange(len(places))):
            return self._model
        return self._model.renumbered(places.tolist(), len(classes))

    def _restore(self, model, state, target):
        super()._restore(model, state, target)
        if len(self.classes_) != model.n_classes:
            raise ValueError(f"{len(self.classes_)} names for {model.n_classes} classes")
        order = np.argsort(self.classes_)
        if not np.array_equal(order, np.arange(len(order))):
            # The program may sort texts that are numbers in another order.
            places = np.empty_like(order)
            places[order] = np.arange(len(order))
            self._renamed(model.renumbered(places.tolist(), len(order)), self.classes_[order])
        return self

    def _known(self, X, y):
        """Rows with the numbers of their classes, which must be known."""
        X, y = self._labelled_rows(X, y)
        numbers = numbers_of(y, self.classes_)
        known = self.classes_[np.minimum(numbers, len(self.classes_) - 1)] == y
        if not np.all(known):
            raise ValueError(f"y contains {np.unique(y[~known]).tolist()}, classes the model has never seen")
        return X, numbers

    def path(self, X_val, y_val, loss="log_loss", lifetimes=None, progress=None):
        """The loss at a grid of lifetimes up to that of the trees; ``value_at`` is exact at any other lifetime too.

        {validation_rows}
        y_val : array-like of shape (n_samples,), or list of such
            Their classes.
        loss : {"log_loss", "error"}, default="log_loss"
            Mean negative log probability of the true class, or share of errors.
        lifetimes : array-like of shape (n,), default=None
            The grid. Default: chosen from the times at which training rows separate.
        {progress}

        {path}
        """
        check_is_fitted(self)
        parameters.choice("loss", loss, ("log_loss", "error"))
        sets, several = labelled_sets(X_val, y_val, self._known)
        if lifetimes is not None:
            lifetimes = sorted(parameters.real("lifetimes", float(x), infinite=True) for x in np.ravel(lifetimes))
        # Later learning must not change the path: a view is a cheap copy.
        model = self._model.at(self._model.grown)
        found = model.path(sets, lifetimes, self._work(progress=progress))
        inner = found.error() if loss == "error" else found.log_loss()
        return RegularizationPath(inner, several, exact=_Exact(model, sets, loss, found))

    def merge(self, other):
        """Learn all rows and classes of another forest. The result is the model of both sets of rows.

        {mergeable}

        {self}
        """
        self._mergeable(other)
        classes = np.union1d(self.classes_, other.classes_)
        model = self._numbered_for(classes)
        model.merge(other._numbered_for(classes), self._threads())
        return self._renamed(model, classes)

    @property
    def gamma_(self):
        """The decay rate of a block's dependence on its parent, given or found."""
        check_is_fitted(self)
        return self._model.gamma(self._threads())


class _Exact:
    """The loss of the view at any lifetime; a pickle contains the model and the validation rows."""

    def __init__(self, model, checked, loss, path=None):
        self._model, self._checked, self._loss, self._path = model, checked, loss, path

    def __call__(self, lifetime):
        if self._path is None:
            self._path = self._model.path(self._checked, [0.0], (1, None))
        return self._path.value_at(self._loss, lifetime, 1)

    def __reduce__(self):
        return _Exact, (self._model, self._checked, self._loss)
