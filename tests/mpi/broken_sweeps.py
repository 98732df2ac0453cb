"""Run under mpirun: sweeps of dual coordinate ascent that a time limit breaks off.

The clock of rank 0 moves on whenever it is looked at. Rank 0 prints one JSON line: per loss what the run has found, and
how many rounds of the last sweep each rank has made.
"""

import json
import sys
from itertools import product
from unittest import mock

from bmrm.losses import LOSSES
from bmrm.mpi import dual
from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import shared_risk
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.solvers import SOLVERS
from bmrm.solvers._core import budget
from tests.mpi.every_solver import small_data

TOLD = (190, 197, 204)
"""Where in a sweep the clock strikes depends on how often it is looked at."""
CASES = {"hinge": False, "multiclass_hinge": False, "logistic": True}
PIECES = []


def counted(self, rows, number, rounds, *given, make=dual.RankAscents._round):
    """A round, which is counted."""
    if number == 0:
        PIECES.append((0, rounds))
    PIECES[-1] = (number + 1, rounds)
    return make(self, rows, number, rounds, *given)


class Clock:
    now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


@mock.patch.object(dual.RankAscents, "_round", counted)
@mock.patch.object(dual, "LEAST_ROUNDS", 12)
@mock.patch.object(dual, "LONGEST", 250.0)
def main(_):
    group, answers = open_group(), {}
    rows = small_data()
    mine = rows.part(rows.rows * group.rank // group.size, rows.rows * (group.rank + 1) // group.size)
    for loss, told in product(CASES, TOLD):
        free = CASES[loss]
        risk = shared_risk(mine, LOSSES.make(loss), group)

        def work(risk, free=free, told=told):
            risk, omega = FreeIntercept(risk) if free else risk, L2(1e-3)
            best = SOLVERS.make("lbfgs", {"tolerance": 1e-3}).minimize(risk, omega)
            real, budget.working_clock = budget.working_clock, Clock()
            solver = SOLVERS.make("dual_coordinate", {"tolerance": 1e-9, "time_limit": float(told)})
            found = solver.minimize(risk, omega)
            looks, budget.working_clock = budget.working_clock.now, real
            return {
                "status": found.status.name,
                "looks": looks,
                "told": told,
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
            answers[f"{loss}, {told}"] = {
                **answer,
                "last": [mine[-1] for mine in sweeps],
                "whole": all(made == rounds for mine in sweeps for made, rounds in mine[:-1]),
            }
    if group.rank == 0:
        print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
