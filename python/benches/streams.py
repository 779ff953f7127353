"""Test-then-train, one row at a time, with nothing given: build the package in release first.

    maturin develop --release && python benches/streams.py [speed] [density] [types] [forget] [window] [accuracy] [drift]
                                    [--quick] [--no-river] [--rows N] [--seeds 0,1,2] [--data FOLDER] [--json FILE]

Defaults but for the number of trees: no box, automatic prior, noise, κ and γ; 10 trees, 10 inputs, one thread. A model first
learns so many rows, the first alone and the others in one batch, then 1000 one by one that are not timed (arrays that a batch has made to
measure grow with the first rows after it), and then asked and taught one by one; the figure is processor time per row, of
predicting and of learning, the median of five turns. river's AMF takes turns with it, where it is installed.

``density`` is scoring and then learning, with :class:`mondrian.MondrianDensity` and the anomaly detector for river beside river's
``HalfSpaceTrees``; ``types`` is learning rows of other types of numbers and at a finite lifetime.

``accuracy`` and ``drift`` are errors, which no other work on the machine changes. With ``--json`` each is appended to a file, one line
per case, and cases that are there are not run again. On seeds other than 0 only our models run.
"""

import json
import sys
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import numpy as np

from mondrian import MondrianForestClassifier, MondrianForestRegressor

QUICK = "--quick" in sys.argv
WITH_RIVER = "--no-river" not in sys.argv
PLACES = (1_000, 10_000) if QUICK else (1_000, 100_000)
STEPS, UNTIMED, TURNS = (100, 100, 1) if QUICK else (2000, 1000, 5)
TREES, DIMS = 10, 10


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, DIMS))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    return X, y, (y > 0).astype(int) + (y > 1)


def measured(model, ask, X, y, place):
    """Microseconds per row of asking and of learning, about row ``place``: processor time, of which learning has its share of the wall clock,
    since reading the processor's for every row would cost over a microsecond."""
    first = max(place - UNTIMED, 2)
    model.partial_fit(X[:1], y[:1])
    model.partial_fit(X[1:first], y[1:first])
    for i in range(first, place):
        ask(X[i : i + 1])
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    learning, start = 0.0, process_time()
    for i in range(place, place + STEPS):
        ask(X[i : i + 1])
        middle = perf_counter()
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        learning += perf_counter() - middle
    total = process_time() - start
    return 1e6 * (total - learning) / STEPS, 1e6 * learning / STEPS


def measured_amf(model, ask, X, y, place):
    dictionaries = [dict(enumerate(row)) for row in X[: place + STEPS].tolist()]
    values = y.tolist()
    for i in range(place):
        model.learn_one(dictionaries[i], values[i])
    start = process_time()
    for i in range(place, place + STEPS):
        getattr(model, ask)(dictionaries[i])
        model.learn_one(dictionaries[i], values[i])
    return 1e6 * (process_time() - start) / STEPS


def main():
    try:
        from river.forest import AMFClassifier, AMFRegressor
    except ImportError:
        AMFClassifier = AMFRegressor = None
        print("river is not installed (pip install 'mondrian[bench]')")
    X, y, classes = rows(max(PLACES) + STEPS)
    for name, make, ask, amf, amf_ask, target in (
        ("regressor", MondrianForestRegressor, "predict", AMFRegressor, "predict_one", y),
        ("classifier", MondrianForestClassifier, "predict_proba", AMFClassifier, "predict_proba_one", classes),
    ):
        totals = [median_of_turns(name, place, (make, ask), (amf, amf_ask), X, target) for place in PLACES]
        print(f"{name}: growth {totals[1] / totals[0]:.2f}", flush=True)


def median_of_turns(name, place, ours, theirs, X, target):
    """The median microseconds per row of our model. It and river's take turns, so that both have the machine as it is at the time: five
    at the first place, and one for river at the last, where it takes a minute."""
    (make, ask), (amf, amf_ask) = ours, theirs
    found, amfs = [], []
    for turn in range(TURNS):
        model = make(n_estimators=TREES, random_state=0, n_jobs=1)
        found.append(measured(model, getattr(model, ask), X, target, place))
        if WITH_RIVER and amf is not None and (place == PLACES[0] or turn == 0):
            amfs.append(measured_amf(amf(n_estimators=TREES, seed=0), amf_ask, X, target, place))
    totals = sorted(map(sum, found))
    total, (asking, learning) = median(totals), (median(part) for part in zip(*found, strict=True))
    print(
        f"{name}/row={place}/d={DIMS}/trees={TREES}: {total:.1f} us per row ({totals[0]:.1f} to {totals[-1]:.1f}; "
        f"predict {asking:.1f}, learn {learning:.1f})",
        flush=True,
    )
    if amfs:
        amf = median(amfs)
        print(f"{name}/row={place}: AMF {amf:.0f} us per row ({min(amfs):.0f} to {max(amfs):.0f}), {amf / total:.1f} times ours", flush=True)
    return total


