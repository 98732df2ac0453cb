"""Run under mpirun: a rank compiles, for longer than the solver may run, when it first evaluates its term.

The argument says which. Rank 0 prints one JSON line.
"""

import json
import sys
import time

import numpy as np

from bmrm.kernels.compiling import COMPILING
from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import shared_terms
from bmrm.regularizers.l2 import L2
from bmrm.solvers import SOLVERS

LIMIT, COMPILES = 1.5, 2.0


class Term:
    """The squared distance from a point, over the mass of all."""

    dim, infimum, compiles = 3, 0.0, False

    def __init__(self, mass):
        self.mass = mass

    def value_and_subgradient(self, w):
        if Term.compiles:
            Term.compiles = False
            COMPILING.enter()
            time.sleep(COMPILES)
            COMPILING.leave()
        return float(np.sum((w - 1.0) ** 2)) / self.mass, 2.0 * (w - 1.0) / self.mass


def main(arguments):
    group = open_group()
    risk = shared_terms(Term, 1.0, group)
    options = {"tolerance": 1e-6, "time_limit": None}
    lead(risk, group, lambda risk: SOLVERS.make("bundle", options).minimize(risk, L2(0.1)))  # what is imported late
    Term.compiles = str(group.rank) in arguments
    solver = SOLVERS.make("bundle", options | {"time_limit": LIMIT})
    before = COMPILING.seconds
    found = lead(risk, group, lambda risk: solver.minimize(risk, L2(0.1)))
    if found is not None:
        seconds = found.history[-1].seconds_waiting + found.history[-1].seconds_network
        print(json.dumps([found.status.name, found.seconds, COMPILING.seconds - before, seconds]))


if __name__ == "__main__":
    main(sys.argv[1:])
