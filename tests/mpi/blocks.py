"""Run under mpirun: regularizers of blocks and none, each with a solver; rank 0 prints one JSON line."""

import json
import sys

from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.problem import bound
from bmrm.regularizers.box import Box
from bmrm.regularizers.group_l2 import GroupL2
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.none import NoRegularizer
from bmrm.risk.intercept import FreeIntercept
from bmrm.solvers import SOLVERS
from tests.mpi.sparse import risk_of

CASES = {
    "group_l2": ("logistic", GroupL2(0.02, groups=((0, 1, 2), (5, 7))), "proximal_gradient"),
    "box": ("least_squares", Box(0.01, upper={3: 0.05}), "auto"),
    "l1, feature_weights": ("logistic", L1(0.02, feature_weights={0: 0.0, 3: 5.0}), "auto"),
    "none": ("huber", NoRegularizer(), "auto"),
    "none, newton": ("least_squares", NoRegularizer(), "newton"),
}


def solved(case, group):
    loss, regularizer, solver = CASES[case]

    def on_lead(risk):
        found = SOLVERS.make(solver, {"tolerance": 1e-8}).minimize(FreeIntercept(risk), bound(regularizer, risk))
        return {
            "objective": found.objective,
            "bound": found.lower_bound,
            "status": found.status.name,
            "w": found.w.tolist(),
        }

    return lead(risk_of(loss, True, group), group, on_lead)


def main(_):
    group = open_group()
    found = {case: solved(case, group) for case in CASES}
    if group.rank == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
