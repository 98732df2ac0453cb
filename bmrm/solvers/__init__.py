"""Solvers: one file each, which begins with its paper; a solver sees a risk and a regularizer, nothing else."""

from bmrm.problem import Solver
from bmrm.problem.abilities import RESIDENT
from bmrm.registry import Entry, Registry

SOLVERS: Registry[Solver] = Registry("solver", "bmrm.solvers")
register = SOLVERS.register
"""Class decorator. The facts that a solver declares:

`problem`, `needs`, `certificate`, `cost`, `source` : text for tables; `cost` is that of an iteration.
`abilities` : names of the abilities that it requires of a risk. `refuses`, `stalls` : kinds of problem ("kinked loss",
"kinked regularizer", "not strongly convex") that it refuses, or
    on which it stops early without having converged.
`rule` : its own stopping rule, by which it stops by default, converged or not.
`accuracy` : the relative gap that it reaches reliably; any if absent.
"""


def reads_at_random(entry: Entry[Solver]) -> bool:
    """Whether a solver needs rows in memory, to read them at random or to copy them: by what it requires of a risk."""
    return not {kind.__name__ for kind in RESIDENT}.isdisjoint(entry.facts.get("abilities", ()))
