"""Regularizers of a user's that lack some abilities: what `auto` takes, how runs end, and what they say."""

import re
from dataclasses import dataclass

import numpy as np
import pytest

import bmrm
from bmrm.solvers import SOLVERS

LAM = 0.01
RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 5))
Y = np.where(X[:, 0] + RNG.normal(size=200) > 0.0, 1, -1)
LACKS = "there is no lower bound, thus no gap: regularizer {} has no `conjugate` and `feasible`"


@dataclass(frozen=True)
class Round:
    """LAM/2 ||w||^2."""

    smooth = True

    def value(self, w):
        return 0.5 * LAM * float(w @ w)

    def subgradient(self, w):
        return LAM * w

    def along(self, w, step):
        def curve(ts):
            points = [w + t * step for t in np.asarray(ts)]
            return np.array([self.value(p) for p in points]), np.array([self.subgradient(p) @ step for p in points])

        return curve


@dataclass(frozen=True)
class Curved(Round):
    def hessian_product(self, w, step):
        return LAM * step


@dataclass(frozen=True)
class Kinked(Round):
    """LAM ||w||_1."""

    smooth = False

    def value(self, w):
        return LAM * float(np.abs(w).sum())

    def subgradient(self, w):
        return LAM * np.sign(w)


@dataclass(frozen=True)
class Shrinking(Kinked):
    def prox(self, v, step):
        return np.sign(v) * np.maximum(np.abs(v) - LAM * step, 0.0)


@dataclass(frozen=True)
class Proving(Shrinking):
    def conjugate(self, v):
        return 0.0 if np.abs(v).max() <= LAM * (1.0 + 1e-12) else np.inf

    def feasible(self, v):
        return min(1.0, LAM / max(float(np.abs(v).max()), 1e-300))


def found(regularizer, loss="logistic", **given):
    return bmrm.fit(X, Y, loss=loss, regularizer=regularizer, bias="none", tolerance=1e-5, **given).solution


def least(regularizer, loss="logistic"):
    return bmrm.fit(X, Y, loss=loss, regularizer=regularizer, bias="none", tolerance=1e-9).solution.lower_bound


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "nonlinear_cg"])
def test_smooth_ones_end_where_the_gradient_is_small(solver):
    solution = found(Round(), solver=solver)
    assert solution.status is bmrm.Status.OWN_RULE
    assert solution.iterations < 40
    assert solution.objective == pytest.approx(least(bmrm.L2(LAM)), rel=1e-7)
    assert solution.message == "the run has ended where the gradient was small; " + LACKS.format("Round")


def test_newton_ends_so_too():
    solution = found(Curved(), solver="newton")
    assert solution.status is bmrm.Status.OWN_RULE
    assert solution.objective == pytest.approx(least(bmrm.L2(LAM)), rel=1e-7)
    assert LACKS.format("Curved") in solution.message


@pytest.mark.parametrize("solver", ["auto", "proximal_gradient"])
def test_a_proximal_map_is_enough_for_a_smooth_loss(solver):
    solution = found(Shrinking(), solver=solver)
    assert solution.status is bmrm.Status.OWN_RULE
    assert solution.solver.startswith("proximal_gradient")
    assert solution.objective == pytest.approx(least(bmrm.L1(LAM)), rel=1e-7)
    assert LACKS.format("Shrinking") in solution.message


def test_with_a_conjugate_the_gap_decides():
    solution = found(Proving())
    assert solution.status is bmrm.Status.CONVERGED
    assert solution.solver.startswith("proximal_gradient")
    assert solution.message == ""


@pytest.mark.parametrize("loss", ["logistic", "hinge", "roc_area"])
@pytest.mark.parametrize("kind", [Round, Kinked, Shrinking, Proving])
def test_auto_finds_a_solver_whatever_is_missing(kind, loss):
    solution = found(kind(), loss=loss)
    reference = least(bmrm.L2(LAM) if kind is Round else bmrm.L1(LAM), loss)
    assert solution.lower_bound <= reference * (1.0 + 1e-9)
    assert reference * (1.0 - 1e-9) <= solution.objective < 1.05 * reference
    if kind is not Proving:
        assert LACKS.format(kind.__name__) in solution.message


def test_a_start_at_the_minimum_ends_at_once():
    first = found(Round())
    again = bmrm.fit(X, Y, loss="logistic", regularizer=Round(), bias="none", tolerance=1e-4, start=first.w).solution
    assert again.status is bmrm.Status.OWN_RULE
    assert again.iterations <= 2


def test_planes_name_a_solver_that_does_without():
    with pytest.raises(bmrm.IncompatibleError, match=r"offers no master.*solver proximal_gradient does without"):
        found(Shrinking(), solver="bundle")
    with pytest.raises(bmrm.IncompatibleError, match=r"offers no master.*solver lbfgs does without"):
        found(Shrinking(), loss="hinge", solver="bundle")
    with pytest.raises(bmrm.IncompatibleError, match=r"offers no master.*solver lbfgs does without"):
        found(Kinked(), solver="bundle")


@pytest.mark.parametrize("loss", ["logistic", "hinge", "roc_area"])
@pytest.mark.parametrize("regularizer", [Round(), Curved(), Kinked(), Shrinking(), bmrm.L2(LAM), bmrm.L1(LAM)], ids=str)
def test_a_solver_that_is_named_instead_serves_the_problem(regularizer, loss):
    """From proximal_gradient and pegasos refusals once led to bundle, and from there back to proximal_gradient."""
    names = [entry.name for entry in SOLVERS.all()]
    refused = 0
    for solver in names:
        try:
            found(regularizer, loss, solver=solver, max_iterations=1)
        except bmrm.IncompatibleError as error:
            refused += 1
            advice = str(error).rpartition(";")[2]
            for other in set(re.findall(r"[a-z_]+", advice)) & {*names}:
                found(regularizer, loss, solver=other, max_iterations=1)
    assert refused > 0
