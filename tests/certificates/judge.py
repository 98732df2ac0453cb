"""What is claimed of a run, and whether it is true."""

import math
import os
import sys
import tempfile
import warnings
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import lru_cache
from unittest import mock

import numpy as np

import bmrm
from bmrm.app.pipeline.solve import Problem as Setting
from bmrm.app.pipeline.solve import solve
from bmrm.mpi.group import Alone
from bmrm.problem import BmrmError, IncompatibleError, Status
from bmrm.risk import linear_map, score_function
from bmrm.risk.scaling import SCALINGS
from bmrm.solvers import SOLVERS
from bmrm.solvers._core.quadratic_walk import CLEAR
from tests.certificates import doors, formulas, reference
from tests.certificates.problems import Run
from tests.certificates.twin import Twin, wrong_scales

HONEST = ("CONVERGED", "OWN_RULE", "ITERATION_LIMIT", "STALLED", "TIME_LIMIT")
"""Statuses that a convex problem may end with; NON_FINITE and NOT_CONVEX say something false of it."""
TINY = 1e-300
LEAST = float(np.finfo(np.float64).tiny)
"""What a gap is relative to where the objective is less, as `relative_gap` says."""
FAR = 1e12
CLOSE = Run("line_search_bundle", {"tolerance": 1e-9, "max_iterations": 200})
"""What finds a start near the optimum."""
CHOOSES = ("judge", "returns", "preset")
"""Options by which a solver may return another point than the best."""


@dataclass
class Outcome:
    """A run and what was found wrong with it.

    `excesses` are in units of rounding, and may be as large as the number of roundings: of the reported objective over
    J of the model, of the bound over the least J known, of J over J at the start, of the true gap over the tolerance.
    """

    solver: str
    status: str = ""
    faults: list[str] = field(default_factory=list)
    excesses: dict[str, float] = field(default_factory=dict)


def check(problem, announce=lambda text, points: None):
    """Every run of a problem, judged; a list of outcomes. `announce` hears of each run, and how many fits it has."""
    twin = Twin(problem)
    plain = reference.plain_form(problem, twin)
    plain_twin = Twin(plain)
    tasks = [(plain, reference.careful(problem), plain_twin), *((problem, run, twin) for run in problem.runs)]
    outcomes, judged, truths, plain_truths = [], [], [], []
    for what, run, its_twin in tasks:
        points = len(doors.LARGER) if run.door == "path" else 1
        announce(f"{what.name} {run.solver} {run.options} {run.start} {run.door}", points)
        outcome = Outcome(run.solver + ("*" if what is plain else "") + (f" ({run.door})" if run.door != "fit" else ""))
        outcomes.append(outcome)
        model = _run(what, run, outcome)
        if model is None:
            continue
        value = its_twin.of_model(model)
        _judge_point(what, run, its_twin, model, value, outcome)
        judged.append((model, run, outcome, what is plain))
        if what is plain:
            plain_truths.append(value)
            truths.append(twin.at(*reference.as_point(problem, twin, model)))
        else:
            truths.append(value)
            plain_truths.append(plain_twin.at(*reference.in_plain_form(problem, twin, model)))
    for model, run, outcome, of_plain in judged:
        if of_plain:
            _judge_bound(plain_truths, model, run, outcome, plain_twin)
        else:
            _judge_bound(truths, model, run, outcome, twin)
    wrong = wrong_scales(twin)
    if wrong:
        outcomes.append(Outcome("scaling", "error", [f"wrong {wrong}"]))
    return outcomes


def _run(problem, run, outcome):
    """The model, or None with the outcome's status or fault."""
    with warnings.catch_warnings(), ExitStack() as stack:
        warnings.simplefilter("error")
        if problem.scattered:
            for module, name, few in SCATTERED:
                stack.enter_context(mock.patch.object(module, name, few))
        try:
            return fitted(problem, run)
        except IncompatibleError as error:
            outcome.status = "refused"
            if not _may_refuse(problem, run, str(error)):
                outcome.faults.append(f"refused: {error}")
        except BmrmError as error:
            outcome.status = "error"
            outcome.faults.append(f"{type(error).__name__}: {error}")
        except Warning as warning:
            outcome.status = "warning"
            outcome.faults.append(f"{type(warning).__name__}: {warning} {_place(warning)}")
        except Exception as error:
            outcome.status = "error"
            outcome.faults.append(f"{type(error).__name__}: {error} {_place(error)}")
    return None


