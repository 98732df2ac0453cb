"""The bundle method with the regularizer inside: Teo, Le, Smola & Vishwanathan, KDD 2007, Algorithm 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import IncompatibleError, Risk, SavedPlanes, Vector, ability
from bmrm.problem.abilities import Blocks
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers._core.monitor import Monitor, Step, Steps
from bmrm.solvers._core.plane_model import KeptModel, PlaneModel, PlaneSolver, master_accuracy

Oracle = Callable[[Vector], tuple[Vector, NDArray[np.float64]]]
"""w -> the values (blocks,) and the subgradients (blocks, dim) of the terms of the risk."""


@register(
    "bundle",
    problem="any convex risk; a regularizer with a master",
    needs="value and subgradient; a master",
    certificate="the master's bound",
    cost="1 pass and a small quadratic or linear program",
    source="Teo, Le, Smola & Vishwanathan 2007",
    vectors=36,
)
@dataclass(frozen=True)
class Bundle(PlaneSolver):
    """BMRM: minimise the regularized maximum of all tangent planes, add the plane at the minimiser, repeat.

    With `w_i` the minimiser of `J_i(w) = Omega(w) + max(infimum, max_j <a_j, w> + b_j)` (eq. 7, 8), `J_i(w_i)` is
    a lower bound of min J and the best `J(w_i)` so far an upper one (Lemma 1); the gap reaches epsilon in
    O(1 / (lambda epsilon)) steps (Theorem 2). An iteration takes one pass.

    Memory: 8 (planes + 4) dim + 40 planes^2 bytes.

    Parameters
    ----------
    cuts_per_pass : number of blocks of rows with a plane each: a finer model at the cost of one pass, and a larger
        master.
    """

    cuts_per_pass: int = parameter(1, least=1, doc="planes a pass, one for each block of rows", example=3)

    def steps(self, run: Monitor, planes: SavedPlanes | None = None, kept: KeptModel | None = None) -> Steps:
        """As of `IterativeSolver`; `planes` of an earlier run on the same risk (`keep_planes`) make the first model.

        `kept` is the state of an interrupted run on the same risk and regularizer, which is continued.
        """
        oracle, infima = self._oracle(run.risk)
        return self._loop(run, oracle, self.model(run, infima, planes, kept))

    def _loop(self, run: Monitor, oracle: Oracle, model: PlaneModel) -> Steps:
        w = run.start
        while True:
            values, slopes = oracle(w)
            value = float(values.sum())
            run.fits(w, value, slopes[0] if len(slopes) == 1 else slopes.sum(axis=0))
            run.improve(w, value + run.regularizer.value(w), fresh=True)
            yield Step.ITERATION
            with run.master():
                finite = math.isfinite(value) and all(
                    [model.add(a, float(part), w, block) for block, (a, part) in enumerate(zip(slopes, values))]
                )
                if not finite:
                    w = 0.5 * (run.w + w)
                    continue
                proposal = model.solve(master_accuracy(run.relative_gap))
            run.raise_bound(model.proof(proposal))
            w = proposal.w

    def _oracle(self, risk: Risk) -> tuple[Oracle, tuple[float, ...]]:
        if self.cuts_per_pass == 1:

            def single(w: Vector) -> tuple[Vector, NDArray[np.float64]]:
                value, a = risk.value_and_subgradient(w)
                return np.array([value]), a[None, :]

            return single, (risk.infimum,)
        blocks = ability(risk, Blocks)
        if blocks is None:
            raise IncompatibleError("cuts_per_pass above 1 needs a risk whose rows can be parted; use 1")
        count = self.cuts_per_pass
        return lambda w: blocks.values_and_subgradients(w, count), tuple(map(float, blocks.infima(count)))
