"""`auto` against the best single solver on random problems. Seeds 7 to 10, and 6021, chose rules: others judge.

    python -m benchmarks.random_shapes --problems 400 --seed N --jobs 2

Every problem is made from its seed and number. Times are processor times of one thread, the least of up to three runs.
Figures are kept for each problem as they are found, and those found are not measured again: a run that was stopped
goes on.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.decisions import CANDIDATES
from benchmarks.harness import Table
from bmrm.data.dataset import Dataset
from bmrm.kernels.compiling import COMPILING
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError, Regularizer, Risk
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS

KEPT = Path(__file__).with_name("results") / "random-shapes.json"
TOLERANCES = (1e-3, 1e-6)
LIMIT, LATE, SHORTEST = 4.0, 6.0, 0.2
"""Seconds of a run at most, LATE times what another solver took, but SHORTEST in any case."""
REPEATED, TIMES = 0.1, 3
"""Seconds up to which a run is repeated, and how often it then is run."""
ENTRIES = 2e6
"""Most entries of the rows, scores of a row times."""
KINDS: Mapping[str, tuple[str, ...]] = {
    "hinge": ("hinge",),
    "other kinked": ("least_absolute_deviation", "quantile", "epsilon_insensitive"),
    "logistic": ("logistic",),
    "squared hinge": ("squared_hinge",),
    "regression": ("least_squares", "huber"),
    "counts": ("poisson",),
    "softmax": ("softmax",),
    "multiclass hinge": ("multiclass_hinge",),
    "sparse regression": ("least_squares", "huber"),
    "sparse logistic": ("logistic", "squared_hinge"),
    "sparse kinked": ("hinge", "quantile"),
    "areas": ("roc_area",),
}
"""Losses by class of problem; each class has as many problems."""
CLASSES = 4
"""Of the losses of classes."""


@dataclass(frozen=True)
class Problem:
    """One random problem; all of it is drawn by `seed` and `number`."""

    seed: int
    number: int

    @property
    def kind(self) -> str:
        """The class."""
        return list(KINDS)[self.number % len(KINDS)]

    def made(self) -> tuple[str, Risk, Regularizer]:
        """A name, the risk and the regularizer."""
        rng = np.random.default_rng([self.seed, self.number])
        loss = str(rng.choice(KINDS[self.kind]))
        many = self.kind in ("softmax", "multiclass hinge")
        X = rows_of(rng, ENTRIES / (CLASSES if many else 1))
        data = Dataset.from_arrays(X, targets_of(rng, X, LOSSES.make(loss).task, loss))
        risk: Risk = LinearRisk(data, LOSSES.make(loss), threads=1)
        free = bool(rng.random() < 0.5) and loss != "roc_area"
        risk = FreeIntercept(risk) if free else risk
        omega, lam = self._omega(rng, X, risk)
        full = "dense" if isinstance(X, np.ndarray) else f"{X.nnz / X.shape[0]:.0f} entries"
        free_word = ", free intercept" if free else ""
        return f"{loss}, {X.shape[0]} x {X.shape[1]}, {full}, {omega.name} {lam:.1e}{free_word}", risk, omega

    def _omega(self, rng: np.random.Generator, X: Any, risk: Risk) -> tuple[Any, float]:
        """A scaled lambda of 1e-4 to 1e4 for l2; for l1 1e-4 to 1 of the least for which all weights are 0."""
        if self.kind.startswith("sparse"):
            _, slope = risk.value_and_subgradient(np.zeros(risk.dim))
            lam = max(float(np.abs(slope).max()), 1e-12) * 10.0 ** rng.uniform(-4.0, 0.0)
            name = str(rng.choice(["l1", "elastic_net"]))
            return REGULARIZERS.make(name, {"lambda": lam} | ({"l1_ratio": 0.5} if name != "l1" else {})), lam
        squares = float((X**2).sum() if isinstance(X, np.ndarray) else (X.data**2).sum()) / X.shape[0]
        lam = squares / X.shape[0] * 10.0 ** rng.uniform(-4.0, 4.0)
        return REGULARIZERS.make("l2", {"lambda": lam}), lam


def rows_of(rng: np.random.Generator, most: float) -> Any:
    """Dense or sparse rows: correlated, of some rank, on some scales, with constant columns or a mean, or neither."""
    m = round(10.0 ** rng.uniform(1.7, 5.0))
    if rng.random() < 0.5:
        d = max(2, min(round(10.0 ** rng.uniform(0.5, 3.2)), int(most / m)))
        rank = max(1, min(d, round(d * 10.0 ** rng.uniform(-1.0, 0.3))))
        X = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, d)) / np.sqrt(rank)
        X += 10.0 ** rng.uniform(-2.0, 0.5) * rng.standard_normal((m, d))
        X *= 10.0 ** (rng.uniform(0.0, 1.0) * rng.standard_normal(d))
        X += (rng.random() < 0.3) * X.std() * rng.standard_normal(d)
        return np.column_stack((X, np.ones(m))) if rng.random() < 0.2 else X
    d = round(10.0 ** rng.uniform(2.0, 4.7))
    words = max(1, min(round(10.0 ** rng.uniform(0.5, 2.3)), d // 2, int(most / m)))
    columns = (d * rng.random((m, words)) ** rng.uniform(1.0, 5.0)).astype(np.int64).ravel()
    values = np.ones(columns.size) if rng.random() < 0.3 else rng.random(columns.size) + 0.1
    X = sp.csr_matrix((values, columns, np.arange(m + 1) * words), shape=(m, d))
    X.sum_duplicates()
    if rng.random() < 0.7:
        X = sp.csr_matrix(sp.diags(1.0 / sp.linalg.norm(X, axis=1)) @ X)
    return X


def targets_of(rng: np.random.Generator, X: Any, task: str, loss: str) -> Any:
    """From a linear model with noise; classes in unequal shares, or not."""
    d = X.shape[1]
    noise, truth = 10.0 ** rng.uniform(-1.5, 0.5), rng.standard_normal((d, CLASSES if task == "multiclass" else 1))
    truth *= rng.random((d, 1)) < 10.0 ** rng.uniform(-1.5, 0.5)
    scores = np.asarray(X @ truth)
    scores = (scores - scores.mean(axis=0)) / max(float(scores.std()), 1e-12)
    scores += noise * rng.standard_normal(scores.shape)
    if task == "multiclass":
        y = np.argmax(scores + rng.uniform(0.0, 1.0) * np.arange(CLASSES), axis=1)
        y[:CLASSES] = np.arange(CLASSES)
        return y
    share, score = float(rng.choice([0.5, 0.2, 0.05])), scores[:, 0]
    if loss == "poisson":
        return rng.poisson(np.exp(np.clip(score, -3.0, 3.0))).astype(np.float64)
    if task == "regression":
        return score
    y = np.where(score > np.quantile(score, 1.0 - share), 1, -1)
    y[:2] = 1, -1
    return y


def seconds(name: str, risk: Risk, omega: Regularizer, tolerance: float, best: float) -> float | None:
    """The least of some runs; inf where the gap is not reached in time, None where the solver does not fit.

    The first run is asked for each iteration, so that it ends in time; short ones are repeated as users have them.
    """
    solver, limit, least = (
        SOLVERS.make(name, {"tolerance": tolerance}),
        min(LIMIT, max(SHORTEST, LATE * best)),
        math.inf,
    )
    runs = 0
    while runs < TIMES:
        begin, compiled = time.process_time(), COMPILING.seconds
        end = begin + limit
        late: Callable[[Any], bool] | None = lambda line, end=end: time.process_time() > end  # noqa: E731
        try:
            solution = solver.minimize(risk, omega, callback=late if least == math.inf else None)
        except IncompatibleError:
            return None
        if COMPILING.seconds > compiled:  # kernels were loaded meanwhile
            continue
        if not solution.converged:
            return math.inf
        runs, least = runs + 1, min(least, time.process_time() - begin)
        if least > REPEATED:
            break
    return least


def measured(problem: Problem) -> dict[str, Any]:
    """The figures of a problem; without any where no solver gets there in time."""
    name, risk, omega = problem.made()
    found: dict[str, Any] = {"problem": name, "kind": problem.kind, "seconds": {}}
    for tolerance in TOLERANCES:
        times: dict[str, float] = {}
        for solver in CANDIDATES:
            took = seconds(solver, risk, omega, tolerance, min(times.values(), default=LIMIT))
            if took is not None:
                times[solver] = took
        if min(times.values(), default=math.inf) == math.inf:
            break
        auto = seconds("auto", risk, omega, tolerance, LIMIT)
        assert auto is not None
        found["seconds"][f"{tolerance:g}"] = {n: _kept(s) for n, s in {"auto": auto, **times}.items()}
    return found


def _kept(took: float) -> float | None:
    return None if took == math.inf else float(f"{took:.3g}")


def table(found: Sequence[Mapping[str, Any]], seed: int) -> Table:
    """The distribution of the time of `auto` over that of the best single solver, by class and for all."""
    ratios = {kind: {t: _ratios(found, kind, f"{t:g}") for t in TOLERANCES} for kind in KINDS}
    ratios["all"] = {t: [one for kind in KINDS for one in ratios[kind][t]] for t in TOLERANCES}
    rows = [(kind, *(cell for t in TOLERANCES for cell in _cells(by[t]))) for kind, by in ratios.items()]
    heads = ("problems", "mean", "at most 1.3", "above 2", "most", "not there")
    names = ", ".join(f"`{name}`" for name in CANDIDATES)
    return Table(
        "auto against the best single solver",
        f"{len(found)} random problems of seed {seed} (7 to 10, and 6021, chose rules): rows 50 to 100,000, features"
        " 3 to 50,000, dense or sparse, lambda over eight decades (four with l1). Processor time of one thread, `auto`"
        f" over the fastest of {names}, each to its own certified gap of 1e-3, then 1e-6: geometric mean, share of"
        " problems, largest ratio, and problems that `auto` does not solve where one of them does. Problems that none"
        f" solves in {LIMIT:g} s are left out. The figures are those of `python -m benchmarks.random_shapes --problems"
        f" {len(found)} --seed {seed}`.",
        ("class", *heads, *(f"{head} (1e-6)" for head in heads)),
        tuple(rows),
    )


def _ratios(found: Sequence[Mapping[str, Any]], kind: str, tolerance: str) -> list[float]:
    ratios = []
    for one in found:
        times = dict(one["seconds"].get(tolerance, {})) if one["kind"] == kind else {}
        if times:
            auto = times.pop("auto")
            ratios.append(math.inf if auto is None else auto / min(t for t in times.values() if t is not None))
    return ratios


def _cells(ratios: Sequence[float]) -> tuple[str, ...]:
    there, count = [one for one in ratios if one < math.inf], max(1, len(ratios))
    if not there:
        return str(len(ratios)), "-", "-", "-", "-", str(len(ratios))
    near, far = sum(one <= 1.3 for one in ratios) / count, sum(one > 2.0 for one in ratios) / count
    missed = len(ratios) - len(there)
    return (
        f"{len(ratios)}",
        f"{geometric_mean(there):.2f}",
        f"{near:.0%}",
        f"{far:.1%}",
        f"{max(there):.1f}",
        f"{missed}",
    )


def kept_table(path: Path, table: Callable[[Sequence[Mapping[str, Any]], int], Table]) -> Table | None:
    """Of the figures in a file; None where there are none."""
    if not path.exists():
        return None
    kept = json.loads(path.read_text(encoding="utf-8"))
    return table(list(kept["problems"].values()), kept["seed"])


class Kept:
    """Figures by the number of a problem, in a file that is written after each."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = path
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"seed": seed, "problems": {}}
        if found["seed"] != seed:
            raise SystemExit(f"{path} has the problems of seed {found['seed']}")
        self._found = found

    def missing(self, problems: int) -> list[int]:
        """Those of the first so many that are not there."""
        return [number for number in range(problems) if str(number) not in self._found["problems"]]

    def note(self, number: int, found: Mapping[str, Any]) -> None:
        """Keep and print the figures of a problem."""
        self._found["problems"][str(number)] = found
        self.path.write_text(json.dumps(self._found, indent=0) + "\n", encoding="utf-8")
        print(number, found["problem"], json.dumps(found["seconds"]), flush=True)


def parser(name: str, document: str | None, kept: Path, problems: int) -> argparse.ArgumentParser:
    """Of such a benchmark."""
    made = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=document)
    made.add_argument("--problems", type=int, default=problems)
    made.add_argument("--seed", type=int, required=True)
    made.add_argument("--kept", type=Path, default=kept, help="JSON file of the figures")
    return made


def measure() -> Table | None:
    """Of the figures that are kept; None where there are none."""
    return kept_table(KEPT, table)


def main() -> None:
    """Measure what is not kept yet, and print the table."""
    made = parser("random_shapes", __doc__, KEPT, 400)
    made.add_argument("--jobs", type=int, default=1, help="processes, each on problems of its own")
    options = made.parse_args()
    kept = Kept(options.kept, options.seed)
    missing = kept.missing(options.problems)
    with ProcessPoolExecutor(options.jobs, mp_context=multiprocessing.get_context("spawn")) as workers:
        problems = (Problem(options.seed, number) for number in missing)
        for number, found in zip(missing, workers.map(measured, problems), strict=True):
            kept.note(number, found)
    made_of = kept_table(options.kept, table)
    print("" if made_of is None else made_of.markdown())


if __name__ == "__main__":
    main()
