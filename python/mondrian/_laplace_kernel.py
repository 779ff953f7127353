"""What the estimators with the tuned Laplace kernel share: its parameters, its categories and its metric."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from . import _mondrian
from . import _parameters as parameters
from ._categories import Categories
from ._searched import SearchedEstimator

_MEASURES = ("auto", "uniform", "quantile", "normal", "both")


class KernelEstimator(SearchedEstimator):
    """Base of the estimators with the whole tuned kernel."""

    def _table(self, X, *, reset=False):
        if reset:
            self._categories = Categories(X, self.categorical_features)
        known = self.__dict__.get("_categories")
        return X if known is None else known.encode(X)

    def _query(self, X):
        check_is_fitted(self)
        return super()._query(self._table(X))

    def _kernel_arguments(self, n_dims):
        parameters.real("epsilon", self.epsilon)
        metric = self.metric
        if metric is not None and not isinstance(metric, str):
            metric = parameters.integer("metric", metric)
        elif metric is not None:
            parameters.choice("metric", metric, ("auto", "diagonal", "full"))
        mask = self._categories.mask
        exponent = parameters.auto_or_real("exponent", self.exponent, strict=True)
        if exponent is not None and exponent > 2:
            raise ValueError(f"exponent is {exponent}, but must be at most 2")
        return {
            "measure": parameters.choice("measure", self.measure, _MEASURES),
            "metric": metric,
            "exponent": exponent,
            "alpha": parameters.auto_or_real("alpha", self.alpha, strict=True),
            "lifetimes": None,
            "categorical": mask.tolist() if len(mask) == n_dims else [False] * n_dims,
            "fit_intercept": parameters.boolean("fit_intercept", self.fit_intercept),
            "max_seconds": None if self.max_seconds is None else parameters.real("max_seconds", self.max_seconds),
            "solver": parameters.choice("solver", self.solver, ("auto", "exact", "cg", "local")),
            "max_exact_rows": parameters.integer("max_exact_rows", self.max_exact_rows),
            "n_neighbors": self._n_neighbors(),
            "seed": parameters.seed_of(self.random_state),
        }

    def _n_neighbors(self):
        if isinstance(self.n_neighbors, str):
            parameters.choice("n_neighbors", self.n_neighbors, ("auto",))
            return None
        return parameters.integer("n_neighbors", self.n_neighbors)

    def _goes_on(self):
        """Whether ``fit`` resumes from the existing kernel."""
        return parameters.boolean("warm_start", self.warm_start) and "_model" in self.__dict__ and hasattr(self._model, "resumed")

    def _is_first(self):
        """Whether ``partial_fit`` learns its first rows."""
        parameters.boolean("retune", self.retune)
        if parameters.choice("solver", self.solver, ("auto", "exact", "cg", "local")) not in ("auto", "local"):
            raise ValueError(f'partial_fit needs solver="local" (or "auto"), not {self.solver!r}')
        return "_model" not in self.__dict__

    def _is_to_be_tuned(self, n_rows):
        """Whether the number of rows has doubled since the last tuning."""
        if not hasattr(self._model, "append"):
            raise ValueError('the report\'s kernel cannot learn more rows: fit it with solver="local", or lifetime="auto"')
        return self.retune and self._model.n_rows + n_rows >= 2 * self._model.solver["n_tuned"]

    def _take(self, model):
        self.feature_importances_ = model.importances()
        if hasattr(self, "retune"):
            report = getattr(model, "solver", None) or {"used": "exact"}
            self.solver_, self.n_neighbors_ = report["used"], report.get("n_neighbors")
            self.n_iter_, self.residual_ = report.get("products"), report.get("residual")
        if hasattr(model, "metric"):
            self.metric_, self.exponent_ = model.metric, model.exponent
        else:
            self.metric_, self.exponent_ = None, 1.0
        return super()._take(model)

    def _support(self):
        """Importance at least ``epsilon`` times the largest."""
        return (self.feature_importances_ > 0) & (self.feature_importances_ >= self.epsilon)

    def _state(self):
        known = self.__dict__.get("_categories")
        return super()._state() | ({} if known is None else {"categories": known.to_json()})

    def _restore(self, model, state, target):
        if "categories" in state:
            self._categories = Categories.from_json(state["categories"])
        return super()._restore(model, state, target)

    def _models_missing_cells(self):
        return isinstance(self._model, (_mondrian.LaplaceRegressor, _mondrian.LaplaceClassifier))

    def _program_levels(self):
        known = self.__dict__.get("_categories")
        levels = {} if known is None else known.levels
        return [_spelled(levels[number]) if number in levels else None for number in range(self.n_features_in_)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def plot_metric(self, ax=None):
        """Draw the inputs that the metric combines: the matrix AᵀA, with inputs scaled to an equal diagonal.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            The axes to draw on.

        Returns
        -------
        ax : matplotlib axes
        """
        from ._plotting import axes_for

        check_is_fitted(self)
        if self.metric_ is None:
            raise ValueError("the model has no metric: fit it with metric other than None")
        product = self.metric_.T @ self.metric_
        scale = np.sqrt(np.diag(product))
        scale[scale == 0] = 1
        ax = axes_for(ax)
        ax.imshow(product / np.outer(scale, scale), vmin=-1, vmax=1, cmap="RdBu_r")
        names = self._input_names() or [str(number) for number in range(self.n_features_in_)]
        if len(names) <= 40:
            ax.set_xticks(range(len(names)), names, rotation=90)
            ax.set_yticks(range(len(names)), names)
        return ax


def _spelled(levels):
    """Categories by their text in a file."""
    return [str(level).lower() if isinstance(level, bool) else str(level) for level in levels]
