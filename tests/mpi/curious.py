"""Run under mpirun: solvers that would rather know the rows than the minimum, and honest ones.

Arguments: `ask`, for what guarded ranks say to each curious question, or `solve`, for the minima that honest solvers
find with and without a guard. Rank 0 prints one JSON line.
"""

import json
import sys

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi import masks
from bmrm.mpi.group import OtherRankError
from bmrm.mpi.guard import Guard, Guarding, RefusedError
from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.requests import Answer
from bmrm.mpi.shared import shared_risk
from bmrm.problem import Scored, ability
from bmrm.problem.abilities import Blocks, DualBlocks, Gathered, ModifiedLoss, RowSample, RowSubsets
from bmrm.regularizers.l1 import L1
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.solvers import SOLVERS

FEATURES = 5
LAMBDA = 0.05


def rows(rank, loss="hinge", count=200):
    """Those of one owner; three of them lie far from all others, on the wrong side."""
    random = np.random.default_rng(rank)
    X = random.normal(size=(count, FEATURES))
    X[:, 0] = np.sign(X[:, 0]) * (0.2 + np.abs(X[:, 0]))
    score = X @ np.linspace(1.0, 2.0, FEATURES) + random.normal(size=count)
    if loss == "least_squares":
        return Dataset.from_arrays(X, score)
    if loss == "softmax":
        return Dataset.from_arrays(X, np.digitize(score, [-2.0, 2.0]))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0) if loss == "hinge" else np.where(score > 0.0, 1.0, -1.0)
    if loss == "hinge":
        y[:3] *= -1.0
    return Dataset.from_arrays(X, y)


def unit(number, size=1.0):
    w = np.zeros(FEATURES)
    w[number] = size
    return w


def spread_out():
    return np.array([0.01, 0.02, -0.01, 0.01, 0.02])


def scores_at(risk, w):
    return ability(risk, Scored).map.matvec(w)


def slope_at(risk, w):
    scored = ability(risk, Scored)
    return scored.phi.value_and_slope(scored.map.matvec(w))[1]


def a_unit_vector(risk):
    risk.value_and_subgradient(unit(2))


def nearly_a_unit_vector(risk):
    risk.value_and_subgradient(unit(2) + 1e-12)


def a_difference_that_is_one(risk):
    f = scores_at(risk, spread_out() + unit(1)) - scores_at(risk, spread_out())
    ability(risk, Scored).phi.value_and_slope(f)


def a_column_of_the_second_derivative(risk):
    scored = ability(risk, Scored)
    scored.map.rmatvec(scored.phi.hessian_product(scored.map.matvec(spread_out()), scored.map.matvec(unit(3))))


def a_point_that_isolates_rows(risk):
    # far on the good side of the first feature only the three rows on the wrong side have a slope
    risk.value_and_subgradient(20.0 * unit(0) + spread_out())


def the_value_there(risk):
    scored = ability(risk, Scored)
    scored.phi.value_and_slope(scored.map.matvec(20.0 * unit(0) + spread_out()))


def on_a_line_through_it(risk):
    scored = ability(risk, Scored)
    scored.phi.along(scores_at(risk, spread_out()), scores_at(risk, unit(0) + spread_out()))(np.array([20.0]))


def rows_between_two_points(risk):
    # the margin of one row of some rank lies between them
    points = [t * unit(0) + spread_out() for t in (1.0, 1.02)]
    slopes = [slope_at(risk, w) for w in points]
    ability(risk, Scored).map.rmatvec(slopes[1] - slopes[0])


def a_scan_of_a_line(risk):
    curve = ability(risk, Scored).phi.along(scores_at(risk, spread_out()), scores_at(risk, 0.01 * spread_out()))
    for start in range(20):
        curve(np.linspace(start, start + 1.0, 100))


def points_that_lead_nowhere(risk):
    random = np.random.default_rng(0)
    for _ in range(1000):
        risk.value_and_subgradient(30.0 * random.normal(size=FEATURES))


def a_point_far_away(risk):
    risk.value_and_subgradient(1e9 * np.ones(FEATURES))


def a_point_that_is_none(risk):
    risk.value_and_subgradient(np.full(FEATURES, np.nan))


def scores(risk):
    ability(risk, Scored).phi.collect(scores_at(risk, spread_out()))


def scores_as_a_sum(risk):
    risk.ranks.ask("map", "matvec", spread_out(), answer=Answer.SUM)


def scores_joined(risk):
    risk.ranks.ask("map", "matvec", spread_out(), answer=Answer.GATHER)


def slopes_joined(risk):
    risk.ranks.ask("phi", "value_and_slope", scores_at(risk, spread_out()), answer=(Answer.SUM, Answer.GATHER))


def a_row_by_a_slope_of_our_own(risk):
    slope = ability(risk, Scored).phi.hand_out(np.eye(1, risk.rows, 250)[0])
    ability(risk, Scored).map.rmatvec(slope)


def a_row_by_an_array(risk):
    risk.ranks.ask("map", "rmatvec", np.eye(1, 200, 7)[0], answer=Answer.SUM)


