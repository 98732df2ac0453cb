"""Choose solvers by rules on what risk and regularizer can do, run them in turns, and report what was done."""

from __future__ import annotations

from dataclasses import dataclass, fields

from bmrm.problem import Callback, Regularizer, Risk, Solution, Vector, ability
from bmrm.problem.abilities import Gathered
from bmrm.solvers import register
from bmrm.solvers._core.at_once import at_once
from bmrm.solvers._core.auto.alone import alone
from bmrm.solvers._core.auto.rules import ALONE
from bmrm.solvers._core.auto.sliced import advice_for
from bmrm.solvers._core.auto.turns import Turns
from bmrm.solvers._core.monitor import IterativeSolver, SlicedSolver


@register(
    "auto",
    problem="any that one of the solvers fits",
    needs="what the chosen solver needs",
    certificate="that of the chosen solver",
    cost="that of the chosen solver",
    source="",
    vectors=14,
)
@dataclass(frozen=True)
class Auto(SlicedSolver):
    """The solvers that a rule names for such a problem, in turns, until the gap is reached.

    The first rule that holds counts (`bmrm.solvers._core.auto.rules`, printed in *How to choose*): rules are about what
    the risk and the regularizer can do, the numbers of rows and weights, entries per row, lambda for rows of length 1,
    and over how many directions the rows spread. The solvers of a rule take turns, the first one first, within budgets
    of passes over the data that grow fourfold from turn to turn (Newton's methods have 12 iterations at least, unless
    their matrices take many times as long as the passes); each begins with the best point, bound, planes and slopes of
    those before. One that stalls has no further turn; the last one left has no budget. So the path depends on the
    problem alone, never on clocks. `Solution.solver` says which solvers ran and by which rule.

    On little data, l2 and losses of one score per row or softmax the whole run is a few compiled calls (`newton`, or
    `semismooth_newton` for losses with kinks), unless somebody asks for each iteration (`callback`) or to go on with
    another run; where they do not reach the gap in time, the rules follow. The history is one line then, and no rule is
    looked at. Little are at most 40,000 rows, 64 weights, and 300,000 rows times weights; of several scores 192 and
    150,000; with one score and fewer rows than weights 200 rows and 2,000,000.

    Over ranks that may give rows to one another (`data.share_rows`), rank 0 solves alone, with all rows, what messages
    would make slower, or what only steps row by row solve fast, on few ranks: the first rules say which.

    Where each rank has a slice of w (`mpi.slices`) it takes solvers that can do with one: `lbfgs` and then
    `line_search_bundle` for smooth losses, else `line_search_bundle`, or `bundle` where the risk has no scores.

    Memory: that of the running solver + 8 dim bytes; a bundle that ended early keeps its planes, 8 dim bytes each.
    """

    def minimize(  # type: ignore[override]
        self, risk: Risk, regularizer: Regularizer, *, start: Vector | None = None, callback: Callback | None = None
    ) -> Solution:
        """As of `Solver`; raises IncompatibleError when no solver fits."""
        reached, rest = at_once(self, risk, regularizer, start, callback)
        if reached is not None:
            return reached
        rule, reserve = advice_for(risk, regularizer)
        gathered = ability(risk, Gathered) if rule.solvers == (ALONE,) else None
        if gathered is not None:
            return alone(rest, gathered, risk, regularizer, start, callback)
        options = {field.name: getattr(rest, field.name) for field in fields(IterativeSolver)}
        turns = Turns(**options, names=rule.solvers, reserve=(reserve,), passes=rule.passes, reason=str(rule))
        return turns.minimize(risk, regularizer, start=start, callback=callback)
