"""Run under mpirun: solve every loss on small data shared out over the ranks; rank 0 prints one JSON line."""

import json
import sys
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.labels import LabelSets
from bmrm.data.readers._core.shares import row_share
from bmrm.losses import LOSSES
from bmrm.mpi import communicator, scored
from bmrm.mpi.launch import open_group
from bmrm.mpi.leading import lead
from bmrm.mpi.shared import shared_risk
from bmrm.regularizers.l2 import L2
from bmrm.solvers import SOLVERS
from tests.targets import RESCALED, default_instance, groups_for, rescaled, targets_for


def small_data(loss: Any) -> tuple[np.ndarray, Any]:
    """The same on every rank; some features lean on the targets, so that there is something to learn."""
    y = targets_for(loss, rows=67)
    random = np.random.default_rng(7)
    X = random.normal(size=(67, 6))
    X[random.random(X.shape) < 0.4] = 0.0
    if loss.task in ("regression", "ranking", "ordinal"):
        X[:, 0] += 0.3 * y
    elif isinstance(y, LabelSets):
        X[:, :4] += y.indicator(y.classes())
    elif y.ndim == 1:
        X[:, 0] += y == y[0]
    return X, y


def instances() -> dict[str, Any]:
    """Every loss by its name, and with other options by its name and a number."""
    found: dict[str, Any] = {entry.name: default_instance(entry) for entry in LOSSES.all()}
    for name, variants in RESCALED.items():
        found |= {f"{name} {k}": rescaled(LOSSES.get(name), options) for k, options in enumerate(variants)}
    return found


def main(arguments: list[str]) -> None:
    """The losses named, or all; after `--small-pieces` in messages of seven numbers, gradients in parts of four."""
    small = "--small-pieces" in arguments
    names = [name for name in arguments if name != "--small-pieces"]
    with ExitStack() as stack:
        if small:  # what long vectors get
            stack.enter_context(mock.patch.object(communicator, "PIECE", 7))
            stack.enter_context(mock.patch.object(scored, "LONG", 4))
        solve(names)


def solve(names: list[str]) -> None:
    """Rows in rank order, the last rank without any when there are three."""
    group = open_group()
    sharers = 2 if group.size == 3 else group.size
    answers, known = {}, instances()
    for name in names or known:
        loss = known[name]
        X, y = small_data(loss)
        groups = groups_for(loss, rows=len(y))
        start, stop = row_share(len(y), group.rank, sharers, groups) if group.rank < sharers else (len(y), len(y))
        data = Dataset.from_arrays(X, y, groups=groups).part(start, stop)
        risk = shared_risk(data, loss, group)
        solver = SOLVERS.make("auto", {"tolerance": 1e-9})
        solution = lead(risk, group, lambda risk, solver=solver: solver.minimize(risk, L2(0.01)))
        if solution is not None:
            answers[name] = [solution.objective, solution.lower_bound, solution.status.name]
    if group.rank == 0:
        print(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1:])
