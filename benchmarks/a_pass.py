"""A pass of hinge (value and subgradient) against scipy's two products and against reading the bytes once.

    python benchmarks/a_pass.py [--rows 300000] [--features 50000] [--per-row 75] [--repeats 9]

Everything runs on one thread but where it says two. Times are medians of alternated runs; scipy is timed first and
last in each round, so that a machine whose speed drifts treats both alike. The targets are those of issue 2: at most
0.6 of scipy's time with 30 % of the rows active and 0.8 with all; within 1.8 of reading the bytes on two threads.
"""

from __future__ import annotations

import argparse
import os
import threading
import time
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.sparse import csr_matrix

from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr
from bmrm.kernels.jit import fast_jit
from bmrm.losses.hinge import Hinge
from bmrm.problem import Targets
from bmrm.risk.linear import LinearRisk


@fast_jit
def read(words):  # type: ignore[no-untyped-def]
    total = 0
    for i in range(words.size):
        total += words[i]
    return total


def generate(rows: int, features: int, per_row: int, seed: int = 0) -> Csr:
    """Sorted distinct columns per row, low ones more often, as words in a text."""
    rng = np.random.default_rng(seed)
    indices = np.empty((rows, per_row), np.int32)
    for start in range(0, rows, 10_000):
        stop = min(rows, start + 10_000)
        steps = rng.exponential(size=(stop - start, per_row + 1))
        places = np.cumsum(steps, axis=1)
        share = (places[:, :-1] / places[:, -1:]) ** 2
        indices[start:stop] = np.floor(share * (features - per_row)).astype(np.int32) + np.arange(per_row)
    indptr = np.arange(0, rows * per_row + 1, per_row, dtype=np.int64)
    return Csr(indptr, indices.ravel(), rng.normal(size=rows * per_row), features)


def weights_for(X: Csr, y: np.ndarray, share: float) -> np.ndarray:
    """Weights under which about `share` of the rows miss the margin."""
    if share >= 1.0:
        return np.zeros(X.columns)
    w = np.random.default_rng(1).normal(size=X.columns)
    scores = X.to_scipy() @ w
    y[:] = np.where(scores > 0, 1.0, -1.0)
    return w / np.quantile(np.abs(scores), share)


def timed(task: Callable[[], object]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def read_with(threads: int, arrays: list[np.ndarray]) -> None:
    def work(k: int) -> None:
        for words in arrays:
            read(words[words.size * k // threads : words.size * (k + 1) // threads])

    helpers = [threading.Thread(target=work, args=(k,)) for k in range(1, threads)]
    for helper in helpers:
        helper.start()
    work(0)
    for helper in helpers:
        helper.join()


def compare(X: Csr, kind: str, share: float, repeats: int) -> None:
    stored = X if kind != "float32" else Csr(X.indptr, X.indices, X.values.astype(np.float32), X.columns)
    if kind == "valueless":
        stored = Csr(X.indptr, X.indices, None, X.columns)
    y = np.random.default_rng(2).choice([-1.0, 1.0], size=X.rows)
    w = weights_for(stored, y, share)
    values = np.ones(X.nnz) if stored.values is None else X.values
    peer = csr_matrix((values, X.indices, X.indptr.astype(np.int32)), shape=X.shape)
    data = Dataset(stored, Targets(y))
    one, two = (LinearRisk(data, Hinge(), threads=threads) for threads in (1, 2))
    scores, slope = peer @ w, np.empty(X.rows)
    slope[:] = np.where(y * scores < 1.0, -y, 0.0)
    arrays = [array.view(np.int64) for array in (stored.indices, stored.values, y) if array is not None]
    tasks = {
        "scipy": lambda: (peer @ w, peer.T @ slope),
        "one": lambda: one.value_and_subgradient(w),
        "two": lambda: two.value_and_subgradient(w),
        "read": lambda: read_with(1, arrays),
        "read on two": lambda: read_with(2, arrays),
    }
    for task in tasks.values():
        task()
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(repeats):
        for name in [*tasks, "scipy"]:
            times[name].append(timed(tasks[name]))
    t = {name: float(np.median(each)) for name, each in times.items()}
    print(
        f"{kind:9s} {100 * np.mean(slope != 0):4.0f} % active  scipy {1e3 * t['scipy']:7.1f} ms   "
        f"one thread {t['one'] / t['scipy']:.2f} of scipy ({1e9 * t['one'] / X.nnz:.2f} ns a non-zero)   "
        f"two threads {t['one'] / t['two']:.2f}x faster, {t['two'] / t['read on two']:.2f} of reading on two "
        f"({1e3 * t['read on two']:.1f} ms)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--features", type=int, default=50_000)
    parser.add_argument("--per-row", type=int, default=75)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    X = generate(options.rows, options.features, options.per_row)
    print(f"{X.rows} rows, {X.columns} features, {X.nnz} non-zeros, {12 * X.nnz / 1e6:.0f} MB in float64")
    for kind in ("float64", "float32", "valueless"):
        for share in (0.3, 1.0):
            compare(X, kind, share, options.repeats)


if __name__ == "__main__":
    main()
