"""Run under mpirun: train, then every rank prints which of the heavy libraries it has loaded."""

import json
import sys

from bmrm.mpi.launch import open_group
from bmrm.run import main

HEAVY = ("sklearn", "pydantic", "matplotlib", "rich", "highspy", "cvxopt", "pandas", "scipy.optimize")

if __name__ == "__main__":
    if sys.argv[1] == "train":
        from bmrm.cli import main
    status = main(sys.argv[1:])
    group = open_group()
    loaded = group.gather([name for name in HEAVY if name in sys.modules])
    if group.rank == 0:
        print(json.dumps([status, loaded]))
