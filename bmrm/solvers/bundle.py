"""The bundle method with the regularizer inside: Teo, Le, Smola & Vishwanathan, KDD 2007, Algorithm 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bmrm.problem import Callback, Regularizer, Risk, Solution, Vector
from bmrm.registry import parameter
from bmrm.solvers import register
from bmrm.solvers.monitor import IterativeSolver
from bmrm.solvers.plane_model import PlaneModel, master_accuracy


@register("bundle", needs="value and subgradient; a master", certificate="the master's bound")
@dataclass(frozen=True)
class Bundle(IterativeSolver):
    """BMRM: minimise the regularized maximum of all tangent planes, add the plane at the minimiser, repeat.

    With `w_i` the minimiser of `J_i(w) = Omega(w) + max(infimum, max_j <a_j, w> + b_j)` (eq. 7, 8), `J_i(w_i)` is
    a lower bound of min J and the best `J(w_i)` so far an upper one (Lemma 1); the gap reaches epsilon in
    O(1 / (lambda epsilon)) steps (Theorem 2). One pass an iteration.

    Parameters
    ----------
    idle_limit : a plane leaves when the master has not used it for so many iterations; null keeps all. Memory is
        2 (planes kept) dim 8 bytes at most.
    """

    idle_limit: int | None = parameter(100, least=1, doc="iterations until an unused plane leaves", example=1)

    def minimize(
        self,
        risk: Risk,
        regularizer: Regularizer,
        *,
        start: Vector | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """As of `Solver`."""
        with self.monitor(risk, regularizer, start, callback) as run:
            model = PlaneModel(regularizer, risk.dim, risk.infimum, self.idle_limit)
            w = run.start
            while True:
                value, a = run.risk.value_and_subgradient(w)
                run.improve(w, value + regularizer.value(w))
                if run.record():
                    return run.solution(self.name)  # type: ignore[attr-defined, no-any-return]
                if not math.isfinite(value):
                    w = 0.5 * (run.w + w)
                    continue
                with run.master():
                    model.add(a, value, w)
                    proposal = model.solve(master_accuracy(run.relative_gap))
                run.raise_bound(proposal.lower_bound)
                w = proposal.w