def rows_themselves(risk):
    risk.ranks.ask("rows", "gather", None)


def blocks_of_a_row(risk):
    risk.ranks.ask("blocks", "values_and_subgradients", spread_out(), 200, answer=(Answer.SUM, Answer.SUM))


def chosen_rows(risk):
    risk.ranks.ask("subsets", "value_and_subgradient_of", np.array([250]), spread_out(), answer=(Answer.SUM,) * 2)


def breakpoints(risk):
    scored = ability(risk, Scored)
    scored.phi.breakpoints(scored.map.matvec(spread_out()), scored.map.matvec(np.ones(FEATURES)))


def a_gram_matrix(risk):
    scored = ability(risk, Scored)
    scored.map.gram(slope_at(risk, spread_out()))


def dual_steps(risk):
    risk.ranks.object("ascents", "begin", 0.0, 1.0, 0, None, None, False)
    risk.ranks.number("scores", "product", scores_at(risk, spread_out()), scores_at(risk, spread_out()))


def nothing_that_is_known(risk):
    risk.ranks.number("os", "system", "ls")


def after_a_refusal(risk):
    for number in range(3):
        try:
            risk.value_and_subgradient(unit(number))
        except RefusedError:
            continue


CURIOUS = (
    a_unit_vector,
    nearly_a_unit_vector,
    a_difference_that_is_one,
    a_column_of_the_second_derivative,
    a_point_that_isolates_rows,
    the_value_there,
    on_a_line_through_it,
    rows_between_two_points,
    a_scan_of_a_line,
    points_that_lead_nowhere,
    a_point_far_away,
    a_point_that_is_none,
    scores,
    scores_as_a_sum,
    scores_joined,
    slopes_joined,
    a_row_by_a_slope_of_our_own,
    a_row_by_an_array,
    rows_themselves,
    blocks_of_a_row,
    chosen_rows,
    breakpoints,
    a_gram_matrix,
    dual_steps,
    nothing_that_is_known,
    after_a_refusal,
)
SMOOTH = {a_column_of_the_second_derivative: "squared_hinge"}
WITHHELD = Blocks, DualBlocks, Gathered, ModifiedLoss, RowSample, RowSubsets


def asked(group):
    """What is said to each question, and how many ranks end with it."""
    said = {}
    for question in CURIOUS:
        loss = LOSSES.make(SMOOTH.get(question, "hinge"))
        guarding = Guarding(Guard(min_rows=5), L2(LAMBDA))
        data = rows(group.rank, count=200 if group.rank else 0)  # rank 0 only asks
        risk = shared_risk(data, loss, group, guarding=guarding)
        ended = ""
        try:
            lead(risk, group, question)
        except RefusedError as error:
            ended = str(error)
        except OtherRankError:
            ended = "another"
        found = group.gather(ended)
        if found is not None:
            said[question.__name__] = found
    risk = shared_risk(data, LOSSES.make("hinge"), group, guarding=guarding)
    said["withheld"] = lead(risk, group, lambda risk: [k.__name__ for k in WITHHELD if ability(risk, k) is not None])
    return said


HONEST = {
    "hinge": ("logistic_rows", "hinge", L2(LAMBDA), False),
    "free intercept": ("logistic_rows", "hinge", L2(LAMBDA), True),
    "logistic": ("logistic_rows", "logistic", L2(LAMBDA), False),
    "logistic, free intercept": ("logistic_rows", "logistic", L2(LAMBDA), True),
    "least squares": ("least_squares", "least_squares", L2(LAMBDA), False),
    "softmax": ("softmax", "softmax", L2(LAMBDA), False),
    "l1": ("logistic_rows", "logistic", L1(0.02), False),
}
KINKED = "hinge", "free intercept", "l1"
"""Those that are not for Newton's method."""


def solved(group, solver):
    """Objective, bound and solver of each problem: without a guard, with one, and with secure sums."""
    found = {}
    for name, (kind, loss, regularizer, free) in HONEST.items():
        if solver == "newton" and name in KINKED:
            continue
        answers = []
        for guard in (None, Guard(), Guard(secure_sums=True)):
            guarding = None if guard is None else Guarding(guard, regularizer)
            group.masks = masks.agreed(group) if guard is not None and guard.secure_sums else None
            risk = shared_risk(rows(group.rank, kind), LOSSES.make(loss), group, guarding=guarding)

            def work(risk, free=free, regularizer=regularizer):
                best = SOLVERS.make(solver, {"tolerance": 1e-7})
                return best.minimize(FreeIntercept(risk) if free else risk, regularizer)

            solution = lead(risk, group, work)
            group.masks = None
            if solution is not None:
                answers.append([solution.objective, solution.lower_bound, solution.status.name, solution.solver])
        if answers:
            found[name] = answers
    return found


def main(arguments):
    group = open_group()
    found = asked(group) if arguments[0] == "ask" else solved(group, arguments[1])
    if group.rank == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
