"""One problem of KDD's figure 6 on every rank: `mpirun -n 2 python -m benchmarks.papers.nodes NAME` prints JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.harness import SHARED
from benchmarks.race import sets
from bmrm.data.dataset import Dataset

TOLERANCE, LIMIT, REPETITIONS = 0.01, 60.0, 5
PROBLEMS: Mapping[str, tuple[str, str, float]] = {
    "hinge": ("covtype-scaled", "hinge", 1e-4),
    "ndcg": ("mq2008", "ndcg", 1e-2),
    "ordinal": ("winequality-white", "ordinal", 1e-3),
    "tiny": ("tiny-binary", "hinge", 1e-2),
}
"""Data, loss and lambda of l2, by name."""


def load(name: str) -> Dataset:
    if name != "winequality-white":
        return sets.load(name)
    from bmrm.data.reading import read

    data = read(SHARED / "winequality-white.csv.xz", format={"name": "csv", "label": "quality"})
    X = np.asarray(data.X if isinstance(data.X, np.ndarray) else data.X.to_dense(), float)
    return Dataset.from_arrays((X - X.mean(axis=0)) / X.std(axis=0), data.targets.y)


def main() -> None:
    """Rank 0 prints the medians of some runs."""
    from bmrm.losses import LOSSES
    from bmrm.mpi.dealing import deal_out
    from bmrm.mpi.launch import open_group
    from bmrm.mpi.leading import lead
    from bmrm.mpi.shared import shared_risk

    data, loss, lam = PROBLEMS[sys.argv[1]]
    group, whole = open_group(), load(data)
    edges = [whole.rows * rank // group.size for rank in (group.rank, group.rank + 1)]
    mine = deal_out(whole.part(*edges), group, 0)
    risk = shared_risk(mine, LOSSES.make(loss), group, threads=1, share_rows=True)
    found = lead(risk, group, lambda risk: _runs(risk, lam))
    if group.rank == 0:
        print(json.dumps(found))


def _runs(risk: Any, lam: float) -> dict[str, float]:
    """Medians of seconds in all, in the risk, in the master and in messages, least and most in all; iterations."""
    import bmrm

    runs = []
    for _ in range(1 + REPETITIONS):
        found = bmrm.minimize(risk, bmrm.L2(lam), "bundle", tolerance=TOLERANCE, time_limit=LIMIT)
        last = found.history[-1]
        runs.append((found.seconds, last.seconds_risk, last.seconds_master, last.seconds_network, found.iterations))
    names = ("seconds", "risk", "master", "network", "iterations")
    table = np.array(runs[1:])
    found = dict(zip(names, map(float, np.median(table, axis=0))))
    return found | {"least": float(table[:, 0].min()), "most": float(table[:, 0].max())}


if __name__ == "__main__":
    main()
