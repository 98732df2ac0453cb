"""Run under mpirun on two ranks: how often each of them prepares a loss, and for how many rows.

Rank 0 prints one JSON line: per loss a list for each rank.
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
from tests.mpi.every_solver import small_data

CASES = ("hinge", "multiclass_hinge", "chain_crf", "roc_area")


def counted(loss, calls):
    """The same loss; `calls` gets the number of rows each time it is prepared."""
    kind = type(loss)

    class Counted(kind):
        def prepare(self, targets, summary):
            calls.append(targets.rows)
            return super().prepare(targets, summary)

    Counted.__module__, Counted.__qualname__ = kind.__module__, kind.__qualname__
    return Counted(**vars(loss))


def main(_):
    group, answers = open_group(), {}
    rows = small_data()
    sentences = Dataset(rows.X, replace(rows.targets, groups=np.arange(rows.rows) // 7))
    borders = [0, 147, rows.rows]
    for name in CASES:
        calls = []
        whole = sentences if name == "chain_crf" else rows
        mine = whole.part(borders[group.rank], borders[group.rank + 1])
        risk = shared_risk(mine, counted(LOSSES.make(name), calls), group)
        lead(risk, group, lambda risk: risk.value_and_subgradient(np.ones(risk.dim)))
        answers[name] = group.gather(calls)
    if group.rank == 0:
        print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
