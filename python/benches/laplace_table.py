"""The tuned Laplace kernel beside boosting, extra trees, random forest and a support vector machine, on the same splits.

    MONDRIAN_DATA=folder python benches/laplace_table.py [--seeds 0,1,2] [--only-ours] [--models NAME,...] [--record FILE] [SET ...]

Regression sets and those without a standard split are split 80/20 by ``default_rng(0).permutation``; the others by the order of
their rows. Prints one Markdown row per run: RMSE, or accuracy / log loss, and seconds of the fit on the wall clock and of
processors; of our model also the expected calibration error (15 bins), or how many of 100 test rows its intervals of 50, 80, 90 and 95 %
hold. Our model runs on every seed, the others on the first. xRFM joins in where it is installed; where it is not, that is said.
It gets standardised inputs, a fifth of the training rows as the validation rows that its ``fit`` asks for, and ten minutes.

``--record FILE`` appends every run to a JSON file and skips those that it holds, so that a broken-off table is resumed. Times
of a record are upper bounds if ``--shared`` says that other work ran on the cores; a run without it replaces such a record.
``--memory GB`` is the most that the process may ask for, so that a model that needs more fails and is recorded as such, not the whole table.
``--print`` makes the tables of docs/laplace.md from the file and runs nothing."""

import argparse
import gzip
import importlib.util
import json
import os
import resource
import time
import warnings

import numpy as np
from sklearn.base import BaseEstimator
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

REGRESSION = ("ccpp", "cpu_act", "kin8nm", "house_8l", "house_16h")
#: Classes, with the number of training rows of the standard split.
CLASSES = {"letter": 16000, "satimage": 4435, "usps": 7291, "dna": 2000, "mnist_0_9": 11872}
COVERAGES = (0.5, 0.8, 0.9, 0.95)
OURS = "Laplace kernel"


def load(name):
    """Training inputs, training targets, test inputs, test targets."""
    folder = os.environ.get("MONDRIAN_DATA", os.path.join(os.path.dirname(__file__), "../../../shared/data"))
    with gzip.open(os.path.join(folder, name + ".csv.gz"), "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1]
    order = np.arange(len(y)) if name in CLASSES else np.random.default_rng(0).permutation(len(y))
    cut = CLASSES.get(name, int(0.8 * len(y)))
    return X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]]


def models(is_class, seed, wanted=()):
    """Everything that is compared, by name."""
    if not wanted or OURS in wanted:
        # Not at the top: the others run where the package is not built.
        import mondrian

        ours = mondrian.LaplaceKernelClassifier if is_class else mondrian.LaplaceKernelRidge
        yield OURS, ours(random_state=seed, n_jobs=-1)
    kinds = {
        "boosting": (HistGradientBoostingRegressor, HistGradientBoostingClassifier, {}),
        "extra trees": (ExtraTreesRegressor, ExtraTreesClassifier, {"n_estimators": 300, "n_jobs": -1}),
        "random forest": (RandomForestRegressor, RandomForestClassifier, {"n_estimators": 300, "n_jobs": -1}),
    }
    for name, (regressor, classifier, options) in kinds.items():
        yield name, (classifier if is_class else regressor)(random_state=seed, **options)
    machine = SVC(C=10, probability=True, random_state=seed) if is_class else _ScaledSVR()
    yield "SVM", make_pipeline(StandardScaler(), machine)
    if has_xrfm():
        yield "xRFM", make_pipeline(StandardScaler(), _XRFM(is_class, seed))


def has_xrfm():
    return importlib.util.find_spec("xrfm") is not None


