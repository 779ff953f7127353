"""The Laplace kernel, exact and tuned: regression and classification."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from . import _mondrian
from . import _parameters as parameters
from ._base import Classifier, Regressor, all_or_nothing, numbers_of, sample_weights
from ._docs import documented
from ._laplace_kernel import KernelEstimator

#: Rows used to tune the lifetimes of the report's kernel if there are more than are solved exactly.
_SOME_ROWS = 4000


@documented
class LaplaceKernelRidge(RegressorMixin, Regressor, KernelEstimator):
    """Ridge regression with a tuned Laplace kernel: the estimator to try first.

    The kernel is ``exp(-sum(lambda * |u|) - sum(nu * (u != 0)) - norm(A @ u) ** p)`` with ``u = x - z``: each
    continuous input enters by its value and by its rank, a categorical input by equality, and ``A`` is a learned
    metric. Lifetimes, metric, exponent and alpha are tuned by gradient steps on the exact leave-one-out error, with new
    rows at every step; leave-one-out also decides whether the target, its square root or its logarithm is fitted. NaN
    in X is a missing cell.

    Parameters
    ----------
    lifetime : float, array-like of shape (n_features,), "auto" or "path", default="auto"
        "auto" tunes the whole kernel. A number for all dimensions, or one per dimension, selects the report's kernel
        ``exp(-sum(lifetime * |u|))`` in the units of X, without metric, ranks, categories or missing cells. "path"
        chooses one lifetime for all dimensions, in units of their standard deviations, along the path of the kernel's
        Mondrian approximation.
    alpha : float or "auto", default="auto"
        Regularization, the report's δ²; "auto" tunes it.
    {kernel_parameters}
    target_transform : {"auto", "sqrt", "log"} or None, default="auto"
        The transformation of the target that is fitted; predictions are always in the units of the target. None is no
        transformation.
    categorical_features : "from_dtype", None or array-like, default="from_dtype"
        Which inputs are categorical: those of a frame's categorical type, none, or a mask, column numbers or names.
    solver : {"auto", "exact", "cg", "local"}, default="auto"
        How all rows are solved. "exact": one factorisation, n² numbers. "cg": the same solution by conjugate gradients,
        with kernel entries computed on the fly. "local": every query is predicted from its nearest rows, by kriging.
        "auto": exact up to ``max_exact_rows`` if the matrix is within ``mondrian.set_config(max_memory=...)``; beyond,
        lifetimes are tuned by predicting rows from their neighbours among all rows, and "cg", "local" or the mean of
        both is used, whichever predicts 2000 held-out rows best.
    max_exact_rows : int, default=20000
        Largest number of training rows that "auto" factorises.
    n_neighbors : int or "auto", default="auto"
        Number of nearest rows used by the solver "local"; "auto" chooses it by leave-one-out.
    retune : bool, default=True
        Whether ``partial_fit`` tunes again when the number of rows has doubled.
    max_seconds : float or None, default=None
        Time limit of tuning. With a limit, results depend on the machine.
    warm_start : bool, default=False
        Whether ``fit`` resumes tuning from the kernel of the previous fit (or of a loaded model): columns and form of
        the metric are kept, ``trajectory_`` is continued, and the kernel changes only if the leave-one-out error is
        smaller.
    search : {"auto", "gradient", "coordinate"}, default="auto"
        How lifetimes are tuned. "auto" tunes the whole kernel; the others tune the report's kernel on 1000 rows, by
        gradients or one lifetime at a time.
    fit_intercept : bool, default=True
        Whether targets are centred; otherwise predictions far from the data return to zero.
    epsilon : float, default=0.01
        ``get_support`` selects the inputs whose importance is at least this share of the largest.
    validation : "hold-out" or int, default="hold-out"
        Validation of "path": a held-out fifth of the rows, or this many folds.
    random_state : int, RandomState or None, default=None
        Selects the rows used for tuning; an integer is used as the seed.
    n_jobs : int or None, default=None
        Threads, in joblib's meaning, at most one per core; results do not depend on it.
    {step_verbose}

    Attributes
    ----------
    lifetimes_ : ndarray of shape (n_features_in_,)
        Lifetimes of the untransformed inputs, tuned or given: how rough the target is along each input, not how
        relevant the input is.
    alpha_ : float
        Regularization, tuned or given.
    {kernel_attributes}
    target_transform_ : {"sqrt", "log"} or None
        The transformation of the target.
    loo_score_ : float
        R² by leave-one-out on all rows, or 20 000 of them (2000 unless ``solver_`` is "exact"); NaN for the report's
        kernel.
    loo_rmse_ : float or ndarray of shape (n_targets,)
        The root mean squared leave-one-out error on the same rows, in the target's units.
    solver_ : {"exact", "cg", "local", "mean"}
        How all rows were solved; "mean" is that of "cg" and "local".
    n_neighbors_ : int or None
        Number of nearest rows used by a prediction; None after one factorisation.
    n_iter_ : int or None
        Number of products with the kernel in conjugate gradients.
    residual_ : float or None
        The relative residual of conjugate gradients.
    is_exact_ : bool
        Whether ``solver_`` is "exact" or "cg".
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets), or None
        Weight of each training row; None if predictions use nearest rows.
    intercept_ : float, ndarray of shape (n_targets,), or None
        The centre of the (transformed) targets, or zero; None if predictions use nearest rows.
    {inputs}

    Notes
    -----
    A fitted model, and so its pickle, contains the training rows. A row of sample weight w counts as w equal rows.

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian import LaplaceKernelRidge
    >>> X = np.random.default_rng(0).uniform(size=(80, 2))
    >>> model = LaplaceKernelRidge(random_state=0).fit(X, np.sin(9 * X[:, 0]))
    >>> model.get_support()
    array([ True, False])
    >>> mean, std = model.predict([[0.5, 0.5], [40.0, 0.5]], return_std=True)
    >>> bool(std[1] > 3 * std[0])
    True
    """

    def __init__(
        self, lifetime="auto", alpha="auto", measure="auto", metric="auto", exponent="auto", target_transform="auto",
        categorical_features="from_dtype", solver="auto", max_exact_rows=20_000, n_neighbors="auto", retune=True,
        max_seconds=None, warm_start=False, search="auto", fit_intercept=True, epsilon=0.01, validation="hold-out",
        random_state=None, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._keep(locals())

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Tune the automatic parameters, then solve on all rows.

        {rows}
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            How many rows each row counts for. Only the tuned kernel supports them.

        {self}
        """
        goes_on = self._goes_on()
        X, y = self._rows_and_targets(self._table(X, reset=not goes_on), y, reset=not goes_on, multi_output=True)
        weights = sample_weights(sample_weight, X)
        return self._take(self._solve(X, y, weights, goes_on=goes_on))

    def _lifetimes(self, n_dims):
        validation = parameters.validation_of(self.validation)
        if isinstance(self.lifetime, str) and self.lifetime == "path":
            return validation
        return self._given("lifetime", n_dims)

    @all_or_nothing
    def partial_fit(self, X, y, sample_weight=None):
        """Append rows to a model that predicts from nearest rows; lifetimes are kept until the number of rows has doubled.

        The first call is ``fit`` with the solver "local"; after a ``fit`` with another solver, predictions use nearest
        rows from then on. Unlike a forest, the model depends on the order of the rows: parameters were tuned on the
        rows present at that time.

        {rows}
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            How many rows each row counts for.

        {self}
        """
        first = self._is_first()
        X, y = self._rows_and_targets(self._table(X, reset=first), y, reset=first, multi_output=True)
        weights = sample_weights(sample_weight, X)
        if first:
            return self._take(self._solve(X, y, weights, local=True))
        if (None if y.ndim == 1 else y.shape[1]) != self._n_targets:
            raise ValueError(f"y has shape {y.shape}, but the model was fitted for {self._n_targets or 1} target(s)")
        rows = (X, np.ascontiguousarray(y).ravel(), weights)
        if self._is_to_be_tuned(len(X)):
            arguments, map_ = self._whole_arguments(X, y, local=True)
            return self._take(self._model.tuned_again(rows, map_, arguments, self._work()))
        self._model.append(rows, self._threads())
        return self._take(self._model)

    def _whole_arguments(self, X, y, local=False):
        """Arguments of the whole kernel, and the map of the target."""
        search = parameters.choice("search", self.search, ("auto", "gradient", "coordinate"))
        lifetimes = self._lifetimes(X.shape[1])
        arguments, map_ = self._kernel_arguments(X.shape[1]), self.target_transform
        if map_ is not None:
            parameters.choice("target_transform", map_, ("auto", "sqrt", "log"))
        map_ = None if map_ == "auto" else map_ or "identity"
        if local:
            arguments["solver"] = "local"
        if lifetimes is not None or search != "auto":
            if lifetimes is None or not isinstance(lifetimes, np.ndarray):
                some = np.sort(np.random.default_rng(arguments["seed"]).permutation(len(X))[:_SOME_ROWS])
                lifetimes = self._solve_axes(X[some], y[some], None, lifetimes, search).lifetimes
            arguments["lifetimes"], map_ = [float(lifetime) for lifetime in lifetimes], "identity"
        return arguments, map_

    def _solve(self, X, y, weights, local=False, goes_on=False):
        search = parameters.choice("search", self.search, ("auto", "gradient", "coordinate"))
        lifetimes = self._lifetimes(X.shape[1])
        whole = lifetimes is None and search == "auto"
        limit = parameters.integer("max_exact_rows", self.max_exact_rows)
        if not whole and not local and self.solver in ("auto", "exact") and (len(X) <= limit or self.solver == "exact"):
            self._kernel_arguments(X.shape[1])
            return self._solve_axes(X, y, weights, lifetimes, search)
        arguments, map_ = self._whole_arguments(X, y, local)
        rows = (X, np.ascontiguousarray(y).ravel(), weights)
        if goes_on and arguments["lifetimes"] is None:
            model = self._model.resumed(rows, map_, arguments, self._work())
        else:
            model = _mondrian.LaplaceRegressor.fit(rows, map_, arguments, self._work())
        self._n_targets = None if y.ndim == 1 else y.shape[1]
        return model

    def _solve_axes(self, X, y, weights, lifetimes, search):
        """The report's kernel, solved exactly."""
        if y.ndim > 1 and y.shape[1] > 1:
            raise ValueError('several targets need the whole kernel: lifetime="auto" and search="auto"')
        if weights is not None and len(weights) and (weights != weights[0]).any():
            raise ValueError('sample_weight needs the whole kernel: lifetime="auto" and search="auto"')
        arguments = self._searched_arguments() | {
            "lifetimes": lifetimes,
            "search": "gradient" if search == "auto" else search,
            "exact_rows": len(X),
        }
        self._n_targets = None
        return _mondrian.LaplaceKernelRidge.fit((X, np.ascontiguousarray(y.ravel())), arguments, self._work())

    def _take(self, model):
        if isinstance(model, _mondrian.LaplaceRegressor):
            self.is_exact_ = model.solver["used"] in ("exact", "cg")
            n_targets = model.n_targets
            parts = [model.solution(target) for target in range(n_targets)]
            scores = np.array([model.leave_one_out(target) for target in range(n_targets)])
            single = self.__dict__.get("_n_targets") is None and n_targets == 1
            if parts[0] is None:
                self.dual_coef_ = self.intercept_ = None
            else:
                self.dual_coef_ = parts[0][0] if single else np.column_stack([weights for weights, _ in parts])
                self.intercept_ = parts[0][1] if single else np.array([centre for _, centre in parts])
            self.loo_rmse_ = float(scores[0, 0]) if single else scores[:, 0]
            spread = np.where(scores[:, 2] > 0, scores[:, 2], np.inf)
            self.loo_score_ = float(np.mean(np.where(scores[:, 2] > 0, 1 - (scores[:, 0] / spread) ** 2, 0.0)))
            self.target_transform_ = None if model.target_map == "identity" else model.target_map
        else:
            self.is_exact_ = model.is_exact
            self.dual_coef_, self.intercept_ = model.solution() or (None, None)
            self.loo_score_, self.loo_rmse_, self.target_transform_ = float("nan"), float("nan"), None
        return super()._take(model)

    def _shaped(self, numbers):
        n_targets = self.__dict__.get("_n_targets")
        return numbers if n_targets is None else numbers.reshape(-1, n_targets)

    def predict_interval(self, X, coverage=0.9):
        """Intervals that contain a new target with probability ``coverage``, calibrated on leave-one-out residuals.

        {rows}
        coverage : float, default=0.9
            The probability, between 0 and 1.

        Returns
        -------
        lower, upper : ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        check_is_fitted(self)
        coverage = parameters.real("coverage", coverage, strict=True)
        if coverage >= 1:
            raise ValueError(f"coverage is {coverage}, but must be below 1")
        X = self._query(X)
        if not hasattr(self._model, "predict_interval"):
            from scipy.special import ndtri

            mean, std = self._model.predict_with_std(X, self._threads(len(X)))
            reach = float(ndtri(0.5 + 0.5 * coverage)) * std
            return mean - reach, mean + reach
        lower, upper = self._model.predict_interval(X, coverage, self._threads(len(X)))
        return self._shaped(lower), self._shaped(upper)

    def _state(self):
        return super()._state() | {"n_targets": self.__dict__.get("_n_targets")}

    def _restore(self, model, state, target):
        self._n_targets = state.get("n_targets")
        return super()._restore(model, state, target)

    def _program_target(self, name):
        # The program predicts one target.
        return super()._program_target(name) if (self.__dict__.get("_n_targets") or 1) == 1 else False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        return tags


@documented
class LaplaceKernelClassifier(ClassifierMixin, Classifier, KernelEstimator):
    """Classification with the tuned Laplace kernel of :class:`LaplaceKernelRidge`.

    All classes share one factorisation; scores are converted to probabilities by a link function chosen on
    leave-one-out scores.

    Parameters
    ----------
    lifetime : float, array-like of shape (n_features,) or "auto", default="auto"
        "auto" tunes the whole kernel. A number for all dimensions, or one per dimension, selects the report's kernel
        ``exp(-sum(lifetime * |u|))`` in the units of X, without metric and ranks.
    alpha : float or "auto", default="auto"
        Regularization; "auto" tunes it.
    {kernel_parameters}
    categorical_features : "from_dtype", None or array-like, default="from_dtype"
        Which inputs are categorical: those of a frame's categorical type, none, or a mask, column numbers or names.
    solver : {"auto", "exact", "cg", "local"}, default="auto"
        How all rows are solved. "exact": one factorisation, n² numbers. "cg": the same solution by conjugate gradients,
        with kernel entries computed on the fly. "local": every query is predicted from its nearest rows, by kriging.
        "auto": exact up to ``max_exact_rows`` if the matrix is within ``mondrian.set_config(max_memory=...)``; beyond,
        lifetimes are tuned by predicting rows from their neighbours among all rows, and "cg", "local" or the mean of
        both is used, whichever predicts 2000 held-out rows best.
    max_exact_rows : int, default=20000
        Largest number of training rows that "auto" factorises.
    n_neighbors : int or "auto", default="auto"
        Number of nearest rows used by the solver "local"; "auto" chooses it by leave-one-out.
    retune : bool, default=True
        Whether ``partial_fit`` tunes again when the number of rows has doubled.
    max_seconds : float or None, default=None
        Time limit of tuning. With a limit, results depend on the machine.
    warm_start : bool, default=False
        Whether ``fit`` resumes tuning from the kernel of the previous fit (or of a loaded model): columns and form of
        the metric are kept, ``trajectory_`` is continued, and the kernel changes only if the leave-one-out error is
        smaller.
    search : {"auto"}, default="auto"
        How the kernel is tuned.
    fit_intercept : bool, default=True
        Whether the class frequencies are subtracted first.
    epsilon : float, default=0.01
        ``get_support`` selects the inputs whose importance is at least this share of the largest.
    random_state : int, RandomState or None, default=None
        Selects the rows used for tuning; an integer is used as the seed.
    n_jobs : int or None, default=None
        Threads, in joblib's meaning, at most one per core; results do not depend on it.
    {step_verbose}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    lifetimes_ : ndarray of shape (n_features_in_,)
        Lifetimes of the untransformed inputs: how rough the class scores are along each input, not how relevant the
        input is.
    alpha_ : float
        Regularization, tuned or given.
    {kernel_attributes}
    loo_score_ : float
        The accuracy by leave-one-out on all rows, or 20 000 of them (2000 unless ``solver_`` is "exact").
    loo_log_loss_ : float
        The log loss by leave-one-out on the same rows.
    solver_ : {"exact", "cg", "local", "mean"}
        How all rows were solved; "mean" is that of "cg" and "local".
    n_neighbors_ : int or None
        Number of nearest rows used by a prediction; None after one factorisation.
    n_iter_ : int or None
        Number of products with the kernel in conjugate gradients.
    residual_ : float or None
        The relative residual of conjugate gradients.
    {inputs}

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian import LaplaceKernelClassifier
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> y = np.where(X[:, 0] < 0.5, "low", "high")
    >>> LaplaceKernelClassifier(random_state=0).fit(X, y).predict([[0.1], [0.9]])
    array(['low', 'high'], dtype='<U4')
    """

    def __init__(
        self, lifetime="auto", alpha="auto", measure="auto", metric="auto", exponent="auto",
        categorical_features="from_dtype", solver="auto", max_exact_rows=20_000, n_neighbors="auto", retune=True,
        max_seconds=None, warm_start=False, search="auto", fit_intercept=True, epsilon=0.01,
        random_state=None, n_jobs=None, verbose=False,
    ):  # fmt: skip
        self._keep(locals())

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Tune the automatic parameters, then solve on all rows.

        {rows_and_classes}
        sample_weight : array-like of shape (n_samples,), default=None
            How many rows each row counts for.

        {self}
        """
        goes_on = self._goes_on()
        X, y = self._labelled_rows(self._table(X, reset=not goes_on), y, reset=not goes_on)
        check_classification_targets(y)
        weights = sample_weights(sample_weight, X)
        if weights is not None:
            # Classes of rows of weight zero are unknown, as if the rows did not exist.
            X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
        classes, arguments = np.unique(y), self._arguments(X.shape[1])
        if goes_on and arguments["lifetimes"] is None:
            if len(unknown := np.setdiff1d(classes, self.classes_)):
                raise ValueError(f"class {unknown[0]!r} is not among those of the fit that warm_start resumes")
            numbers = np.ascontiguousarray(numbers_of(y, self.classes_))
            return self._take(self._model.resumed((X, numbers, weights), arguments, self._work()))
        return self._learned(X, y, weights, classes, arguments)

    def _arguments(self, n_dims):
        parameters.choice("search", self.search, ("auto",))
        return self._kernel_arguments(n_dims) | {"lifetimes": self._given("lifetime", n_dims)}

    def _learned(self, X, y, weights, classes, arguments):
        numbers = np.ascontiguousarray(numbers_of(y, classes))
        model = _mondrian.LaplaceClassifier.fit((X, numbers, weights), len(classes), arguments, self._work())
        self.classes_ = classes
        return self._take(model)

    @all_or_nothing
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Append rows to a model that predicts from nearest rows; lifetimes are kept until the number of rows has doubled.

        The first call is ``fit`` with the solver "local"; after a ``fit`` with another solver, predictions use nearest
        rows from then on. Unlike a forest, the model depends on the order of the rows: parameters were tuned on the
        rows present at that time.

        {rows}
        y : array-like of shape (n_samples,)
            Classes, among those of the first call.
        classes : array-like of shape (n_classes,), default=None
            Classes that may occur in later calls; needed in the first call unless its rows contain all classes.
        sample_weight : array-like of shape (n_samples,), default=None
            How many rows each row counts for.

        {self}
        """
        first = self._is_first()
        X, y = self._labelled_rows(self._table(X, reset=first), y, reset=first)
        check_classification_targets(y)
        weights = sample_weights(sample_weight, X)
        arguments = self._arguments(X.shape[1]) | {"solver": "local"}
        known = np.unique(y if classes is None else classes) if first else self.classes_
        unknown = np.setdiff1d(y if classes is None else np.concatenate([np.unique(y), np.unique(classes)]), known)
        if len(unknown):
            raise ValueError(f"class {unknown[0]!r} is not among those of the first call: list all classes in its parameter classes")
        if first:
            return self._learned(X, y, weights, known, arguments)
        rows = (X, np.ascontiguousarray(numbers_of(y, known)), weights)
        if self._is_to_be_tuned(len(X)):
            return self._take(self._model.tuned_again(rows, arguments, self._work()))
        self._model.append(rows, self._threads())
        return self._take(self._model)

    def _take(self, model):
        self.loo_log_loss_, self.loo_score_, _ = model.leave_one_out()
        return super()._take(model)

    def _restore(self, model, state, target):
        super()._restore(model, state, target)
        if len(self.classes_) != model.n_classes:
            raise ValueError(f"{len(self.classes_)} names for {model.n_classes} classes")
        return self
