"""Run under mpirun: sweeps of dual coordinate ascent that a time limit breaks off.

The clock of rank 0 moves on whenever it is looked at; the others are slow, so that they hear of it in time. Rank 0
prints one JSON line: per loss what the run has found, and how many pieces of the last sweep each rank has visited.
"""

import json
import sys
import time
from unittest import mock

from bmrm.losses import LOSSES
from bmrm.mpi import dual
from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import shared_risk
from bmrm.regularizers.l2 import L2
from bmrm.risk.dual import stored as dual_stored
from bmrm.risk.intercept import FreeIntercept
from bmrm.solvers import SOLVERS
from bmrm.solvers._core import budget
from tests.mpi.every_solver import small_data

TOLD = 200
CASES = {"hinge": False, "multiclass_hinge": False, "logistic": True}
PIECES = []


class Lookout(dual.Lookout):
    """Counts pieces; on other ranks than 0 each takes a while."""

    def __init__(self, group, check):
        super().__init__(group, check)
        PIECES.append(0)

    def __call__(self):
        time.sleep(2e-3 if self._group.rank else 1e-3)
        super().__call__()
        PIECES[-1] += 1


class Clock:
    now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


@mock.patch.object(dual, "Lookout", Lookout)
@mock.patch.object(dual, "LONG", -1.0)
@mock.patch.object(dual_stored, "ENTRIES", dual_stored.ENTRIES)
def main(_):
    group, answers = open_group(), {}
    rows = small_data()
    mine = rows.part(rows.rows * group.rank // group.size, rows.rows * (group.rank + 1) // group.size)
    for loss, free in CASES.items():
        dual_stored.ENTRIES = 60.0 * (2.0 * 3.0 if loss == "multiclass_hinge" else 1.0)
        risk = shared_risk(mine, LOSSES.make(loss), group)

        def work(risk, free=free):
            risk, omega = FreeIntercept(risk) if free else risk, L2(1e-3)
            best = SOLVERS.make("lbfgs", {"tolerance": 1e-3}).minimize(risk, omega)
            real, budget.perf_counter = budget.perf_counter, Clock()
            solver = SOLVERS.make("dual_coordinate", {"tolerance": 1e-9, "time_limit": float(TOLD)})
            found = solver.minimize(risk, omega)
            looks, budget.perf_counter = budget.perf_counter.now, real
            return {
                "status": found.status.name,
                "looks": looks,
                "told": TOLD,
                "visits": found.details["sweeps"],
                "whole_sweeps": found.iterations,
                "objective": found.objective,
                "lower_bound": found.lower_bound,
                "value": risk.value_and_subgradient(found.w)[0] + omega.value(found.w),
                "best": best.objective,
                "best_bound": best.lower_bound,
            }

        PIECES.clear()
        answer = lead(risk, group, work)
        sweeps = group.gather(PIECES)
        if group.rank == 0:
            answers[loss] = {
                **answer,
                "last": [mine[-1] for mine in sweeps],
                "pieces": min(min(p[:-1]) for p in sweeps),
            }
    if group.rank == 0:
        print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
