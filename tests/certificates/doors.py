"""The doors of users: estimators, paths, and a config alone or on ranks, with what they write read back."""

import contextlib
import io
import json
import math
import os
import tempfile
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import yaml
from sklearn.exceptions import ConvergenceWarning

import bmrm
from bmrm.data.writers import write_npz
from bmrm.losses import LOSSES
from bmrm.problem import BmrmError, IncompatibleError, Status
from bmrm.regularizers import REGULARIZERS
from bmrm.run import main
from tests.mpi.launch import work

TASKS = {"binary": bmrm.Classifier, "multiclass": bmrm.Classifier, "regression": bmrm.Regressor}
"""The tasks that are run by an estimator."""


def through(problem, run):
    """The model of a run, its solution as far as users are told of it; None where the door has no such problem."""
    if run.door == "estimator":
        return _by_estimator(problem, run)
    if run.door == "path":
        return _by_path(problem, run)
    if run.door == "ranks" and (problem.loss.decomposes == "groups" or run.threads > 1 or problem.scattered):
        return None  # ranks hold whole groups; no more threads than cores
    return _by_config(problem, run)


def _by_estimator(problem, run):
    if problem.loss.task not in TASKS or problem.scale != "none" or problem.bias == "regularized":
        return None
    free = problem.bias == "free"
    if free and getattr(problem.loss, "no_free_intercept", ""):
        return None
    solver = {"name": run.solver, **run.options}
    parts = {"loss": problem.loss, "regularizer": problem.regularizer, "solver": solver, "threads": run.threads}
    estimator = TASKS[problem.loss.task](**parts, fit_intercept=free)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", ".*(all weights are( still)?|weights of) 0[: ]")
        warnings.filterwarnings("ignore", ".*the run has ended where the gradient was small")
        return estimator.fit(problem.X, problem.y, sample_weight=problem.given_weights, offset=problem.offset).model_


def given(problem, run):
    """What `bmrm.fit` and `bmrm.path` are told alike."""
    return {
        "loss": problem.loss,
        "solver": run.solver,
        "solver_options": run.options,
        "sample_weight": problem.given_weights,
        "groups": problem.groups,
        "offset": problem.offset,
        "bias": problem.bias,
        "scale": problem.scale,
        "threads": run.threads,
    }


LARGER = (30.0, 6.0, 2.0, 1.0)
"""Lambdas of a path, in units of the last one."""


def _by_path(problem, run):
    found = bmrm.path(
        problem.X,
        problem.y,
        regularizer=lambda lam: replace(problem.regularizer, lam=lam),
        lambdas=[times * problem.regularizer.lam for times in LARGER],
        **given(problem, run),
    )
    return found.models[-1]


def _by_config(problem, run):
    with tempfile.TemporaryDirectory() as folder:
        data = bmrm.Dataset.from_arrays(problem.X, problem.y, problem.given_weights, problem.groups)
        write_npz(os.path.join(folder, "train.npz"), data)
        offset = None
        if problem.offset is not None:
            offset = os.path.join(folder, "offset.txt")
            np.savetxt(offset, problem.offset, fmt="%.17g")
        config = {
            "schema": 2,
            "data": {"train": os.path.join(folder, "train.npz"), "bias": problem.bias, "scale": problem.scale}
            | ({} if offset is None else {"offset": offset}),
            "loss": LOSSES.describe(problem.loss),
            "regularizer": REGULARIZERS.describe(problem.regularizer),
            "solver": {"name": run.solver, **run.options, "threads": run.threads},
            "output": {"directory": os.path.join(folder, "run"), "metrics": []},
        }
        path = os.path.join(folder, "config.yaml")
        with open(path, "w") as file:
            yaml.safe_dump(json.loads(json.dumps(config)), file)
        status, said = _ran(path, run.door)
        if status == 2:
            raise IncompatibleError(said)
        if status not in (0, 3):
            raise BmrmError(f"exit status {status}: {said}")
        with open(os.path.join(folder, "run", "summary.json")) as file:
            summary = json.load(file)
        model = bmrm.load_model(os.path.join(folder, "run", "model.npz"))
    bound, gap = summary["lower_bound"], summary["relative_gap"]
    solution = SimpleNamespace(
        status=Status[summary["status"]],
        objective=summary["objective"],
        lower_bound=-math.inf if bound is None else bound,
        relative_gap=math.inf if gap is None else gap,
    )
    return replace(model, _solution=solution)


def _ran(path, door):
    """Exit status and messages of a run."""
    if door == "ranks":
        done = work(2, "bmrm.run", path, "--quiet")
        return done.returncode, done.stderr.strip()
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        status = main([path, "--quiet"])
    return status, said.getvalue().strip()
