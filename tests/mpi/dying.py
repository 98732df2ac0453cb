"""Run under mpirun: the last rank fails, or dies, when it is asked for one method; the arguments name both."""

import os
import sys

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.local import LocalObjects
from bmrm.mpi.shared import shared_risk
from bmrm.regularizers.l2 import L2
from bmrm.solvers import SOLVERS

SOLVER = {
    "value_and_subgradient": "bundle",
    "plane_at": "newton",
    "pulled": "line_search_bundle",
    "rounds": "dual_coordinate",
    "gather": "auto",
}
"""One that asks for it."""


def main(arguments):
    method, how = arguments
    group, answer = open_group(), LocalObjects._answer

    def failing(self, request, keeps):
        if request.method == method:
            if how == "dies":
                os._exit(9)
            raise MemoryError("no room for rows")
        return answer(self, request, keeps)

    if group.rank == group.size - 1:
        LocalObjects._answer = failing
    rng = np.random.default_rng(group.rank)
    X = rng.standard_normal((50, 4))
    risk = shared_risk(Dataset.from_arrays(X, X[:, 0] > 0), LOSSES.make("logistic"), group, share_rows=True)
    solver = SOLVERS.make(SOLVER[method], {"tolerance": 1e-12})
    lead(risk, group, lambda risk: solver.minimize(risk, L2(1e-3)))
    print("ended well")


if __name__ == "__main__":
    main(sys.argv[1:])
