"""This machine, described as a cluster: `main` is run by two ranks, and rank 0 prints what they found as JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.simulator.clusters import Cluster
from benchmarks.simulator.recorder import TURNS, fastest, timed
from benchmarks.simulator.replay import REQUEST
from bmrm.data.reading import read
from bmrm.kernels.workers import usable_cores
from bmrm.losses import LOSSES
from bmrm.mpi.communicator import MpiGroup
from bmrm.risk.linear import LinearRisk

MANY = 400
"""Messages that are timed; those that a quarter of them undercut counts, as waiting ranks nap."""


def main(arguments: list[str]) -> None:
    """On two ranks: messages of a request and of the weights of so many features, and passes over rows of each."""
    rows, features = map(int, arguments)
    group = MpiGroup.world()
    latency = _exchange(group, np.zeros(REQUEST, np.uint8), np.zeros(3))
    long = _exchange(group, np.zeros(features), np.zeros(features))
    data = read(f"synthetic:sparse_binary?rows={rows}&features={features}")
    risk = LinearRisk(data, LOSSES.make("hinge"), threads=1)
    w = np.full(risk.dim, 1e-3)
    alone, together = _alone_and_together(group, lambda: risk.value_and_subgradient(w))
    if group.rank == 0:
        found = Cluster(
            nodes=1,
            cores=max(group.size, usable_cores()),
            latency=latency,
            bandwidth=8.0 * features / max(long - latency, 1e-9),
            memory=float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")),
            crowding=max(1.0, together / alone),
            source="measured",
        )
        print(found.model_dump_json())


def _exchange(group: MpiGroup, out: NDArray[Any], back: NDArray[Any]) -> float:
    """Seconds of a message out, or of one back."""

    def both() -> None:
        group.send_out(out)
        group.add_up(back)

    group.barrier()
    return float(np.quantile(timed(both, MANY), 0.25)) / 2.0


def _alone_and_together(group: MpiGroup, function: Callable[[], object]) -> tuple[float, float]:
    """Seconds of a call on rank 0 while the others sleep, and while they do the same."""
    fastest(function, 1)
    group.barrier()
    alone = fastest(function, TURNS) if group.rank == 0 else 0.0
    group.barrier()
    return alone, fastest(function, TURNS)


if __name__ == "__main__":
    main(sys.argv[1:])
