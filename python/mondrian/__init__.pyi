"""Types of the public names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Self, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, DensityMixin, RegressorMixin, TransformerMixin

from . import process as process

__all__ = [
    "LaplaceKernelClassifier", "LaplaceKernelRidge", "LaplaceMap", "MondrianDensity", "MondrianDensityClassifier", "MondrianFeatures",
    "MondrianForestClassifier", "MondrianForestRegressor", "MondrianGridFeatures", "MondrianGridRidge",
    "MondrianKernelRidge", "Progression", "RandomBinningFeatures", "RandomFourierFeatures", "RegularizationPath", "Trajectory",
    "__version__", "get_config", "load", "process", "progressive", "set_config",
]

def set_config(*, max_memory: float | str | None = "auto") -> None: ...
def get_config() -> dict[str, int | None]: ...

_Floats: TypeAlias = NDArray[np.float64]
_Path: TypeAlias = str | PathLike[str]
_Random: TypeAlias = int | np.random.RandomState | None
_Auto: TypeAlias = float | Literal["auto"]
_Box: TypeAlias = ArrayLike | None
_Measure: TypeAlias = Literal["uniform", "quantile"]
_Weights: TypeAlias = ArrayLike | Literal["auto", "std"] | None
_KernelMeasure: TypeAlias = Literal["auto", "uniform", "quantile", "normal", "both"]
_Metric: TypeAlias = Literal["auto", "diagonal", "full"] | int | None
_Unseen: TypeAlias = Literal["keyed", "integrate"]
_HoldOut: TypeAlias = Literal["hold-out"] | int
_Validation: TypeAlias = Literal["hold-out", "leave-one-out"] | int
_Progress: TypeAlias = Callable[[float], Any]
_Verbose: TypeAlias = bool | _Progress
_StepVerbose: TypeAlias = bool | Callable[[dict[str, Any]], Any]
_Request: TypeAlias = bool | str | None

__version__: str

def progressive(model: Any, X: ArrayLike, y: ArrayLike) -> Progression: ...
def load(path: _Path, n_jobs: int | None = None) -> Any: ...

class _Estimator(BaseEstimator):
    n_features_in_: int
    def save(self, path: _Path, *, target: str = "target") -> None: ...

class _Tree(_Estimator):
    weights_: _Floats | None

class _Viewed(_Tree):
    lifetime_: float
    def at(self, lifetime: float) -> Self: ...

class _Online(_Viewed):
    def merge(self, other: Self) -> Self: ...

class _Forest(_Online):
    def apply(self, X: ArrayLike) -> NDArray[np.int64]: ...
    def forget(self, X: ArrayLike, y: ArrayLike) -> Self: ...
    @property
    def feature_importances_(self) -> _Floats: ...
    def set_fit_request(self, *, sample_weight: _Request = ...) -> Self: ...

class _Regressor(RegressorMixin, _Estimator):
    def equivalent_kernel(self, X_query: ArrayLike) -> _Floats: ...
    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = False) -> _Floats: ...
    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[_Floats, _Floats]: ...
    @overload
    def predict(self, X: ArrayLike, return_std: bool) -> _Floats | tuple[_Floats, _Floats]: ...
    def set_predict_request(self, *, return_std: _Request = ...) -> Self: ...
    def set_score_request(self, *, sample_weight: _Request = ...) -> Self: ...

class _ViewedRegressor(_Regressor, _Viewed):
    def path(self, X_val: Any, y_val: Any, progress: _Progress | None = None) -> RegularizationPath: ...

class _Classifier(ClassifierMixin, _Estimator):
    classes_: NDArray[Any]
    def predict(self, X: ArrayLike) -> NDArray[Any]: ...
    def predict_proba(self, X: ArrayLike) -> _Floats: ...
    def set_score_request(self, *, sample_weight: _Request = ...) -> Self: ...

class _Features(TransformerMixin, _Estimator):
    def fit(self, X: ArrayLike, y: Any = None) -> Self: ...
    def transform(self, X: ArrayLike) -> Any: ...

class _Ridge(_Estimator):
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self: ...

class _Searched(_Ridge):
    lifetimes_: _Floats
    alpha_: float
    trajectory_: Trajectory
    def get_support(self, indices: bool = False) -> NDArray[Any]: ...

class _Kernel(_Searched):
    feature_importances_: _Floats
    metric_: _Floats | None
    exponent_: float
    def plot_metric(self, ax: Any = None) -> Any: ...

class LaplaceKernelRidge(_Regressor, _Kernel):
    def __init__(
        self, lifetime: ArrayLike | Literal["auto", "path"] = "auto", alpha: _Auto = "auto",
        measure: _KernelMeasure = "auto", metric: _Metric = "auto", exponent: _Auto = "auto",
        target_transform: Literal["auto", "sqrt", "log"] | None = "auto",
        categorical_features: Any = "from_dtype", solver: Literal["auto", "exact"] = "auto", max_exact_rows: int = 20000,
        max_seconds: float | None = None, search: Literal["auto", "gradient", "coordinate"] = "auto",
        fit_intercept: bool = True, n_estimators: int = 200, epsilon: float = 0.01, validation: _HoldOut = "hold-out",
        random_state: _Random = None, n_jobs: int | None = None, verbose: _StepVerbose = False,
    ) -> None: ...
    target_transform_: str | None
    loo_score_: float
    loo_rmse_: float | _Floats
    solver_: str
    is_exact_: bool
    dual_coef_: _Floats | None
    intercept_: float | _Floats | None
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self: ...
    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> tuple[_Floats, _Floats]: ...
    def set_fit_request(self, *, sample_weight: _Request = ...) -> Self: ...

class LaplaceKernelClassifier(_Classifier, _Kernel):
    def __init__(
        self, lifetime: ArrayLike | Literal["auto"] = "auto", alpha: _Auto = "auto",
        measure: _KernelMeasure = "auto", metric: _Metric = "auto", exponent: _Auto = "auto",
        categorical_features: Any = "from_dtype", solver: Literal["auto", "exact"] = "auto", max_exact_rows: int = 20000,
        max_seconds: float | None = None, search: Literal["auto"] = "auto", fit_intercept: bool = True,
        epsilon: float = 0.01, random_state: _Random = None, n_jobs: int | None = None, verbose: _StepVerbose = False,
    ) -> None: ...
    loo_score_: float
    loo_log_loss_: float
    solver_: str
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self: ...
    def set_fit_request(self, *, sample_weight: _Request = ...) -> Self: ...

class LaplaceMap(TransformerMixin, _Kernel):
    def __init__(
        self, n_directions: int = 64, task: Literal["auto", "regression", "classification"] = "auto",
        measure: _KernelMeasure = "auto", metric: _Metric = "auto", exponent: _Auto = "auto",
        categorical_features: Any = "from_dtype", max_rows: int = 4000, max_seconds: float | None = None,
        random_state: _Random = None, n_jobs: int | None = None, verbose: _StepVerbose = False,
    ) -> None: ...
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self: ...
    def transform(self, X: ArrayLike) -> _Floats: ...

class MondrianDensity(DensityMixin, _Online):
    def __init__(
        self, n_estimators: int = 100, lifetime: _Auto = "auto", gamma: _Auto = "auto",
        lower: _Box = None, upper: _Box = None, measure: _Measure = "uniform", weights: _Weights = "auto",
        margin: float = 0.1, validation: _Validation = "hold-out",
        random_state: _Random = None, n_jobs: int | None = None, verbose: _Verbose = False,
    ) -> None: ...
    lower_: _Floats
    upper_: _Floats
    @property
    def gamma_(self) -> float: ...
    def fit(self, X: ArrayLike, y: Any = None) -> Self: ...
    def partial_fit(self, X: ArrayLike, y: Any = None) -> Self: ...
    def forget(self, X: ArrayLike) -> Self: ...
    def score_samples(self, X: ArrayLike) -> _Floats: ...
    def score(self, X: ArrayLike, y: Any = None) -> float: ...
    def leave_one_out_score(self) -> float: ...
    def path(self, X_val: Any = None, progress: _Progress | None = None) -> RegularizationPath: ...
    def sample(self, n_samples: int = 1, random_state: _Random = None) -> _Floats: ...
    def plot(self, ax: Any = None, dims: Sequence[int] = (0, 1), n_points: int = 200) -> Any: ...

class MondrianDensityClassifier(_Classifier, _Tree):
    def __init__(
        self, n_estimators: int = 100, lifetime: _Auto = "auto", gamma: _Auto = "auto",
        lower: _Box = None, upper: _Box = None, measure: _Measure = "uniform", weights: _Weights = "auto",
        margin: float = 0.1, validation: _Validation = "hold-out", class_prior: Literal["frequency", "equal"] = "frequency",
        random_state: _Random = None, n_jobs: int | None = None, verbose: _Verbose = False,
    ) -> None: ...
    lifetimes_: _Floats
    def fit(self, X: ArrayLike, y: ArrayLike) -> Self: ...

class MondrianFeatures(_Features, _Tree):
    def __init__(
        self, n_estimators: int = 100, lifetime: float = 1.0,
        lower: _Box = None, upper: _Box = None, measure: _Measure = "uniform", weights: _Weights = "auto",
        sparse_output: bool = True, random_state: _Random = None, n_jobs: int | None = None, verbose: _Verbose = False,
    ) -> None: ...

class MondrianForestClassifier(_Classifier, _Forest):
    def __init__(
        self, n_estimators: int = 100, lifetime: _Auto = "auto", gamma: _Auto = "auto",
        lower: _Box = None, upper: _Box = None, measure: _Measure = "uniform", weights: _Weights = "auto",
        unseen: _Unseen = "keyed", validation: _HoldOut = "hold-out",
        random_state: _Random = None, n_jobs: int | None = None, verbose: _Verbose = False,
    ) -> None: ...
    @property
    def gamma_(self) -> float: ...
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self: ...
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self: ...
    def path(
        self, X_val: Any, y_val: Any, loss: Literal["log_loss", "error"] = "log_loss", lifetimes: ArrayLike | None = None,
        progress: _Progress | None = None,
    ) -> RegularizationPath: ...
    def set_partial_fit_request(self, *, classes: _Request = ..., sample_weight: _Request = ...) -> Self: ...

class MondrianForestRegressor(_ViewedRegressor, _Forest):
    def __init__(
        self, n_estimators: int = 100, lifetime: _Auto = "auto",
        prior_mean: _Auto = "auto", prior_variance: _Auto = "auto", noise_variance: _Auto = "auto",
        kappa: _Auto = "auto", leaf_model: Literal["hierarchical", "independent"] = "hierarchical",
        lower: _Box = None, upper: _Box = None, measure: _Measure = "uniform", weights: _Weights = "auto",
        unseen: _Unseen = "keyed", validation: _HoldOut = "hold-out",
        random_state: _Random = None, n_jobs: int | None = None, verbose: _Verbose = False,
    ) -> None: ...
    @property
    def prior_mean_(self) -> float | _Floats: ...
    @property
    def prior_variance_(self) -> float | _Floats: ...
    @property
    def noise_variance_(self) -> float | _Floats: ...
    @property
    def kappa_(self) -> float | _Floats: ...
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self: ...
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self: ...
    def predict_interval(self, X: ArrayLike, coverage: float = 0.9) -> _Floats: ...
    def predict_quantiles(self, X: ArrayLike, quantiles: ArrayLike) -> _Floats: ...
    def set_partial_fit_request(self, *, sample_weight: _Request = ...) -> Self: ...

class MondrianGridFeatures(_Features):
    def __init__(
        self, n_estimators: int = 100, lifetimes: ArrayLike = 1.0, sparse_output: bool = True,
        random_state: _Random = None, n_jobs: int | None = None,
    ) -> None: ...

class MondrianGridRidge(RegressorMixin, _Searched):
    def __init__(
        self, n_estimators: int = 50, lifetimes: ArrayLike | Literal["auto"] = "auto", alpha: _Auto = 1.0,
        search: Literal["auto", "greedy", "greedy-both", "lookahead", "coordinate", "gradient", "spsa", "bayes"] = "auto",
        budget: int = 400, patience: int = 50, search_rows: int = 3000, epsilon: float = 0.01, fit_intercept: bool = True,
        random_state: _Random = None, n_jobs: int | None = None, verbose: _StepVerbose = False,
    ) -> None: ...
    ranking_: NDArray[np.int64]
    def predict(self, X: ArrayLike) -> _Floats: ...
    def set_score_request(self, *, sample_weight: _Request = ...) -> Self: ...

class MondrianKernelRidge(_ViewedRegressor, _Ridge):
    def __init__(
        self, n_estimators: int = 100, lifetime: _Auto = "auto", alpha: _Auto = 1.0,
        solver: Literal["auto", "primal", "dual", "cg"] = "auto", fit_intercept: bool = True,
        lower: _Box = None, upper: _Box = None, measure: _Measure = "uniform", weights: _Weights = "auto",
        validation: _HoldOut = "hold-out", random_state: _Random = None, n_jobs: int | None = None, verbose: _Verbose = False,
    ) -> None: ...
    alpha_: float
    intercept_: float
    solver_: str
    residual_: float

class RandomBinningFeatures(_Features):
    def __init__(
        self, n_estimators: int = 100, lifetime: ArrayLike = 1.0, sparse_output: bool = True,
        random_state: _Random = None, n_jobs: int | None = None,
    ) -> None: ...

class RandomFourierFeatures(_Features):
    def __init__(
        self, n_components: int = 100, lifetime: ArrayLike = 1.0, random_state: _Random = None, n_jobs: int | None = None
    ) -> None: ...

class RegularizationPath:
    lifetimes: _Floats
    train: _Floats
    validation: Any
    leave_one_out: _Floats | None
    loss: Literal["rmse", "log_loss", "error", "neg_log_density"]
    worst_residual: float | None
    n_outside: list[int] | None
    def __init__(
        self, inner: Any, several: bool = False, exact: Callable[[float], float] | None = None,
        n_outside: list[int] | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    @property
    def best_lifetime(self) -> float: ...
    @property
    def best_lifetime_1se(self) -> float: ...
    @property
    def standard_error(self) -> float | None: ...
    def value_at(self, lifetime: float) -> float: ...
    def to_frame(self) -> Any: ...
    def to_svg(self, path: _Path | None = None) -> str: ...
    def plot(self, ax: Any = None) -> Any: ...

class Progression:
    losses: _Floats
    predictions: NDArray[Any]
    loss: Literal["squared_error", "error"]
    def __init__(self, losses: _Floats, predictions: NDArray[Any], loss: str) -> None: ...
    def running(self) -> _Floats: ...
    @property
    def score(self) -> float: ...
    def plot(self, ax: Any = None) -> Any: ...

class Trajectory:
    lifetimes: _Floats
    alpha: _Floats
    error: _Floats
    cost: _Floats
    rows: NDArray[np.uint64]
    def __init__(self, columns: Mapping[str, NDArray[Any]], names: Sequence[str] | None = None) -> None: ...
    def __len__(self) -> int: ...
    @property
    def best_index(self) -> int: ...
    def to_frame(self) -> Any: ...
    def plot(self, ax: Any = None, names: Sequence[str] | None = None) -> Any: ...
