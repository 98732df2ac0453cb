"""Solvers, a file each, opened by its paper; they see a risk and a regularizer, nothing else."""

from bmrm.problem import Solver
from bmrm.registry import Registry

SOLVERS: Registry[Solver] = Registry("solver", "bmrm.solvers")
register = SOLVERS.register
