"""Run under mpirun: every solver, and options that ask the ranks for more, on data shared out over them.

Arguments: a file of rows to read, or `small`. Rank 0 prints one JSON line: per case the objectives of ten iterations
and the last w; per certified solver the objective reached.
"""

import json
import sys

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.reading import read
from bmrm.losses import LOSSES
from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import shared_risk
from bmrm.regularizers.l2 import L2
from bmrm.solvers import SOLVERS

# a secant over the thesis' first step, 1e-8, has the rounding of slopes times 1e8
CASES = {
    "bundle": ("hinge", "bundle", {}),
    "line_search_bundle": ("hinge", "line_search_bundle", {}),
    "line_search_bundle exact": ("hinge", "line_search_bundle", {"search": "exact"}),
    "lbfgs": ("logistic", "lbfgs", {}),
    "irls": ("logistic", "irls", {}),
    "irls first_residual": ("logistic", "irls", {"preset": "first_residual", "lreps": 1e-9}),
    "irls cgdeveps": ("logistic", "irls", {"preset": "cgdeveps", "lreps": 1e-9}),
    "irls limits": ("logistic", "irls", {"margin": 0.01, "wmargin": 0.05, "modelmin": 0.01, "modelmax": 0.99}),
    "irls holdout": ("logistic", "irls", {"holdout_size": 0.25, "binitmean": True, "jacobi": True, "seed": 3}),
    "nonlinear_cg": ("logistic", "nonlinear_cg", {}),
    "nonlinear_cg thesis": (
        "logistic",
        "nonlinear_cg",
        {"preset": "thesis", "cgeps": 1e-9, "initalpha": 0.01, "margin": 0.01},
    ),
    "proximal_gradient": ("logistic", "proximal_gradient", {}),
    "pegasos": ("hinge", "pegasos", {"seed": 1}),
    "pegasos two_out": ("hinge", "pegasos", {"variant": "two_out", "judge": "sample"}),
    "pegasos probability": ("logistic", "pegasos", {"variant": "probability", "averaging": True}),
    "probe": ("hinge", "probe", {"seed": 2}),
    "probe active": ("logistic", "probe", {"dormant": False}),
}
# after ten directions rounding changes residuals by a fifth on a9a, so that which direction ends CG is chance there
LONG_CG = {"irls first_residual": {"cgeps": 1e-8}}
"""CG that ends where nothing depends on its last direction."""
CERTIFIED = ("bundle", "line_search_bundle", "lbfgs", "irls", "nonlinear_cg", "proximal_gradient")


def small_data():
    """The same on every rank."""
    random = np.random.default_rng(7)
    X = random.normal(size=(301, 6))
    X[random.random(X.shape) < 0.4] = 0.0
    return Dataset.from_arrays(X, (X @ random.normal(size=6) + 0.3 * random.normal(size=301) > 0.2).astype(int))


def main(arguments):
    (source,) = arguments
    group = open_group()
    whole = small_data() if source == "small" else read(source)
    mine = np.arange(whole.rows) * group.size // whole.rows == group.rank
    data = whole.select(np.flatnonzero(mine))
    steps = 25 if source == "small" else 10
    answers = {}
    sample = {"pegasos": {"sample": max(7, whole.rows // 20)}}
    for case, (loss, name, options) in CASES.items():
        risk = shared_risk(data, LOSSES.make(loss), group, bias=True)
        more = {} if source == "small" else LONG_CG.get(case, {})
        limits = {"tolerance": 0.0, "max_iterations": steps} | sample.get(name, {})
        short = SOLVERS.make(name, limits | options | more)
        solution = lead(risk, group, lambda risk, solver=short: solver.minimize(risk, L2(0.003)))
        if solution is not None:
            answers[case] = {"objectives": [line.objective for line in solution.history], "w": solution.w.tolist()}
        if case in CERTIFIED:
            risk = shared_risk(data, LOSSES.make(loss), group, bias=True)
            long = SOLVERS.make(name, {"tolerance": 1e-8})
            solution = lead(risk, group, lambda risk, solver=long: solver.minimize(risk, L2(0.003)))
            if solution is not None:
                answers[case] |= {"objective": solution.objective, "status": solution.status.name}
    if group.rank == 0:
        print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
