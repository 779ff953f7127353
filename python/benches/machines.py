"""Training in parts against one fit: time, memory and bytes. Prints a table and a JSON line.

    python benches/machines.py [--rows 400000] [--trees 20] [--lifetime 1.28] [--processes 2] [--chunk 50000]

Workers are processes of their own with one thread each, and read their rows from a file; moments, summaries, merging and
finishing are counted. Build with --release.
"""

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import resource
import tempfile
import time

import numpy as np

import mondrian


def rows(folder, start, end):
    X = np.load(os.path.join(folder, "X.npy"), mmap_mode="r")[start:end]
    y = np.load(os.path.join(folder, "y.npy"), mmap_mode="r")[start:end]
    return np.array(X), np.array(y)


def moments(folder, chunks):
    began, found = time.process_time(), None
    for start, end in chunks:
        part = mondrian.Moments(*rows(folder, start, end))
        found = part if found is None else found.merge(part)
    return found, time.process_time() - began


def summary(folder, chunks, text):
    began, domain, found, merging = time.process_time(), mondrian.Domain.from_json(text), None, 0.0
    for start, end in chunks:
        part = mondrian.summarize(*rows(folder, start, end), domain, n_jobs=1)
        now = time.process_time()
        found = part if found is None else found.merge(part)
        merging += time.process_time() - now
    data = found.to_bytes()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return data, time.process_time() - began, merging, peak


def baseline():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--columns", type=int, default=10)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--lifetime", type=float, default=1.28)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--chunk", type=int, default=50_000)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(args.rows, args.columns))
    y = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=args.rows)
    queries = rng.uniform(size=(2000, args.columns))
    with tempfile.TemporaryDirectory() as folder:
        np.save(os.path.join(folder, "X.npy"), X)
        np.save(os.path.join(folder, "y.npy"), y)
        chunks = [(at, min(at + args.chunk, args.rows)) for at in range(0, args.rows, args.chunk)]
        shares = [chunks[worker :: args.processes] for worker in range(args.processes)]
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(args.processes, mp_context=context) as pool:
            empty = max(pool.map(_call, [(baseline,)] * args.processes))
            began, here = time.perf_counter(), time.process_time()
            found = list(pool.map(_call, [(moments, folder, share) for share in shares]))
            whole, moments_time = found[0][0], sum(part[1] for part in found)
            for part, _ in found[1:]:
                whole.merge(part)
            parameters = {"n_estimators": args.trees, "lifetime": args.lifetime, "random_state": 0}
            domain = whole.domain(**parameters)
            found = list(pool.map(_call, [(summary, folder, share, domain.to_json()) for share in shares]))
            total = mondrian.Summary.from_bytes(found[0][0])
            for part in found[1:]:
                total.merge(mondrian.Summary.from_bytes(part[0]))
            forest = total.finish(n_jobs=1)
            wall = time.perf_counter() - began
            processor = time.process_time() - here + moments_time + sum(part[1] for part in found)
        predicted = forest.predict(queries)
        box = {"lower": domain.lower, "upper": domain.upper, "weights": domain.weights}
        began, here = time.perf_counter(), time.process_time()
        one = mondrian.MondrianForestRegressor(**parameters, **box, n_jobs=1).fit(X, y)
        one.predict(queries[:1])
        one_wall, one_processor = time.perf_counter() - began, time.process_time() - here
    record = {
        "rows": args.rows, "columns": args.columns, "trees": args.trees, "lifetime": args.lifetime,
        "processes": args.processes, "chunk": args.chunk,
        "cells_per_tree": total.n_cells / args.trees,
        "bytes_per_tree": len(total.to_bytes()) / args.trees,
        "bytes_per_cell": len(total.to_bytes()) / total.n_cells,
        "one_process_seconds": one_wall, "one_process_processor_seconds": one_processor,
        "parts_seconds": wall, "parts_processor_seconds": processor,
        "moments_processor_seconds": moments_time,
        "summaries_processor_seconds": sum(part[1] for part in found),
        "merging_processor_seconds": sum(part[2] for part in found),
        "nanoseconds_per_row_and_tree": 1e9 * sum(part[1] for part in found) / args.rows / args.trees,
        "peak_megabytes_per_worker": max(part[3] for part in found),
        "megabytes_of_an_idle_worker": empty,
        "processor_ratio": processor / one_processor, "wall_ratio": wall / one_wall,
        "same_bits": bool(np.array_equal(predicted, one.predict(queries))),
    }  # fmt: skip
    for name, value in record.items():
        print(f"{name:>34}  {value:.4g}" if isinstance(value, float) else f"{name:>34}  {value}")
    print(json.dumps(record))


def _call(task):
    return task[0](*task[1:])


if __name__ == "__main__":
    main()
