"""Run under mpirun: dual coordinate ascent on data shared out over the ranks.

Rank 0 prints one JSON line: per case objective, lower bound, status and w, and how far the slopes sum up to.
"""

import json
import sys
from dataclasses import replace

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import shared_risk
from bmrm.problem import Scored, ability
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.products import Columns
from bmrm.solvers import SOLVERS
from tests.mpi.every_solver import small_data

SENTENCE = 7
"""Rows of a sentence, where the loss is of sentences."""
SCALED = Columns(np.linspace(0.5, 2.0, 6), np.linspace(-0.3, 0.4, 6))
CASES = {  # over ranks small lambdas take many sweeps, each of which waits for all
    "plain": ("hinge", L2(0.02), None, False),
    "bias, scaled": ("squared_hinge", L2(0.02), SCALED, False),
    "free, scaled": ("hinge", L2(0.02), SCALED, True),
    "elastic net": ("hinge", ElasticNet(0.02, 0.3), None, True),
    "bias, classes": ("multiclass_hinge", L2(0.05), SCALED, False),
    "bias, sentences": ("chain_margin", L2(0.02), None, False),
    "bias, sentences by marginals": ("chain_crf", L2(0.02), None, False),
    "free, classes": ("multiclass_hinge", L2(0.05), SCALED, True),
    "classes, elastic net": ("softmax", ElasticNet(0.02, 0.3), None, False),
}


def main(_):
    group = open_group()
    whole = small_data()
    # the last rank has no rows
    ranks = max(1, group.size - 1)
    sentences = np.arange(whole.rows) // SENTENCE
    mine = np.flatnonzero(sentences * ranks // (sentences[-1] + 1) == group.rank)
    rows = whole.select(mine)
    tokens = Dataset(rows.X, replace(rows.targets, groups=sentences[mine]))
    answers = {}
    for case, (loss, regularizer, columns, free) in CASES.items():
        data = tokens if "sentences" in case else rows
        risk = shared_risk(data, LOSSES.make(loss), group, bias=case.startswith("bias"), columns=columns)

        def work(risk, regularizer=regularizer, free=free):
            risk = FreeIntercept(risk) if free else risk
            solver = SOLVERS.make("dual_coordinate", {"tolerance": 1e-7, "seed": 2})
            start = SOLVERS.make("dual_coordinate", {"tolerance": 0.1}).minimize(risk, regularizer)
            found = solver.minimize(risk, regularizer, start=start.w)
            total = ability(risk, Scored).phi.total(found.details["slope"])
            return {
                "objective": found.objective,
                "lower_bound": found.lower_bound,
                "status": found.status.name,
                "passes": found.passes,
                "sweeps": found.details["sweeps"],
                "w": found.w.tolist(),
                "total": float(np.abs(total).max()),
            }

        answers[case] = lead(risk, group, work)
    if group.rank == 0:
        print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
