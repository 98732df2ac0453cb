"""The vocabulary: what a risk, a regularizer, a master and a solver promise one another.

This package imports nothing else of ours; every other room speaks in its terms. The problem is always

    minimise over w:   J(w) = Omega(w) + R(w)

with `R` a convex risk and `Omega` a convex regularizer that has its own lambda inside. What only some rooms need is
imported from its module: `abilities`, `meter`, and what a loss may offer besides from `loss`.
"""

from __future__ import annotations

from bmrm.problem.basics import (
    BmrmError,
    IncompatibleError,
    InputError,
    MissingLibraryError,
    OutputError,
    Scores,
    Vector,
    lacking,
    provides,
    shown,
)
from bmrm.problem.facts import Facts, Hessian, LossFacts, facts_of
from bmrm.problem.loss import Loss, PreparedLoss, Summary, Targets
from bmrm.problem.meter import Check, unchecked
from bmrm.problem.regularizer import (
    BlockPenalty,
    BlockSeparable,
    Elastic,
    HasConjugate,
    HasMaster,
    HasProx,
    Master,
    MasterSolution,
    Planes,
    Regularizer,
    SavedPlanes,
    bound,
)
from bmrm.problem.risk import Intercept, LinearMap, MoreauEnvelope, Risk, Scored, ScoreFunction, ability, plane_at
from bmrm.problem.solution import Callback, Iteration, Solution, Solver, Start, State, Status, relative_gap
from bmrm.problem.space import Space

__all__ = [
    "BlockPenalty",
    "BlockSeparable",
    "BmrmError",
    "Callback",
    "Check",
    "Elastic",
    "Facts",
    "HasConjugate",
    "HasMaster",
    "HasProx",
    "Hessian",
    "IncompatibleError",
    "InputError",
    "Intercept",
    "Iteration",
    "LinearMap",
    "Loss",
    "LossFacts",
    "Master",
    "MasterSolution",
    "MissingLibraryError",
    "MoreauEnvelope",
    "OutputError",
    "Planes",
    "PreparedLoss",
    "Regularizer",
    "Risk",
    "SavedPlanes",
    "ScoreFunction",
    "Scored",
    "Scores",
    "Solution",
    "Solver",
    "Space",
    "Start",
    "State",
    "Status",
    "Summary",
    "Targets",
    "Vector",
    "ability",
    "bound",
    "facts_of",
    "lacking",
    "plane_at",
    "provides",
    "relative_gap",
    "shown",
    "unchecked",
]