class _XRFM(BaseEstimator):
    """xRFM with its defaults, in the manner of scikit-learn."""

    def __init__(self, is_class, seed):
        self.is_class, self.seed = is_class, seed

    def fit(self, X, y):
        from xrfm import xRFM

        if self.is_class:
            self.classes_, y = np.unique(y, return_inverse=True)
        else:
            self.centre_, self.spread_ = y.mean(), y.std()
            y = ((y - self.centre_) / self.spread_).astype(np.float32)
        order = np.random.default_rng(self.seed).permutation(len(y))
        held_out, kept = np.split(order, [len(y) // 5])
        X = X.astype(np.float32)
        self.model_ = xRFM(random_state=self.seed, time_limit_s=600, verbose=False)
        self.model_.fit(X[kept], y[kept], X[held_out], y[held_out])
        return self

    def predict(self, X):
        return self.centre_ + self.spread_ * np.asarray(self.model_.predict(X.astype(np.float32))).ravel().astype(float)

    def predict_proba(self, X):
        shares = np.asarray(self.model_.predict_proba(X.astype(np.float32))).astype(float)
        return shares / shares.sum(1, keepdims=True)


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
    ends = [model.predict_interval(X, coverage) for coverage in COVERAGES]
    return [100 * float(np.mean((lower <= y) & (y <= upper))) for lower, upper in ends]


def run(name, title, model, seed, rows):
    """One record: what a model reaches on a set."""
    X, y, X_test, y_test = rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wall, processor = time.perf_counter(), time.process_time()
        try:
            model.fit(X, y)
        except (MemoryError, RuntimeError) as error:
            if title == OURS:
                raise
            return {"set": name, "model": title, "seed": seed, "seconds": 0.0, "processor_seconds": 0.0, "failed": str(error)[:200] or "out of memory"}
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
    record = {"set": name, "model": title, "seed": seed, "seconds": round(wall, 2), "processor_seconds": round(processor, 2)}
    if name in CLASSES:
        shares = model.predict_proba(X_test)
        record["accuracy"] = float((model.classes_[shares.argmax(1)] == y_test).mean())
        record["log_loss"] = float(log_loss(y_test, np.clip(shares, 1e-9, None), labels=model.classes_))
        if title == OURS:
            record["calibration_error"] = float(calibration_error(shares, model.classes_, y_test))
    else:
        record["rmse"] = float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
        if title == OURS:
            record["coverages"] = coverages(model, X_test, y_test)
    return record


def result(record):
    """The test error of a record as text."""
    if "failed" in record:
        return "out of memory" if "memory" in record["failed"] else "failed: " + record["failed"].splitlines()[0]
    if "rmse" in record:
        return f"{record['rmse']:.4g}" if record["rmse"] < 1e4 else f"{record['rmse']:.0f}"
    return f"{record['accuracy']:.4f} / {record['log_loss']:.4f}"


def row(record):
    extra = ""
    if "calibration_error" in record:
        extra = f"; ECE {record['calibration_error']:.4f}"
    if "coverages" in record:
        extra = "; intervals hold " + ", ".join(f"{share:.1f}" for share in record["coverages"]) + " %"
    note = " (shared)" if record.get("is_shared") else ""
    return (
        f"| {record['set']} | {record['model']} | {record['seed']} | {result(record)}{extra} "
        f"| {record['seconds']:.1f}{note} | {record['processor_seconds']:.1f} |"
    )


def time_of(record):
    """Seconds of the fit; of processors, where other work ran on the cores."""
    return f"{record['processor_seconds']:.1f} s of processor" if record.get("is_shared") else f"{record['seconds']:.1f} s"


def tables(records):
    """The tables of docs/laplace.md: test errors and fit times of all models, then our seeds and calibration."""
    titles = [OURS, "boosting", "extra trees", "random forest", "SVM"] + (["xRFM"] if any(r["model"] == "xRFM" for r in records) else [])
    sets = [name for name in (*REGRESSION, *CLASSES) if any(r["set"] == name for r in records)]
    find = lambda name, title: sorted((r for r in records if r["set"] == name and r["model"] == title), key=lambda r: r["seed"])  # noqa: E731
    print("| set | " + " | ".join(titles) + " |\n| --- |" + " --- |" * len(titles))
    for name in sets:
        cells = []
        for title in titles:
            found = find(name, title)
            cells.append("–" if not found else result(found[0]) + ("" if "failed" in found[0] else f"; {time_of(found[0])}"))
        print(f"| {name} | " + " | ".join(cells) + " |")
    if not any(record["model"] == OURS for record in records):
        return
    print("\n| set | seeds " + ", ".join(str(s) for s in sorted({r['seed'] for r in records if r['model'] == OURS})) + " | calibration, first seed |\n| --- | --- | --- |")
    for name in sets:
        found = find(name, OURS)
        if not found:
            continue
        first = found[0]
        calibration = (
            f"expected calibration error {first['calibration_error']:.3f}"
            if "calibration_error" in first
            else ", ".join(f"{share:.1f}" for share in first["coverages"]) + " %"
        )
        print(f"| {name} | {'; '.join(result(r) for r in found)} | {calibration} |")


def read(path):
    if path is None or not os.path.exists(path):
        return []
    with open(path) as file:
        return json.load(file)


def keep(path, record):
    """Replaces the record of the same run, or appends it; the file is whole at all times."""
    is_other = lambda r: any(r[k] != record[k] for k in ("set", "model", "seed"))  # noqa: E731
    records = [r for r in read(path) if is_other(r)] + [record]
    with open(path + ".new", "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(r) for r in records) + "\n]\n")
    os.replace(path + ".new", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=[*REGRESSION, *CLASSES])
    parser.add_argument("--seeds", default="0", help="seeds of our model, separated by commas; the others take the first")
    parser.add_argument("--only-ours", action="store_true")
    parser.add_argument("--models", default="", help="names of models, separated by commas; all without")
    parser.add_argument("--record", help="a JSON file that runs are appended to")
    parser.add_argument("--shared", action="store_true", help="other work runs on the cores: times are upper bounds")
    parser.add_argument("--memory", type=float, help="GB that the process may ask for")
    parser.add_argument("--print", action="store_true", help="only make tables of the record")
    arguments = parser.parse_args()
    if arguments.print:
        return tables(read(arguments.record))
    if arguments.memory:
        resource.setrlimit(resource.RLIMIT_AS, (int(1e9 * arguments.memory),) * 2)
    if not has_xrfm() and not arguments.only_ours and not arguments.models:
        print("xRFM is not installed: it is left out.")
    seeds = [int(seed) for seed in arguments.seeds.split(",")]
    wanted = [OURS] if arguments.only_ours else [title for title in arguments.models.split(",") if title]
    print("| set | model | seed | test | fit, seconds | processor seconds |\n| --- | --- | --- | --- | --- | --- |")
    for name in arguments.sets:
        rows = load(name)
        for seed in seeds:
            for title, model in models(name in CLASSES, seed, wanted):
                if wanted and title not in wanted or title != OURS and seed != seeds[0]:
                    continue
                done = [r for r in read(arguments.record) if (r["set"], r["model"], r["seed"]) == (name, title, seed)]
                if done and (arguments.shared or not done[0].get("is_shared")):
                    continue
                record = run(name, title, model, seed, rows) | ({"is_shared": True} if arguments.shared else {})
                if arguments.record:
                    keep(arguments.record, record)
                print(row(record), flush=True)


if __name__ == "__main__":
    main()
