"""Which solvers to try, in which order: rules on what a problem is and on a few numbers, the first that holds counts.

`RULES` is what `docs/choose.md` prints. The measurements behind them are in `benchmarks/decisions`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from bmrm.problem import BlockSeparable, Elastic, HasConjugate, HasMaster, Regularizer, Risk, Scored, ability, provides
from bmrm.problem.abilities import DualBlocks, Gathered, ProblemSize


class Traits:
    """The traits of a problem that rules ask for: words and numbers.

    Parameters
    ----------
    risk, regularizer : the problem.
    """

    def __init__(self, risk: Risk, regularizer: Regularizer) -> None:
        self._risk, self._regularizer = risk, regularizer
        self._size = ability(risk, ProblemSize)
        self.words = frozenset(_of_risk(risk) | _of_regularizer(regularizer))

    @cached_property
    def numbers(self) -> Mapping[str, float]:
        """By their names in `NUMBERS`; none where the size of the data is not known."""
        size, scored = self._size, ability(self._risk, Scored)
        if size is None:
            return {}
        dim, rows, scaled, condition = self._risk.dim, size.rows, math.nan, math.nan
        products = size.entries * (1 if scored is None else scored.of_rows.facts.scores_per_row)
        if provides(self._regularizer, Elastic):
            length = math.sqrt(size.square or 1.0)  # features times c, weights divided by c are the same problem
            scaled = rows * (self._regularizer.l2 / length**2 or self._regularizer.l1 / length)
            condition = length**2 / self._regularizer.l2 if self._regularizer.l2 > 0.0 else math.nan
        numbers = {"rows": rows, "dim": dim, "smaller": min(rows, dim), "entries": size.entries / max(1, rows)}
        numbers |= {"lambda": scaled, "condition": condition, "ranks": size.ranks, "threads": size.threads}
        return numbers | {"products": products, "each": products / max(1, dim)}

    def number(self, name: str) -> float:
        """One of `NUMBERS`; nan where it is not known."""
        if self._size is None or name not in ("rank", "spread"):
            return self.numbers.get(name, math.nan)
        return self._size.effective_rank / (1.0 if name == "rank" else max(1.0, self.number("smaller")))


WORDS = {
    "smooth": "the loss has a derivative everywhere",
    "kinked": "it has not",
    "quadratic": "its second derivative is the same everywhere",
    "one score": "a row has one score",
    "several scores": "a row has several, as of classes",
    "rows": "the risk is a sum over rows, as far as solvers can use it",
    "groups": "the risk is a sum over groups of rows, such as sentences",
    "one maximum": "the risk is one maximum over labelings of all rows",
    "dual steps": "there are coordinate steps on the dual",
    "scores": "the risk is a function of scores A w",
    "free intercept": "a constant is left out of the regularizer",
    "ranks": "several ranks share the rows",
    "gathered": "rank 0 may have all rows, and has room for them (`data.share_rows`)",
    "l2": "the regularizer is l2",
    "l1": "the regularizer is l1",
    "l1 and l2": "the regularizer has both",
    "blocks": "the regularizer is a sum over blocks of weights, and none of these three",
    "smooth regularizer": "the regularizer has a derivative everywhere",
    "master": "the regularizer has a master problem over planes",
}
NUMBERS = {
    "rows": "m",
    "dim": "d",
    "smaller": "min(m, d)",
    "entries": "entries a row",
    "lambda": "scaled lambda",
    "condition": "condition",
    "ranks": "ranks",
    "threads": "threads",
    "products": "products of a pass",
    "each": "products of a pass for each weight",
    "rank": "effective rank of X",
    "spread": "effective rank over min(m, d)",
}
"""m rows, d weights. The scaled lambda is m lambda over the mean squared length of a row, or, for l1 alone, over the
root of that. The condition, for l2, is that squared length over lambda: no more than that does the risk bend compared
with the regularizer, times the curvature of the loss. Threads are those of a process. The effective rank is
tr(S)^2 / tr(S^2) of the second moments S of the rows: over how many directions they spread."""


def _of_risk(risk: Risk) -> set[str]:
    scored, size, steps = ability(risk, Scored), ability(risk, ProblemSize), ability(risk, DualBlocks)
    holds = {"ranks": size is not None and size.ranks > 1, "gathered": ability(risk, Gathered) is not None}
    if scored is not None:
        facts = scored.of_rows.facts
        holds |= {
            "smooth" if scored.phi.facts.smooth else "kinked": True,
            "quadratic": facts.quadratic,
            "one score" if facts.scores_per_row == 1 else "several scores": True,
            "scores": True,
            "one maximum": facts.structured_max and not scored.phi.facts.smooth,
            "free intercept": scored.intercept is not None,
            "dual steps": steps is not None,
        }
        holds["groups"] = steps is not None and steps.grouped
        holds["rows"] = not holds["groups"] and (facts.separable or facts.prox or steps is not None)
    return {word for word, true in holds.items() if true}


def _of_regularizer(regularizer: Regularizer) -> set[str]:
    holds = {"master": provides(regularizer, HasMaster), "smooth regularizer": regularizer.smooth}
    holds["blocks"] = provides(regularizer, BlockSeparable)
    if provides(regularizer, HasConjugate) and provides(regularizer, Elastic):
        holds["l2" if regularizer.l1 == 0.0 else "l1 and l2" if regularizer.l2 > 0.0 else "l1"] = True
    return {word for word, true in holds.items() if true}


@dataclass(frozen=True)
class Rule:
    """One line of advice.

    Attributes
    ----------
    kind : words of `WORDS` that must all apply, with commas between.
    solvers : to be tried, the best first.
    most, least : numbers of `NUMBERS` and what they may be at most, and must be at least.
    passes : of a first turn; long where the second solver does more than read the data.
    """

    kind: str
    solvers: tuple[str, ...]
    most: Mapping[str, float] = field(default_factory=dict)
    least: Mapping[str, float] = field(default_factory=dict)
    passes: float = 256.0

    @cached_property
    def words(self) -> frozenset[str]:
        """Those of `kind`."""
        return frozenset(word for word in self.kind.split(", ") if word)

    def holds(self, traits: Traits) -> bool:
        """Whether it is about such a problem."""
        if not self.words <= traits.words or not all(traits.number(name) <= most for name, most in self.most.items()):
            return False
        return all(traits.number(name) >= least for name, least in self.least.items())

    def __str__(self) -> str:
        bounds = [f"{NUMBERS[name]} at least {number:,g}" for name, number in self.least.items()]
        bounds += [f"{NUMBERS[name]} at most {number:,g}" for name, number in self.most.items()]
        return ", ".join(filter(None, [self.kind, *bounds])) or "anything else"


NEWTON, SEMISMOOTH, DUAL, LBFGS, BUNDLE = "newton", "semismooth_newton", "dual_coordinate", "lbfgs", "bundle"
PROXIMAL, COLUMNS, GRADIENT, LINES = "proximal_newton", "coordinate_descent", "proximal_gradient", "line_search_bundle"
ALONE, LONG = "rank 0 with all rows", 2_000.0
"""The first stands for a list in a rule: rank 0 gathers all rows, and the rules for one process choose the solvers."""
RULES = (
    Rule("ranks, gathered", (ALONE,), most={"products": 2e6}),
    Rule("ranks, gathered", (ALONE,), most={"each": 40}),
    Rule("ranks, gathered, kinked, several scores, rows, l2", (ALONE,), most={"ranks": 4}),
    Rule("ranks, gathered, kinked, one score, rows, l2", (ALONE,), most={"ranks": 8}, least={"dim": 450}),
    Rule("ranks, gathered, smooth, groups, l2", (ALONE,), most={"ranks": 6}, least={"dim": 20_000}),
    Rule("ranks, gathered, kinked, groups, l2", (ALONE,), most={"ranks": 3}, least={"dim": 20_000}),
    Rule("ranks, smooth, groups, l2", (LBFGS, LINES)),
    Rule("ranks, smooth, rows, l2", (NEWTON, LBFGS)),
    Rule("ranks, kinked, one score, rows, l2", (SEMISMOOTH, DUAL)),
    Rule("ranks, kinked, several scores, rows, l2", (SEMISMOOTH, LINES)),
    Rule("ranks, kinked, several scores, l2", (LINES, SEMISMOOTH)),
    Rule("ranks, smooth, one score, l1", (PROXIMAL,)),
    Rule("ranks, smooth, one score, l1 and l2", (PROXIMAL,)),
    Rule("quadratic, one score, rows, l2", (NEWTON, LBFGS), most={"dim": 64}),
    Rule("one score, scores, l2", (BUNDLE, LINES), most={"condition": 10}),
    Rule("smooth, one score, rows, l2", (NEWTON, DUAL), most={"rows": 200, "spread": 5}),
    Rule("smooth, one score, rows, l2", (LBFGS, NEWTON), least={"dim": 100}, most={"condition": 150}),
    Rule("smooth, one score, rows, l2", (DUAL, NEWTON), least={"dim": 450}, most={"rows": 700, "entries": 25}),
    Rule("smooth, one score, rows, l2", (LBFGS, NEWTON), least={"dim": 10, "spread": 0.7}, most={"dim": 2_500}),
    Rule("smooth, one score, rows, l2", (NEWTON, LBFGS), most={"dim": 2_500}),
    Rule("smooth, one score, rows, free intercept, l2", (NEWTON, DUAL), most={"spread": 0.045}),
    Rule("smooth, one score, rows, l2", (NEWTON, DUAL), most={"lambda": 0.4, "rank": 2_000}, least={"products": 2e6}),
    Rule("smooth, one score, rows, l2", (DUAL, NEWTON)),
    Rule("smooth, several scores, rows, l2", (BUNDLE, LBFGS), most={"condition": 30}),
    Rule("smooth, several scores, rows, l2", (LBFGS, NEWTON), most={"condition": 100}),
    Rule("smooth, several scores, rows, l2", (NEWTON, LBFGS), most={"dim": 3_000, "lambda": 0.6}),
    Rule("smooth, several scores, rows, l2", (LBFGS, NEWTON), most={"dim": 8_000}),
    Rule("smooth, several scores, rows, l2", (NEWTON, DUAL), {"lambda": 0.1}, {"threads": 2, "products": 2e6}),
    Rule("smooth, groups, l2", (LBFGS, DUAL), most={"lambda": 1.0, "dim": 20_000}),
    Rule("smooth, several scores, dual steps, l2", (DUAL, LBFGS)),
    Rule("kinked, one score, rows, l2", (BUNDLE, LINES), most={"dim": 300, "condition": 150}),
    Rule("kinked, one score, rows, l2", (SEMISMOOTH, DUAL), most={"dim": 450}, least={"condition": 3_000}),
    Rule("kinked, one score, rows, l2", (SEMISMOOTH, DUAL), {"dim": 1_800, "lambda": 1.0}, {"condition": 3_000}),
    Rule("kinked, one score, rows, l2", (DUAL, SEMISMOOTH), most={"smaller": 8_000}, least={"dim": 2_000}, passes=512),
    Rule("kinked, one score, rows, l2", (DUAL, SEMISMOOTH)),
    Rule("kinked, several scores, free intercept, l2", (LINES, DUAL), most={"dim": 300}, least={"condition": 30_000}),
    Rule("kinked, several scores, rows, free intercept, l2", (DUAL, LINES)),
    Rule("kinked, several scores, rows, l2", (SEMISMOOTH, DUAL), most={"dim": 2_000, "lambda": 2.0}),
    Rule("kinked, several scores, rows, l2", (DUAL, LINES), passes=LONG),
    Rule("kinked, groups, l2", (DUAL, LINES)),
    Rule("one maximum, l2", (LINES, BUNDLE), most={"lambda": 9.0}, least={"entries": 45, "rows": 5_000}),
    Rule("one maximum, l2", (LINES, BUNDLE), most={"lambda": 0.3}, least={"rows": 20_000}),
    Rule("one maximum, l2", (BUNDLE, LINES)),
    Rule("kinked, one score, l2", (BUNDLE, LINES), most={"rows": 1_500}),
    Rule("kinked, one score, l2", (LBFGS, LINES), most={"dim": 20_000}),
    Rule("kinked, one score, rows, l1", (SEMISMOOTH,)),
    Rule("smooth, one score, rows, l1", (COLUMNS, PROXIMAL), {"lambda": 3.0}, {"smaller": 450}, passes=LONG),
    Rule("smooth, one score, rows, l1", (PROXIMAL, COLUMNS)),
    Rule("smooth, one score, rows, l1 and l2", (DUAL, COLUMNS), {"each": 20}, {"condition": 1e4, "spread": 0.1}),
    Rule("smooth, one score, rows, l1 and l2", (PROXIMAL, COLUMNS), most={"dim": 450}),
    Rule("smooth, one score, rows, l1 and l2", (COLUMNS, PROXIMAL), passes=LONG),
    Rule("kinked, one score, rows, l1 and l2", (SEMISMOOTH, DUAL), most={"smaller": 450}, least={"condition": 5_000}),
    Rule("kinked, one score, rows, l1 and l2", (SEMISMOOTH, DUAL), most={"lambda": 0.01, "smaller": 8_000}),
    Rule("dual steps, l1 and l2", (DUAL, LINES)),
    Rule("smooth, one score, rows, blocks, smooth regularizer", (NEWTON, LBFGS), most={"dim": 2_500}),
    Rule("smooth, smooth regularizer", (LBFGS,)),
    Rule("smooth, one score, rows, blocks", (COLUMNS, GRADIENT), passes=LONG),
    Rule("smooth, blocks", (GRADIENT, LINES), passes=LONG),
    Rule("scores, blocks", (BUNDLE, LINES)),
    Rule("dual steps, l2", (DUAL,)),
    Rule("scores, master", (LINES,)),
    Rule("master", (BUNDLE,)),
    Rule("", (GRADIENT, LBFGS), passes=LONG),
)


def advice(traits: Traits) -> tuple[Rule, str]:
    """The first rule that holds, and the solver that is left when all of its solvers have stalled."""
    return next(rule for rule in RULES if rule.holds(traits)), LINES if "scores" in traits.words else BUNDLE
