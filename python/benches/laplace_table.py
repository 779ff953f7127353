"""The tuned Laplace kernel beside boosting, extra trees, random forest and a support vector machine, on the same splits.

    MONDRIAN_DATA=folder python benches/laplace_table.py [--seed 0] [--only-ours] [--models NAME,...] [SET ...]

Regression sets and those without a standard split are split 80/20 by ``default_rng(0).permutation``; the others by the order of
their rows. Prints one Markdown row per model: RMSE, or accuracy / log loss, and seconds of the fit on the wall clock and of
processors; of our model also the expected calibration error (15 bins), or how many of 100 test rows its intervals of 50, 80, 90 and 95 %
hold. xRFM joins in where it is installed."""

import argparse
import gzip
import os
import time
import warnings

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

import mondrian

REGRESSION = ("ccpp", "cpu_act", "kin8nm", "house_8l", "house_16h")
#: Classes, with the number of training rows of the standard split.
CLASSES = {"letter": 16000, "satimage": 4435, "usps": 7291, "dna": 2000, "mnist_0_9": 11872}


def load(name):
    """Training inputs, training targets, test inputs, test targets."""
    folder = os.environ.get("MONDRIAN_DATA", os.path.join(os.path.dirname(__file__), "../../../shared/data"))
    with gzip.open(os.path.join(folder, name + ".csv.gz"), "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1]
    order = np.arange(len(y)) if name in CLASSES else np.random.default_rng(0).permutation(len(y))
    cut = CLASSES.get(name, int(0.8 * len(y)))
    return X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]]


def models(is_class, seed):
    """Everything that is compared, by name."""
    ours = mondrian.LaplaceKernelClassifier if is_class else mondrian.LaplaceKernelRidge
    yield "Laplace kernel", ours(random_state=seed, n_jobs=-1)
    kinds = {
        "boosting": (HistGradientBoostingRegressor, HistGradientBoostingClassifier, {}),
        "extra trees": (ExtraTreesRegressor, ExtraTreesClassifier, {"n_estimators": 300, "n_jobs": -1}),
        "random forest": (RandomForestRegressor, RandomForestClassifier, {"n_estimators": 300, "n_jobs": -1}),
    }
    for name, (regressor, classifier, options) in kinds.items():
        yield name, (classifier if is_class else regressor)(random_state=seed, **options)
    machine = SVC(C=10, probability=True, random_state=seed) if is_class else _ScaledSVR()
    yield "SVM", make_pipeline(StandardScaler(), machine)
    try:
        from xrfm import xRFM
    except ImportError:
        return
    yield "xRFM", xRFM()


class _ScaledSVR(SVR):
    """Targets in units of their deviation, as C and epsilon expect."""

    def __init__(self):
        super().__init__(C=10)

    def fit(self, X, y):
        self._centre, self._spread = y.mean(), y.std()
        return super().fit(X, (y - self._centre) / self._spread)

    def predict(self, X):
        return self._centre + self._spread * super().predict(X)


def calibration_error(shares, classes, y):
    """How far the probability of the predicted class is from how often it is right, in 15 bins."""
    sure, right = shares.max(1), classes[shares.argmax(1)] == y
    bins = np.minimum((15 * sure).astype(int), 14)
    return sum(abs(sure[bins == k].mean() - right[bins == k].mean()) * (bins == k).mean() for k in range(15) if (bins == k).any())


def coverages(model, X, y):
    """How many of 100 rows intervals hold."""
    ends = [model.predict_interval(X, coverage) for coverage in (0.5, 0.8, 0.9, 0.95)]
    return ", ".join(f"{100 * np.mean((lower <= y) & (y <= upper)):.1f}" for lower, upper in ends)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=[*REGRESSION, *CLASSES])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only-ours", action="store_true")
    parser.add_argument("--models", default="", help="names of models, separated by commas; all without")
    arguments = parser.parse_args()
    print("| set | model | test | fit, seconds | processor seconds |\n| --- | --- | --- | --- | --- |")
    for name in arguments.sets:
        X, y, X_test, y_test = load(name)
        for title, model in models(name in CLASSES, arguments.seed):
            if arguments.only_ours and title != "Laplace kernel" or arguments.models and title not in arguments.models.split(","):
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wall, processor = time.perf_counter(), time.process_time()
                model.fit(X, y)
                wall, processor = time.perf_counter() - wall, time.process_time() - processor
            if name in CLASSES:
                shares = model.predict_proba(X_test)
                accuracy = (model.classes_[shares.argmax(1)] == y_test).mean()
                result = f"{accuracy:.4f} / {log_loss(y_test, np.clip(shares, 1e-9, None), labels=model.classes_):.4f}"
            else:
                result = f"{np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)):.5g}"
            if title == "Laplace kernel":
                extra = (
                    f"ECE {calibration_error(shares, model.classes_, y_test):.4f}"
                    if name in CLASSES
                    else f"intervals hold {coverages(model, X_test, y_test)} %"
                )
                result = f"{result}; {extra}"
            print(f"| {name} | {title} | {result} | {wall:.1f} | {processor:.1f} |", flush=True)


if __name__ == "__main__":
    main()
