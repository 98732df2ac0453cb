"""Options of Komarek's thesis (2004, tables 5.3 and 5.24) that touch the model, in irls and nonlinear_cg."""

from __future__ import annotations

from collections.abc import Mapping

from bmrm.problem import IncompatibleError, InputError, Scored, ability
from bmrm.problem.abilities import ModifiedLoss
from bmrm.solvers._core.monitor import Monitor

UNCHANGED: Mapping[str, float] = {"margin": 0.0, "modelmin": 0.0, "modelmax": 1.0, "wmargin": 0.0}
"""Values of the options that leave the loss unmodified."""


def check_limits(title: str, modelmin: float, modelmax: float) -> None:
    """Raise InputError where no predicted mean is within the limits."""
    if not modelmin < modelmax:
        raise InputError(f"{title}: modelmin is {modelmin}, expected less than modelmax ({modelmax})")


def changes_of(**options: float | None) -> dict[str, float]:
    """What `ModifiedLoss` is to change; nothing where all options leave the loss as it is. None counts as not given."""
    given = {name: float(value) for name, value in options.items() if value is not None}
    changes = {**UNCHANGED, **given}
    return {} if changes == UNCHANGED else changes


def modified_loss(run: Monitor, options: str) -> ModifiedLoss:
    """The ability of a risk with scores; IncompatibleError, naming the options that need it, where there is none."""
    modified = ability(run.risk, ModifiedLoss)
    if modified is None or ability(run.risk, Scored) is None:
        raise IncompatibleError(f"{run.options.name}: this risk cannot serve {options}; leave them at their defaults")
    return modified


def start_at_mean(run: Monitor) -> None:
    """Begin with the mean target as the weight of the constant feature (`binitmean`)."""
    modified = ability(run.risk, ModifiedLoss)
    if modified is None or modified.offset is None:
        raise IncompatibleError(
            f"{run.options.name}: binitmean needs a constant feature; set data.bias: regularized, or binitmean: false"
        )
    targets01, weight = modified.target_sums()
    run.start[modified.offset] = targets01 / weight
