"""flights2001 from partitioned Parquet through a cluster of two processes, with prediction, against one process.

    python benches/flights_on_dask.py DATA_FOLDER [--trees 50] [--lifetime 2.0] [--parts 16] [--workers 2]

Build with --release. The last fifth of the files is held out.
"""

import argparse
import pathlib
import tempfile
import time

import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd

import mondrian
from mondrian.dask import DaskMondrianForestRegressor


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--lifetime", default="2.0")
    parser.add_argument("--parts", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    lifetime = args.lifetime if args.lifetime == "auto" else float(args.lifetime)
    frame = pd.read_csv(args.data / "flights2001.csv.gz").sample(frac=1.0, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        for number, part in enumerate(np.array_split(np.arange(len(frame)), args.parts)):
            kind = "train" if number < 0.8 * args.parts else "test"
            (pathlib.Path(folder) / kind).mkdir(exist_ok=True)
            frame.iloc[part].to_parquet(pathlib.Path(folder) / kind / f"{number:03}.parquet")
        cluster = distributed.LocalCluster(
            n_workers=args.workers, threads_per_worker=1, processes=True, dashboard_address=None
        )
        with cluster, distributed.Client(cluster) as client:
            train, test = (dd.read_parquet(pathlib.Path(folder) / kind) for kind in ("train", "test"))
            inputs = [name for name in train.columns if name != "target"]
            began = time.perf_counter()
            forest = DaskMondrianForestRegressor(
                args.trees, lifetime=lifetime, weights="std", random_state=0, client=client
            ).fit(train[inputs], train["target"])
            fitted = time.perf_counter()
            predicted = client.compute(forest.predict(test[inputs])).result()
            done = time.perf_counter()
            truth = pd.read_parquet(pathlib.Path(folder) / "test")
            score = forest.score(test[inputs], test["target"])
        rows = pd.read_parquet(pathlib.Path(folder) / "train")
    print(f"fit {fitted - began:.1f} s, predict {len(predicted)} rows {done - fitted:.1f} s on {args.workers} workers")
    print(f"{forest.n_rows_} rows, {forest.n_cells_ / args.trees:.0f} cells per tree, lifetime {forest.lifetime_:.4g}")
    error = np.sqrt(np.mean((predicted - truth["target"].to_numpy()) ** 2))
    print(f"test RMSE {error:.4f} (the mean: {truth['target'].std():.4f}), R2 {score:.4f}")
    domain = forest.domain_
    box = {"lower": domain.lower, "upper": domain.upper, "weights": domain.weights, "lifetime": domain.lifetime}
    began = time.perf_counter()
    whole = mondrian.MondrianForestRegressor(args.trees, random_state=0, n_jobs=1, **box)
    whole.fit(rows[inputs], rows["target"])
    same = np.array_equal(whole.at(forest.lifetime_).predict(truth[inputs]), predicted)
    print(f"one process, one thread: {time.perf_counter() - began:.1f} s with prediction; the same bits: {same}")


if __name__ == "__main__":
    main()
