"""The table loss x regularizer x solver: who takes what, and with a lower bound or without; asked of the solvers."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmrm.app.defaults import default_bias
from bmrm.checks.plug_in import groups_for, instance_of, targets_for
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import HasConjugate, IncompatibleError, Risk, Scored, ability, bound
from bmrm.regularizers import REGULARIZERS
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.solvers import SOLVERS
from bmrm.solvers._core.free_weights import serves
from bmrm.solvers._core.monitor import IterativeSolver
from bmrm.solvers._core.plane_model import PlaneSolver

ROWS, FEATURES = 36, 4
BY_GRADIENT = ("newton", "lbfgs", "irls", "nonlinear_cg", "proximal_gradient")
"""Solvers that look for a bound where weights are free."""
Cell = tuple[tuple[str, bool], ...]
"""The solvers, and whether each has a lower bound."""


def coverage() -> dict[tuple[str, ...], dict[str, Cell]]:
    """For losses that are alike in it: by regularizer the solvers that take it."""
    found: dict[str, dict[str, Cell]] = {}
    with np.errstate(all="ignore"):
        for entry in LOSSES.all():
            risk = risk_of(instance_of(LOSSES, entry.name))
            found[entry.name] = {
                one.name: _cell(risk, instance_of(REGULARIZERS, one.name)) for one in REGULARIZERS.all()
            }
    alike: dict[tuple[Any, ...], list[str]] = {}
    for loss, cells in found.items():
        alike.setdefault(tuple(cells.items()), []).append(loss)
    return {tuple(losses): dict(key) for key, losses in alike.items()}


def risk_of(loss: Any) -> Risk:
    """Of a few rows, with the intercept that the loss has by default."""
    X = np.random.default_rng(0).normal(size=(ROWS, FEATURES))
    data = Dataset.from_arrays(X, targets_for(loss, ROWS), groups=groups_for(loss, ROWS))
    risk = LinearRisk(data, loss)
    return FreeIntercept(risk) if default_bias(loss) == "free" else risk


def _cell(risk: Risk, regularizer: Any) -> Cell:
    omega, scored = bound(regularizer, risk), ability(risk, Scored)
    planes = isinstance(omega, HasConjugate)
    found = []
    for entry in SOLVERS.all():
        solver = entry.cls()
        if entry.name == "auto" or not isinstance(solver, IterativeSolver) or not _takes(solver, risk, omega):
            continue
        free = entry.name in BY_GRADIENT and scored is not None and serves(scored.of_rows)
        found.append((entry.name, planes or free or isinstance(solver, PlaneSolver)))
    return tuple(found)


def _takes(solver: IterativeSolver, risk: Risk, omega: Any) -> bool:
    """Whether its first step is not refused."""
    try:
        with solver.resolved().monitor(risk, omega, None, None) as run:
            steps = solver.resolved().steps(run)
            next(steps)
            steps.close()
    except IncompatibleError:
        return False
    except StopIteration:
        pass
    return True
