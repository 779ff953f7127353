"""scikit-learn's own checks, on every estimator as it comes, none of them expected to fail."""

import estimators
from sklearn.utils.estimator_checks import parametrize_with_checks


@parametrize_with_checks([cls() for cls in estimators.ALL])
def test_scikit_learns_checks(estimator, check):
    check(estimator)
