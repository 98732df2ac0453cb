"""The two line searches of `line_search_bundle`: a bracket against sorted breakpoints."""

from __future__ import annotations

from typing import Any

from benchmarks.harness import SHARED, Table, alternated, ratio
from benchmarks.race.sets import load
from bmrm.losses import LOSSES
from bmrm.regularizers.elastic_net import ElasticNet
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers.line_search_bundle import LineSearchBundle

DATA = {"a9a": "hinge", "w8a": "hinge", "cpusmall": "least_absolute_deviation"}
LAMBDAS = (1e-3, 1e-5)
TOLERANCE = 1e-3
REPETITIONS = 5


def measure() -> Table | None:
    """None where the shared data are missing."""
    if not SHARED.is_dir():
        return None
    rows = []
    for name, loss in DATA.items():
        risk = LinearRisk(load(name), LOSSES.make(loss), threads=1)
        for lam in LAMBDAS:
            for omega in (L2(lam), ElasticNet(lam, 0.5)):
                rows.append((name, loss, f"{type(omega).__name__} {lam:g}", *_row(risk, omega)))
    columns = ("data", "loss", "regularizer", "bracket", "exact", "exact / bracket", "iterations")
    note = (
        f"`line_search_bundle` to a gap of {TOLERANCE:g}, one thread, seconds of {REPETITIONS} runs in turn with"
        " `search: bracket` and `search: exact`; iterations of either."
    )
    return Table("Line searches: bracket and breakpoints", note, columns, tuple(rows))


def _row(risk: LinearRisk, omega: Any) -> tuple[object, ...]:
    iterations = {}

    def run(search: str) -> None:
        solution = LineSearchBundle(tolerance=TOLERANCE, search=search).minimize(risk, omega)
        iterations[search] = solution.iterations

    times = alternated({name: lambda name=name: run(name) for name in ("bracket", "exact")}, REPETITIONS)
    steps = f"{iterations['bracket']} / {iterations['exact']}"
    return times["bracket"], times["exact"], ratio(times["exact"], times["bracket"]), steps
