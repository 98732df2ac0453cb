"""Which solver serves a problem that another one has to refuse."""

from __future__ import annotations

from bmrm.problem import HasMaster, HasProx, IncompatibleError, Scored, ability, provides
from bmrm.problem.regularizer import BlockSeparable, HasBounds, Regularizer
from bmrm.solvers._core.best import Best


def instead(run: Best) -> str:
    """Its name: by what the regularizer offers and whether the loss is smooth; `lbfgs` refuses none without bounds."""
    scored = ability(run.risk, Scored)
    smooth = scored is not None and scored.phi.facts.smooth
    if smooth and provides(run.regularizer, BlockSeparable) and not run.regularizer.smooth:
        return "proximal_gradient"
    if provides(run.regularizer, HasMaster):
        return "bundle" if scored is None else "line_search_bundle"
    return "proximal_gradient" if smooth and provides(run.regularizer, HasProx) else "lbfgs"


def name_of(regularizer: Regularizer) -> str:
    """What messages call it: the name of the class that was bound."""
    return regularizer.title if provides(regularizer, BlockSeparable) else type(regularizer).__name__


def refuse_bounds(run: Best, solver: str) -> None:
    """Raise IncompatibleError where Omega is +inf somewhere."""
    if provides(run.regularizer, HasBounds):
        raise IncompatibleError(
            f"{solver} takes steps that leave the bounds of regularizer {name_of(run.regularizer)}; use solver"
            f" {instead(run)}"
        )
