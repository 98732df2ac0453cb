"""What ranks say to one another, counted: by solver, for each iteration, on two ranks and on more.

`measure` starts mpirun, which runs `main` here on every rank, with a group that counts.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from benchmarks.harness import Table, on_ranks
from bmrm.mpi.communicator import MpiGroup

ROWS, FEATURES = 4000, 3000
"""Of the sparse problem; its weights are more than the numbers of any exchange."""
LAMBDA, ITERATIONS, RANKS = 1e-4, 40, 2
CASES: tuple[tuple[str, str, str], ...] = (
    ("bundle", "hinge", "l2"),
    ("line_search_bundle", "hinge", "l2"),
    ("line_search_bundle", "softmax", "l2"),
    ("line_search_bundle", "multiclass_hinge", "l2"),
    ("lbfgs", "hinge", "l2"),
    ("lbfgs", "logistic", "l2"),
    ("lbfgs", "roc_area", "l2"),
    ("newton", "logistic", "l2"),
    ("semismooth_newton", "hinge", "l2"),
    ("irls", "logistic", "l2"),
    ("nonlinear_cg", "logistic", "l2"),
    ("proximal_gradient", "logistic", "l1"),
    ("proximal_newton", "logistic", "l1"),
    ("dual_coordinate", "hinge", "l2"),
    ("pegasos", "hinge", "l2"),
    ("probe", "hinge", "l2"),
)
"""Solver, loss, regularizer."""
SEVERAL = ("softmax", "multiclass_hinge")
"""Losses that get eight classes."""


@dataclass
class Counts:
    """Of one rank.

    Attributes
    ----------
    out : weights, or as many numbers, that rank 0 has sent to all, in vectors of `dim`.
    in_ : gradients, or as many numbers, that have been added up, in vectors of `dim`.
    exchanges : of fewer numbers, for which rank 0 has waited.
    gathered : numbers of rows that have come to rank 0 or gone from it.
    messages, bytes : in all.
    """

    out: float = 0.0
    in_: float = 0.0
    exchanges: int = 0
    gathered: int = 0
    messages: int = 0
    bytes: int = 0

    def since(self, before: Counts) -> Counts:
        """What has come to these."""
        return Counts(*(now - then for now, then in zip(asdict(self).values(), asdict(before).values())))


class CountingGroup(MpiGroup):
    """A group that counts what it carries, by kind.

    Parameters
    ----------
    dim : numbers of a vector of weights.
    """

    dim = 1 << 62
    counts = Counts()

    def send_out(self, buffer: NDArray[Any]) -> None:
        """As of `MpiGroup`."""
        if buffer.dtype != np.uint8 and buffer.size >= self.dim:
            self.counts.out += buffer.size / self.dim
        super().send_out(buffer)

    def start_adding(self, part: NDArray[np.float64], total: NDArray[np.float64] | None) -> list[MPI.Request]:
        """As of `MpiGroup`."""
        self._add(part.size)
        return super().start_adding(part, total)

    def _add_up_directly(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        self._add(part.size)
        return super()._add_up_directly(part)

    def _add(self, size: int) -> None:
        if size >= self.dim:
            self.counts.in_ += size / self.dim
        else:
            self.counts.exchanges += 1

    def _gather_parts(self, flat: NDArray[Any]) -> list[NDArray[Any]] | None:
        self.counts.gathered += flat.size
        return super()._gather_parts(flat)

    def hand_out(self, whole: NDArray[np.float64] | None, rows: int) -> NDArray[np.float64]:
        """As of `MpiGroup`."""
        self.counts.gathered += 0 if whole is None else whole.size
        return super().hand_out(whole, rows)

    def _count(self, array: NDArray[Any]) -> None:
        super()._count(array)
        self.counts.messages += 1
        self.counts.bytes += array.nbytes


def measure() -> Table:
    """A line for each solver and loss."""
    rows = []
    for run in launched(RANKS, CASES):
        each = max(1, run["iterations"])
        counts = run["counts"]
        parts = [f"{run[name] / run['seconds']:.0%}" for name in ("computing", "waiting", "network")]
        rows.append(
            (
                run["solver"],
                f"{run['loss']}, {run['regularizer']}",
                run["iterations"],
                f"{run['passes'] / each:.1f}",
                *(f"{counts[name] / each:.1f}" for name in ("out", "in_", "exchanges", "messages")),
                f"{counts['bytes'] / each / 1e3:.0f}",
                run["held"],
                *parts,
            )
        )
    return Table(
        "What ranks say to one another",
        f"Two ranks, {ROWS:,} sparse rows of {FEATURES:,} features, lambda {LAMBDA:g}, {ITERATIONS} iterations at most."
        " For each iteration: passes over the data; vectors of weights sent to all, vectors of gradients added up,"
        " other exchanges for which rank 0 waits (values, slopes, trial steps), messages (a request is one, what is"
        " sent with it or comes back another) and kilobytes; the most arrays of scores that a rank has kept; of the"
        " seconds what rank 0 computed, waited for slower ranks, and spent on messages.",
        (
            "solver",
            "problem",
            "iterations",
            "passes",
            "weights out",
            "gradients in",
            "exchanges",
            "messages",
            "kB",
            "arrays",
            "computing",
            "waiting",
            "network",
        ),
        tuple(rows),
    )


def launched(ranks: int, cases: tuple[tuple[str, str, str], ...]) -> list[dict[str, Any]]:
    """Run the cases on so many ranks."""
    found: list[dict[str, Any]] = on_ranks(ranks, "benchmarks.messages", json.dumps(cases))
    return found


def main(arguments: list[str]) -> None:
    """On every rank; rank 0 prints the figures as JSON."""
    from bmrm.data.reading import read
    from bmrm.losses import LOSSES
    from bmrm.mpi.launch import open_group
    from bmrm.mpi.leading import lead
    from bmrm.mpi.shared import shared_risk
    from bmrm.problem import Targets

    opened = open_group()
    assert isinstance(opened, MpiGroup)
    group, found = CountingGroup(opened.comm), []
    for solver, name, regularizer in json.loads(arguments[0]):
        loss = LOSSES.make(name)
        whole = read(f"synthetic:sparse_binary?rows={ROWS}&features={FEATURES}")
        if name in SEVERAL:
            classes = np.random.default_rng(0).integers(0, 4, whole.rows)
            whole = replace(whole, targets=Targets(classes + 4.0 * (whole.targets.y > 0.0)))
        edges = [whole.rows * rank // group.size for rank in (group.rank, group.rank + 1)]
        risk = shared_risk(whole.part(*edges), loss, group, threads=1)
        group.dim = risk.dim
        run = lead(risk, group, lambda risk, names=(solver, regularizer): _run(risk, group, *names))
        if run is not None:
            found.append({"solver": solver, "loss": name, "regularizer": regularizer, **run})
    if group.rank == 0:
        print(json.dumps(found))


def _run(risk: Any, group: CountingGroup, name: str, regularizer: str) -> dict[str, Any]:
    from bmrm.regularizers import REGULARIZERS
    from bmrm.solvers import SOLVERS

    def minimise(iterations: int, tolerance: float) -> Any:
        solver = SOLVERS.make(name, {"tolerance": tolerance, "max_iterations": iterations, "time_limit": 20.0})
        return solver.minimize(risk, REGULARIZERS.make(regularizer, {"lambda": LAMBDA}), callback=look)

    most = [0]

    def look(line: Any) -> None:
        most[0] = max(most[0], risk.ranks.local.held)

    minimise(2, 0.5)  # loads kernels
    most[0] = 0
    before = Counts(**asdict(group.counts))
    solution = minimise(ITERATIONS, 1e-9)
    counts, last = group.counts.since(before), solution.history[-1]
    return {
        "iterations": solution.iterations,
        "passes": solution.passes,
        "counts": asdict(counts),
        "held": most[0],
        "seconds": max(last.seconds, 1e-9),
        "waiting": last.seconds_waiting,
        "network": last.seconds_network,
        "computing": max(0.0, last.seconds - last.seconds_waiting - last.seconds_network),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
