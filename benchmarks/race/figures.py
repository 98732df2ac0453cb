"""The plots of a race: suboptimality against time for each problem, performance profiles over all."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from benchmarks.race.statistics import performance_profile
from benchmarks.race.summary import Record, ours_of, profile_times
from benchmarks.race.targets import KINDS

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PROFILE = "profile.png"
FLOOR = 1e-9
"""Suboptimalities below are drawn here."""
FARTHEST = 100.0
"""The largest factor of the performance profile."""


def all_figures(records: Sequence[Record], folder: Path) -> list[Path]:
    """A plot for each problem, and those of the page; returns the latter."""
    folder.mkdir(parents=True, exist_ok=True)
    for record in records:
        figure, axis = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
        trajectory(record, axis)
        _save(figure, folder / f"{slug(record['name'])}.png")
    kinds = [kind for kind in KINDS if any(record["kind"] == kind for record in records)]
    return [*(panel(records, kind, folder / f"class-{kind}.png") for kind in kinds), profile(records, folder / PROFILE)]


def panel(records: Sequence[Record], kind: str, path: Path) -> Path:
    """Up to six problems of a class, evenly chosen from all."""
    mine = [record for record in records if record["kind"] == kind]
    chosen = [mine[k] for k in sorted({int(k) for k in np.linspace(0, len(mine) - 1, min(6, len(mine)))})]
    rows = (len(chosen) + 1) // 2
    figure, axes = plt.subplots(rows, 2, figsize=(11.0, 3.6 * rows), layout="constrained", squeeze=False)
    for axis, record in zip(axes.ravel(), chosen, strict=False):
        trajectory(record, axis)
    for axis in axes.ravel()[len(chosen) :]:
        axis.set_visible(False)
    return _save(figure, path)


def slug(name: str) -> str:
    """A file name."""
    return re.sub(r"[^a-zA-Z0-9.]+", "-", name).strip("-")


def trajectory(record: Record, axis: Any) -> None:
    """Suboptimality against seconds: our history and its certified gap, the peers' ladders as points."""
    minimum = math.nan if record["minimum"] is None else record["minimum"]
    history = _history(record)
    times = [line[0] for line in history if line[1] is not None]
    axis.plot(times, [_relative(line[1], minimum) for line in history if line[1] is not None], "k-", lw=2, label="bmrm")
    gaps = [(line[0], _relative(line[1], line[2])) for line in history if None not in (line[1], line[2])]
    axis.plot([gap[0] for gap in gaps], [gap[1] for gap in gaps], "k--", lw=1, label="bmrm, certified gap")
    for entrant in record["entrants"]:
        if entrant["ours"]:
            continue
        points = [(one["seconds"], one["suboptimality"]) for one in entrant["ladder"] if one["status"] == "ok"]
        points = sorted((s, max(r, FLOOR)) for s, r in points if s is not None and r is not None)
        if points:
            axis.plot([p[0] for p in points], [p[1] for p in points], "o-", ms=3, lw=0.8, label=entrant["name"])
    if all(np.size(line.get_xdata()) == 0 for line in axis.lines):
        axis.set(title=f"{record['name']}: no run")
        return
    axis.set(xscale="log", yscale="log", xlabel="seconds", ylabel="J / J* - 1", title=record["name"])
    axis.grid(visible=True, alpha=0.3)
    axis.legend(frameon=False, fontsize=7, ncols=2)


def _save(figure: Any, path: Path) -> Path:
    figure.savefig(path, dpi=100)
    plt.close(figure)
    return path


def profile(records: Sequence[Record], path: Path) -> Path:
    """Dolan & More: the share of problems and accuracies solved within a factor of the fastest, by program."""
    figure, axis = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
    for name, (factors, shares) in performance_profile(profile_times(records)).items():
        ours = name == "bmrm"
        x, y = [*factors, FARTHEST], [*shares, shares[-1]]
        axis.step(x, y, where="post", lw=2.2 if ours else 1.0, color="k" if ours else None, label=name)
    axis.set(
        xscale="log",
        xlim=(1.0, FARTHEST),
        ylim=(0.0, 1.02),
        xlabel="factor of the fastest time",
        ylabel="share of problems and accuracies",
        title="Performance profile",
    )
    axis.grid(visible=True, alpha=0.3)
    if axis.lines:
        axis.legend(frameon=False, fontsize=8, loc="lower right")
    return _save(figure, path)


def _history(record: Record) -> list[list[Any]]:
    """Of our tightest run that is kept."""
    ladder: list[Mapping[str, Any]] = [one for one in ours_of(record)["ladder"] if one["details"].get("history")]
    return list(ladder[-1]["details"]["history"]) if ladder else []


def _relative(value: float, base: float) -> float:
    return max(FLOOR, (value - base) / max(abs(value), 1e-300)) if math.isfinite(base) else math.inf
