"""Iterations of the bundle method by lambda: how many, whether more for smaller lambda, and how the gap falls."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import bmrm
from benchmarks.papers.claims import MOST
from benchmarks.papers.fits import curve, points, risk
from benchmarks.papers.plots import panels, saved
from benchmarks.papers.sets import TINY, load
from benchmarks.papers.study import Finding, Row, Study, finding

SETS = ("a9a", "w8a", "farm-ads", "covtype-scaled")
LAMBDAS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6)
GAPS, CAP, LEAST = (1e-1, 1e-2, 1e-3, 1e-4), 1500, 40
"""Gaps, most iterations, and the fewest of a run whose rate is judged."""
PLAIN, SEARCHED = "bundle", "line_search_bundle"


def _cells(size: str) -> list[Row]:
    if size == "tiny":
        return [{"data": TINY, "lambda": lam} for lam in (0.1, 1e-3)]
    if size == "quick":
        return [{"data": name, "lambda": lam} for name in ("a9a", "farm-ads") for lam in (0.1, 0.01, 1e-3, 1e-4)]
    return [{"data": name, "lambda": lam} for name in SETS for lam in LAMBDAS]


def _run(cell: Row, seed: int) -> list[Row]:
    function = risk(load(cell["data"]), "hinge")
    rows = []
    for solver in (PLAIN, SEARCHED):
        limits = {"tolerance": 0.0, "absolute_tolerance": GAPS[-1], "max_iterations": CAP}
        found = bmrm.minimize(function, bmrm.L2(cell["lambda"]), solver, **limits)
        number = np.array([line.iteration for line in found.history])
        gap = np.array([line.objective - line.lower_bound for line in found.history])
        rows.append(
            {
                "solver": solver,
                **{f"to {each:g}": _first(number, gap <= each) for each in GAPS},
                "iterations": int(number[-1]),
                **_fits(number, gap),
                "curve": curve(number, gap, 40),
            }
        )
    return rows


def _first(number: np.ndarray, there: np.ndarray) -> float:
    return float(number[np.argmax(there)]) if there.any() else float("nan")


def _fits(number: np.ndarray, gap: np.ndarray) -> Row:
    """R squared of the last half of log gap against the iteration, and against its logarithm."""
    use = (number > number[-1] / 2) & (gap > 0.0)
    if number[-1] < LEAST or use.sum() < 3:
        return {"r2 linear": float("nan"), "r2 log": float("nan")}
    x, y = number[use].astype(float), np.log(gap[use])
    return {"r2 linear": float(np.corrcoef(x, y)[0, 1] ** 2), "r2 log": float(np.corrcoef(np.log(x), y)[0, 1] ** 2)}


def _findings(rows: pd.DataFrame) -> dict[str, Finding]:
    plain, searched = (rows[rows["solver"] == solver] for solver in (PLAIN, SEARCHED))
    falls, pairs = _falls(plain)
    few, few_searched = plain["to 0.001"] <= 200, searched["to 0.001"] <= 200
    judged = plain[plain["r2 linear"].notna()]
    linear = judged["r2 linear"] > judged["r2 log"]
    return {
        "monotone": finding(
            pairs, len(pairs) - len(falls) >= MOST * len(pairs), f"falls in {len(falls)} of {len(pairs)} pairs"
        ),
        "few": finding(
            few,
            few.mean() >= MOST,
            f"{int(few.sum())} of {len(few)} cells ({_from(plain[~few])}); with the line search"
            f" {int(few_searched.sum())}",
        ),
        "linear": finding(judged, linear.mean() > 0.5, f"{int(linear.sum())} of {len(judged)} cells"),
    }


def _falls(plain: pd.DataFrame) -> tuple[list[float], list[float]]:
    """Of neighbouring lambdas that both get to 1e-3, those where the smaller takes fewer iterations by a tenth."""
    pairs: list[float] = []
    for _, lines in plain.groupby("data"):
        counts = lines.sort_values("lambda", ascending=False)["to 0.001"].to_numpy()
        pairs += [after / before for before, after in itertools.pairwise(counts) if np.isfinite(before + after)]
    return [one for one in pairs if one < 0.9], pairs


def _from(many: pd.DataFrame) -> str:
    """Where the bound of 200 fails."""
    largest = many.groupby("data", sort=False)["lambda"].max()
    return "; ".join(f"not from {lam:g} down on {name}" for name, lam in largest.items()) or "all"


def _table(rows: pd.DataFrame) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
    counts = [f"to {gap:g}" for gap in GAPS]
    lines = [
        (one["data"], f"{one['lambda']:g}", one["solver"], *(_count(one[key]) for key in counts))
        for _, one in rows.iterrows()
    ]
    return ("data", "lambda", "solver", *(f"gap {gap:g}" for gap in GAPS)), lines


def _count(value: float) -> str:
    return f"{value:.0f}" if np.isfinite(value) else f"> {CAP}"


def _plot(rows: pd.DataFrame, path: Path) -> None:
    """Gap against iteration, as figure 7; without the line search."""
    from matplotlib import colormaps

    plain = rows[rows["solver"] == PLAIN]
    figure, axes = panels(plain["data"].nunique(), share_y=True)
    colours = dict(zip(LAMBDAS, colormaps["viridis"](np.linspace(0.0, 0.9, len(LAMBDAS)))))
    for axis, (data, lines) in zip(axes, plain.groupby("data", sort=False), strict=True):
        for line in lines.sort_values("lambda", ascending=False).to_dict("records"):
            lam = line["lambda"]
            axis.semilogy(*points(line["curve"]), label=f"{lam:g}", color=colours[lam], lw=1.2)
        axis.set(title=data, xlabel="iterations")
    axes[0].set_ylabel("gap")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right", frameon=False, fontsize=7, title="lambda")
    saved(figure, path)


STUDY = Study(
    "kdd_7",
    _cells,
    _run,
    _findings,
    _table,
    _plot,
    lacks="Web8 (w8a is the same collection), KDDCup 99, Reuters, arXiv and real-sim; farm-ads stands for text.",
    misprints=("Section 5.3 lists 13 values of lambda of which 0.00001 and 1e-05 are one; 5.4 repeats the list.",),
    why="The number of planes grows as lambda falls, as theorem 2 has it, and without a line search most of the late"
    " ones are spent on points that do not lower J. 20 to 200 is what the larger half of the lambdas takes. With"
    " the line search of the F-measure paper, which this paper does not have, the range nearly holds. On farm-ads,"
    " which is separable, the count stays the same below 1e-4: J itself is near 0 there, and the gaps are absolute."
    " Over the last half of a run the gap falls geometrically about as often as it falls by a power.",
)
