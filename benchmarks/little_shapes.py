"""Little data at once against `auto`'s rules, on random problems. Limits were chosen by others, drawn by earlier forms.

    python -m benchmarks.little_shapes --problems 240 --seed N

Both runs are of `auto`; one has a risk that does not offer to be minimised at once. Times are processor times of one
thread, medians of some runs in turn, the risk made anew in each. Figures are kept for each problem as they are found,
and those found are not measured again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, TypeVar

import numpy as np

from benchmarks.harness import Table
from benchmarks.random_shapes import Kept, kept_table, parser
from bmrm.data.dataset import Dataset
from bmrm.kernels.compiling import COMPILING
from bmrm.losses import LOSSES
from bmrm.problem import Risk, Solution
from bmrm.problem.abilities import AtOnce
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS

KEPT = Path(__file__).with_name("results") / "little-shapes.json"
TURNS = 5
"""Runs of each."""
SMOOTH, KINKED = ("logistic", "squared_hinge", "huber", "least_squares"), ("hinge", "quantile")
KINDS: Mapping[str, tuple[str, ...]] = {
    "l2, smooth": SMOOTH,
    "l2, kinked": KINKED,
    "l1, elastic net": SMOOTH,
    "several scores": ("softmax", "multiclass_hinge"),
    "few rows, smooth": SMOOTH,
    "few rows, kinked": KINKED,
}
"""Losses by class of problem; each class has as many problems."""
SINGLE, SEVERAL = (2e4, 3e5), (1e4, 1.5e5)
"""Rows times weights, with one score and with several."""
FEW, WIDE = (30, 200), 2e6
"""Rows where they are fewer than weights, and their most entries."""
T = TypeVar("T")


class _Ruled(LinearRisk):
    """A risk that is not minimised at once."""

    def ability(self, kind: type[T]) -> T | None:
        """All but one."""
        return None if kind is AtOnce else super().ability(kind)


class Problem:
    """Dense rows, a loss, a lambda of six decades, a gap of 1e-3 or 1e-6, perhaps a free intercept, all drawn."""

    def __init__(self, seed: int, number: int) -> None:
        rng = np.random.default_rng([seed, number])
        self.kind = list(KINDS)[number % len(KINDS)]
        self.loss = str(rng.choice(KINDS[self.kind]))
        classes = int(rng.choice([3, 5])) if self.kind == "several scores" else 1
        X = _rows(rng, self.kind, classes)
        self.data = Dataset.from_arrays(X, _targets(rng, X, LOSSES.make(self.loss).task, classes))
        penalty = str(rng.choice(["l1", "elastic_net"])) if self.kind.startswith("l1") else "l2"
        lam = 10.0 ** rng.uniform(-6.0, 0.0) * (1.0 if penalty != "l2" else float((X * X).sum()) / len(X))
        self.omega = REGULARIZERS.make(penalty, {"lambda": lam})
        self.tolerance, self.free = float(rng.choice([1e-3, 1e-6])), bool(rng.random() < 0.5)
        self.title = f"{self.loss}, {len(X)} x {X.shape[1]}, {penalty} {lam:.1e}, gap {self.tolerance:g}"
        self.title += ", free intercept" if self.free else ""

    def run(self, of: type[LinearRisk]) -> tuple[float, Solution]:
        """Seconds, kernels being there, and what was found."""
        while True:
            compiled, begin = COMPILING.seconds, time.process_time()
            risk: Risk = of(self.data, LOSSES.make(self.loss), threads=1)
            risk = FreeIntercept(risk) if self.free else risk
            found = SOLVERS.make("auto", {"tolerance": self.tolerance}).minimize(risk, self.omega)
            if COMPILING.seconds == compiled:
                return time.process_time() - begin, found


def _rows(rng: np.random.Generator, kind: str, classes: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Correlated columns on some scales, or a common direction of any size where rows are few."""
    if kind.startswith("few"):
        m = round(_between(rng, *FEW))
        d = round(_between(rng, max(65.0, 1.2 * m), min(WIDE / m, 1e4)))
        common = rng.standard_normal((m, 1)) * rng.standard_normal(d)
        return rng.standard_normal((m, d)) + 10.0 ** rng.uniform(-2.0, 1.0) * common
    entries = _between(rng, *(SEVERAL if classes > 1 else SINGLE)) / classes
    d = round(_between(rng, max(2.0, entries / 4e4), 192 / classes if classes > 1 else 64))
    mixing = np.eye(d) + 10.0 ** rng.uniform(-2.0, 0.0) * rng.standard_normal((d, d))
    X = rng.standard_normal((int(entries / d), d)) @ mixing
    return X * 10.0 ** rng.uniform(-1.0, 1.0, d) if rng.random() < 0.5 else X


