"""Exact Laplace ridge against scikit-learn's KernelRidge(kernel="laplacian"): the same data, one run, one table.

Run `cargo build --release -p mondrian-benches --bin kernel_exact` first, then

    python benches/kernel_exact_vs_sklearn.py [path of the kernel_exact program]

Processor time on one thread each (set before NumPy loads), so that a busy machine does not decide. The best of three.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np
from sklearn.kernel_ridge import KernelRidge

program = sys.argv[1] if len(sys.argv) > 1 else "target/release/kernel_exact"
print("| rows | D | fit, ours | fit, scikit-learn | ratio | predict 1000, ours | scikit-learn | ratio | difference |")
print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
for n, d in [(1000, 5), (4000, 8), (4000, 20)]:
    rng = np.random.default_rng(0)
    x, q = rng.normal(size=(n, d)), rng.normal(size=(1000, d))
    y = np.sin(x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * rng.normal(size=n)
    gamma, alpha = 1.0 / d, 0.1
    with tempfile.TemporaryDirectory() as folder:
        for name, array in [("x", x), ("y", y), ("q", q)]:
            (Path(folder) / f"{name}.f64").write_bytes(np.ascontiguousarray(array).tobytes())
        ours, theirs = [], []
        for _ in range(3):
            out = subprocess.run([program, folder, str(d), repr(gamma), repr(alpha), "1"],
                                 check=True, capture_output=True, text=True).stdout
            ours.append([float(s) for s in out.split()])
            start = time.process_time()
            model = KernelRidge(kernel="laplacian", gamma=gamma, alpha=alpha).fit(x, y)
            middle = time.process_time()
            expected = model.predict(q)
            theirs.append([middle - start, time.process_time() - middle])
        found = np.frombuffer((Path(folder) / "p.f64").read_bytes())
    (fit, predict), (their_fit, their_predict) = np.min(ours, axis=0), np.min(theirs, axis=0)
    difference = np.abs(found - expected).max()
    print(f"| {n} | {d} | {fit:.3f} s | {their_fit:.3f} s | {their_fit / fit:.1f} | {predict:.3f} s "
          f"| {their_predict:.3f} s | {their_predict / predict:.1f} | {difference:.1e} |", flush=True)
    assert difference < 1e-9