SCATTERED = (
    (linear_map, "CHUNK_ROWS", 5),
    (linear_map, "CHUNK_BYTES", 1),
    (linear_map, "WORK_PER_THREAD", 1),
    (score_function, "ROWS_PER_THREAD", 4),
)
"""Constants that would leave a few rows in one piece."""


def fitted(problem, run):
    """The model of one run."""
    if run.door != "fit" and (model := doors.through(problem, run)) is not None:
        return model
    if not run.start:
        return bmrm.fit(problem.X, problem.y, regularizer=problem.regularizer, **doors.given(problem, run))
    return _solved(problem, run.solver, run.options, run.threads, start_of(problem, run.start))


def _solved(problem, solver, options, threads, start):
    data = problem.dataset()
    data = SCALINGS[problem.scale].rows(data)
    setting = Setting(
        problem.loss,
        problem.regularizer,
        SOLVERS.make(solver, options),
        problem.bias,
        problem.scale,
        threads=threads,
    )
    return solve(data, setting, Alone(), start=start)


def start_of(problem, kind="normal"):
    """A point in the solver's units: scaled features, a constant one last where it is regularized.

    Normal numbers, larger ones for a "far" start; "near" is where another solver ends, where one does.
    """
    random = np.random.default_rng(int(problem.name.split("/")[1]))
    data = problem.dataset()
    dim = bmrm.LinearRisk(data, problem.loss, bias=problem.bias == "regularized").dim
    point = random.normal(size=dim)
    if kind == "far":
        return point * 10.0 ** random.uniform(1.0, 7.0)
    return _optimum(problem.name, problem, point) if kind == "near" else point


@lru_cache(maxsize=8)
def _near(name):
    """Of the problem of this name, filled by `_optimum`."""
    return []


def _optimum(name, problem, otherwise):
    """Where the solver of the plain form ends here; a random point where it does not serve the problem."""
    known = _near((name, problem.unit, problem.bias, problem.scale))
    if not known:
        try:
            regularizer = reference.with_own_engine(problem.regularizer)  # cvxopt is slow with many planes
            problem = replace(problem, regularizer=regularizer)
            solution = _solved(problem, CLOSE.solver, CLOSE.options, 1, None).solution
            known.append(solution.w if np.all(np.isfinite(solution.w)) else otherwise)
        except BmrmError:
            known.append(otherwise)
    return known[0]


def _may_refuse(problem, run, said):
    """Refusals that the documentation announces: a free intercept without meaning, a solver's own limits."""
    if problem.bias == "free" and getattr(problem.loss, "no_free_intercept", ""):
        return True
    if problem.bias == "free" and (_indifferent(problem) or _one_sided(problem)):
        return True
    if "no meaning" in said or "no minimum" in said:
        return False
    facts = SOLVERS.get(run.solver).facts
    return bool(facts.get("refuses") or facts.get("abilities")) or "cuts_per_pass" in run.options


def _indifferent(problem):
    """Whether no score matters: no mistake costs anything, or every row has all labels or none."""
    if getattr(problem.loss, "cost", None) and not np.any(problem.loss.cost):
        return True
    if problem.loss.task != "multilabel":
        return False
    present = [row for k, row in enumerate(problem.plain) if problem.weights is None or problem.weights[k] > 0.0]
    return all(not row or row == set().union(*present) for row in present)


def _one_sided(problem):
    """Whether one score for all rows, far out, brings the loss to its infimum (counts that are all 0)."""
    if problem.loss.task not in ("binary", "regression"):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        risks = [
            formulas.risk(problem, np.full(len(problem.exact), f), None).value for f in (-2 * FAR, -FAR, FAR, 2 * FAR)
        ]
    return risks[0] == risks[1] < risks[2] or risks[1] > risks[2] == risks[3]


def _place(error):
    """The innermost lines of the package that an error went through."""
    found, trace = [], error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if f"{os.sep}bmrm{os.sep}" in file:
            found.append(f"{os.path.basename(file)}:{trace.tb_lineno}")
        trace = trace.tb_next
    return f"[{' < '.join(found[-3:][::-1])}]"


ROUNDED_UP = "one Gram matrix for all lambdas", "blocks kept for all lambdas"
"""Walks that may prove a point by a Gram matrix, with J rounded up."""


