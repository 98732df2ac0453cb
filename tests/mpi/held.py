"""Run under mpirun: what a rank keeps for rank 0 while solvers run; rank 0 prints one JSON line.

Per case the number of objects, arrays of scores among them, after every iteration.
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

CASES = {
    "bundle": ("hinge", L2(1e-6), False),
    "line_search_bundle": ("hinge", L2(1e-6), False),
    "line_search_bundle free": ("hinge", L2(1e-4), True),
    "lbfgs": ("logistic", L2(1e-7), False),
    "lbfgs kinked": ("hinge", L2(1e-6), False),
    "nonlinear_cg": ("logistic", L2(1e-7), False),
    "irls": ("logistic", L2(1e-7), False),
    "newton": ("logistic", L2(1e-7), False),
    "newton free": ("logistic", L2(1e-7), True),
    "proximal_newton": ("logistic", L1(1e-5), False),
    "proximal_gradient": ("logistic", L2(1e-5), False),
    "semismooth_newton": ("hinge", L2(1e-6), False),
    "dual_coordinate": ("hinge", L2(1e-4), False),
}
ITERATIONS = 500


def noise():
    """On which everything takes long."""
    random = np.random.default_rng(3)
    return Dataset.from_arrays(random.normal(size=(800, 40)), random.integers(0, 2, 800))


def main(_):
    group = open_group()
    whole = noise()
    mine = np.arange(whole.rows) * group.size // whole.rows == group.rank
    data = whole.select(np.flatnonzero(mine))
    held = {}
    for case, (loss, regularizer, free) in CASES.items():
        counts = held[case] = []
        solver = SOLVERS.make(case.split()[0], {"tolerance": 0.0, "max_iterations": ITERATIONS})

        def on_lead(risk, solver=solver, regularizer=regularizer, free=free, counts=counts):
            asked = FreeIntercept(risk) if free else risk
            solver.minimize(asked, regularizer, callback=lambda line: counts.append(risk.ranks.local.held))

        lead(shared_risk(data, LOSSES.make(loss), group, bias=not free), group, on_lead)
    if group.rank == 0:
        print(json.dumps(held))


if __name__ == "__main__":
    main(sys.argv[1:])
