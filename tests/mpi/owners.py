"""Run under mpirun: a training in which the owner of rank 1 asks for a guard; arguments: what he asks for, and those of
the run.
"""

import os
import sys

from bmrm.app.guarded import VARIABLE
from bmrm.mpi.launch import open_group
from bmrm.run import main as run


def main(arguments):
    wanted, *others = arguments
    if open_group().rank == 1:
        os.environ[VARIABLE] = wanted
    try:
        return run(others)
    finally:
        os.environ.pop(VARIABLE, None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
