"""`python -m benchmarks.decisions`: measure the solvers on generated problems; the evidence for the rules of `auto`.

The table, decisions.jsonl beside this file, has a line for each problem and tolerance: what the rules may ask of it,
and for each solver the seconds and the passes over the data that it took, null where it did not get there in time.
`--judge` says how good the rules are on it. Every problem is made from a seed, so the table can be made again anywhere.
Times are processor times of one thread. Under mpirun the rows are shared out, times are those of rank 0, and lines say
the ranks.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.harness import machine
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.group import Group
from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import shared_risk
from bmrm.problem import IncompatibleError, Regularizer, Risk, Solution, ability
from bmrm.problem.abilities import ProblemSize
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.intercept import FreeIntercept
from bmrm.solvers import SOLVERS
from bmrm.solvers._core.auto.rules import NUMBERS, Traits, advice
from bmrm.solvers._core.auto.turns import GROWTH

TABLE = Path(__file__).with_name("decisions.jsonl")
CANDIDATES = (
    "newton",
    "semismooth_newton",
    "dual_coordinate",
    "proximal_newton",
    "coordinate_descent",
    "lbfgs",
    "line_search_bundle",
    "bundle",
    "proximal_gradient",
)
TOLERANCES = (1e-3, 1e-6)
LIMIT, LATE, SHORTEST = 3.0, 5.0, 0.1
"""A run counts as failed after LIMIT seconds, or LATE times what another solver took, but not before SHORTEST."""


@dataclass(frozen=True)
class Shape:
    """Rows, features and entries a row; dense where all features are present.

    `spread` says how the rows spread over the directions: "mixed", "even" (all alike; in sparse rows features that
    are common count less, as in texts weighted by tf-idf), "uneven" (dense only: each counts less than the one
    before) or "offset" (dense only: mixed around a mean that is as long as they are, as of pixels).
    """

    rows: int
    features: int
    entries: int
    spread: str = "mixed"

    def __str__(self) -> str:
        spread = "" if self.spread == "mixed" else f", {self.spread}"
        return f"Shape(rows={self.rows}, features={self.features}, entries={self.entries}{spread})"

    def features_of(self, seed: int) -> Any:
        """Rows of length about 1; in sparse ones a few features are common and most are rare, as in text."""
        rng = np.random.default_rng(seed)
        return self._dense(rng) if self.entries >= self.features else self._sparse(rng)

    def _dense(self, rng: np.random.Generator) -> Any:
        factors = rng.normal(size=(self.features, self.features)) / np.sqrt(self.features)
        if self.spread == "even":
            factors = np.eye(self.features)
        if self.spread == "uneven":
            rotation = np.linalg.qr(factors)[0]
            factors = np.exp(-np.arange(self.features) / 3.0)[:, None] * rotation * np.sqrt(self.features / 2.0)
        mean = rng.random(self.features) * np.sqrt(3.0) if self.spread == "offset" else 0.0
        return (mean + rng.normal(size=(self.rows, self.features)) @ factors) / np.sqrt(self.features)

    def _sparse(self, rng: np.random.Generator) -> Any:
        ranks = rng.random((self.rows, self.entries))
        columns = np.minimum((self.features**ranks).astype(np.int64) - 1, self.features - 1)
        rows = np.repeat(np.arange(self.rows), self.entries)
        values = rng.random(rows.size) + 0.2
        X = sp.csr_matrix((values, (rows, columns.ravel())), shape=(self.rows, self.features))
        X.sum_duplicates()
        if self.spread == "even":
            counts = np.bincount(X.indices, minlength=self.features)
            X = sp.csr_matrix(X @ sp.diags(np.log(self.rows / np.maximum(counts, 1)) + 0.01))
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        return sp.csr_matrix(sp.diags(1.0 / norms) @ X)


BUSY = 3.0
"""Times are processor times of one thread; on a busy machine the clock on the wall may run so much faster."""
SHAPES = (
    Shape(300, 20, 20),
    Shape(4_600, 57, 57),
    Shape(60, 3_000, 3_000),
    Shape(4_400, 36, 36),
    Shape(40_000, 9, 9),
    Shape(10_000, 18_000, 8),
    Shape(2_000, 40_000, 250, "even"),
    Shape(2_000, 500, 500, "even"),
    Shape(4_000, 8, 8),
    Shape(4_000, 30, 30),
    Shape(30_000, 120, 14),
    Shape(100_000, 10, 10),
    Shape(100_000, 50, 50),
    Shape(2_000, 400, 60),
    Shape(8_000, 2_000, 50),
    Shape(20_000, 50_000, 75),
    Shape(4_000, 60_000, 200),
    Shape(8_000, 500_000, 300),
    Shape(8_000, 12, 12, "uneven"),
    Shape(40_000, 10, 10, "even"),
    Shape(60_000, 80, 80, "even"),
    Shape(50_000, 300, 12, "even"),
    Shape(20_000, 40_000, 70, "even"),
    Shape(7_000, 250, 250, "offset"),
    Shape(3_000, 180, 45),
    Shape(120_000, 90, 90, "even"),
)


@dataclass(frozen=True)
class Family:
    """A loss, the way targets are made, and the lambdas that are tried."""

    loss: str
    task: str
    regularizer: str
    lambdas: tuple[float, ...]
    free: bool = False

    def __str__(self) -> str:
        words = [
            self.loss,
            "free" * self.free,
            "rare" * (self.task == "rare"),
            "clear" * (self.task == "clear classes"),
        ]
        words.append(self.regularizer)
        return " ".join(word for word in words if word)

    def targets(self, X: Any, seed: int) -> Any:
        """From a linear model with noise."""
        rng = np.random.default_rng(seed + 1)
        if self.task == "rare":
            scores = X @ rng.normal(size=X.shape[1])
            noisy = scores + 0.1 * scores.std() * rng.normal(size=scores.shape)
            return np.where(noisy > np.quantile(noisy, 1.0 - RARE), 1.0, -1.0)
        if self.task == "sentences":
            return _labelled(X, rng)
        if self.task in NOISE:
            scores = X @ rng.normal(size=(X.shape[1], 8))
            return np.argmax(scores + NOISE[self.task] * scores.std() * rng.normal(size=scores.shape), axis=1)
        scores = X @ rng.normal(size=X.shape[1])
        noisy = scores + 0.6 * scores.std() * rng.standard_t(4, size=scores.shape)
        return np.where(noisy > 0.0, 1.0, -1.0) if self.task == "binary" else noisy / noisy.std()

    def dataset(self, X: Any, seed: int) -> Dataset:
        """With sentences of `SENTENCE` rows where there are any."""
        groups = np.arange(X.shape[0]) // SENTENCE if self.task == "sentences" else None
        return Dataset.from_arrays(X, self.targets(X, seed), groups=groups)


def _labelled(X: Any, rng: np.random.Generator) -> Any:
    """One of eight labels for each row, by a linear model with noise, in which the label before counts."""
    scores = X @ rng.normal(size=(X.shape[1], 8))
    scores /= scores.std()
    between = rng.normal(size=(8, 8))
    scores += 0.5 * rng.gumbel(size=scores.shape)
    labels = np.zeros(X.shape[0], np.int64)
    for t, row in enumerate(scores):
        labels[t] = np.argmax(row + (between[labels[t - 1]] if t % SENTENCE else 0.0))
    return labels


NOISE = {"classes": 0.5, "clear classes": 0.1}
"""Of the scores by which rows of eight classes get theirs, in their standard deviations."""
SENTENCE = 20
"""Rows of a sentence."""
RARE = 0.05
"""Share of the positive class in the task "rare", where little noise leaves few rows in doubt."""
WEAK = (1e-3, 1e-4, 1e-5, 1e-6)
FAMILIES = (
    Family("hinge", "binary", "l2", WEAK),
    Family("hinge", "rare", "l2", WEAK),
    Family("least_absolute_deviation", "numbers", "l2", WEAK[:3]),
    Family("logistic", "binary", "l2", WEAK),
    Family("logistic", "rare", "l2", WEAK[::2]),
    Family("squared_hinge", "binary", "l2", WEAK),
    Family("squared_hinge", "rare", "l2", WEAK[::2]),
    Family("huber", "numbers", "l2", WEAK[:3]),
    Family("least_squares", "numbers", "l2", WEAK[:3]),
    Family("logistic", "binary", "l1", (3e-3, 1e-3, 1e-4, 1e-5)),
    Family("least_squares", "numbers", "l1", (3e-3, 1e-3, 1e-4, 1e-5)),
    Family("logistic", "binary", "elastic_net", (3e-3, 3e-4, 1e-4)),
    Family("least_squares", "numbers", "elastic_net", (3e-3, 3e-4, 1e-4)),
    Family("hinge", "binary", "l1", (3e-3, 3e-4)),
    Family("hinge", "binary", "elastic_net", (1e-3, 1e-4)),
    Family("multiclass_hinge", "classes", "l2", (1e-3, 1e-5, 1e-7)),
    Family("softmax", "classes", "l2", (1e-3, 1e-5)),
    Family("multiclass_hinge", "clear classes", "l2", (*WEAK[:3], 1e-7)),
    Family("hinge", "binary", "l2", (1e-3, 1e-5), free=True),
    Family("logistic", "binary", "l2", (1e-3, 1e-5), free=True),
    Family("softmax", "classes", "l2", (1e-3, 1e-5), free=True),
    Family("roc_area", "binary", "l2", (1e-3, 1e-5)),
    Family("f_beta", "binary", "l2", (1e-3, 1e-5)),
    Family("f_beta", "rare", "l2", (1e-3, 1e-4, 1e-5)),
    Family("chain_crf", "sentences", "l2", (1e-2, 1e-3, 1e-4)),
)


def problems(seed: int, chosen: list[str], group: Group) -> Iterator[tuple[str, bool, Risk, Regularizer]]:
    """Every family on every shape at every lambda: name, whether the intercept is free, risk, regularizer."""
    for shape in SHAPES:
        X = shape.features_of(seed)
        for family in FAMILIES:
            data = family.dataset(X, seed)
            first = np.arange(data.rows) // SENTENCE * SENTENCE  # no rank has a part of a sentence
            mine = np.flatnonzero(first * group.size // data.rows == group.rank)
            for lam in family.lambdas:
                options = {"l1_ratio": 0.5} if family.regularizer == "elastic_net" else {}
                regularizer = REGULARIZERS.make(family.regularizer, {"lambda": lam, **options})
                title = f"{family} {lam:g} {shape}"
                title += f" over {group.size} ranks" if group.size > 1 else ""
                if any(fnmatch.fnmatch(title, pattern) for pattern in chosen):
                    risk = shared_risk(data.select(mine), LOSSES.make(family.loss), group, threads=1)
                    yield title, family.free, risk, regularizer


def costs_of(
    name: str, risk: Risk, regularizer: Regularizer, repetitions: int, best: dict[float, float]
) -> dict[float, tuple[float, float] | None] | None:
    """Median seconds, and passes, to each tolerance; None where the solver does not fit. `best` of all is kept."""
    found: dict[float, tuple[float, float] | None] = {}

    def run(tolerance: float, limit: float) -> Solution:
        return SOLVERS.make(name, {"tolerance": tolerance, "time_limit": limit}).minimize(risk, regularizer)

    try:
        run(0.1, LIMIT)  # compiles
    except IncompatibleError:
        return None
    for tolerance in TOLERANCES:
        times: list[float] = []
        limit = min(LIMIT, max(SHORTEST, LATE * best.get(tolerance, LIMIT)))
        for _ in range(repetitions):
            begin = time.process_time()
            solution = run(tolerance, BUSY * limit)
            if not solution.converged:
                break
            times.append(time.process_time() - begin)
            if times[-1] > SHORTEST:
                break
        found[tolerance] = (median(times), solution.passes) if times else None
        if not times:
            break
        best[tolerance] = min(best.get(tolerance, LIMIT), median(times))
    return found


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decisions", description=__doc__)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--problems", nargs="+", default=["*"], metavar="PATTERN", help="only those whose names match")
    parser.add_argument("--anew", action="store_true", help="forget the old table first")
    parser.add_argument(
        "--solvers", nargs="*", default=list(CANDIDATES), help="measure these; the others keep their times, if any"
    )
    parser.add_argument("--judge", action="store_true", help="measure nothing, say how good the choices are")
    options = parser.parse_args()
    if options.judge:
        judge()
        return
    known = {entry.name for entry in SOLVERS.all()}
    candidates = [name for name in options.solvers if name in known]
    group = open_group()
    if options.anew and group.rank == 0:
        write([], keep=False)
    lines: list[dict[str, Any]] = []
    for title, free, shared, regularizer in problems(options.seed, options.problems, group):

        def work(risk: Risk, title: str = title, free: bool = free, regularizer: Regularizer = regularizer) -> None:
            risk = FreeIntercept(risk) if free else risk
            lines.extend(measured(title, risk, regularizer, candidates, options.repetitions))

        lead(shared, group, work)
        if group.rank == 0:
            print(title, {n: s for n, s in lines[-1]["seconds"].items() if s is not None}, flush=True)
            write(lines, keep=True)


def measured(
    title: str, risk: Risk, regularizer: Regularizer, candidates: list[str], repetitions: int
) -> list[dict[str, Any]]:
    """The lines of a problem, one for each tolerance; solvers that are not candidates keep their old figures."""
    others = {tolerance: kept(title, tolerance, candidates) for tolerance in TOLERANCES}
    best = {t: min([s for s in others[t]["seconds"].values() if s], default=LIMIT) for t in TOLERANCES}
    costs = {name: costs_of(name, risk, regularizer, repetitions, best) for name in candidates}
    size, case = ability(risk, ProblemSize), Traits(risk, regularizer)
    ranks = {"ranks": size.ranks} if size is not None and size.ranks > 1 else {}
    about = {"problem": title, "words": sorted(case.words), **ranks}
    about["numbers"] = {name: rounded(case.number(name)) for name in NUMBERS}
    lines = []
    for tolerance in TOLERANCES:
        figures = others[tolerance]
        for place, what in enumerate(("seconds", "passes")):
            new = {name: found.get(tolerance) for name, found in costs.items() if found is not None}
            figures[what] = figures[what] | {
                n: None if cost is None else rounded(cost[place]) for n, cost in new.items()
            }
        lines.append({**about, "tolerance": tolerance, **figures})
    return lines


def kept(title: str, tolerance: float, candidates: list[str]) -> dict[str, dict[str, float | None]]:
    """Seconds and passes in the table, of a problem, for solvers that are not measured anew."""
    found: dict[str, dict[str, float | None]] = {"seconds": {}, "passes": {}}
    for line in read() if TABLE.exists() else []:
        if line["problem"] == title and line["tolerance"] == tolerance:
            for what, figures in found.items():
                figures |= {name: cost for name, cost in line[what].items() if name not in candidates}
    return found


@dataclass(frozen=True)
class Recorded:
    """A problem as a line of the table describes it."""

    words: frozenset[str]
    numbers: Mapping[str, float]

    def number(self, name: str) -> float:
        """As of `Traits`; what older lines lack follows from what they have."""
        n = self.numbers
        if name == "condition" and name not in n:
            return n["rows"] / n["lambda"] if self.words & {"l2", "l1 and l2"} else math.nan
        if name == "products" and name not in n:
            return n["rows"] * n["entries"] * (1 if "one score" in self.words else 8)
        if name == "each" and name not in n:
            return self.number("products") / n["dim"]
        return 1 if name == "threads" else n[name]


def judge() -> None:
    """Say how good the first choice of the rules is, rule by rule and over all."""
    behind: dict[str, list[float]] = {}
    for line in read():
        times = {name: seconds for name, seconds in line["seconds"].items() if seconds is not None}
        if times:
            rule, _ = advice(Recorded(frozenset(line["words"]), line["numbers"]))
            first = next((name for name in rule.solvers if name in line["seconds"]), "")
            behind.setdefault(str(rule), []).append(times.get(first, math.inf) / min(times.values()))
    for rule, ratios in (*behind.items(), ("all rules", [one for some in behind.values() for one in some])):
        reached, count = [one for one in ratios if one < math.inf], len(ratios)
        print(
            f"{rule}: {count} problems, {geometric_mean(reached or [math.inf]):.2f} times the time of the best"
            f" (geometric mean), at most 1.3 times in {sum(one <= 1.3 for one in ratios) / count:.0%}, more than 3"
            f" times in {sum(one > 3.0 for one in reached) / count:.1%}, not there in time in"
            f" {1.0 - len(reached) / count:.1%}"
        )
    print(*map(turns, (32.0, 64.0, 128.0, 256.0, 512.0)), sep="\n")


def turns(first: float) -> str:
    """What first turns of so many passes cost, had every solver to begin anew in each turn; where passes are known."""
    ratios = []
    for line in read():
        times = {name: seconds for name, seconds in line["seconds"].items() if line["passes"].get(name)}
        if times:
            rule, _ = advice(Recorded(frozenset(line["words"]), line["numbers"]))
            names = [name for name in rule.solvers if name in line["seconds"]] or [min(times, key=times.__getitem__)]
            ratios.append(_in_turns(line, names, first) / min(times.values()))
    reached = [one for one in ratios if one < math.inf]
    above = sum(one > 3.0 for one in ratios) / len(ratios)
    mean = geometric_mean(reached)
    return f"first turns of {first:g} passes: {mean:.2f} times the best, more than 3 times in {above:.1%}"


def _in_turns(line: dict[str, Any], names: list[str], budget: float) -> float:
    seconds = line["seconds"]
    paces = {name: seconds[name] / passes for name, passes in line["passes"].items() if passes and seconds[name]}
    used = 0.0
    for _ in range(12 if len(names) > 1 else 1):
        for name in names:
            needed = line["passes"][name] if name in paces else math.inf
            pace = paces.get(name, 2.0 * min(paces.values()))
            if needed <= (budget if len(names) > 1 else math.inf):
                return used + needed * pace
            used += budget * pace
        budget *= GROWTH
    return math.inf


def read() -> list[dict[str, Any]]:
    """The lines of the table."""
    return [json.loads(line) for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]]


def write(lines: list[dict[str, Any]], keep: bool) -> None:
    """The table, a line about it and a line a measurement; with `keep`, those of problems not among them stay."""
    if keep and TABLE.exists():
        mine = {line["problem"] for line in lines}
        lines = [line for line in read() if line["problem"] not in mine] + lines
    lines = [line for line in lines if line["seconds"]]
    about = "Processor seconds, one thread, to a certified gap on generated problems; written by"
    about += f" python -m benchmarks.decisions; {machine()}"
    TABLE.write_text("".join(json.dumps(line) + "\n" for line in [{"about": about}, *lines]), encoding="utf-8")


def rounded(number: float) -> float:
    """To three digits."""
    return float(f"{number:.3g}")


if __name__ == "__main__":
    main()
