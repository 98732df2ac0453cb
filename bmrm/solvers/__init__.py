"""Solvers: one file each, which begins with its paper; a solver sees a risk and a regularizer, nothing else."""

from bmrm.problem import Solver
from bmrm.registry import Registry

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
