"""Run under mpirun: what a whole-sample loss takes of each rank's memory; rank 0 prints bytes by rank."""

import json
import sys
import tracemalloc

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import merged_summary, shared_risk

LOSSES_TRIED = ("roc_area", "partial_roc_area", "f_beta")


def taken(name, data, group, gathered):
    """The most bytes that this rank has at a time for the loss and its values, beside the data."""
    loss = LOSSES.make(name)
    summary = merged_summary(data.targets, loss, group)

    def values(risk):
        for w in (np.zeros(1), np.ones(1)):  # all scores equal, and all different
            risk.value_and_subgradient(w)

    tracemalloc.start()
    lead(shared_risk(data, loss, group, summary=summary, gathered=gathered), group, values)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def main(arguments):
    """The number of rows of all ranks together."""
    group, rows = open_group(), int(arguments[0])
    random = np.random.default_rng(group.rank)
    X = random.normal(size=(rows // group.size, 1))
    data = Dataset.from_arrays(X, np.where(X[:, 0] + random.normal(size=len(X)) > 0.0, 1.0, -1.0))
    found = {}
    for name in LOSSES_TRIED:
        for gathered in (rows, 0):
            taken(name, data.part(0, 3000), group, gathered)  # kernels are compiled
            found[f"{name} {gathered}"] = group.gather(taken(name, data, group, gathered))
    if group.rank == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
