"""PROBE, the bundle method and Pegasos on small corpora; Huber and maximum entropy by PROBE; L-BFGS."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bmrm
from benchmarks.papers.claims import LEVEL, MOST
from benchmarks.papers.fits import risk
from benchmarks.papers.plots import panels, saved
from benchmarks.papers.sets import TINY, mean_norm_squared, two_thirds, with_bias
from benchmarks.papers.study import Finding, Row, Study, finding
from bmrm.metrics.ranked import average_precision, break_even
from bmrm.solvers.pegasos import Pegasos
from bmrm.solvers.probe import Probe

SETS = ("farm-ads", "rcv1_small", *(f"news20={k}" for k in range(1, 21)))
TIGHT = "bundle, 0.001"
"""SVMperf's own default: its epsilon of 0.1 counts losses in per cent (footnote 1 of the paper)."""
PROBE, ALL_ACTIVE, BUNDLE, CERTIFIED, PEGASOS = "PROBE", "PROBE, all active", "bundle", "certified", "Pegasos"
HUBER, MAX_ENT, LBFGS = "PROBE, Huber", "PROBE, MaxEnt", "L-BFGS, MaxEnt"
STOPS = (100, 200, 300, 400, 500)
"""Iterations of Pegasos, of which the paper takes those of the best break-even on the test rows."""


def _cells(size: str) -> list[Row]:
    few = ("farm-ads", "rcv1_small", "news20=1", "news20=11")
    return [{"data": name} for name in {"tiny": (TINY,), "quick": few, "full": SETS}[size]]


def _run(cell: Row, seed: int) -> list[Row]:
    train, test = two_thirds(cell["data"], seed)
    hinge, penalty = risk(train, "hinge"), bmrm.L2(mean_norm_squared(train) / train.rows)
    entropy, judged = risk(train, "logistic"), _Judge(test)
    probe = Probe(tolerance=0.0, minimum="partial", seed=seed)
    found = bmrm.minimize(hinge, penalty, probe)
    rows = [judged.row(PROBE, found, active=float(np.min(found.details["active"])))]
    rows.append(judged.row(ALL_ACTIVE, bmrm.minimize(hinge, penalty, Probe(tolerance=0.0, dormant=False, seed=seed))))
    loose = {"tolerance": 0.0, "absolute_tolerance": 0.01, "max_iterations": 2000}
    rows.append(judged.row(BUNDLE, bmrm.minimize(hinge, penalty, "bundle", **loose)))
    tight = loose | {"absolute_tolerance": 1e-3}
    rows.append(judged.row(TIGHT, bmrm.minimize(hinge, penalty, "bundle", **tight)))
    rows.append(judged.row(CERTIFIED, bmrm.minimize(hinge, penalty, "auto", tolerance=1e-4)))
    rows.append(_pegasos(train, test, penalty))
    huber = bmrm.minimize(risk(train, "modified_huber"), penalty, probe)
    rows.append(judged.row(HUBER, huber))
    entropic = bmrm.minimize(entropy, penalty, probe)
    rows.append(judged.row(MAX_ENT, entropic))
    newton = bmrm.minimize(entropy, penalty, "lbfgs", tolerance=1e-6)
    there = [line.passes for line in newton.history if line.objective <= entropic.objective]
    row = judged.row(LBFGS, newton)
    return [*rows, row | {"passes": there[0] if there else newton.passes}]


class _Judge:
    """MAP and break-even on the test rows, ties averaged over."""

    def __init__(self, test: bmrm.Dataset) -> None:
        self.y = (test.targets.y > 0.0).astype(float)
        self.map = risk(test, "hinge").map

    def of(self, w: Any) -> Row:
        f = np.asarray(self.map.matvec(w), float).ravel()
        return {"MAP": average_precision(self.y, f), "BE": break_even(self.y, f)}

    def row(self, method: str, found: bmrm.Solution, active: float = 1.0) -> Row:
        counts = {"steps": found.iterations, "passes": found.passes, "J": found.objective, "active": active}
        return {"method": method, **self.of(found.w), **counts}


def _pegasos(train: bmrm.Dataset, test: bmrm.Dataset, penalty: bmrm.L2) -> Row:
    """All rows in every step, with a bias; the number of steps that is best on the test rows, as the paper has it."""
    judged, best = _Judge(with_bias(test)), Row(BE=-1.0)

    def follow(line: bmrm.Iteration) -> bool:
        nonlocal best
        if line.iteration in STOPS and line.iterate is not None:
            row = judged.of(line.iterate) | {"steps": line.iteration, "passes": line.passes}
            best = row if row["BE"] > best["BE"] else best
        return False

    solver = Pegasos(sample=None, returns="last", tolerance=0.0, max_iterations=STOPS[-1])
    found = bmrm.minimize(risk(with_bias(train), "hinge"), penalty, solver, callback=follow)
    return {"method": PEGASOS, **best, "J": found.objective, "active": 1.0}


