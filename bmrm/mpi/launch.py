"""Which ranks work together: asked of the environment first, so that a process alone never initialises MPI."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bmrm.mpi.group import Group

LAUNCHERS = ("PMI_SIZE", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")


def launched() -> bool:
    """Whether mpirun (or a batch system's launcher) started this process; asks the environment, not MPI."""
    return any(name in os.environ for name in LAUNCHERS)


def open_group() -> Group:
    """The group of this process; imports mpi4py (and so initialises MPI) only under mpirun."""
    if not launched():
        from bmrm.mpi.group import Alone

        return Alone()
    from bmrm.mpi.communicator import MpiGroup

    return MpiGroup.world()
