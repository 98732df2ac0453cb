"""`auto` over ranks whose rows stay where they are, against other programs for MPI: seconds to two gaps.

`blockERM` (Lee and Chang 2017) has three of them: the authors' block-diagonal ascent (BDA) with an exact line search,
DisDCA, whose practical variant is CoCoA+, and the trust-region Newton method of MPI-LIBLINEAR (Zhuang et al. 2015).
`make` builds it with the compilers of the `mpich` wheel on the path; the variable BLOCK_ERM names the program `train`,
and without it there is no table. `measure` starts mpirun, which runs `main` here on every rank.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np

from benchmarks.harness import Table, on_ranks
from bmrm.data.dataset import Dataset

RANKS = (1, 2)
TOLERANCES = (1e-3, 1e-6)
REFERENCE = 1e-7
"""Gap of the reference objective, which one rank finds."""
LIMIT, REPETITIONS, ENOUGH = 40.0, 3, 4.0
"""Seconds of a run at most; how many runs, but one where it takes more than `ENOUGH` seconds."""
PEERS = {
    "BDA": {"hinge": 1, "squared_hinge": 0, "logistic": 2},
    "DisDCA": {"hinge": 6, "squared_hinge": 5, "logistic": 7},
    "trust region": {"squared_hinge": 3, "logistic": 4},
}
"""Options `-s` of `train` by loss."""
WEIGHTS = {"hinge": 1.0, "squared_hinge": 0.5, "logistic": 1.0}
"""Of a row's loss in the peers' terms over ours."""
_DUAL = re.compile(r"Primal (\S+) Step \S+ Time (\S+)")
_NEWTON = re.compile(r"FUN (\S+) time (\S+)")


def texts() -> Dataset:
    """200,000 rows of 60 words out of 40,000, a few of them frequent; unit rows and noisy classes."""
    import scipy.sparse as sp

    rng, rows, columns, words = np.random.default_rng(7), 200_000, 40_000, 60
    index = (columns * rng.random((rows, words)) ** 3).astype(np.int64).ravel()
    X = sp.csr_matrix((rng.random(index.size) + 0.1, (np.repeat(np.arange(rows), words), index)), shape=(rows, columns))
    X.sum_duplicates()
    X = sp.csr_matrix(sp.diags(1.0 / sp.linalg.norm(X, axis=1)) @ X)
    return _with_noisy_classes(X, rng)


def dense() -> Dataset:
    """60,000 correlated rows of 200 columns."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((60_000, 200)) @ (np.eye(200) + 0.1 * rng.standard_normal((200, 200))) / 14.0
    return _with_noisy_classes(X, rng)


def covtype() -> Dataset:
    """Columns of [0, 1], rows by region as they lie; only where the folder with data is."""
    from benchmarks.race.sets import load

    return load("covtype-scaled")


def mixed() -> Dataset:
    """The same rows, dealt by chance."""
    whole = covtype()
    return whole.select(np.random.default_rng(9).permutation(whole.rows))


def _with_noisy_classes(X: Any, rng: np.random.Generator) -> Dataset:
    scores = X @ rng.standard_normal(X.shape[1])
    return Dataset.from_arrays(X, np.where(scores + scores.std() * rng.standard_normal(scores.size) > 0.0, 1, -1))


DATA: dict[str, tuple[Callable[[], Dataset], float]] = {
    "texts": (texts, 1e-6),
    "covtype": (covtype, 1e-5),
    "covtype, mixed": (mixed, 1e-5),
    "dense": (dense, 1e-5),
}
"""Rows and lambda."""


def measure() -> Table | None:
    """A line for each problem, number of ranks and gap."""
    from benchmarks.race.sets import available

    program, rows = os.environ.get("BLOCK_ERM"), []
    if program is None:
        return None
    for name, (make, lam) in DATA.items():
        if name.startswith("covtype") and not available("covtype-scaled"):
            continue
        with tempfile.TemporaryDirectory() as folder:
            whole = make()
            for ranks in RANKS:
                write_shards(whole, Path(folder), ranks)
            for loss in PEERS["BDA"]:
                rows += _lines(program, Path(folder), name, whole.rows, loss, lam)
    return table(rows)


def write_shards(whole: Dataset, folder: Path, ranks: int) -> None:
    """For us and for the peers, which want svmlight text; each rank has its rows in their order."""
    from bmrm.data.writers import write_npz, write_svmlight

    for rank in range(ranks):
        mine = whole.part(whole.rows * rank // ranks, whole.rows * (rank + 1) // ranks)
        write_npz(folder / f"{ranks}-{rank}.npz", mine)
        write_svmlight(folder / (f"{ranks}.svm.{rank}" if ranks > 1 else f"{ranks}.svm"), mine)


def _lines(program: str, folder: Path, name: str, rows: int, loss: str, lam: float) -> list[tuple[object, ...]]:
    """Of one problem on one rank and on more."""
    ours = {ranks: on_ranks(ranks, "benchmarks.mpi_peers", str(folder), loss, str(lam)) for ranks in RANKS}
    found = []
    for ranks in RANKS:
        theirs = {}
        for peer, options in PEERS.items():
            if loss in options:
                cost = f"{WEIGHTS[loss] / (lam * rows):.17g}"
                told = [program, "-s", str(options[loss]), "-c", cost, "-e", "1e-9", str(folder / f"{ranks}.svm")]
                theirs[peer] = _peer(told, ranks, ours[RANKS[0]]["objective"] / lam)
        found += _cells((name, loss, ranks), ours[ranks]["runs"], theirs)
        print(*found[-len(TOLERANCES) :], sep="\n", file=sys.stderr, flush=True)
    return found


def _cells(
    problem: tuple[object, ...], ours: Sequence[dict[str, Any]], theirs: dict[str, list[float]]
) -> list[tuple[object, ...]]:
    found = []
    for turn, tolerance in enumerate(TOLERANCES):
        mine = ours[turn]
        reached = mine["gap"] <= tolerance
        seconds = median(mine["seconds"]) if reached else np.inf
        others = {peer: times[turn] for peer, times in theirs.items()}
        best = min(others.values())
        said = f"{seconds:.2f}" if reached else f"- (gap {mine['gap']:.0e})"
        cells = ("" if peer not in others else _seconds(others[peer]) for peer in PEERS)
        found.append((*problem, tolerance, said, mine["passes"], *cells, _ratio(seconds, best), mine["solver"]))
    return found


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}" if np.isfinite(seconds) else "-"


