"""Run under mpirun: matching by assignment with the examples shared out; rank 0 prints objective and bound."""

import json
import sys

from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import shared_terms
from bmrm.regularizers.l2 import L2
from bmrm.risk.structured import StructuredRisk
from bmrm.solvers import SOLVERS
from tests.risk.test_structured import matching_features, matchings, worst_matching


def main(_):
    group = open_group()
    mine = list(matchings(0, 30))[group.rank :: group.size]

    def term(mass: float) -> StructuredRisk:
        return StructuredRisk(mine, matching_features, argmax=worst_matching, dim=4, mass=mass)

    risk = shared_terms(term, float(len(mine)), group)
    solution = lead(risk, group, lambda whole: SOLVERS.make("bundle", {"tolerance": 1e-8}).minimize(whole, L2(0.01)))
    if solution is not None:
        print(json.dumps([solution.objective, solution.lower_bound, solution.status.name]))


if __name__ == "__main__":
    main(sys.argv[1:])
