"""The advice for risks whose w is sliced over ranks: of the solvers that take slices."""

from __future__ import annotations

from bmrm.problem import Regularizer, Risk
from bmrm.problem.regularizer import space_of
from bmrm.solvers._core.auto.rules import BUNDLE, LBFGS, LINES, Rule, Traits, advice

SLICES = "slices"
RULES = Rule("slices, smooth", (LBFGS, LINES)), Rule("slices, scores", (LINES,)), Rule(SLICES, (BUNDLE,))


def advice_for(risk: Risk, regularizer: Regularizer) -> tuple[Rule, str]:
    """The rule for a problem, and the solver that is left when all of its solvers have stalled."""
    traits = Traits(risk, regularizer)
    if space_of(risk).whole:
        return advice(traits)
    words = traits.words | {SLICES}
    rule = next(rule for rule in RULES if rule.words <= words)
    return rule, rule.solvers[-1]
