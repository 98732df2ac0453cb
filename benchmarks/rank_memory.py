"""Memory of each rank of a job, on one to eight ranks: it falls with the rows."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness import Table, on_ranks

ROWS, FEATURES, ENTRIES = 300_000, 5_000, 40
RANKS, SOLVERS, ITERATIONS = (1, 2, 4, 8), ("lbfgs", "line_search_bundle", "dual_coordinate"), 30


def measure() -> Table:
    """A line for each number of ranks."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.svm"
        _write(path)
        found = {
            ranks: {solver: on_ranks(ranks, "benchmarks.rank_memory", str(path), solver) for solver in SOLVERS}
            for ranks in RANKS
        }
    rows = []
    for ranks, runs in found.items():
        cells = []
        for solver in SOLVERS:
            peaks, passes = runs[solver]["peaks"], runs[solver]["passes"]
            others = f", others {max(peaks[1:]):.0f}" if ranks > 1 else ""
            cells.append(f"{peaks[0]:.0f}{others} ({passes:.0f} passes)")
        rows.append((ranks, *cells))
    return Table(
        "Memory of ranks",
        f"Hinge, l2, {ROWS:,} rows of {ENTRIES} of {FEATURES:,} features from one svmlight file"
        f" ({4 * ROWS * ENTRIES / 1e6:.0f} MB of column numbers in all), {ITERATIONS} iterations at most: most"
        f" megabytes that rank 0, and of the others the largest, has had, reading, interpreter and compiled kernels"
        f" included, pages of library files left out.",
        ("ranks", *SOLVERS),
        tuple(rows),
    )


def _write(path: Path) -> None:
    rng = np.random.default_rng(0)
    width = FEATURES // ENTRIES
    with path.open("w") as stream:
        for _ in range(ROWS // 1000):
            columns = np.arange(ENTRIES) * width + rng.integers(1, width, (1000, ENTRIES))
            labels = np.where(columns[:, 0] % 2 + rng.normal(0.0, 0.7, 1000) > 0.5, "+1", "-1")
            stream.writelines(
                f"{label} {' '.join(f'{column}:1' for column in row)}\n" for label, row in zip(labels, columns)
            )


def main() -> None:
    """On every rank; rank 0 prints the peaks of all in megabytes, and passes."""
    from benchmarks.memory import account
    from bmrm.data.reading import scan
    from bmrm.losses import LOSSES
    from bmrm.mpi.launch import open_group
    from bmrm.mpi.leading import lead
    from bmrm.mpi.shared import shared_risk
    from bmrm.regularizers.l2 import L2
    from bmrm.solvers import SOLVERS as REGISTRY

    group = open_group()
    data = scan(sys.argv[1], part=group.rank, parts=group.size).dataset(features=FEATURES, one_based=True)
    risk = shared_risk(data, LOSSES.make("hinge"), group, threads=1)
    solver = REGISTRY.make(sys.argv[2], {"tolerance": 1e-9, "max_iterations": ITERATIONS})
    solution = lead(risk, group, lambda risk: solver.minimize(risk, L2(1e-4)))
    peaks = group.gather((account("VmHWM") - account("RssFile")) / 1e6)
    if solution is not None:
        print(json.dumps({"peaks": peaks, "passes": solution.passes}))


if __name__ == "__main__":
    main()
