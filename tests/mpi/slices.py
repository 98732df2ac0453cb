"""Run under mpirun: trainings in which each rank has a slice of the features, and the same in one process.

Rank 0 prints one JSON line: per case what both have found.
"""

import json
import sys
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from bmrm.app.pipeline.follow import Follow
from bmrm.app.pipeline.solve import Problem, solve
from bmrm.app.stopping import checked
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.group import Alone
from bmrm.mpi.launch import open_group
from bmrm.problem import BmrmError, Start
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.solvers import SOLVERS

ROWS, FEATURES, EMPTY, LAM, AT = 240, 31, 11, 3e-2, 5
"""The first features are 0 in all rows: of two weights the slices of one rank may be equal."""
LINES = "line_search_bundle"
CASES = {
    "hinge": ("hinge", "bundle", "none", {}),
    "hinge, few planes": ("hinge", "bundle", "none", {"max_planes": 30, "idle_limit": 8}),
    "hinge, free": ("hinge", LINES, "free", {}),
    "hinge, exact": ("hinge", LINES, "regularized", {"search": "exact"}),
    "hinge, auto": ("hinge", "auto", "free", {}),
    "logistic": ("logistic", "lbfgs", "none", {}),
    "logistic, auto": ("logistic", "auto", "free", {}),
    "logistic, bundle": ("logistic", LINES, "regularized", {}),
    "three classes": ("multiclass_hinge", LINES, "free", {"max_iterations": 12}),
    "softmax": ("softmax", "lbfgs", "free", {}),
    "whole sample": ("roc_area", LINES, "none", {}),
    "whole sample, smooth": ("f_beta", "bundle", "none", {}),
    "sentences": ("chain_crf", "lbfgs", "none", {}),
}
CHOSEN = {"hinge, auto": LINES, "logistic, auto": "lbfgs"}
"""What `auto` is to take."""


def whole_data(loss):
    """The same on every rank."""
    random = np.random.default_rng(5)
    X = random.normal(size=(ROWS, FEATURES))
    X[random.random(X.shape) < 0.3] = 0.0
    X[:, :EMPTY] = 0.0
    heights = X @ random.normal(size=(FEATURES, 3)) + 2.0 * random.normal(size=(ROWS, 3))
    several = loss in ("multiclass_hinge", "softmax", "chain_crf")
    y = heights.argmax(axis=1) if several else np.where(heights[:, 0] > 0.3, 1, -1)
    groups = np.arange(ROWS) // 6 if loss == "chain_crf" else None
    return Dataset.from_arrays(X, y, groups=groups)


class Watched:
    """A watch that keeps the point of one iteration, and what a run needs to go on from there."""

    def __init__(self):
        self.w = self.start = None

    @contextmanager
    def __call__(self, model_of):
        def callback(line):
            if line.iteration == AT:
                self.w = line.w.tolist()
                self.start = Start(line.w, line.lower_bound, (line,), line.state())

        yield callback


def problem(case, slices, limits):
    loss, solver, bias, options = CASES[case]
    solver = solver if slices else CHOSEN.get(case, solver)
    options = {"tolerance": 1e-10, "max_iterations": 60} | options | limits
    return Problem(LOSSES.make(loss), L2(LAM), SOLVERS.make(solver, options), bias=bias, slices=slices, threads=1)


def told(model, watched):
    if model is None:
        return None
    solution = model.solution
    return {
        "status": solution.status.name,
        "objectives": [line.objective for line in solution.history],
        "bounds": [line.lower_bound for line in solution.history],
        "objective": solution.objective,
        "bound": solution.lower_bound,
        "solver": solution.solver,
        "w": watched.w,
        "intercept": model.intercept.tolist(),
        "weights": model.weights.tolist(),
        "iterations": solution.iterations,
        "message": solution.message,
    }


def mine_of(data, group):
    """Rows of this rank; of sentences whole ones."""
    borders = [ROWS // 6 * rank // group.size * 6 for rank in range(group.size + 1)]
    return data.part(borders[group.rank], borders[group.rank + 1])


def trained(case, group, slices=True, start=None, **limits):
    watched, data = Watched(), whole_data(CASES[case][0])
    model = solve(mine_of(data, group), problem(case, slices, limits), group, watched, start=start)
    return told(model, watched), watched.start


def refusal(group, one, features=FEATURES):
    try:
        mine = mine_of(whole_data("hinge"), group)
        solve(Dataset.from_arrays(mine.X[:, FEATURES - features :], mine.targets.y), one, group)
    except BmrmError as error:
        return str(error)
    return ""


def equal(*cases):
    group, answers = open_group(), {}
    for case in cases or CASES:
        answers[case] = [trained(case, group)[0], trained(case, Alone(), slices=False)[0] if group.rank == 0 else None]
    return answers


def ended(*_):
    """What ends a run, and what is refused."""
    group, answers = open_group(), {}
    answers["time"] = trained("hinge", group, time_limit=1e-9)[0]
    first, start = trained("hinge", group, max_iterations=AT + 1)
    answers["resumed"] = [first, trained("hinge", group, start=start)[0]]
    answers["from a vector"] = trained("hinge", group, start=np.full(FEATURES, 0.1) if group.rank == 0 else None)[0]
    measured = Follow.of(["accuracy"], 2, checked({"measure": "accuracy", "patience": 2}))
    one, data = problem("hinge", True, {}), whole_data("hinge")
    stopped = replace(one, follow=measured)
    model = solve(mine_of(data, group), stopped, group, others={"validation": mine_of(data, group)})
    answers["stopped"] = told(model, Watched())
    answers["newton"] = refusal(group, replace(one, solver=SOLVERS.make("newton")))
    answers["l1"] = refusal(group, replace(one, regularizer=L1(LAM)))
    answers["features"] = refusal(group, one, features=group.size - 1)
    return answers


def main(arguments):
    answers = {"equal": equal, "ended": ended}[arguments[0]](*arguments[1:])
    if open_group().rank == 0:
        print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
