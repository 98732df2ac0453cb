"""A run on ranks of which the last has computed far longer than the others, as counted, on however busy a machine."""

from bmrm import run
from bmrm.mpi.communicator import MpiGroup


def main(arguments):
    group = MpiGroup.world()
    group.busy += 1000.0 * group.rank
    return run.main(arguments)
