"""Processor time of the bundle method by rows, with l2 and l1, and by lambda."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import bmrm
from benchmarks.papers.claims import LINEAR
from benchmarks.papers.fits import risk, seconds, slope, timed
from benchmarks.papers.plots import panels, saved
from benchmarks.papers.sets import TINY, load
from benchmarks.papers.study import Finding, Row, Study, finding

SETS = ("a9a", "covtype-scaled")
LAM, LAMBDAS = 1e-5, (1e-2, 1e-3, 1e-4)
HALVINGS = range(7)
GAP, CAPS = 0.01, {"l2": 10_000, "l1": 1000}
"""Relative gap, and most iterations; the rule names those of l1, whose master is the slower."""
LIMIT = 300.0
"""Seconds of one run."""
PENALTIES = {"l2": bmrm.L2, "l1": bmrm.L1}
PLAIN, SEARCHED = "bundle", "line_search_bundle"


def _cells(size: str) -> list[Row]:
    if size == "tiny":
        cells = [(TINY, penalty, 1e-3, k) for penalty in PENALTIES for k in (0, 1)] + [(TINY, "l2", 1e-2, 0)]
    else:
        cells = [(name, penalty, LAM, k) for name in SETS for penalty in PENALTIES for k in HALVINGS]
        cells += [(name, "l2", lam, 0) for name in SETS for lam in LAMBDAS]
        if size == "quick":
            cells = [one for one in cells if one[0] == SETS[0] and (one[1] == "l2" or one[3] >= 2)]
    return [dict(zip(("data", "penalty", "lambda", "halvings"), cell)) for cell in cells]


def _run(cell: Row, seed: int) -> list[Row]:
    data = load(cell["data"])
    order = np.random.default_rng(seed).permutation(data.rows)
    rows = data.select(np.sort(order[: data.rows // 2 ** cell["halvings"]]))
    return [_timed(rows, cell["penalty"], cell["lambda"], solver) for solver in (PLAIN, SEARCHED)]


def _timed(rows: bmrm.Dataset, penalty: str, lam: float, solver: str) -> Row:
    """With the risk built anew; runs that do not reach the gap are not repeated."""

    def run(most: int = CAPS[penalty]) -> bmrm.Solution:
        limits = {"tolerance": GAP, "max_iterations": most, "time_limit": LIMIT}
        return bmrm.minimize(risk(rows, "hinge"), PENALTIES[penalty](lam), solver, **limits)

    run(2)  # loads kernels
    (taken, found), times = timed(run), 1
    if found.status is bmrm.Status.CONVERGED:
        taken, times, found = seconds(run)
    return {
        "solver": solver,
        "rows": rows.rows,
        "seconds": taken,
        "repetitions": times,
        "iterations": found.iterations,
        "gap": found.relative_gap,
        "reached": found.status is bmrm.Status.CONVERGED,
    }


def _by_rows(rows: pd.DataFrame, penalty: str, solver: str = PLAIN) -> pd.DataFrame:
    """A line for each set: the slope, whether all chunks were solved, and the span of times from an eighth to all."""
    lines = []
    of = rows[(rows["penalty"] == penalty) & (rows["solver"] == solver)]
    for data, all_lines in of.groupby("data", sort=False):
        lam = all_lines["lambda"].min()
        chunks = all_lines[all_lines["lambda"] == lam].sort_values("rows")
        whole = all_lines[all_lines["halvings"] == 0]
        near = chunks[chunks["halvings"] <= 3]["seconds"]
        lines.append(
            {
                "data": data,
                "slope": slope(chunks["rows"].to_numpy(), chunks["seconds"].to_numpy()),
                "reached": bool(chunks["reached"].all()),
                "chunks": len(chunks),
                "by rows": near.max() / near.min(),
                "by lambda": whole["seconds"].max() / whole["seconds"].min(),
            }
        )
    return pd.DataFrame(lines)


def _linear(table: pd.DataFrame) -> Finding:
    if table.empty or (table["chunks"] < 2).all():
        return Finding(None, "not run")
    within = table["slope"].between(*LINEAR) & table["reached"]
    said = [
        f"{one['slope']:.2f} on {one['data']}{'' if one['reached'] else ' (gap not reached everywhere)'}"
        for one in table.to_dict("records")
    ]
    return Finding(bool(within.all()), "slopes " + ", ".join(said))


def _findings(rows: pd.DataFrame) -> dict[str, Finding]:
    l2 = _by_rows(rows, "l2")
    spans = [f"{one['by lambda']:.1f} against {one['by rows']:.1f} on {one['data']}" for one in l2.to_dict("records")]
    searched = _linear(_by_rows(rows, "l1", SEARCHED)).number
    plain = _linear(_by_rows(rows, "l1"))
    return {
        "l2": _linear(l2),
        "l1": Finding(plain.holds, f"{plain.number}; with the line search {searched}"),
        "lambda": finding(l2, (l2["by lambda"] > l2["by rows"]).all() if len(l2) else False, "; ".join(spans)),
    }


def _table(rows: pd.DataFrame) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
    columns = ("data", "penalty", "lambda", "rows", "solver", "time / that of the longest", "iterations", "gap")
    longest = rows.groupby(["data", "penalty", "solver"])["seconds"].transform("max")
    lines = [
        (
            one["data"],
            one["penalty"],
            f"{one['lambda']:g}",
            one["rows"],
            one["solver"],
            f"{one['share']:.3f}",
            one["iterations"],
            f"{one['gap']:.2g}",
        )
        for one in rows.assign(share=rows["seconds"] / longest).to_dict("records")
    ]
    return columns, lines


def _plot(rows: pd.DataFrame, path: Path) -> None:
    """Time against rows, log-log, as figure 5."""
    of = rows[rows["lambda"] == rows.groupby("data")["lambda"].transform("min")]
    figure, axes = panels(of["data"].nunique())
    for axis, (data, lines) in zip(axes, of.groupby("data", sort=False), strict=True):
        for (penalty, solver), line in lines.sort_values("rows").groupby(["penalty", "solver"], sort=False):
            axis.loglog(line["rows"], line["seconds"], "o-", label=f"{penalty}, {solver}", lw=1.2, ms=4)
        axis.set(title=data, xlabel="rows")
    axes[0].set_ylabel("processor seconds")
    axes[-1].legend(frameon=False, fontsize=7)
    saved(figure, path)


STUDY = Study(
    "kdd_5",
    _cells,
    _run,
    _findings,
    _table,
    _plot,
    lacks="KDDCup 99, Reuters and real-sim.",
    why="A pass is linear in the rows, and how many planes are needed hardly depends on them; but the program"
    " of the planes does not see the rows at all. On covtype passes take most of the time, which is linear. On a9a,"
    " whose passes take a millisecond, the program of a thousand planes does, however many rows there are. With l1 the"
    " model's minimisers jump from vertex to vertex, and at this lambda its lower bound hardly rises within the"
    " iterations that the rule allows; the line search mends that.",
)
