"""Run under mpirun: l1 and elastic net by proximal Newton, with and without a free intercept.

Rank 0 prints one JSON line: per case w, the objective and the status; and what coordinate descent says.
"""

import json
import sys

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import shared_risk
from bmrm.problem import IncompatibleError
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l1 import L1
from bmrm.risk.intercept import FreeIntercept
from bmrm.solvers import SOLVERS

REGULARIZERS = {"l1": L1(0.01), "elastic_net": ElasticNet(0.02, 0.3)}
CASES = [
    (loss, regularizer, free)
    for loss in ("logistic", "squared_hinge", "least_squares")
    for regularizer in REGULARIZERS
    for free in (False, True)
]


def rows_of(loss):
    """The same on every rank."""
    random = np.random.default_rng(7)
    X = random.normal(size=(301, 40))
    X[random.random(X.shape) < 0.4] = 0.0
    f = X @ (random.normal(size=40) * (random.random(40) < 0.3)) + 0.3 * random.normal(size=301) + 0.5
    return Dataset.from_arrays(X, f if loss == "least_squares" else (f > 0.2).astype(int))


def risk_of(loss, free, group):
    """This rank's rows; the last of three ranks has none."""
    whole = rows_of(loss)
    sharing = min(group.size, 2)
    mine = np.arange(whole.rows) * sharing // whole.rows == group.rank
    return shared_risk(whole.select(np.flatnonzero(mine)), LOSSES.make(loss), group)


def solve(name, regularizer, free):
    def on_lead(risk):
        risk = FreeIntercept(risk) if free else risk
        try:
            found = SOLVERS.make(name, {"tolerance": 1e-9}).minimize(risk, REGULARIZERS[regularizer])
        except IncompatibleError as error:
            return str(error)
        return {"w": found.w.tolist(), "objective": found.objective, "status": found.status.name}

    return on_lead


def main(_):
    group = open_group()
    answers = {}
    for loss, regularizer, free in CASES:
        risk = risk_of(loss, free, group)
        answers[f"{loss} {regularizer} {free}"] = lead(risk, group, solve("proximal_newton", regularizer, free))
    risk = risk_of("logistic", False, group)
    answers["coordinate_descent"] = lead(risk, group, solve("coordinate_descent", "l1", False))
    if group.rank == 0:
        print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
