"""Dense matrices are made where there is memory for them; else solvers refuse, or take products."""

import dataclasses

import numpy as np
import pytest

import bmrm
from bmrm.data.dataset import Dataset
from bmrm.data.memory import Free
from bmrm.losses import LOSSES
from bmrm.problem import IncompatibleError
from bmrm.risk.linear import LinearRisk
from bmrm.solvers._core import dense_matrix

RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(1200, 1500)) * (RANDOM.random((1200, 1500)) < 0.02)
Y = np.where(X @ RANDOM.normal(size=1500) > 0.0, 1, -1)


def risk(loss):
    return LinearRisk(Dataset.from_arrays(X, Y), LOSSES.make(loss))


@pytest.fixture
def little(monkeypatch):
    monkeypatch.setattr(dense_matrix, "free_memory", lambda: Free(20_000_000, "ulimit -d"))


def test_memory_is_asked_for_where_the_matrix_is_large(little, monkeypatch):
    assert dense_matrix.refused(1500) == "0.04 GB of memory with its factor, 0.02 GB are free (ulimit -d)"
    assert dense_matrix.refused(1000) == ""
    assert dense_matrix.refused(8193) == "at most 8192 x 8192 are allowed"
    monkeypatch.setattr(dense_matrix, "free_memory", lambda: None)
    assert dense_matrix.refused(1500) == ""


def test_solvers_that_need_one_say_why_there_is_none(little, monkeypatch):
    with pytest.raises(IncompatibleError, match=r"hessian dense .* 0\.02 GB are free"):
        bmrm.minimize(risk("logistic"), bmrm.L2(1e-2), solver="newton", solver_options={"hessian": "dense"})


def test_a_matrix_for_rows_larger_than_memory_has_to_fit(little, monkeypatch):
    monkeypatch.setattr("bmrm.solvers.semismooth_newton.FEW", 0.0)  # few rows do not help
    streamed = risk("hinge")
    size = dataclasses.replace(streamed.problem_size, resident=False)
    monkeypatch.setattr(streamed, "problem_size", size)
    with pytest.raises(
        IncompatibleError, match=r"1500 x 1500 numbers .* larger than memory, 0\.04 GB .* \(ulimit -d\)"
    ):
        bmrm.minimize(streamed, bmrm.L2(1e-2), solver="semismooth_newton")


@pytest.mark.parametrize(("loss", "solver"), [("logistic", "newton"), ("hinge", "semismooth_newton")])
def test_newton_takes_products_instead(loss, solver, little, monkeypatch):
    monkeypatch.setattr("bmrm.solvers.semismooth_newton.FEW", 0.0)
    found = bmrm.minimize(risk(loss), bmrm.L2(1e-2), solver=solver, tolerance=1e-6)
    assert found.status.name == "CONVERGED"