def densities():
    """Scoring and then learning rows one by one, by the number of rows."""
    from mondrian import MondrianDensity

    X, _, _ = rows(max(PLACES) // 10 + STEPS)
    for place in (PLACES[0], PLACES[1] // 10):
        model = MondrianDensity(n_estimators=TREES, random_state=0, n_jobs=1).partial_fit(X[:place])
        start = process_time()
        for i in range(place, place + STEPS):
            model.score_samples(X[i : i + 1])
            model.partial_fit(X[i : i + 1])
        print(f"density/row={place}/d={DIMS}: {1e6 * (process_time() - start) / STEPS:.0f} us per row", flush=True)
    try:
        from river.anomaly import HalfSpaceTrees

        from mondrian.river import MondrianAnomaly
    except ImportError:
        return print("river is not installed (pip install 'mondrian[bench]')")
    stream = [dict(enumerate(row)) for row in X[: 2 * STEPS].tolist()]
    for model in (MondrianAnomaly(), HalfSpaceTrees(n_trees=TREES, seed=0)):
        start = process_time()
        for x in stream:
            model.score_one(x)
            model.learn_one(x)
        print(f"{type(model).__name__}/rows={len(stream)}: {1e6 * (process_time() - start) / len(stream):.0f} us per row", flush=True)


def types():
    """Learning rows one by one: single precision and integers, and a finite lifetime."""
    X, y, classes = rows(10_000 + STEPS)
    for name, make, target in (("regressor", MondrianForestRegressor, y), ("classifier", MondrianForestClassifier, classes)):
        for kind, some_x, some_y, lifetime in (
            ("doubles", X, target, "auto"),
            ("floats, integers", X.astype(np.float32), target.astype(np.int32), "auto"),
            ("lifetime=2", X, target, 2.0),
        ):
            model = make(n_estimators=TREES, lifetime=lifetime, random_state=0, n_jobs=1).partial_fit(some_x[:10_000], some_y[:10_000])
            start = process_time()
            for i in range(10_000, 10_000 + STEPS):
                model.partial_fit(some_x[i : i + 1], some_y[i : i + 1])
            print(f"{name}/{kind}: {1e6 * (process_time() - start) / STEPS:.1f} us per row learned", flush=True)


class Results:
    """Results by case, kept in a file if there is one: a line of JSON each."""

    def __init__(self, path):
        self._path = None if path is None else Path(path)
        lines = self._path.read_text().splitlines() if self._path is not None and self._path.exists() else []
        self._known = {record["case"]: record for record in map(json.loads, lines)}

    def of(self, case, find):
        """The record of a case, found and kept if it is new."""
        record = self._known.get(case)
        if record is None:
            record = self._known[case] = {"case": case, **find()}
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps(record) + "\n")
        print(", ".join(f"{name} {value:.5g}" if isinstance(value, float) else str(value) for name, value in record.items()), flush=True)


def prequential(model, stream, targets, metric):
    """The error of predicting each row before it is learned, and microseconds of processor time per row.

    The first row does not count: some models say nothing of it, others 0.
    """
    start, is_first = process_time(), True
    for x, y in zip(stream, targets):
        said = model.predict_one(x)
        if said is not None and not is_first:
            metric.update(y, said)
        model.learn_one(x, y)
        is_first = False
    return {"metric": type(metric).__name__, "value": metric.get(), "us_per_row": 1e6 * (process_time() - start) / len(stream)}


def forgetting():
    """Learning and forgetting one row in a full window, by the size of the window."""
    for size in (1_000, 10_000, 50_000) if not QUICK else (1_000, 5_000):
        X, y, _ = rows(size + STEPS)
        model = MondrianForestRegressor(n_estimators=TREES, random_state=0, n_jobs=1)
        model.partial_fit(X[:1], y[:1]).partial_fit(X[1:size], y[1:size])
        learning = forgetting = 0.0
        for i in range(size, size + STEPS):
            start = process_time()
            model.partial_fit(X[i : i + 1], y[i : i + 1])
            middle = process_time()
            model.forget(X[i - size : i - size + 1], y[i - size : i - size + 1])
            learning, forgetting = learning + middle - start, forgetting + process_time() - middle
        print(
            f"window={size}: learn {1e6 * learning / STEPS:.1f} us, forget {1e6 * forgetting / STEPS:.1f} us, "
            f"{forgetting / learning:.2f} times",
            flush=True,
        )


def long_window():
    """A window of 10 000 rows over many: time per row and memory of the process, in ten parts."""
    import resource

    n = 20_000 if QUICK else 200_000
    X, y, _ = rows(n)
    model = MondrianForestRegressor(n_estimators=TREES, random_state=0, n_jobs=1, window=min(10_000, n // 4))
    model.partial_fit(X[:1], y[:1])
    for part in range(10):
        start = process_time()
        for i in range(max(part * n // 10, 1), (part + 1) * n // 10):
            model.partial_fit(X[i : i + 1], y[i : i + 1])
        spent = 1e6 * (process_time() - start) / (n // 10)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"window of 10 000, row {(part + 1) * n // 10}: {spent:.1f} us per row, peak {peak:.0f} MB", flush=True)


def accuracy(folder, n_most, results, seed):
    """Prequential errors beside river's AMF and ARF, through river's interface, all with 10 trees."""
    from river import forest, metrics, preprocessing
    from river.forest import AMFClassifier, AMFRegressor

    from mondrian import river as ours

    for table, n, shuffled, is_class in (
        ("ccpp", 9_568, True, False),
        ("satimage", 6_435, True, True),
        ("nycflights13", 10_000, False, False),
        ("flights2001", 20_000, False, False),
        ("letter", 20_000, True, True),
    ):
        path = Path(folder) / f"{table}.csv.gz"
        if not path.exists():
            print(f"skipped: {table} is not in {folder}")
            continue
        numbers = np.loadtxt(path, delimiter=",", skiprows=1, max_rows=None if shuffled else n)
        if shuffled:
            numbers = numbers[np.random.default_rng(0).permutation(len(numbers))]
        numbers = numbers[: min(n, n_most)]
        stream = [dict(enumerate(row)) for row in numbers[:, :-1].tolist()]
        targets = numbers[:, -1].astype(int).tolist() if is_class else numbers[:, -1].tolist()
        cases = (
            {"Mondrian": ours.MondrianForestClassifier, "AMF": AMFClassifier, "ARF": forest.ARFClassifier}
            if is_class
            else {"Mondrian": ours.MondrianForestRegressor, "AMF": AMFRegressor, "ARF": forest.ARFRegressor}
        )
        for name, make in cases.items():
            metric = metrics.Accuracy() if is_class else metrics.RMSE()
            trees = "n_estimators" if name == "AMF" else "n_models"
            if name != "Mondrian" and (seed or not WITH_RIVER):
                continue
            model = make(**{trees: 10}, seed=seed)
            if name == "ARF" and not is_class:
                # Its leaves are linear models, which diverge on inputs as they come.
                model = preprocessing.StandardScaler() | model
            results.of(
                f"{table}/{len(stream)} rows/{name}" + (f"/seed {seed}" if seed else ""),
                lambda model=model, metric=metric: prequential(model, stream, targets, metric),
            )


def drift(n, results):
    """Prequential errors on river's generators with a drift, by window."""
    from itertools import islice

    from river import forest, metrics
    from river.datasets import synth

    from mondrian import river as ours

    def switching(make, variants):
        for k, variant in enumerate(variants):
            yield from islice(make(variant, k), n // len(variants))

    streams = {
        "agrawal": (True, lambda: switching(lambda f, k: synth.Agrawal(classification_function=f, seed=k), (0, 3, 6))),
        "sea": (True, lambda: switching(lambda v, k: synth.SEA(variant=v, seed=k, noise=0.1), (0, 1, 2, 3))),
        "hyperplane": (True, lambda: islice(synth.Hyperplane(seed=1, n_features=10, n_drift_features=5, mag_change=0.001), n)),
        "friedman": (False, lambda: islice(synth.FriedmanDrift("gra", position=(n // 3, 2 * n // 3), seed=1), n)),
    }
    for name, (is_class, stream) in streams.items():
        rows_of = [({k: float(v) for k, v in x.items()}, y) for x, y in stream()]
        make = ours.MondrianForestClassifier if is_class else ours.MondrianForestRegressor
        cases = {f"window={w}": (lambda w=w: make(window=w)) for w in (250, 1000, 4000, None, "adaptive")}
        cases["ARF"] = lambda: (forest.ARFClassifier if is_class else forest.ARFRegressor)(seed=0)
        inputs, targets = zip(*rows_of)
        for case, model in cases.items():
            metric = metrics.Accuracy() if is_class else metrics.RMSE()
            results.of(
                f"{name}/{len(rows_of)} rows/{case}",
                lambda model=model, metric=metric: prequential(model(), inputs, targets, metric),
            )


def option(name, default):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


if __name__ == "__main__":
    parts = [part for part in ("speed", "density", "types", "forget", "window", "accuracy", "drift") if part in sys.argv] or ["speed", "density", "types", "forget"]
    if "speed" in parts:
        main()
    if "density" in parts:
        densities()
    if "types" in parts:
        types()
    if "forget" in parts:
        forgetting()
    if "window" in parts:
        long_window()
    kept = Results(option("--json", None))
    if "accuracy" in parts:
        for seed in map(int, option("--seeds", "0").split(",")):
            accuracy(option("--data", "../../shared/data"), int(option("--rows", 20_000)), kept, seed)
    if "drift" in parts:
        drift(int(option("--rows", 12_000)), kept)
