"""The vocabulary: what a risk, a regularizer, a master and a solver promise one another.

This package imports nothing else of ours; every other room speaks in its terms. The problem is always

    minimise over w:   J(w) = Omega(w) + R(w)

with `R` a convex risk and `Omega` a convex regularizer that has its own lambda inside.
"""

from __future__ import annotations

from bmrm.problem.abilities import (
    Blocks,
    ColumnModel,
    CurvatureBound,
    DualAscent,
    DualSteps,
    DualSweep,
    Extent,
    Identity,
    Magnitudes,
    Profiled,
    QuadraticColumns,
    Rounding,
    RowPart,
    RowParts,
    RowSample,
    RowSubsets,
    Traffic,
    Variants,
    Watch,
)
from bmrm.problem.basics import BmrmError, IncompatibleError, InputError, Scores, Vector, provides
from bmrm.problem.loss import HasCurvature, Loss, PreparedLoss, Summary, Targets
from bmrm.problem.regularizer import (
    Elastic,
    HasConjugate,
    HasMaster,
    HasProx,
    Master,
    MasterSolution,
    Planes,
    Regularizer,
    SavedPlanes,
    StronglyConvex,
)
from bmrm.problem.risk import (
    Check,
    Envelope,
    Interruptible,
    LinearMap,
    Risk,
    Scored,
    ScoreFunction,
    ability,
    interruptible,
    unchecked,
)
from bmrm.problem.solution import Callback, Iteration, Solution, Solver, Status, relative_gap

__all__ = [
    "Blocks",
    "BmrmError",
    "Callback",
    "Check",
    "ColumnModel",
    "CurvatureBound",
    "DualAscent",
    "DualSteps",
    "DualSweep",
    "Elastic",
    "Envelope",
    "Extent",
    "HasConjugate",
    "HasCurvature",
    "HasMaster",
    "HasProx",
    "Identity",
    "IncompatibleError",
    "InputError",
    "Interruptible",
    "Iteration",
    "LinearMap",
    "Loss",
    "Magnitudes",
    "Master",
    "MasterSolution",
    "Planes",
    "PreparedLoss",
    "Profiled",
    "QuadraticColumns",
    "Regularizer",
    "Risk",
    "Rounding",
    "RowPart",
    "RowParts",
    "RowSample",
    "RowSubsets",
    "SavedPlanes",
    "ScoreFunction",
    "Scored",
    "Scores",
    "Solution",
    "Solver",
    "Status",
    "StronglyConvex",
    "Summary",
    "Targets",
    "Traffic",
    "Variants",
    "Vector",
    "Watch",
    "ability",
    "interruptible",
    "provides",
    "relative_gap",
    "unchecked",
]