def _judge_point(problem, run, twin, model, value, outcome):
    """All that concerns one run alone: status, objective, start, file, scores."""
    solution, faults = model.solution, outcome.faults
    outcome.status = solution.status.name
    start = _first(problem, run, twin, model)
    if outcome.status not in HONEST and math.isfinite(start.value):
        faults.append(f"status {outcome.status}")
    if not math.isfinite(value.value) or not math.isfinite(solution.objective):
        if math.isfinite(start.value):
            faults.append(f"objective {solution.objective}, J(model) {value.value}, J(start) {start.value:.6g}")
        return
    above = solution.objective - value.value
    matrix = run.door == "path" and any(title in solution.solver for title in ROUNDED_UP)
    if matrix and 0.0 < above <= CLEAR * run.options["tolerance"] * abs(value.value):
        above = 0.0  # rounded up, where a Gram matrix has it
    _exceeds(outcome, "objective", abs(above), value.unit, twin.roundings)
    if outcome.faults and outcome.faults[-1].startswith("objective"):
        faults[-1] += f"; reported {solution.objective!r}, J(model) {value.value!r}"
    if not any(option in run.options for option in CHOOSES):
        _exceeds(outcome, "worse than the start", value.value - start.value, value.unit + start.unit, twin.roundings)
    if solution.lower_bound > solution.objective:
        faults.append(f"bound {solution.lower_bound!r} above the objective {solution.objective!r}")
    goal = SOLVERS.make(run.solver, run.options).goal(solution.objective)
    if solution.status is Status.CONVERGED and not solution.relative_gap <= goal:
        faults.append(f"CONVERGED at a gap of {solution.relative_gap}")
    faults.extend(_wrong_copies(problem, twin, model))


def _first(problem, run, twin, model):
    """J where the run begins."""
    if run.start:
        return twin.of_vector(start_of(problem, run.start), model)
    if not run.options.get("binitmean"):
        return twin.of_zero(model)
    start, targets = 0.0 * start_of(problem), np.array(problem.plain, np.float64)
    start[-1] = np.average(targets > 0.0 if problem.loss.task == "binary" else targets, weights=problem.weights)
    return twin.of_vector(start, model)


SMALLEST = sys.float_info.min
"""The smallest normal number: of what is smaller, numbers keep no digits, and exponentials none at all."""


def _exceeds(outcome, what, amount, unit, roundings):
    """Note an amount in units of rounding; a fault where it is more than that many roundings explain."""
    if not math.isfinite(unit):  # where J is infinite
        return
    ratio = amount / (unit + SMALLEST)
    outcome.excesses[what] = max(ratio, outcome.excesses.get(what, 0.0))
    if ratio > roundings:
        outcome.faults.append(f"{what}: {amount:.3g} is {ratio:.3g} units of rounding, expected {roundings} at most")


def _judge_bound(truths, model, run, outcome, twin):
    """The bound, and the gap where it is claimed to be small, against J at every point seen."""
    solution = model.solution
    finite = [value for value in truths if math.isfinite(value.value)]
    if not finite or not math.isfinite(solution.objective):
        return
    best = min(finite, key=lambda value: value.value)
    bound = solution.lower_bound
    hardest = max(finite, key=lambda value: (bound - value.value) / max(value.steep, TINY))
    _exceeds(outcome, "bound", bound - hardest.value, hardest.steep, 2 * twin.roundings)
    if outcome.faults and outcome.faults[-1].startswith("bound:"):
        outcome.faults[-1] += f"; bound {bound!r}, least J {best.value!r}, J {solution.objective!r}"
    if solution.status is Status.CONVERGED:
        relative = run.options["tolerance"] * max(abs(solution.objective), LEAST)
        goal = max(relative, run.options.get("absolute_tolerance", 0.0))
        beyond = solution.objective - best.value - goal
        _exceeds(outcome, "gap", beyond, best.steep, 2 * twin.roundings)


def _wrong_copies(problem, twin, model):
    """What the file and the scores of a model have wrong."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.npz")
        model.save(path)
        again = bmrm.load_model(path)
    pairs = [(model.weights, again.weights), (model.intercept, again.intercept), (model.labels, again.labels)]
    if not all(np.array_equal(a, b) for a, b in pairs) or list(model.arrays) != list(again.arrays):
        yield "the loaded model is another"
    if any(not np.array_equal(model.arrays[name], again.arrays[name]) for name in model.arrays):
        yield "the loaded model has other arrays"
    f, sizes = twin.scores(again.weights, again.intercept)
    with np.errstate(over="ignore"):
        found = again.decision_function(problem.X, problem.offset)
        if not np.all(np.abs(found - f) <= twin.roundings * 2.0**-53 * sizes + SMALLEST):
            yield f"scores of the model are off by {np.max(np.abs(found - f)):.3g}"
