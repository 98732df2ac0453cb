"""Memory of each rank where each has a slice of the features of every plane (`mpi.slices`): it falls with the ranks."""

from __future__ import annotations

import json
import sys

import numpy as np

from benchmarks.harness import Table, on_ranks

FEATURES, PLANES, FEW, ROWS, ENTRIES = 5_000_000, 100, 4, 4_000, 50
RANKS = 1, 2, 4, 8


def measure() -> Table:
    """A line for each number of ranks."""
    rows = []
    for ranks in RANKS:
        many, few = (on_ranks(ranks, "benchmarks.slice_memory", str(planes)) for planes in (PLANES, FEW))
        found = max(many["peaks"]) - max(few["peaks"])
        due = 8e-6 * FEATURES * (PLANES - FEW) / ranks
        cells = f"{max(many['peaks']):.0f}", f"{max(few['peaks']):.0f}", f"{found:.0f}", f"{due:.0f}"
        rows.append((ranks, *cells, f"{found / due - 1.0:+.0%}", f"{many['objective']:.12g}"))
    return Table(
        "Memory of ranks with slices",
        f"Hinge, l2, {ROWS:,} rows of {ENTRIES} of {FEATURES:,} features, `bundle` with a plane an iteration, none of"
        f" which leaves, `mpi.slices`: most megabytes that any rank has had with {PLANES} planes and with {FEW},"
        " interpreter, rows and compiled kernels included, pages of library files left out; what the"
        f" {PLANES - FEW} planes between take; what is due: 8 bytes for each of their numbers, divided by the ranks."
        " The last column is the objective.",
        ("ranks", f"{PLANES} planes", f"{FEW} planes", "difference", "due", "excess", "objective"),
        tuple(rows),
    )


def main() -> None:
    """On every rank; rank 0 prints the peaks of all in megabytes, and the objective."""
    from benchmarks.memory import account
    from bmrm.data.dataset import Dataset
    from bmrm.data.matrix.csr import Csr
    from bmrm.losses import LOSSES
    from bmrm.mpi.group import Alone
    from bmrm.mpi.launch import open_group
    from bmrm.mpi.leading import lead
    from bmrm.mpi.shared import shared_risk
    from bmrm.problem import bound
    from bmrm.regularizers.l2 import L2
    from bmrm.solvers.bundle import Bundle

    group = open_group()
    random = np.random.default_rng(0)
    width = FEATURES // ENTRIES
    columns = np.arange(ENTRIES) * width + random.integers(0, width, (ROWS, ENTRIES))
    y = np.where(columns[:, 0] % 2 + random.normal(0.0, 0.7, ROWS) > 0.5, 1, -1)
    mine = slice(ROWS * group.rank // group.size, ROWS * (group.rank + 1) // group.size)
    indices = columns[mine].astype(np.int32)
    X = Csr(np.arange(len(indices) + 1) * ENTRIES, indices.ravel(), None, FEATURES)
    data = Dataset.from_arrays(X, y[mine])
    risk = shared_risk(data, LOSSES.make("hinge"), group, threads=1)
    solver = Bundle(tolerance=0.0, max_iterations=int(sys.argv[1]), idle_limit=None)

    def minimize(risk, start, callback):  # type: ignore[no-untyped-def]
        return solver.minimize(risk, bound(L2(1e-4), risk), start=start, callback=callback)

    if isinstance(group, Alone):
        solution = minimize(risk, None, None)
    else:
        from bmrm.mpi.sliced_run import Slices

        slices = Slices(risk, lambda inner: inner, minimize)  # type: ignore[arg-type]
        solution = lead(risk, group, lambda whole: slices.solution(whole, None, None))
    peaks = group.gather((account("VmHWM") - account("RssFile")) / 1e6)
    if solution is not None:
        print(json.dumps({"peaks": peaks, "objective": solution.objective}))


if __name__ == "__main__":
    main()
