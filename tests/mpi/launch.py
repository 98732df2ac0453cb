"""Start real ranks."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def mpirun() -> str:
    """The launcher beside this Python, else the one on PATH."""
    beside = Path(sys.executable).parent / "mpirun"
    found = str(beside) if beside.exists() else shutil.which("mpirun")
    assert found, "no mpirun: install the extra bmrm[mpirun]"
    return found


def launch(
    ranks: int, *arguments: str, timeout: float = 120.0, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """`mpirun -n ranks python arguments`, with what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    command = [mpirun(), "-n", str(ranks), sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, cwd=cwd)
