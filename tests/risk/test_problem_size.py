"""How large data are, and how their rows spread."""

from __future__ import annotations

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr
from bmrm.problem.abilities import ProblemSize
from bmrm.risk.problem_size import problem_size
from bmrm.risk.products import Columns


def rows_of(spread: tuple[float, ...], rows: int = 4000) -> np.ndarray:
    rng = np.random.default_rng(3)
    rotation = np.linalg.qr(rng.normal(size=(len(spread), len(spread))))[0]
    return rng.normal(size=(rows, len(spread))) * np.array(spread) @ rotation


@pytest.mark.parametrize(("spread", "rank"), [((1.0,) * 8, 8.0), ((1.0, 1.0, 1e-3, 1e-3), 2.0), ((5.0, 0.01), 1.0)])
def test_the_effective_rank_is_the_number_of_directions_that_count(spread, rank):
    size = problem_size(rows_of(spread), Columns(), False, 1)
    assert size.effective_rank == pytest.approx(rank, rel=0.35)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("changed", [(), ("scale",), ("shift",), ("scale", "shift")])
def test_the_extent_is_that_of_the_features_as_solvers_see_them(changed, bias):
    rng = np.random.default_rng(5)
    X = np.where(rng.random((200, 6)) < 0.4, rng.normal(size=(200, 6)), 0.0)
    vectors = {"scale": rng.random(6) + 0.5, "shift": rng.normal(size=6)}
    columns = Columns(**{name: vectors[name] for name in changed})
    seen = X - vectors["shift"] if "shift" in changed else X
    seen = seen * vectors["scale"] if "scale" in changed else seen
    seen = np.hstack([seen, np.ones((200, 1))]) if bias else seen
    expected = problem_size(seen, Columns(), False, 1)
    sparse = Dataset.from_arrays(_sparse(X), np.ones(200)).X
    assert isinstance(sparse, Csr)
    for matrix in (X, sparse):
        found = problem_size(matrix, columns, bias, 1)
        assert found.square == pytest.approx(np.mean(np.sum(seen**2, axis=1)), rel=1e-12)
        assert found.overlap == pytest.approx(expected.overlap, rel=1e-12)


def test_one_row_spreads_over_one_direction():
    size = problem_size(np.array([[3.0, 4.0]]), Columns(), False, 1)
    assert (size.rows, size.entries, size.square, size.effective_rank) == (1, 2, 25.0, 1.0)


def test_how_rows_spread_is_estimated_once_and_only_where_it_is_asked_for():
    asked = []

    def estimate():
        asked.append("once")
        return 2.0, 0.5

    size = ProblemSize(rows=3, entries=6, estimate=estimate)
    assert (size.rows, size.entries, asked) == (3, 6, [])
    assert (size.square, size.overlap, size.effective_rank) == (2.0, 0.5, 8.0)
    assert asked == ["once"]


def test_columns_that_are_empty_in_all_rows_add_nothing():
    X = np.zeros((50, 1000))
    X[:, ::100] = np.random.default_rng(7).normal(size=(50, 10))
    few = problem_size(X[:, ::100].copy(), Columns(), False, 1)
    found = problem_size(Dataset.from_arrays(_sparse(X), np.ones(50)).X, Columns(), False, 1)
    assert found.overlap == pytest.approx(few.overlap, rel=1e-12)


def _sparse(X):
    from scipy.sparse import csr_array

    return csr_array(X)
