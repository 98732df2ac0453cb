"""Two threads against one: a pass and training, on data of more than 1e7 entries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.harness import Table, alternated, ratio
from bmrm.kernels.workers import usable_cores

REPETITIONS = 9


def measure() -> Table | None:
    """One thread's time over that of two; None on one core."""
    if usable_cores() < 2:
        return None
    from bmrm.data.reading import read
    from bmrm.losses import LOSSES
    from bmrm.regularizers.l2 import L2
    from bmrm.risk.linear import LinearRisk
    from bmrm.solvers import SOLVERS

    data = read("synthetic:sparse_binary?rows=200000&features=50000&words=90&noise=0.03")
    w, rows = np.full(data.features, 0.01), []

    def passing(loss: str, count: int) -> Callable[[], object]:
        risk = LinearRisk(data, LOSSES.make(loss), threads=count)
        return lambda: risk.value_and_subgradient(w)

    def training(loss: str, count: int) -> Callable[[], object]:
        solver = SOLVERS.make("auto", {"tolerance": 1e-3})
        return lambda: solver.minimize(LinearRisk(data, LOSSES.make(loss), threads=count), L2(1e-4))

    for loss in ("hinge", "logistic"):
        for what, make in (("a pass", passing), ("training to 1e-3", training)):
            times = alternated({"one": make(loss, 1), "two": make(loss, 2)}, REPETITIONS)
            rows.append((f"{loss}, {what}", times["one"], times["two"], ratio(times["one"], times["two"])))
    return Table(
        "Two threads against one",
        f"{data.rows} x {data.features}, {data.nnz} entries, L2 1e-4; one thread's time over that of two.",
        ("what", "one thread", "two threads", "gain"),
        tuple(rows),
    )
