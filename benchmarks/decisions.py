"""`python -m benchmarks.decisions`: measure the solvers on generated problems, and write the table that `auto` reads.

Every problem is made from a seed, so the table can be made again anywhere. Times are processor times of one thread; a
time-out is recorded as null. Under mpirun the rows are shared out, times are those of rank 0, and lines say the ranks.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
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
from bmrm.problem import IncompatibleError, ProblemSize, Regularizer, Risk, ability
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.intercept import FreeIntercept
from bmrm.solvers import SOLVERS
from bmrm.solvers._core.auto.decisions import TABLE, Case, Lines, case_of, measured_of, ranked
from bmrm.solvers._core.auto.portfolio import CHAINED, Chains

CANDIDATES = (
    "newton",
    "semismooth_newton",
    "dual_coordinate",
    f"dual_coordinate{CHAINED}semismooth_newton",
    "proximal_newton",
    "coordinate_descent",
    "lbfgs",
    f"lbfgs{CHAINED}line_search_bundle",
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


def seconds_of(
    name: str, risk: Risk, regularizer: Regularizer, repetitions: int, best: dict[float, float]
) -> dict[float, float | None] | None:
    """Median seconds to each tolerance; None where the solver does not fit. `best` of the solvers is kept."""
    found: dict[float, float | None] = {}
    try:
        for part in name.split(CHAINED):  # all parts must fit; compiles
            SOLVERS.make(part, {"tolerance": 0.1, "time_limit": SHORTEST}).minimize(risk, regularizer)
    except IncompatibleError:
        return None
    for tolerance in TOLERANCES:
        times: list[float] = []
        limit = min(LIMIT, max(SHORTEST, LATE * best.get(tolerance, LIMIT)))
        for _ in range(repetitions):
            begin = time.process_time()
            solution = Chains(tolerance=tolerance, time_limit=BUSY * limit, names=(name,)).minimize(risk, regularizer)
            if not solution.converged:
                break
            times.append(time.process_time() - begin)
            if times[-1] > SHORTEST:
                break
        found[tolerance] = median(times) if times else None
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
    candidates = [name for name in options.solvers if set(name.split(CHAINED)) <= known]
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
    """The lines of a problem, one for each tolerance; solvers that are not candidates keep their old times."""
    others = {tolerance: kept(title, tolerance, candidates) for tolerance in TOLERANCES}
    best = {tolerance: min([s for s in others[tolerance].values() if s], default=LIMIT) for tolerance in TOLERANCES}
    times = {name: seconds_of(name, risk, regularizer, repetitions, best) for name in candidates}
    size = ability(risk, ProblemSize)
    ranks = {"ranks": size.ranks} if size is not None and size.ranks > 1 else {}
    lines = []
    for tolerance in TOLERANCES:
        case = case_of(risk, regularizer, tolerance)
        assert case is not None
        new = {name: _rounded(found.get(tolerance)) for name, found in times.items() if found is not None}
        seconds = others[tolerance] | new
        place = [round(number, 3) for number in case.place]
        lines.append({"problem": title, "kind": case.kind, "place": place, **ranks, "seconds": seconds})
    return lines


def kept(title: str, tolerance: float, candidates: list[str]) -> dict[str, float | None]:
    """The seconds in the table, of a problem, for solvers that are not measured anew."""
    lines = [line for line in (read() if TABLE.exists() else []) if line["problem"] == title]
    chosen = [line["seconds"] for line in lines if line["place"][-1] == round(math.log10(tolerance), 3)]
    return {name: time for seconds in chosen for name, time in seconds.items() if name not in candidates}


def judge() -> None:
    """Say how good the choice is on shapes that the table has not got: each shape in turn is left out of it."""
    lines = [line for line in read() if line.get("ranks", 1) == 1]
    behind: list[float] = []
    for line in lines:
        others = [other for other in lines if other["kind"] == line["kind"] and shape_of(other) != shape_of(line)]
        times = {name: seconds for name, seconds in line["seconds"].items() if seconds is not None}
        if others and times:
            table = Lines([measured_of(other) for other in others])
            order = ranked(Case(line["kind"], tuple(line["place"]), False), table)
            chosen = next((name for name in order if name in line["seconds"]), "")
            behind.append(times[chosen] / min(times.values()) if chosen in times else math.inf)
    finite = [one for one in behind if one < math.inf]
    count = len(behind)
    print(
        f"{count} problems of shapes left out: the first choice takes {geometric_mean(finite):.2f} times as long as the"
        f" best (geometric mean), at most 1.3 times in {sum(one <= 1.3 for one in behind) / count:.0%}, more than 4"
        f" times in {sum(one > 4.0 for one in finite) / count:.1%}, not there in time in"
        f" {1.0 - len(finite) / count:.1%}"
    )


def shape_of(line: dict[str, Any]) -> str:
    """The shape in the name of a problem."""
    return str(line["problem"]).split("Shape")[1]


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


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else float(f"{seconds:.3g}")


if __name__ == "__main__":
    main()
