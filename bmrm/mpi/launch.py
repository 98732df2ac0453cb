"""Which ranks work together: asked of the environment first, so that a process alone never initialises MPI."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import time
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bmrm.mpi.group import Group

LAUNCHERS = ("PMI_SIZE", "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")
OPEN_MPI = "OMPI_COMM_WORLD_SIZE"
"""Environment variable that only the mpirun of Open MPI sets."""
SIZES = (OPEN_MPI, "PMI_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS")
"""Environment variables with the number of ranks: of Open MPI, of MPICH and its derivatives, and of SLURM."""
RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MPI_LOCALRANKID")
"""Environment variables with the rank of this process."""
KIN_OF_MPICH = ("MPICH", "Intel MPI", "MVAPICH", "MVAPICH2")
"""Libraries, by mpi4py's names, whose ranks the mpirun of Open MPI cannot start."""

NO_MPIRUN = "no mpirun found; pip install 'bmrm[mpirun]', or load the MPI of the cluster"
BUILD = "pip install --force-reinstall --no-binary=mpi4py mpi4py"
"""Command that builds mpi4py for the MPI on the PATH."""
PATIENCE = 1.0
"""Seconds for rank 0 to print what is wrong: some launchers end all ranks when the first fails."""


def launched() -> bool:
    """Whether mpirun (or a batch system's launcher) started this process; asks the environment, not MPI."""
    return any(name in os.environ for name in LAUNCHERS)


@cache
def say_alone(what: str) -> None:
    """That each of several ranks does this alone: once, by the first of them."""
    from multiprocessing import parent_process

    ranks = _told(SIZES, 1)
    if ranks > 1 and launched() and _told(RANKS, 0) == 0 and parent_process() is None:
        logging.getLogger("bmrm").warning(
            "bmrm: %d ranks were started, and %s trains in each of them alone, with the rows that it is given: none"
            " move; `bmrm train` and `python -m bmrm.run` train over ranks",
            ranks,
            what,
        )


def mpirun() -> str | None:
    """The launcher beside this Python, else the one on the PATH."""
    beside = Path(sys.executable).parent / "mpirun"
    return str(beside) if beside.exists() else shutil.which("mpirun")


def needed_mpirun() -> str:
    """The same; InputError with the command that installs it where there is none."""
    found = mpirun()
    if found is None:
        from bmrm.problem import InputError

        raise InputError(NO_MPIRUN)
    return found


def open_group() -> Group:
    """The group of this process; imports mpi4py (and so initialises MPI) only under mpirun.

    Raises
    ------
    InputError
        mpi4py finds no MPI library, or not the one of the launcher: then every rank would be alone, and they would
        overwrite one another's files. Only on rank 0 of the launcher; the others raise OtherRankError.
    """
    if not launched():
        from bmrm.mpi.group import Alone

        return Alone()
    try:
        foreign = OPEN_MPI in os.environ and "mpi4py.MPI" not in sys.modules and not _opened()
        from bmrm.mpi.communicator import MpiGroup, started
    except (ImportError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise _said_once(f"mpi4py loads no MPI library ({reason}); pip install 'bmrm[mpirun]', or {BUILD}") from error
    ranks = _told(SIZES, 1)
    if foreign or (started() == 1 and ranks > 1):
        raise _said_once(
            f"mpirun has started {ranks} processes that do not find one another: it is of another MPI than the one "
            f"that mpi4py uses; build mpi4py for it ({BUILD}), or use the mpirun of pip install 'bmrm[mpirun]'"
        )
    return MpiGroup.world()


def _opened() -> bool:
    """Initialise MPI under the mpirun of Open MPI; False, and nothing done, where mpi4py uses a kin of MPICH.

    That would end the process, with words about PMI versions.
    """
    import mpi4py

    mpi4py.rc.initialize, mpi4py.rc.finalize = False, True
    from mpi4py import MPI

    if MPI.get_vendor()[0] in KIN_OF_MPICH:
        return False
    MPI.Init_thread(MPI.THREAD_FUNNELED)
    return True


def _said_once(message: str) -> Exception:
    """The error on rank 0 of the launcher; one that is silent on the others, which come later."""
    from bmrm.mpi.group import OtherRankError
    from bmrm.problem import InputError

    if _told(RANKS, 0) == 0:
        return InputError(message)
    time.sleep(PATIENCE)
    return OtherRankError(message)


def _told(names: tuple[str, ...], otherwise: int) -> int:
    """The number under the first of these names in the environment."""
    return next((int(os.environ[name]) for name in names if os.environ.get(name, "").isdecimal()), otherwise)
