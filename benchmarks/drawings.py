"""Figures of the papers, drawn anew into docs/figures: bundle method with and without line search, PROBE's 1 and 2."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import SHARED, Table
from bmrm.data.reading import read
from bmrm.losses import LOSSES
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers.bundle import Bundle
from bmrm.solvers.line_search_bundle import LineSearchBundle
from bmrm.solvers.probe import Probe

FIGURES = Path(__file__).resolve().parents[1] / "docs" / "figures"
LAMBDAS = (1e-3, 1e-4, 1e-5)
NEAR = (0.96, 0.98, 1.02, 1.04)
"""Factors of a lambda."""
COLOURS = {"with line search": "tab:blue", "without": "tab:orange"}


def measure() -> Table | None:
    """None where the shared data are missing."""
    if not SHARED.is_dir():
        return None
    import matplotlib as mpl

    mpl.use("Agg")
    FIGURES.mkdir(exist_ok=True)
    risk = LinearRisk(read(SHARED / "a9a.svm.xz"), LOSSES.make("hinge"), threads=1)
    rows = [*_line_search(risk), *_probe(risk)]
    return Table(
        "Figures of the papers",
        "On a9a, hinge loss, L2: see the page on the papers. Numbers of PROBE are medians over this lambda and"
        f" {len(NEAR)} within {100.0 * (max(NEAR) - 1.0):.0f} % of it.",
        ("figure", "lambda", "what", "value"),
        tuple(rows),
    )


def _line_search(risk: LinearRisk) -> list[tuple[object, ...]]:
    """Objective of every iterate above the minimum, by iteration (figure 2 of the F-measure paper)."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(LAMBDAS), figsize=(10.0, 3.2), layout="constrained", sharey=True)
    rows: list[tuple[object, ...]] = []
    for axis, lam in zip(axes, LAMBDAS, strict=True):
        exact = LineSearchBundle(tolerance=1e-8).minimize(risk, L2(lam))
        minimum = exact.objective
        searched = LineSearchBundle(tolerance=1e-3).minimize(risk, L2(lam))
        iterates = _iterates_of_bundle(risk, lam)
        curves = {"with line search": [line.objective for line in searched.history], "without": iterates}
        for label, values in curves.items():
            above = np.array(values) / minimum - 1.0
            axis.loglog(
                np.arange(1, len(above) + 1), np.maximum(above, 1e-6), color=COLOURS[label], label=label, lw=1.2
            )
            rows.append(("line_search.png", f"{lam:g}", f"iterations to 1e-3, {label}", len(values)))
        axis.set(title=f"lambda = {lam:g}", xlabel="iteration")
        axis.grid(visible=True, alpha=0.3)
    axes[0].set_ylabel("J / min J - 1")
    axes[0].legend(frameon=False)
    figure.savefig(FIGURES / "line_search.png", dpi=110)
    plt.close(figure)
    return rows


def _iterates_of_bundle(risk: LinearRisk, lam: float) -> list[float]:
    """J at every minimiser of the model, which the history of best points does not show."""

    class Watched:
        dim, infimum = risk.dim, risk.infimum

        def __init__(self) -> None:
            self.values: list[float] = []

        def value_and_subgradient(self, w: Any) -> tuple[float, Any]:
            value, a = risk.value_and_subgradient(w)
            self.values.append(value + L2(lam).value(w))
            return value, a

    watched = Watched()
    Bundle(tolerance=1e-3).minimize(watched, L2(lam))
    return watched.values


def _probe(risk: LinearRisk) -> list[tuple[object, ...]]:
    """Distance to the minimiser and objective of PROBE, PROBE* and IDEAL (figures 1 and 2 of the PROBE paper).

    A step more or less changes all that follow, so the numbers are medians over lambdas near that of the curves.
    """
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, len(LAMBDAS), figsize=(10.0, 5.6), layout="constrained", sharex="col")
    rows: list[tuple[object, ...]] = []
    for column, lam in enumerate(LAMBDAS):
        drawn = _probe_run(risk, lam)
        runs = [drawn, *(_probe_run(risk, lam * factor) for factor in NEAR)]
        for label, distance in drawn.distances.items():
            axes[0, column].plot(distance, label=label, lw=1.2)
            axes[1, column].semilogy(drawn.above[label], lw=1.0)
            last = np.median([run.distances[label][-1] for run in runs])
            rows.append(("probe.png", f"{lam:g}", f"last distance, {label}", f"{last:.3g}"))
        rows.append(("probe.png", f"{lam:g}", "iterations", f"{np.median([run.iterations for run in runs]):.0f}"))
        rows.append(("probe.png", f"{lam:g}", "J / min J - 1", f"{np.median([run.reached for run in runs]):.1e}"))
        axes[0, column].set(title=f"lambda = {lam:g}")
        axes[1, column].set(xlabel="iteration")
        for axis in axes[:, column]:
            axis.grid(visible=True, alpha=0.3)
    axes[0, 0].set_ylabel("||w - w*||")
    axes[1, 0].set_ylabel("J / min J - 1")
    axes[0, 0].legend(frameon=False)
    figure.savefig(FIGURES / "probe.png", dpi=110)
    plt.close(figure)
    return rows


@dataclass(frozen=True)
class ProbeRun:
    """Distances to the minimiser and J / min J - 1 of every step, by algorithm; what PROBE's run came to."""

    distances: dict[str, Any]
    above: dict[str, Any]
    iterations: int
    reached: float


def _probe_run(risk: LinearRisk, lam: float) -> ProbeRun:
    reference = LineSearchBundle(tolerance=1e-8).minimize(risk, L2(lam))
    solver = Probe(tolerance=0.0, diagnostics={"reference": tuple(reference.w)})
    solution = solver.minimize(risk, L2(lam))
    d = solution.details
    distances = {"PROBE": d["distance"], "PROBE*": d["probe_star_distance"], "IDEAL": d["ideal_distance"]}
    values = {"PROBE": d["value"], "PROBE*": d["probe_star_value"], "IDEAL": d["ideal_value"]}
    above = {label: value / reference.objective - 1.0 for label, value in values.items()}
    return ProbeRun(distances, above, solution.iterations, solution.objective / reference.objective - 1.0)
