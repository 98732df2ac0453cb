"""Objective on rank 0 where the rows of the ranks named weigh 0, or why there is none; see `test_weightless`."""

import json
import sys

import numpy as np

from bmrm.app.pipeline.solve import Problem, solve
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.launch import open_group
from bmrm.problem import BmrmError
from bmrm.regularizers.l2 import L2
from bmrm.solvers import SOLVERS


def main(arguments: list[str]) -> None:
    weightless, *losses = arguments
    group = open_group()
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    part = slice(group.rank * 15, group.rank * 15 + 15) if group.size == 2 else slice(0, 30)
    weights = np.ones(30)
    for rank in weightless:
        weights[int(rank) * 15 : int(rank) * 15 + 15] = 0.0
    data = Dataset.from_arrays(X[part], y[part], weights=weights[part])
    found = []
    for name in losses:
        problem = Problem(LOSSES.make(name), L2(1e-2), SOLVERS.make("auto", {"tolerance": 1e-8}), bias="free")
        try:
            model = solve(data, problem, group)
            found.append(None if model is None else model.solution.objective)
        except BmrmError as error:
            found.append(str(error))
    if group.rank == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
