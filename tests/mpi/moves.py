"""Run under mpirun: ranks add up moves of weights by lists and by vectors, and solve problems in which they list.

Rank 0 prints one JSON line. `rounds`: of moves that each rank has chosen, what all have, what their sum should be, and
whether they began with lists. `runs`: per loss what the run has found, and how many lists are not what a look at all
weights finds.
"""

import json
import sys
from unittest import mock

import numpy as np
import scipy.sparse as sp

from bmrm.data.dataset import Dataset
from bmrm.kernels.dual.moves import listed
from bmrm.losses import LOSSES
from bmrm.mpi import dual
from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import shared_risk
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l2 import L2
from bmrm.risk.dual.stored import ShuffledRows
from bmrm.risk.dual.visits import Visits
from bmrm.solvers import SOLVERS

DIM, FACTOR, PENALTY = 200, 2.0, 0.5
MOVED = (3, 4, 150, 5, 0, 90, 2, 2)
"""Weights that rank 0 moves in a round; the others move two each."""
CASES = {
    "hinge": ("hinge", L2(1e-3), False),
    "bias": ("squared_hinge", L2(1e-3), True),
    "classes": ("multiclass_hinge", L2(1e-2), False),
    "elastic net": ("logistic", ElasticNet(1e-3, 0.3), False),
}


def added_up(group):
    moves, random, rounds = dual.Moves(group, DIM, 1), np.random.default_rng(group.rank), []
    w = np.linspace(-1.0, 1.0, DIM)
    moves.begin(w)
    for number in MOVED:
        places = random.choice(DIM, number if group.rank == 0 else 2, replace=False)
        step, total = np.zeros(DIM), random.normal(size=1)
        step[places] = random.normal(size=places.size)
        before, began = moves.weights.copy(), moves._listed
        moves.local += FACTOR * step
        visits = Visits(total, 1.0, 2.0, 3.0)
        told, factor = moves.add_up(visits, PENALTY, FACTOR, lambda v, w, f, pairs: listed(0, v, w, f, pairs, 0.0, 0))
        steps, totals = group.sum(step), group.sum(total)
        apart = group.sum(np.array([step @ step + PENALTY * float(total @ total)]))
        ratio = (steps @ steps + PENALTY * float(totals @ totals)) / float(apart[0])
        rounds.append(
            {
                "listed": began,
                "error": float(np.abs(moves.weights - before - steps).max()),
                "apart": float(np.abs(moves.local - moves.weights).max()),
                "told": told.tolist(),
                "factor": factor,
                "wanted": min(max(ratio, 0.5 * FACTOR, 1.0), float(group.size)),
            }
        )
    whole = group.gather_array(moves.weights[None])
    return {"rounds": rounds, "same": whole is None or bool((whole == whole[0]).all())}


def texts(group):
    random = np.random.default_rng(5)
    X = sp.random_array((600, 500), density=0.01, rng=random, format="csr", dtype=np.float64)
    y = np.sign(X @ random.normal(size=500) + 0.1 * random.normal(size=600)) + (random.random(600) < 0.2)
    mine = slice(600 * group.rank // group.size, 600 * (group.rank + 1) // group.size)
    return Dataset.from_arrays(X[mine], np.where(y[mine] > 0, 1.0, -1.0)), Dataset.from_arrays(
        X[mine], np.digitize(y[mine], (-0.5, 1.5)).astype(float)
    )


def checked(self, piece, pieces, v, weights, factor, pairs, given=ShuffledRows.list_moves):
    """Lists, of which those are counted that a look at all weights does not confirm."""
    expected = (v - weights) / factor
    square, count = given(self, piece, pieces, v, weights, factor, pairs)
    found = np.zeros(v.size)
    found[pairs[0 : 2 * count : 2].astype(int)] = pairs[1 : 2 * count : 2]
    wrong = not np.allclose(found, expected, rtol=1e-12, atol=0.0) or count != np.count_nonzero(expected)
    LISTS.append(wrong or not np.array_equal(v, weights) or not np.isclose(square, expected @ expected))
    return square, count


LISTS = []


@mock.patch.object(dual, "FREE", (1.0, 0.0, 64))
def main(_):
    group = open_group()
    group.crowded = False
    answers = {**added_up(group), "runs": {}}
    binary, classes = texts(group)
    for case, (loss, regularizer, bias) in CASES.items():
        data = classes if case == "classes" else binary
        risk = shared_risk(data, LOSSES.make(loss), group, bias=bias, share_rows=False)
        LISTS.clear()

        def work(risk, regularizer=regularizer):
            found = SOLVERS.make("dual_coordinate", {"tolerance": 1e-6}).minimize(risk, regularizer)
            other = SOLVERS.make("bundle", {"tolerance": 1e-3, "max_iterations": 300}).minimize(risk, regularizer)
            return {
                "status": found.status.name,
                "objective": found.objective,
                "lower_bound": found.lower_bound,
                "between": [other.lower_bound, other.objective],
            }

        with mock.patch.object(ShuffledRows, "list_moves", checked):
            run = lead(risk, group, work)
        counts = group.sum(np.array([len(LISTS), sum(LISTS)], float)).tolist()
        if group.rank == 0:
            answers["runs"][case] = {**run, "lists": counts[0], "wrong": counts[1]}
    if group.rank == 0:
        print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
