"""What is installed here and what it runs on: for bug reports, and to see whether mpirun and mpi4py fit together."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from typing import Any

from bmrm.app.report import versions
from bmrm.kernels.cache_folder import choose_folder
from bmrm.kernels.sources import PACKAGE, digest_of
from bmrm.mpi.launch import BUILD, NO_MPIRUN, mpirun

LIBRARY = """
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
print(MPI.Get_library_version().strip("\\0 \\n").splitlines()[0])
"""
PATIENCE = 30.0
"""Seconds that the MPI library may take to tell its version."""


def installation() -> dict[str, Any]:
    """The facts, for JSON: `mpirun`, `mpi_library` and `kernels` are None where there is none."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    folder = choose_folder(PACKAGE, digest_of(frozenset()))
    return {
        "versions": versions(),
        "platform": platform.platform(),
        "cores": cores,
        "package": str(PACKAGE),
        "kernels": None if folder is None else str(folder),
        "mpirun": mpirun(),
        "mpi_library": mpi_library(),
    }


def in_words(facts: dict[str, Any]) -> dict[str, str]:
    """The same for a table, with the command that installs what is missing."""
    listed = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return {
        "versions": listed,
        "platform": f"{facts['platform']}, {facts['cores']} cores",
        "package": facts["package"],
        "kernels": facts["kernels"] or "not kept",
        "mpirun": facts["mpirun"] or NO_MPIRUN,
        "MPI library": facts["mpi_library"] or f"none that mpi4py loads; pip install 'bmrm[mpirun]', or {BUILD}",
    }


def mpi_library() -> str | None:
    """The library that mpi4py loads, asked in a process of its own: some end the process that loads them."""
    try:
        command = [sys.executable, "-c", LIBRARY]  # which looks for modules where it stands
        done = subprocess.run(command, cwd=os.sep, capture_output=True, text=True, timeout=PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
