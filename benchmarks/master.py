"""What the master problem costs in the bundle method: hinge loss on real data, with planes as the method makes them.

    python benchmarks/master.py a9a w8a --lam 1e-3 1e-4 1e-5 --engine active_set cvxopt

The risk is plain scipy here, since only the master is measured. `bundle` cuts at the model's minimiser (BMRM);
`line search` cuts near the best point so far and needs far fewer planes. Planes leave after 20 idle solutions.
Columns: iterations until the relative gap, planes and support at that time, milliseconds per plane added (Gram row
included) and per solution: median, mean and maximum without the first, which may load compiled code.
"""

from __future__ import annotations

import argparse
import lzma
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from bmrm.masters.planes import MemoryPlanes
from bmrm.problem import Vector
from bmrm.regularizers import REGULARIZERS

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
GAPS = (1e-3, 1e-6)
IDLE = 20


def load(name: str) -> tuple:
    """A binary problem: of several classes the first is set against the rest."""
    with lzma.open(DATA / f"{name}.svm.xz") as stream:
        X, y = load_svmlight_file(stream)
    labels = np.unique(y)
    positive = labels[-1] if len(labels) == 2 else labels[0]
    return X, X.T.tocsr(), np.where(y == positive, 1.0, -1.0)


def best_step(f: Vector, s: Vector, y: Vector, omega, rows: int) -> float:
    """The minimiser of mean hinge(f + t s) + omega(t) over t >= 0: bisection on the derivative."""

    def slope(t: float) -> float:
        margin = 1.0 - y * (f + t * s)
        return float(omega(np.array([t]))[1][0]) - float((y * s)[margin > 0.0].sum()) / rows

    low, high = 0.0, 1.0
    if slope(0.0) >= 0.0:
        return 0.0
    while slope(high) < 0.0 and high < 1e6:
        low, high = high, 2.0 * high
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
    return low


class Run:
    """One training, with the seconds of its master."""

    def __init__(self, data: tuple, regularizer, line_search: bool, limit: float) -> None:
        self.X, self.XT, self.y = data
        self.rows, dim = self.X.shape
        self.regularizer, self.line_search, self.limit = regularizer, line_search, limit
        self.planes = MemoryPlanes(dim)
        self.master = regularizer.master(self.planes)
        self.adding: list[float] = []
        self.solving: list[float] = []
        self.support: list[int] = []

    def cut(self, f: Vector, w: Vector) -> None:
        """Add the plane of the risk at w, where the scores are f."""
        margin = 1.0 - self.y * f
        a = self.XT @ (np.where(margin > 0.0, -self.y, 0.0) / self.rows)
        value = np.maximum(margin, 0.0).mean()
        start = time.perf_counter()
        self.idle[self.planes.add(a, value - float(a @ w))] = 0
        self.master.add(self.planes.ids[-1])
        self.adding.append(time.perf_counter() - start)

    def solve(self, accuracy: float):
        start = time.perf_counter()
        solution = self.master.solve(accuracy)
        self.solving.append(time.perf_counter() - start)
        self.support.append(len(solution.multipliers))
        for plane in self.idle:
            self.idle[plane] = 0 if plane in solution.multipliers else self.idle[plane] + 1
        gone = [plane for plane, count in self.idle.items() if count >= IDLE]
        if len(gone) >= 8:
            self.master.remove(gone)
            self.planes.drop(gone)
            for plane in gone:
                del self.idle[plane]
        return solution

    def objective(self, f: Vector, w: Vector) -> float:
        return self.regularizer.value(w) + float(np.maximum(1.0 - self.y * f, 0.0).mean())

    def until(self, gaps):
        """Yield a row of the table at each gap."""
        self.idle: dict[int, int] = {}
        w = best_w = np.zeros(self.X.shape[1])
        f = best_f = self.X @ w
        best, bound, todo = self.objective(f, w), -np.inf, list(gaps)
        start = time.perf_counter()
        self.cut(f, w)
        while todo and time.perf_counter() - start < self.limit:
            gap = (best - bound) / best
            solution = self.solve(min(0.1 * gap, 0.1))
            w, bound = solution.w, max(bound, solution.lower_bound)
            f = self.X @ w
            if self.line_search:
                step, s = w - best_w, f - best_f
                t = best_step(best_f, s, self.y, self.regularizer.along(best_w, step), self.rows)
                best_w, best_f = best_w + t * step, best_f + t * s
                best = min(best, self.objective(best_f, best_w))
                mu = min(max(t / 2.0, 0.05), 0.9)
                self.cut(best_f + mu * (f - best_f), best_w + mu * (w - best_w))
            else:
                best = min(best, self.objective(f, w))
                self.cut(f, w)
            while todo and best - bound <= todo[0] * best:
                yield todo.pop(0), best, bound
        for gap in todo:
            yield gap, np.nan, bound


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="*", default=["a9a"])
    parser.add_argument("--lam", nargs="*", type=float, default=[1e-3, 1e-4, 1e-5])
    parser.add_argument("--regularizer", default="l2")
    parser.add_argument("--engine", nargs="*", default=["active_set"])
    parser.add_argument("--limit", type=float, default=30.0, help="seconds per training")
    args = parser.parse_args()
    head = "data lam engine method gap iterations planes support add_ms solve_median_ms solve_mean_ms solve_max_ms"
    print("".join(f"{word:>16}" for word in head.split()))
    for name in args.data:
        data = load(name)
        for lam in args.lam:
            for engine in args.engine:
                for line_search in (True, False):
                    regularizer = REGULARIZERS.make(args.regularizer, {"lambda": lam, "engine": engine})
                    run = Run(data, regularizer, line_search, args.limit)
                    for gap, best, _ in run.until(GAPS):
                        times = 1e3 * np.array(run.solving[1:])
                        cells = [name, f"{lam:g}", engine, "line search" if line_search else "bundle", f"{gap:g}"]
                        cells += [str(len(run.solving)) if np.isfinite(best) else "none", str(len(run.planes))]
                        cells += [str(run.support[-1]), f"{1e3 * np.median(run.adding):.3f}"]
                        cells += [f"{value:.3f}" for value in (np.median(times), times.mean(), times.max())]
                        print("".join(f"{cell:>16}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
