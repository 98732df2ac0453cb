"""What every benchmark uses: alternated repetitions, medians with spread, tables."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Times:
    """Seconds of repeated runs of one thing."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return float(np.median(self.seconds))

    def __str__(self) -> str:
        low, high = np.quantile(self.seconds, [0.05, 0.95])
        return f"{_readable(self.median)} ({_readable(low)} to {_readable(high)})"


def alternated(
    candidates: Mapping[str, Callable[[], object]], repetitions: int = 9, warm_ups: int = 1
) -> dict[str, Times]:
    """Run the candidates in turn, so that a noisy moment hits all of them; the warm-ups do not count."""
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(warm_ups + repetitions):
        for name, run in candidates.items():
            begin = time.perf_counter()
            run()
            if turn >= warm_ups:
                seconds[name].append(time.perf_counter() - begin)
    return {name: Times(tuple(each)) for name, each in seconds.items()}


def ratio(ours: Times, theirs: Times) -> str:
    """Median of the ratios of runs that followed one another, and its spread."""
    ratios = np.array(ours.seconds) / np.array(theirs.seconds)
    low, high = np.quantile(ratios, [0.05, 0.95])
    return f"{np.median(ratios):.2f} ({low:.2f} to {high:.2f})"


@dataclass(frozen=True)
class Table:
    """One benchmark's result."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def markdown(self) -> str:
        """As it stands in the documentation."""
        lines = [f"## {self.title}", "", self.note, ""]
        lines += ["| " + " | ".join(self.columns) + " |", "|" + "---|" * len(self.columns)]
        lines += ["| " + " | ".join(map(str, row)) + " |" for row in self.rows]
        return "\n".join([*lines, ""])


def on_ranks(ranks: int, module: str, *arguments: str) -> Any:
    """What `python -m module arguments` prints last on so many ranks, from JSON; without mpirun for one."""
    from bmrm.mpi.launch import needed_mpirun

    launcher = [needed_mpirun(), "-n", str(ranks)] if ranks > 1 else []
    command = [*launcher, sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def machine() -> str:
    """What the figures were measured on, in a line."""
    import os

    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, NumPy {np.__version__}"


def _readable(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds:.1e} s"
