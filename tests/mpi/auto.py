"""Run under mpirun: auto, turns that begin with a solver for one process only, and a time limit.

Rank 0 prints one JSON line: per case objective, bound, status, solver and seconds.
"""

import json
import sys

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import shared_risk
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.solvers import SOLVERS
from bmrm.solvers._core.auto.turns import Turns

CASES = {
    "hinge": (L2(0.003), False),
    "hinge, free": (L2(0.003), True),
    "logistic": (L2(0.003), False),
    "quantile": (L2(0.003), False),
    "softmax": (L2(0.003), False),
    "logistic, l1": (L1(0.003), False),
}
LIMIT = 0.01


def rows_of(loss):
    """The same on every rank."""
    random = np.random.default_rng(7)
    X = random.normal(size=(401, 12))
    X[random.random(X.shape) < 0.4] = 0.0
    f = X @ random.normal(size=12) + 0.3 * random.normal(size=401) + 0.5
    y = {"quantile": f, "softmax": np.digitize(f, [-1.0, 1.0])}.get(loss, (f > 0.2).astype(int))
    return Dataset.from_arrays(X, y)


def risk_of(loss, group):
    """This rank's rows; the last of three ranks has none."""
    whole = rows_of(loss)
    mine = np.arange(whole.rows) * min(group.size, 2) // whole.rows == group.rank
    return shared_risk(whole.select(np.flatnonzero(mine)), LOSSES.make(loss), group)


def solve(solver, regularizer, free=False):
    def on_lead(risk):
        found = solver.minimize(FreeIntercept(risk) if free else risk, regularizer)
        return {
            "objective": found.objective,
            "bound": found.lower_bound,
            "status": found.status.name,
            "solver": found.solver,
            "seconds": found.seconds,
        }

    return on_lead


def main(_):
    group = open_group()
    auto, answers = SOLVERS.make("auto", {"tolerance": 1e-7}), {}
    for case, (regularizer, free) in CASES.items():
        answers[case] = lead(risk_of(case.split(",")[0], group), group, solve(auto, regularizer, free))
    turns = Turns(tolerance=1e-7, names=("coordinate_descent", "proximal_newton"))
    answers["passed over"] = lead(risk_of("logistic", group), group, solve(turns, L1(0.003)))
    never = SOLVERS.make("auto", {"tolerance": 0.0, "max_iterations": 10**9, "time_limit": LIMIT})
    answers["limit"] = lead(risk_of("hinge", group), group, solve(never, L2(1e-9)))
    if group.rank == 0:
        print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
