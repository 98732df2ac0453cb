"""Which solver serves a problem that another one has to refuse."""

from __future__ import annotations

from bmrm.problem import HasMaster, HasProx, Scored, ability, provides
from bmrm.solvers._core.best import Best


def instead(run: Best) -> str:
    """Its name: by what the regularizer offers and whether the loss is smooth; `lbfgs` refuses none."""
    scored = ability(run.risk, Scored)
    if provides(run.regularizer, HasMaster):
        return "bundle" if scored is None else "line_search_bundle"
    smooth = scored is not None and scored.phi.facts.smooth
    return "proximal_gradient" if smooth and provides(run.regularizer, HasProx) else "lbfgs"
