"""Run under mpirun: newton and semismooth_newton, with and without a free intercept.

Rank 0 prints one JSON line: per case w, the objective, the bound and the status.
"""

import json
import sys
from contextlib import nullcontext
from unittest import mock

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi import scored
from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import shared_risk
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.solvers import SOLVERS
from bmrm.solvers.semismooth_newton import Run

PRODUCTS: dict[str, object] = {"growth": 1.5}
"""Options of semismooth_newton with which it takes conjugate gradients here."""
CASES = [
    (name, loss, options, free, regularizer)
    for name, loss, options, regularizer in (
        ("newton", "logistic", {"hessian": "dense"}, L2(1e-3)),
        ("newton", "logistic", {"hessian": "cg"}, L2(1e-3)),
        ("newton", "squared_hinge", {}, L2(1e-3)),
        ("newton", "softmax", {}, L2(1e-3)),
        ("semismooth_newton", "hinge", {}, L2(1e-3)),
        ("semismooth_newton", "quantile", {}, L2(1e-3)),
        ("semismooth_newton", "multiclass_hinge", {}, L2(1e-3)),
        ("semismooth_newton", "hinge", PRODUCTS, L2(1e-3)),
        ("semismooth_newton", "quantile", PRODUCTS, L2(1e-3)),
        ("semismooth_newton", "multiclass_hinge", PRODUCTS, L2(1e-3)),
        ("semismooth_newton", "hinge", {}, ElasticNet(1e-3)),
        ("semismooth_newton", "quantile", {}, L1(1e-2)),
    )
    for free in (False, True)
    if not (free and loss == "multiclass_hinge")
]


def rows_of(loss):
    """The same on every rank."""
    random = np.random.default_rng(7)
    X = random.normal(size=(401, 12))
    X[random.random(X.shape) < 0.4] = 0.0
    f = X @ random.normal(size=12) + 0.3 * random.normal(size=401) + 0.5
    classes = np.digitize(f, [-1.0, 1.0])
    y = {"quantile": f, "softmax": classes, "multiclass_hinge": classes}.get(loss, (f > 0.2).astype(int))
    return Dataset.from_arrays(X, y, random.integers(0, 3, 401))


def risk_of(loss, group):
    """This rank's rows; the last of three ranks has none."""
    whole = rows_of(loss)
    sharing = min(group.size, 2)
    mine = np.arange(whole.rows) * sharing // whole.rows == group.rank
    return shared_risk(whole.select(np.flatnonzero(mine)), LOSSES.make(loss), group)


def solve(name, options, free, regularizer):
    def on_lead(risk):
        solver = SOLVERS.make(name, {"tolerance": 1e-9} | options)
        inside = mock.patch.object(Run, "_inexact", return_value=True) if options is PRODUCTS else nullcontext()
        with inside:
            found = solver.minimize(FreeIntercept(risk) if free else risk, regularizer)
        bound, status = found.lower_bound, found.status.name
        return {"w": found.w.tolist(), "objective": found.objective, "bound": bound, "status": status}

    return on_lead


def main(_):
    group = open_group()
    # more ranks: Gram matrices in several requests
    with mock.patch.object(scored, "PRODUCTS", 2000.0 if group.size > 2 else scored.PRODUCTS):
        answers = [lead(risk_of(loss, group), group, solve(name, *others)) for name, loss, *others in CASES]
    if group.rank == 0:
        print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
