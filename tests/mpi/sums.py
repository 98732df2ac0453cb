"""Run under mpirun: sums over ranks that do not share cores, in one piece and in several.

Rank 0 prints one JSON line: per length, and per array of each rank, its sum as that rank knows it.
"""

import json
import sys
from unittest import mock

import numpy as np

from bmrm.mpi import communicator
from bmrm.mpi.launch import open_group

LENGTHS = (0, 1, 5, 23)


@mock.patch.object(communicator, "PIECE", 5)
def main(_):
    group = open_group()
    group.crowded = False
    answers = {}
    for length in LENGTHS:
        mine = np.random.default_rng([length, group.rank]).standard_normal(length)
        sums = group.gather(group.sum(mine).tolist())
        parts = group.gather(mine.tolist())
        answers[length] = {"sums": sums, "parts": parts}
    if group.rank == 0:
        print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
