"""`python -m mpi_examples.matching.run`, also under mpirun: learn how to match two sets of points.

Each example is two sets of points and which point of the first belongs to which of the second. A matching is scored
by the sum over its pairs of <features of the pair, w>; the best one is a linear assignment, and so is the worst one for
the margin, because wrong pairs are counted one by one. The two functions below are all that a structure needs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

import bmrm
from bmrm import extend

POINTS, NOISE = 8, (0.1, 0.3, 1.0, 3.0, 10.0)
Pairs = NDArray[np.float64]
"""(points, points, features): how like each point of the first set is to each of the second."""
Matching = NDArray[np.intp]
"""For each point of the first set one of the second."""


def joint_feature(x: Pairs, y: Matching) -> extend.Vector:
    """The sum of the features of the matched pairs."""
    total: extend.Vector = x[np.arange(POINTS), y].sum(axis=0)
    return total


def argmax(w: extend.Vector, x: Pairs, y: Matching) -> tuple[Matching, float]:
    """The matching with the largest sum of score and wrong pairs, and its wrong pairs."""
    wrong = np.ones((POINTS, POINTS))
    wrong[np.arange(POINTS), y] = 0.0
    worst = linear_sum_assignment(x @ w + wrong, maximize=True)[1]
    return worst, float(np.count_nonzero(worst != y))


def examples(seed: int, count: int) -> Iterator[tuple[Pairs, Matching]]:
    """Points whose copies are permuted and moved, in some coordinates more than in others."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        points, order = rng.normal(size=(POINTS, len(NOISE))), rng.permutation(POINTS)
        copy = points[order] + rng.normal(size=points.shape) * NOISE
        yield -((points[:, None] - copy[None, :]) ** 2), np.argsort(order)


def wrong_pairs(w: extend.Vector, seed: int, count: int) -> float:
    """Share of points that are matched wrongly."""
    found = [(linear_sum_assignment(x @ w, maximize=True)[1] != y).mean() for x, y in examples(seed, count)]
    return float(np.mean(found))


def main() -> None:
    """Each rank has its own examples; rank 0 solves and reports."""
    group = extend.open_group()
    mine = list(examples(0, 200))[group.rank :: group.size]

    def term(mass: float) -> extend.StructuredRisk:
        return extend.StructuredRisk(mine, joint_feature, argmax=argmax, dim=len(NOISE), mass=mass)

    def solve(risk: extend.Risk) -> bmrm.Solution:
        return bmrm.minimize(risk, bmrm.L2(1e-3), "bundle", tolerance=1e-4)

    solution = extend.lead(extend.shared_terms(term, float(len(mine)), group), group, solve)
    if solution is None:
        return
    print(f"{solution.status.name}, relative gap {solution.relative_gap:.1e}, {solution.iterations} iterations")
    print(f"objective {solution.objective:.8f}")
    print(f"weights {np.round(solution.w, 3)}")
    print(f"wrong pairs on new examples: {wrong_pairs(solution.w, 1, 500):.1%}", end=", ")
    print(f"with equal weights {wrong_pairs(np.ones(len(NOISE)), 1, 500):.1%}")


if __name__ == "__main__":
    main()
