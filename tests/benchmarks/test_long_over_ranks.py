"""Long problems over ranks: the rows are the same on any number of ranks, and of the kind that the loss needs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.long_over_ranks import BLOCKS, PROBLEMS, _runs, table
from bmrm.losses import LOSSES
from bmrm.mpi.group import Alone
from bmrm.mpi.shared import shared_risk

SMALL = [replace(problem, of=replace(problem.of, rows=100 * BLOCKS, features=30)) for problem in PROBLEMS]


def full(X):
    return X.to_scipy().toarray() if hasattr(X, "to_scipy") else np.asarray(X)


@pytest.mark.parametrize("problem", SMALL, ids=lambda problem: problem.name)
def test_rows_do_not_depend_on_the_ranks(problem):
    whole = problem.of.part(0, 1)
    parts = [problem.of.part(rank, 2) for rank in range(2)]
    assert np.array_equal(full(whole.X), np.concatenate([full(part.X) for part in parts]))
    assert np.array_equal(whole.targets.y, np.concatenate([part.targets.y for part in parts]))
    assert whole.X.shape == (100 * BLOCKS, 30)
    kinds = len(np.unique(whole.targets.y))
    assert kinds == problem.of.targets if problem.of.targets else kinds > 100


@pytest.mark.parametrize("problem", SMALL[::5], ids=lambda problem: problem.name)
def test_a_run_reaches_the_gap(problem):
    loss = LOSSES.make(problem.loss, dict(problem.options))
    risk = shared_risk(problem.of.part(0, 1), loss, Alone(), threads=1)
    assert _runs(risk, 1e-3)["gap"] <= 1e-6


def test_the_table_has_a_line_for_each_and_counts_long_ones():
    run = {"seconds": [4.0, 2.0, 6.0], "gap": 1e-7, "passes": 20.0, "messages": 0, "solver": "newton"}
    found = {problem.name: {"1": run, "2": run | {"seconds": [2.0], "gap": 1e-3}} for problem in PROBLEMS}
    made = table(found)
    assert len(made.rows) == len(PROBLEMS)
    assert "tuning 0.50, at most 0.50, judging 0.50" in made.note
    assert made.rows[0][2:6] == ("4.00", "2.00 (gap 1e-03)", "0.50", "20 -> 20")
