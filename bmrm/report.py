"""What a run says: the progress line, the table at its end, summary.json and history.csv."""

from __future__ import annotations

import csv
import io
import math
import platform
import time
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from bmrm.problem import Iteration, Solution

PLAIN_EVERY = 5.0
"""Seconds between two lines of progress where the output is not a terminal."""

HISTORY_COLUMNS = (
    "iteration",
    "objective",
    "lower_bound",
    "gap",
    "relative_gap",
    "passes",
    "seconds",
    "seconds_risk",
    "seconds_master",
    "seconds_network",
)


def finite(value: float) -> float | None:
    """`value`, or None where it is not finite: JSON has no infinity."""
    return float(value) if math.isfinite(value) else None


def number(value: float | None, digits: int = 6) -> str:
    """A number for a table; a dash where there is none."""
    return "-" if value is None or not math.isfinite(value) else f"{value:.{digits}g}"


class Progress:
    """One line that lives on a terminal; plain lines every few seconds elsewhere; nothing when quiet.

    A callback for a solver, and a context manager around it.
    """

    def __init__(self, console: Console, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet
        self._live: Live | None = None
        self._last = time.monotonic()

    def __enter__(self) -> Progress:
        if self._console.is_terminal and not self._quiet:
            self._live = Live(console=self._console, refresh_per_second=8, transient=True)
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def __call__(self, line: Iteration) -> None:
        """Show an iteration."""
        if self._quiet:
            return
        if self._live is not None:
            self._live.update(Text(progress_line(line), no_wrap=True, overflow="ellipsis"))
            return
        now = time.monotonic()
        if now - self._last >= PLAIN_EVERY:
            self._last = now
            self._console.print(progress_line(line), highlight=False, soft_wrap=True)


def progress_line(line: Iteration) -> str:
    """iteration, objective, lower bound, relative gap, passes, seconds."""
    return (
        f"iteration {line.iteration:5d}  objective {number(line.objective, 8):>12}  "
        f"bound {number(line.lower_bound, 8):>12}  relative gap {number(line.relative_gap, 2):>8}  "
        f"passes {line.passes:7.1f}  {line.seconds:7.1f} s"
    )


def history_csv(solution: Solution) -> str:
    """A line per iteration; an empty field where there is no bound."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HISTORY_COLUMNS)
    for line in solution.history:
        values = (getattr(line, name) for name in HISTORY_COLUMNS)
        writer.writerow(["" if not math.isfinite(value) else repr(value) for value in values])
    return text.getvalue()


def summarize(
    solution: Solution,
    *,
    load_seconds: float,
    total_seconds: float,
    ranks: int,
    rows: int,
    dim: int,
    nnz: int,
    metrics: Mapping[str, Mapping[str, float | None]],
) -> dict[str, Any]:
    """summary.json; null where there is no bound."""
    last = solution.history[-1] if solution.history else None
    return {
        "objective": finite(solution.objective),
        "lower_bound": finite(solution.lower_bound),
        "gap": finite(solution.gap),
        "relative_gap": finite(solution.relative_gap),
        "status": solution.status.name,
        "advice": solution.status.advice,
        "message": solution.message,
        "iterations": solution.iterations,
        "passes": solution.passes,
        "seconds": {
            "total": total_seconds,
            "load": load_seconds,
            "solve": solution.seconds,
            "risk": last.seconds_risk if last else 0.0,
            "master": last.seconds_master if last else 0.0,
            "network": last.seconds_network if last else 0.0,
        },
        "ranks": ranks,
        "rows": rows,
        "dim": dim,
        "nnz": nnz,
        "solver": solution.solver,
        "metrics": {part: dict(values) for part, values in metrics.items()},
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """Of Python and of the packages that a result can depend on."""
    table = {"python": platform.python_version()}
    for name in ("bmrm", "numpy", "scipy", "numba", "scikit-learn", "highspy", "cvxopt", "mpi4py"):
        try:
            table[name] = version(name)
        except PackageNotFoundError:  # an import path without an installed distribution
            table[name] = "unknown"
    return table


def summary_table(summary: Mapping[str, Any], title: str) -> Table:
    """The table at the end of a run."""
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    seconds = summary["seconds"]
    parts = ", ".join(f"{name} {seconds[name]:.2f}" for name in ("load", "risk", "master", "network"))
    rows: dict[str, str] = {
        "status": f"{summary['status']}: {summary['advice']}",
        **({"found": summary["message"]} if summary["message"] else {}),
        "objective": number(summary["objective"], 10),
        "lower bound": number(summary["lower_bound"], 10),
        "relative gap": number(summary["relative_gap"], 3),
        "iterations, passes": f"{summary['iterations']}, {summary['passes']:g}",
        "seconds": f"{seconds['total']:.2f} ({parts})",
        "data": f"{summary['rows']} rows, {summary['dim']} weights, {summary['nnz']} non-zeros",
        "ranks": str(summary["ranks"]),
        "solver": str(summary["solver"]),
    }
    for part, values in summary["metrics"].items():
        if values:
            rows[part] = ", ".join(f"{name} {number(value, 5)}" for name, value in values.items())
    for name, value in rows.items():
        table.add_row(name, value)
    return table
