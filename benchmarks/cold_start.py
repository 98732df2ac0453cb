"""What the first fit of each loss compiles, in a new process with an empty cache: kernels and processor seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import Table

PROBE = """
import json, sys, time

begin = time.process_time()
import numpy
import bmrm
from bmrm.checks.plug_in import instance_of
from bmrm.checks.plug_in import groups_for, targets_for
from bmrm.kernels.compiling import COMPILING
from bmrm.losses import LOSSES
from numba.core import event

class Clock(event.Listener):
    depth, since, seconds = 0, 0.0, 0.0

    def on_start(self, event):
        self.since = time.process_time() if self.depth == 0 else self.since
        self.depth += 1

    def on_end(self, event):
        self.depth -= 1
        self.seconds += time.process_time() - self.since if self.depth == 0 else 0.0

clock = Clock()
event.register("numba:compiler_lock", clock)
COMPILING.speaks = False
loss, rng, rows = instance_of(LOSSES, sys.argv[1]), numpy.random.default_rng(0), 200
X = rng.normal(size=(rows, 12)) * (rng.random((rows, 12)) < 0.5)
bmrm.fit(
    X,
    targets_for(loss, rows),
    loss=loss,
    regularizer=bmrm.L2(1e-3),
    groups=groups_for(loss, rows),
    bias="none",
    threads=1,
)
print(json.dumps([COMPILING.kernels, clock.seconds, time.process_time() - begin]))
"""
"""Prints kernels, processor seconds of compiling (loading kernels counts), and all from the imports on."""


def measure() -> Table:
    """Every loss twice: with an empty cache, and again with what the first process has left there."""
    from bmrm.losses import LOSSES

    with tempfile.TemporaryDirectory() as folder:
        caches = os.environ | {"PYTHONPYCACHEPREFIX": str(Path(folder) / "bytecode")}
        caches.pop("PYTHONDONTWRITEBYTECODE", None)
        names = [entry.name for entry in LOSSES.all()]
        runs = {}
        for name in names:
            caches["NUMBA_CACHE_DIR"] = str(Path(folder) / name)
            runs[name] = [_run(name, caches) for _ in range(3)]
    rows = []
    for name, (cold, *warm) in sorted(runs.items(), key=lambda item: -item[1][0][1]):
        kernels, seconds, _ = cold
        rows.append((f"`{name}`", f"{kernels:.0f}", f"{seconds:.1f} s", f"{min(again[2] for again in warm):.2f} s"))
    return Table(
        "First fit in a new process",
        "200 dense rows of 12 features, l2, `auto`, one thread: number of kernels and processor time to compile"
        " them with a cold cache, and processor time of a process with a warm one, from the first import to the"
        " solution.",
        ("loss", "kernels", "compiling", "later process"),
        tuple(rows),
    )


def _run(name: str, caches: dict[str, str]) -> list[float]:
    command = [sys.executable, "-c", PROBE, name]
    done = subprocess.run(command, env=caches, capture_output=True, text=True, check=True)
    parts: list[float] = json.loads(done.stdout)
    return parts
