"""Training on a Dask cluster of processes against one fit: time, memory and bytes. Prints a table and a JSON line per size.

    python benches/machines.py [--rows 400000,...] [--trees 20] [--lifetime 1.28] [--workers 2] [--chunk 50000] [--runs 5] [--from-files]

Workers are processes of a LocalCluster with one thread each, started before the clock. Rows lie in the workers' memory as the one
process has them in its own; with --from-files they are read from disk by every task, so that the peak of a worker is what training takes.
Times are medians over runs, least and greatest in brackets. Build with --release.
"""

import argparse
import json
import os
import statistics
import tempfile
import time

import dask
import dask.array
import distributed
import numpy as np

import mondrian
from mondrian.dask import DaskMondrianForestRegressor


def block(folder, start, end):
    """Rows of a file with their targets, as one table."""
    return np.array(np.load(os.path.join(folder, "rows.npy"), mmap_mode="r")[start:end])


def collection(folder, n_rows, n_columns, chunk):
    sizes = [(at, min(at + chunk, n_rows)) for at in range(0, n_rows, chunk)]
    load = dask.delayed(block, pure=True)
    tables = [dask.array.from_delayed(load(folder, a, b), (b - a, n_columns + 1), dtype=float) for a, b in sizes]
    table = dask.array.concatenate(tables)
    return table[:, :-1].map_blocks(np.ascontiguousarray), table[:, -1].map_blocks(np.ascontiguousarray)


def spent():
    return time.process_time()


def peak():
    # Not getrusage: its peak is inherited from the process that started this one.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:")) / 1024


def middle(values):
    return [statistics.median(values), min(values), max(values)]


def measured(client, folder, n_rows, args):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n_rows, args.columns))
    y = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n_rows)
    queries = rng.uniform(size=(2000, args.columns))
    np.save(os.path.join(folder, "rows.npy"), np.column_stack([X, y]))
    rows, targets = collection(folder, n_rows, args.columns, args.chunk)
    if not args.from_files:
        rows, targets = client.persist([rows, targets])
        distributed.wait([rows, targets])
    parameters = {"n_estimators": args.trees, "lifetime": args.lifetime, "random_state": 0}
    walls, processors, ones, one_processors = [], [], [], []
    for run in range(args.runs):
        # Alternating, so that both see the same machine.
        before, here, began = sum(client.run(spent).values()), time.process_time(), time.perf_counter()
        forest = DaskMondrianForestRegressor(**parameters, n_jobs=1, client=client).fit(rows, targets)
        walls.append(time.perf_counter() - began)
        processors.append(time.process_time() - here + sum(client.run(spent).values()) - before)
        domain = forest.domain_
        box = {"lower": domain.lower, "upper": domain.upper, "weights": domain.weights}
        began, here = time.perf_counter(), time.process_time()
        one = mondrian.MondrianForestRegressor(**parameters, **box, n_jobs=1).fit(X, y)
        ones.append(time.perf_counter() - began)
        one_processors.append(time.process_time() - here)
    chunks = [(X[at : at + args.chunk], y[at : at + args.chunk]) for at in range(0, n_rows, args.chunk)]
    began = time.process_time()
    summaries = [mondrian.summarize(*chunk, domain, n_jobs=1) for chunk in chunks]
    summarizing = time.process_time() - began
    began = time.process_time()
    total = summaries[0]
    for part in summaries[1:]:
        total.merge(part)
    merging = time.process_time() - began
    began = time.process_time()
    total.finish(n_jobs=1)
    finishing = time.process_time() - began
    same = all(
        np.array_equal(ours, theirs)
        for ours, theirs in zip(forest.to_local().predict(queries, return_std=True), one.predict(queries, return_std=True))
    )
    return {
        "rows": n_rows, "columns": args.columns, "trees": args.trees, "lifetime": args.lifetime, "workers": args.workers,
        "chunk": args.chunk, "cells_per_tree": total.n_cells / args.trees,
        "bytes_per_tree": len(total.to_bytes()) / args.trees, "bytes_per_cell": len(total.to_bytes()) / total.n_cells,
        "one_process_seconds": middle(ones), "one_process_processor_seconds": middle(one_processors),
        "cluster_seconds": middle(walls), "cluster_processor_seconds": middle(processors),
        "wall_ratio": statistics.median(walls) / statistics.median(ones),
        "processor_ratio": statistics.median(processors) / statistics.median(one_processors),
        "summarizing_seconds": summarizing, "merging_seconds": merging, "finishing_seconds": finishing,
        "nanoseconds_per_row_and_tree": 1e9 * summarizing / n_rows / args.trees,
        "peak_megabytes_per_worker": max(client.run(peak).values()), "same_bits_with_deviations": same,
    }  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", default="400000")
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--lifetime", type=float, default=1.28)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--chunk", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--from-files", action="store_true")
    args = parser.parse_args()
    for n_rows in map(int, args.rows.split(",")):
        # A cluster of its own: the peak of a process is never forgotten.
        with (
            tempfile.TemporaryDirectory() as folder,
            distributed.LocalCluster(
                n_workers=args.workers, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            client.run(__import__, "mondrian.dask")
            idle = max(client.run(peak).values())
            record = {**measured(client, folder, n_rows, args), "megabytes_of_an_idle_worker": idle}
        for name, value in record.items():
            shown = " ".join(f"{v:.4g}" for v in value) if isinstance(value, list) else value
            print(f"{name:>34}  {shown:.4g}" if isinstance(shown, float) else f"{name:>34}  {shown}")
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
