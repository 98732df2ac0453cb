"""Run under mpirun: train, then every rank prints which modules it has loaded."""

import json
import sys

from bmrm.mpi.launch import open_group
from bmrm.run import main

if __name__ == "__main__":
    if sys.argv[1] == "train":
        from bmrm.cli import main
    status = main(sys.argv[1:])
    group = open_group()
    loaded = group.gather(sorted(sys.modules))
    if group.rank == 0:
        print(json.dumps([status, loaded]))
