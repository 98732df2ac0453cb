"""Start-up over ranks: processor seconds of a rank by phase, and seconds of the whole job, on 1, 8 and 64 ranks.

`measure` starts mpirun, which runs `main` here on every rank; the figures are kept beside the page as JSON.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.harness import Table

KEPT = Path(__file__).with_name("results") / "rank_startup.json"
RANKS = (1, 8, 64)
ROWS, FEATURES, REPETITIONS = 20_000, 120, 3
CONFIG = """
schema: 2
data: {train: train.svm, bias: none}
loss: hinge
regularizer: {name: l2, lambda: 1.0e-3}
solver: {threads: 1}
output: {directory: out, overwrite: true}
"""
INTERPRETER, IMPORTS, MPI, KERNELS, WAITING, REST = (
    "interpreter",
    "imports",
    "MPI_Init",
    "loading kernels",
    "waiting",
    "the rest",
)
TIMED = {
    ("bmrm.mpi.communicator", "MpiGroup.wait"): WAITING,
    ("bmrm.kernels.loading", "KernelCache.load_overload"): KERNELS,
    ("bmrm.app.pipeline.train", "load"): "reading",
    ("bmrm.app.pipeline.train", "fit_once"): "solving",
    ("bmrm.app.pipeline.train", "measure_parts"): "measuring",
}
"""Functions by their places, and the phases that they belong to."""
PHASES = (INTERPRETER, IMPORTS, MPI, KERNELS, "reading", "solving", "measuring", WAITING, REST)
BARE = "import time, numpy, numba, mpi4py.MPI; print(time.process_time())"
"""The least that a process needs to compute with numba under MPI."""
Figures = dict[str, Any]


def measure() -> Table:
    """A line for each phase; columns for rank 0 and for the others, by the number of ranks."""
    found = {"bare": float(_run([sys.executable, "-c", BARE], os.environ, Path.cwd())[2])}
    found |= {str(ranks): _launched(ranks) for ranks in RANKS}
    KEPT.write_text(json.dumps(found, indent=1) + "\n")
    return table(found)


def table(found: Figures) -> Table:
    """Of the figures by number of ranks."""
    from benchmarks.harness import Table

    runs = [found[str(ranks)] for ranks in RANKS]
    columns = [(name, run["seconds"][name]) for run in runs for name in ("rank 0", "others") if name in run["seconds"]]
    heads = [f"{ranks}: {name}" for ranks in RANKS for name in ("rank 0", "others") if ranks > 1 or name == "rank 0"]
    rows = [(phase, *(f"{column[phase]:.2f}" for _, column in columns)) for phase in PHASES]
    rows.append(("sum", *(f"**{sum(column.values()):.2f}**" for _, column in columns)))
    whole = "; ".join(
        f"{ranks} rank{'s' if ranks > 1 else ''} {run['wall']:.1f} s ({run['processor']:.1f} s of processor time)"
        for ranks, run in zip(RANKS, runs)
    )
    return Table(
        "Start-up over ranks",
        f"hinge, l2, {ROWS} rows of svmlight text, `auto`, one thread a rank; caches are warm. The whole job, from"
        f" `mpirun` to its end, measures and picture too: {whole}. Of it, processor seconds by phase: of rank"
        " 0, and of a rank that answers (median of the ranks). What Python spends at the end of a process is in none of"
        f" them. Importing NumPy, numba and mpi4py alone takes {found['bare']:.2f} s. Median of {REPETITIONS} jobs.",
        ("phase", *heads),
        tuple(rows),
    )


def _launched(ranks: int) -> Figures:
    """Some jobs on so many ranks, after one that fills the caches."""
    from bmrm.data.reading import read
    from bmrm.data.writers import write_svmlight

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = str(Path(__file__).resolve().parents[1])
        environment = os.environ | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "PYTHONPATH": root}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        write_svmlight(folder / "train.svm", read(f"synthetic:sparse_binary?rows={ROWS}&features={FEATURES}"))
        (folder / "config.yaml").write_text(CONFIG)
        beside = Path(sys.executable).parent / "mpirun"
        launcher = [str(beside) if beside.exists() else "mpirun", "-n", str(ranks)] if ranks > 1 else []
        command = [*launcher, sys.executable, "-m", "benchmarks.rank_startup"]
        jobs = []
        for _ in range(REPETITIONS + 1):
            wall, processor, _ = _run(command, environment, folder)
            seconds = [json.loads((folder / f"seconds-{rank}.json").read_text()) for rank in range(ranks)]
            jobs.append({"wall": wall, "processor": processor, "ranks": seconds})
    return _medians(jobs[1:])


def _medians(jobs: list[Figures]) -> Figures:
    seconds = {"rank 0": [job["ranks"][0] for job in jobs], "others": [one for job in jobs for one in job["ranks"][1:]]}
    return {
        "wall": median(job["wall"] for job in jobs),
        "processor": median(job["processor"] for job in jobs),
        "seconds": {
            name: {phase: median(one[phase] for one in each) for phase in PHASES}
            for name, each in seconds.items()
            if each
        },
    }


def _run(command: list[str], environment: Mapping[str, str], folder: Path) -> tuple[float, float, str]:
    """Seconds by the clock and by the processor, and what was printed."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, env=environment, cwd=folder, check=True, capture_output=True, text=True)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


class Clock:
    """Processor seconds of this process by phase; a phase within another does not count for that one."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PHASES, 0.0)
        self._now, self._since = REST, time.process_time()
        self.seconds[INTERPRETER] = self._since

    def turn(self, phase: str) -> str:
        """From now on it is another phase; returns the one before."""
        now, before = time.process_time(), self._now
        self.seconds[before] += now - self._since
        self._now, self._since = phase, now
        return before

    def timed(self, function: Callable[..., Any], phase: str) -> Callable[..., Any]:
        """The function, with its time in a phase."""

        @functools.wraps(function)
        def inside(*arguments: Any, **options: Any) -> Any:
            if self._now == phase:
                return function(*arguments, **options)
            before = self.turn(phase)
            try:
                return function(*arguments, **options)
            finally:
                self.turn(before)

        return inside


def main() -> int:
    """On every rank: a run of config.yaml; writes the rank's seconds into the folder."""
    clock = Clock()
    builtins.__import__ = clock.timed(builtins.__import__, IMPORTS)  # type: ignore[assignment]
    importlib.import_module = clock.timed(importlib.import_module, IMPORTS)
    from bmrm import run

    run.open_group = clock.timed(run.open_group, MPI)
    for (module, place), phase in TIMED.items():
        *owners, name = place.split(".")
        owner = functools.reduce(getattr, owners, importlib.import_module(module))
        setattr(owner, name, clock.timed(getattr(owner, name), phase))
    status = run.main(["config.yaml", "--quiet"])
    clock.turn(REST)
    Path(f"seconds-{os.environ.get('PMI_RANK', '0')}.json").write_text(json.dumps(clock.seconds))
    return status


if __name__ == "__main__":
    sys.exit(main())
