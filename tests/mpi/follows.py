"""Run under mpirun on three ranks: measures of validation rows while a solver runs, rank 0 having none of these rows.

Rank 0 prints one JSON line: by loss what was followed over all ranks, and on one.
"""

import json
import sys

import numpy as np

from bmrm.app.pipeline.follow import Follow, listed
from bmrm.app.pipeline.solve import Problem, solve
from bmrm.checks.plug_in import targets_for
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.group import Alone
from bmrm.mpi.launch import open_group
from bmrm.regularizers.l2 import L2
from bmrm.solvers import SOLVERS

CASES = {
    "hinge": ("map", "break_even"),
    "multilabel_hinge": ("one_error", "label_average_precision"),
    "multivariate_least_squares": ("mae", "r2"),
}
ROWS = 90
TRAIN, VALIDATION = (0, 30, 60, 90), (0, 0, 40, 90)


def main(_):
    group, answers = open_group(), {}
    for name, metrics in CASES.items():
        loss, random = LOSSES.make(name), np.random.default_rng(0)
        y = targets_for(loss, ROWS)
        rows = Dataset.from_arrays(
            random.normal(size=(ROWS, 4)), np.where(y > 0, "yes", "no") if name == "hinge" else y
        )
        solver = SOLVERS.make("probe" if name == "hinge" else "line_search_bundle", {"max_iterations": 7})
        problem = Problem(loss, L2(0.1), solver, bias="regularized", follow=Follow(metrics, 3))
        train, validation = (rows.part(*borders[group.rank : group.rank + 2]) for borders in (TRAIN, VALIDATION))
        shared = solve(train, problem, group, others={"validation": validation})
        if group.rank == 0:
            alone = solve(rows, problem, Alone(), others={"validation": rows})
            answers[name] = [listed(model.solution.details["validation"]) for model in (shared, alone)]
    if group.rank == 0:
        print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
