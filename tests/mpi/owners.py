"""Run under mpirun: a command in which the owner of rank 1 asks for a guard; arguments: what he asks for, and those of
`bmrm`, or of `python -m bmrm.run` where they begin with a config.
"""

import os
import sys

from bmrm.app.guarded import VARIABLE
from bmrm.cli import COMMANDS
from bmrm.cli import main as command
from bmrm.mpi.launch import open_group
from bmrm.run import main as run


def main(arguments):
    wanted, *others = arguments
    if open_group().rank == 1:
        os.environ[VARIABLE] = wanted
    try:
        return command(others) if others[0] in COMMANDS else run(others)
    finally:
        os.environ.pop(VARIABLE, None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
