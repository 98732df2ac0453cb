"""The plots of a race: suboptimality against time for each problem, and the performance profile over all."""

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

matplotlib.use("Agg")
import matplotlib.pyplot as plt

PROFILE = "profile.png"
FLOOR = 1e-9
"""Suboptimalities below are drawn here."""
FARTHEST = 100.0
"""The largest factor of the performance profile."""


def trajectories(records: Sequence[Record], folder: Path) -> None:
    """A plot for each problem."""
    for record in records:
        figure, axis = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
        trajectory(record, axis)
        _save(figure, folder / f"{slug(record['name'])}.png")


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
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)
    return path


def profile(records: Sequence[Record], path: Path) -> Path:
    """Dolan & More: the share of cases solved within a factor of the fastest, by program."""
    figure, axis = plt.subplots(figsize=(8.0, 4.6), layout="constrained")
    found = performance_profile(profile_times(records))
    for name, (factors, shares) in sorted(found.items(), key=lambda item: -item[1][1][-1]):
        ours = name == "bmrm"
        x, y = [*factors, max(FARTHEST, factors[-1])], [*shares, shares[-1]]
        axis.step(x, y, where="post", lw=2.4 if ours else 1.4, color="k" if ours else None, label=name)
    axis.set(
        xscale="log",
        xlim=(1.0, FARTHEST),
        ylim=(0.0, 1.02),
        xlabel="factor of the fastest time",
        ylabel="share of cases",
    )
    axis.xaxis.set_major_formatter("{x:g}")
    axis.grid(visible=True, alpha=0.3)
    if axis.lines:
        figure.legend(frameon=False, loc="outside right center")
    return _save(figure, path)


def _history(record: Record) -> list[list[Any]]:
    """Of our tightest run that is kept."""
    ladder: list[Mapping[str, Any]] = [one for one in ours_of(record)["ladder"] if one["details"].get("history")]
    return list(ladder[-1]["details"]["history"]) if ladder else []


def _relative(value: float, base: float) -> float:
    return max(FLOOR, (value - base) / max(abs(value), 1e-300)) if math.isfinite(base) else math.inf
