"""The Mondrian process in machine learning, as scikit-learn estimators over a Rust core.

Every random choice is a function of ``random_state``: results depend on neither the number of threads nor the order in
which rows arrive.
"""

from . import process
from ._classification import MondrianForestClassifier
from ._config import get_config, set_config
from ._density import MondrianDensity, MondrianDensityClassifier
from ._features import MondrianFeatures, MondrianGridFeatures, RandomBinningFeatures, RandomFourierFeatures
from ._files import load
from ._grid import MondrianGridRidge
from ._grid_search import GridSearch
from ._kernel import MondrianKernelRidge
from ._laplace import LaplaceKernelClassifier, LaplaceKernelRidge
from ._laplace_map import LaplaceMap
from ._mondrian import __version__
from ._path import RegularizationPath
from ._progressive import Progression, progressive
from ._regression import MondrianForestRegressor
from ._summary import Domain, Moments, Summary, summarize
from ._trajectory import Trajectory

__all__ = [
    "Domain",
    "GridSearch",
    "LaplaceKernelClassifier",
    "LaplaceKernelRidge",
    "LaplaceMap",
    "MondrianDensity",
    "MondrianDensityClassifier",
    "MondrianFeatures",
    "MondrianForestClassifier",
    "MondrianForestRegressor",
    "MondrianGridFeatures",
    "MondrianGridRidge",
    "MondrianKernelRidge",
    "Moments",
    "Progression",
    "RandomBinningFeatures",
    "RandomFourierFeatures",
    "RegularizationPath",
    "Summary",
    "Trajectory",
    "__version__",
    "get_config",
    "load",
    "process",
    "progressive",
    "set_config",
    "summarize",
]

set_config()
