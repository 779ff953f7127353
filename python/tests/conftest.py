"""Data that the tests share."""

import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def regression(rng):
    """Rows of three inputs, two of which matter."""
    X = rng.uniform(size=(120, 3))
    return X, np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=120)


@pytest.fixture
def classes(rng):
    X = rng.uniform(size=(120, 2))
    return X, np.where(X[:, 0] + X[:, 1] > 1, "above", "below")