def _ratio(ours: float, best: float) -> str:
    if not np.isfinite(best):
        return "0" if np.isfinite(ours) else ""
    return f"{ours / best:.2f}" if np.isfinite(ours) else "-"


def _peer(command: Sequence[str], ranks: int, best: float) -> list[float]:
    """Seconds to each gap, the medians of some runs."""
    runs = [_run(command, ranks, best)]
    while len(runs) < REPETITIONS and runs[0][-1] <= ENOUGH:
        runs.append(_run(command, ranks, best))
    return [median(seconds) for seconds in zip(*runs)]


def _run(command: Sequence[str], ranks: int, best: float) -> list[float]:
    """Seconds by the program's own clock until its objective is within each gap of the best one; or infinite."""
    from bmrm.mpi.launch import needed_mpirun

    launcher = [needed_mpirun(), "-n", str(ranks)]
    with tempfile.TemporaryFile("w+") as said, tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen(
            [*launcher, *command, f"{folder}/model"], stdout=said, stderr=subprocess.DEVNULL
        ) as process:
            try:
                process.wait(LIMIT)
            except subprocess.TimeoutExpired:
                process.terminate()
        said.seek(0)
        text = said.read()
    points = [tuple(map(float, found)) for found in (_DUAL.findall(text) or _NEWTON.findall(text))]
    return [
        next((seconds for value, seconds in points if value <= (1.0 + tolerance) * best), np.inf)
        for tolerance in TOLERANCES
    ]


def table(rows: Sequence[tuple[object, ...]]) -> Table:
    """Of the lines of all problems."""
    ratios = {
        tolerance: [
            float(str(row[-2]))
            for row in rows
            if row[2] == 2 and row[3] == tolerance and str(row[-2]) not in ("", "-", "0")
        ]
        for tolerance in TOLERANCES
    }
    means = " and ".join(f"{geometric_mean(some):.2f} to {tolerance:g}" for tolerance, some in ratios.items() if some)
    return Table(
        "Ranks against other programs for MPI",
        "l2, no intercept, rows where they lie (those of covtype by region, and mixed), one thread a rank; `auto` to a"
        " certified gap, the peers of `blockERM`"
        " (built from its sources with mpich) until their objective is within the gap of ours at 1e-7, which nobody"
        f" would know. Seconds of the solver, reading left out, median of up to {REPETITIONS}; - where {LIMIT:g} s,"
        " of a peer with its reading, do not suffice; 0 where no peer gets there. On two ranks we take"
        f" {means} of the fastest peer's time (geometric mean of the lines in which both get there).",
        ("data", "loss", "ranks", "to", "bmrm", "passes", *PEERS, "ours / best", "solver"),
        tuple(rows),
    )


def main() -> None:
    """On every rank: `auto` to each gap on the rank's shard; rank 0 prints the figures as JSON."""
    from bmrm.data.reading import read
    from bmrm.losses import LOSSES
    from bmrm.mpi.launch import open_group
    from bmrm.mpi.leading import lead
    from bmrm.mpi.shared import shared_risk

    folder, loss, lam = sys.argv[1:]
    group = open_group()
    mine = read(f"{folder}/{group.size}-{group.rank}.npz")
    risk = shared_risk(mine, LOSSES.make(loss), group, threads=1, share_rows=False)
    found = lead(risk, group, lambda risk: _ours(risk, float(lam), group.size == RANKS[0]))
    if group.rank == 0:
        print(json.dumps(found))


def _ours(risk: Any, lam: float, reference: bool) -> dict[str, Any]:
    from bmrm.regularizers.l2 import L2
    from bmrm.solvers import SOLVERS

    def solve(tolerance: float) -> Any:
        return SOLVERS.make("auto", {"tolerance": tolerance, "time_limit": LIMIT}).minimize(risk, L2(lam))

    solve(TOLERANCES[0])  # loads kernels
    runs = []
    for tolerance in TOLERANCES:
        several = [solve(tolerance)]
        while len(several) < REPETITIONS and several[0].seconds <= ENOUGH:
            several.append(solve(tolerance))
        last = several[-1]
        seconds = [each.seconds for each in several]
        gap = float(np.nan_to_num(last.relative_gap, posinf=1e9))
        runs.append({"seconds": seconds, "gap": gap, "passes": round(last.passes), "solver": last.solver})
    return {"runs": runs, "objective": solve(REFERENCE).objective if reference else None}


if __name__ == "__main__":
    main()