def _between(rng: np.random.Generator, least: float, most: float) -> float:
    """Uniform in the logarithm."""
    return float(np.exp(rng.uniform(np.log(least), np.log(most))))


def _targets(rng: np.random.Generator, X: Any, task: str, classes: int) -> Any:
    """From a linear model of the columns, scaled, with noise of heavy tails."""
    noise, truth = 10.0 ** rng.uniform(-1.0, 1.0), rng.standard_normal((X.shape[1], classes))
    scores = (X / X.std(axis=0)) @ truth
    scores = scores / scores.std() + noise * rng.standard_t(3, scores.shape)
    if classes > 1:
        y = np.argmax(scores, axis=1)
        y[:classes] = np.arange(classes)
        return y
    if task == "regression":
        return scores[:, 0]
    y = np.where(scores[:, 0] > 0.0, 1, -1)
    y[:2] = 1, -1
    return y


def measured(problem: Problem) -> dict[str, Any]:
    """The figures of a problem: seconds at once and by the rules, and whether the run at once got there."""
    runs = [[problem.run(of) for of in (LinearRisk, _Ruled)] for _ in range(TURNS)]
    seconds = [float(f"{median(one[k][0] for one in runs):.3g}") for k in range(2)]
    found = runs[0][0][1]
    there = found.solver.endswith("all at once)")
    return {"problem": problem.title, "kind": problem.kind, "seconds": seconds, "there": there}


def table(found: Sequence[Mapping[str, Any]], seed: int) -> Table:
    """By class: the time at once over that of the rules."""
    rows = [(kind, *_cells([one for one in found if one["kind"] == kind])) for kind in KINDS]
    return Table(
        "Little data at once",
        f"{len(found)} random problems of seed {seed} (limits were chosen by others): dense, up to 64 weights and"
        f" {SINGLE[0]:,.0f} to {SINGLE[1]:,.0f} rows times weights with one score, up to 192 and {SEVERAL[0]:,.0f} to"
        f" {SEVERAL[1]:,.0f} with several, {FEW[0]} to {FEW[1]} rows and more weights where rows are few; lambda over"
        " six decades, with and without a free intercept, to 1e-3 or 1e-6. Processor time of one thread, medians of"
        f" {TURNS}, of `auto` over that of `auto` where its risk does not offer to be minimised at once: geometric"
        " mean, share of problems, largest ratio, median milliseconds, and problems where the run at once did not get"
        " there, so that the rules followed. The figures are those of `python -m benchmarks.little_shapes --problems"
        f" {len(found)} --seed {seed}`.",
        ("class", "problems", "mean", "above 1", "most", "ms at once", "ms by rules", "not there"),
        (*rows, ("all", *_cells(found))),
    )


def _cells(found: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    if not found:
        return "0", *["-"] * 6
    ratios = [one["seconds"][0] / one["seconds"][1] for one in found]
    middle = [f"{1e3 * median(one['seconds'][k] for one in found):.3g}" for k in range(2)]
    above = sum(one > 1.0 for one in ratios) / len(ratios)
    missed = str(sum(not one["there"] for one in found))
    return str(len(found)), f"{geometric_mean(ratios):.2f}", f"{above:.0%}", f"{max(ratios):.1f}", *middle, missed


def measure() -> Table | None:
    """Of the figures that are kept; None where there are none."""
    return kept_table(KEPT, table)


def main() -> None:
    """Measure what is not kept yet, and print the table."""
    options = parser("little_shapes", __doc__, KEPT, 240).parse_args()
    kept = Kept(options.kept, options.seed)
    for number in kept.missing(options.problems):
        kept.note(number, measured(Problem(options.seed, number)))
    made = kept_table(options.kept, table)
    print("" if made is None else made.markdown())


if __name__ == "__main__":
    main()
