"""`python -m mpi_examples.tour`: two examples under `mpirun -n 2`, one table. `make run` ends here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bmrm.mpi.launch import NO_MPIRUN, mpirun

EXAMPLES = ("breast_cancer", "sparse_text")
RANKS = 2


def main() -> int:
    """Run the examples; returns 0 when all converged."""
    console = Console() if sys.stdout.isatty() else Console(width=120)
    launcher = mpirun()
    if launcher is None:
        console.print(NO_MPIRUN, style="bold red", markup=False)
        return 1
    title = f"{len(EXAMPLES)} examples under mpirun -n {RANKS}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("data set", "status"):
        table.add_column(heading, no_wrap=True)
    for heading in ("objective", "lower bound", "gap", "seconds", "accuracy"):
        table.add_column(heading, justify="right", no_wrap=True)
    worst, places = 0, []
    for name in EXAMPLES:
        config, directory = Path(__file__).parent / name / "config.yaml", Path("runs") / name
        console.print(f"mpirun -n {RANKS} python -m bmrm.run {config}", highlight=False, soft_wrap=True)
        command = [launcher, "-n", str(RANKS), sys.executable, "-m", "bmrm.run", str(config)]
        command += ["--set", f"output.directory={directory}", "--set", "solver.threads=1"]
        status = subprocess.run(command, check=False).returncode
        worst = max(worst, status)
        if status in (0, 3):
            table.add_row(name, *_row(json.loads((directory / "summary.json").read_text())))
            places.append(directory)
        else:
            table.add_row(name, f"exit status {status}")
    console.print()
    console.print(table)
    for directory in places:
        console.print(f"plot {directory / 'convergence.svg'}, model {directory / 'model.npz'}", highlight=False)
    return worst


def _row(summary: dict[str, Any]) -> list[str]:
    return [
        summary["status"],
        f"{summary['objective']:.6f}",
        f"{summary['lower_bound']:.6f}",
        f"{summary['relative_gap']:.1e}",
        f"{summary['seconds']['total']:.1f}",
        f"{summary['metrics']['train']['accuracy']:.3f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