def _wide(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    return rows.pivot(index="data", columns="method", values=value)


def _findings(rows: pd.DataFrame) -> dict[str, Finding]:
    be, ap, steps = (_wide(rows, value) for value in ("BE", "MAP", "steps"))
    means = {value: table.mean() for value, table in (("MAP", ap), ("BE", be))}
    others = (BUNDLE, PEGASOS)
    behind = max(float(mean[other] - mean[PROBE]) for mean in means.values() for other in others)
    work = float(steps[PROBE].mean() / steps[BUNDLE].mean())
    active = _wide(rows, "active")[PROBE]
    lower = be[MAX_ENT] < be[PROBE]
    passes = _wide(rows, "passes")
    ratio = float((passes[MAX_ENT] / passes[LBFGS]).median())
    huber = float(means["BE"][HUBER] - means["BE"][PROBE])
    return {
        "not_inferior": finding(
            be,
            behind <= LEVEL,
            "; ".join(
                f"{value} {', '.join(f'{m} {mean[m]:.3f}' for m in (PROBE, *others))}" for value, mean in means.items()
            ),
        ),
        "work": finding(
            steps,
            work <= 2.0,
            f"{steps[PROBE].mean():.0f} steps, {steps[BUNDLE].mean():.0f} iterations: {work:.1f} times; to 0.001"
            f" {steps[TIGHT].mean():.0f} iterations",
        ),
        "dormant": finding(
            active,
            (active <= 0.3).mean() >= 0.5,
            f"down to {active.min():.2f} to {active.max():.2f}; 0.3 in {int((active <= 0.3).sum())} of {len(active)}",
        ),
        "huber": finding(be, abs(huber) <= LEVEL, f"{huber:+.4f} on average"),
        "max_ent": finding(lower, lower.mean() >= MOST, f"below on {int(lower.sum())} of {len(lower)}"),
        "lbfgs": finding(passes, ratio >= 2.0, f"{ratio:.1f} times the passes in the median"),
    }


def _table(rows: pd.DataFrame) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
    """Averages over problems, as the last line of table 3; and over the corpus of 20 classes."""
    corpus = rows["data"].str.partition("=")[0]
    lines = []
    for data, of in rows.assign(corpus=corpus).groupby("corpus", sort=False):
        for method, one in of.groupby("method", sort=False):
            mean = one[["MAP", "BE", "steps", "passes"]].mean()
            shown = (f"{mean['MAP']:.3f}", f"{mean['BE']:.3f}", f"{mean['steps']:.0f}", f"{mean['passes']:.0f}")
            lines.append((data, len(one), method, *shown))
    return ("corpus", "problems", "method", "MAP", "BE", "steps", "passes"), lines


def _plot(rows: pd.DataFrame, path: Path) -> None:
    """Break-even of each method against the certified hinge's; the tables have no figure of their own."""
    be = _wide(rows, "BE")
    figure, axes = panels(3, height=3.4)
    for axis, method in zip(axes, (PROBE, HUBER, MAX_ENT), strict=True):
        axis.plot(be[CERTIFIED], be[method], "o", ms=4, alpha=0.6)
        low, high = float(be.min().min()), float(be.max().max())
        axis.plot([low, high], [low, high], color="0.6", lw=0.8)
        axis.set(title=method, xlabel="break-even, certified hinge")
    axes[0].set_ylabel("break-even")
    saved(figure, path)


STUDY = Study(
    "probe_3_6",
    _cells,
    _run,
    _findings,
    _table,
    _plot,
    lacks="REBASE, MDR, Industry Sectors, WebKB, Reuters and MeSH; SVMperf itself, for which the bundle method stands.",
    why="At this lambda the bundle method needs few planes: to a gap of 0.01, and even to SVMperf's default, it"
    " takes a fraction of PROBE's steps, whose number hardly depends on the problem. MAP and break-even of PROBE"
    " are level with those of the certified minimum, so they are the hinge loss', not the algorithm's. Pegasos has"
    " a bias and is stopped where the test rows are best, which the paper says of it; that, and not the minimum, is"
    " what it gains. Maximum entropy at this lambda is the weaker objective, whichever solver minimises it; Huber's"
    " is the better one here, where the paper finds them equal.",
)
