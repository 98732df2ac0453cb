"""Start real ranks."""

from __future__ import annotations

import atexit
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

from bmrm.mpi.launch import needed_mpirun

ROOT = Path(__file__).resolve().parents[2]
MOST = 3
"""Ranks that stand ready."""


def mpirun() -> str:
    """The launcher beside this Python, else the one on the PATH."""
    return needed_mpirun()


def environment() -> dict[str, str]:
    """Of the ranks: our sources, and no threads of BLAS beside them."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}


def launch(
    ranks: int, *arguments: str, timeout: float = 120.0, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """`mpirun -n ranks python arguments`, with what it printed."""
    command = [mpirun(), "-n", str(ranks), sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment(), cwd=cwd)


def work(
    ranks: int, module: str, *arguments: str, timeout: float = 120.0, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What `launch(ranks, "-m", module, *arguments)` would give, by `main` of the module, on ranks that stand ready.

    For what ranks compute together; more than stand ready are started. How processes begin and end, and what they
    import, needs `launch`.
    """
    if ranks > MOST:
        return launch(ranks, "-m", module, *arguments, timeout=timeout, cwd=cwd)
    if not _standing().alive:
        _standing().end()
        _standing.cache_clear()
    return _standing().work(ranks, module, arguments, timeout, cwd or ROOT)


def printed(ranks: int, module: str, *arguments: str, timeout: float = 300.0) -> Any:
    """What rank 0 prints of such work, from JSON; it succeeds."""
    done = work(ranks, module, *arguments, timeout=timeout)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Standing:
    """Ranks under one mpirun that take orders through named pipes, where they wait without a turn of the processor."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ranks-"))
        # opened for both directions: nobody waits for the other to open, and ranks see the end when this process ends
        self.orders = [self._pipe(f"orders-{rank}") for rank in range(MOST)]
        self.answers = self._pipe("answers")
        command = [mpirun(), "-n", str(MOST), sys.executable, "-m", "tests.mpi.standing", str(self.folder)]
        self.process = subprocess.Popen(command, env=environment(), cwd=ROOT, stdin=subprocess.DEVNULL)
        self.works = 0
        atexit.register(self.end)

    def _pipe(self, name: str) -> int:
        os.mkfifo(self.folder / name)
        return os.open(self.folder / name, os.O_RDWR)

    @property
    def alive(self) -> bool:
        """Whether they take orders."""
        return self.process.poll() is None

    def work(
        self, ranks: int, module: str, arguments: tuple[str, ...], timeout: float, cwd: Path
    ) -> subprocess.CompletedProcess[str]:
        """As of the function `work`."""
        outputs = [self.folder / f"{self.works}.{name}" for name in ("out", "err")]
        self.works += 1
        order = {
            "ranks": ranks,
            "module": module,
            "arguments": arguments,
            "folder": str(cwd),
            "outputs": [str(path) for path in outputs],
        }
        for pipe in self.orders[:ranks]:
            os.write(pipe, json.dumps(order).encode() + b"\n")
        try:
            status = self._status(ranks, timeout)
        except subprocess.TimeoutExpired:
            self.end()
            raise
        printed = [path.read_text() if path.exists() else "" for path in outputs]
        return subprocess.CompletedProcess([module, *arguments], status, *printed)

    def _status(self, ranks: int, timeout: float) -> int:
        """The largest exit status of those that work, or that of mpirun where they have ended all."""
        deadline, said = time.monotonic() + timeout, b""
        while said.count(b"\n") < ranks:
            if select.select([self.answers], [], [], 0.1)[0]:
                said += os.read(self.answers, 100)
            elif not self.alive:
                return self.process.returncode
            elif time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("work", timeout)
        return max(int(line) for line in said.split())

    def end(self) -> None:
        """Their pipes close, which ends them."""
        atexit.unregister(self.end)
        for pipe in (*self.orders, self.answers):
            os.close(pipe)
        try:
            self.process.wait(timeout=10.0 if self.works else 0.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def _standing() -> Standing:
    return Standing()
