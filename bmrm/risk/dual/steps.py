"""Which losses offer dual steps, and how the rows of one process take them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bmrm.losses.base import RowLoss
from bmrm.problem import Check, unchecked
from bmrm.problem.abilities import DualBlocks
from bmrm.risk.dual.ascent import RowAscents
from bmrm.risk.dual.visits import AscentRows
from bmrm.risk.linear_map import DataMap

if TYPE_CHECKING:
    from bmrm.risk.dual.stored import DualProblem

Array = NDArray[np.float64]
MakeRows = Callable[["DualProblem", Check], AscentRows]


def _rows(module: str, name: str) -> MakeRows:
    """Rows that ascend, of this module beside; their kernels are imported when the first are made."""

    def make(problem: DualProblem, check: Check) -> AscentRows:
        made: AscentRows = getattr(import_module(f"bmrm.risk.dual.{module}"), name)(problem, check)
        return made

    return make


ONE_SCORE, MANY_SCORES = _rows("rows", "OneScoreRows"), _rows("many", "ManyScoreRows")
MIXTURES, MARGINALS = _rows("groups", "MixtureRows"), _rows("groups", "MarginalRows")


def dual_steps(
    loss: Any, prepared: Any, map: DataMap, mass: float, infimum: float, offset: Array | None = None
) -> RowAscents | None:
    """The ability `DualBlocks` of a sum over rows, or groups, whose loss has compiled functions; else None.

    Parameters
    ----------
    prepared : the loss of all rows, of scores that have the offset.
    mass : S, over all ranks.
    offset : added to the scores of the rows, like scores; groups of rows know none.
    """
    kind = _kind(loss, prepared, map)
    if kind is None or (offset is not None and loss.decomposes == "groups"):
        return None

    def make(l1: float, l2: float, seed: int, check: Check = unchecked) -> AscentRows:
        from bmrm.risk.dual.stored import DualProblem

        return kind(DualProblem(map, prepared, mass, l1, l2, seed, offset), check)

    dim, grouped = map.dim + prepared.extra_dim, loss.decomposes == "groups"
    return RowAscents(map.rows, dim, mass, infimum, prepared.scores_per_row, make, grouped)


def _kind(loss: Any, prepared: Any, map: DataMap) -> MakeRows | None:
    """What ascends with the row functions that a loss has, or with the labelings or marginals of its structure."""
    if loss.decomposes == "groups":
        return _kind_of_groups(prepared, map)
    if not isinstance(loss, RowLoss) or prepared.extra_dim:
        return None
    one = prepared.scores_per_row == 1
    several = (loss.prox_scores_row, loss.offset_scores_row, loss.value_scores_row)
    functions = (loss.prox_row, loss.value_row) if one else several
    if any(function is None for function in functions):
        return None
    return ONE_SCORE if one else MANY_SCORES


def _kind_of_groups(prepared: Any, map: DataMap) -> MakeRows | None:
    """How groups of rows ascend, by what their loss makes of a structure."""
    from bmrm.losses._core.structure import LOG, MARGIN, PreparedGroups

    found = {LOG: MARGINALS, MARGIN: MIXTURES}.get(type(prepared))
    if found is None or not isinstance(prepared, PreparedGroups):
        return None
    from bmrm.risk.dual.groups import keeps_groups

    return found if keeps_groups(map, prepared) else None


def free_steps(steps: DualBlocks) -> RowAscents | None:
    """The dual steps of a risk whose intercept has become free; None for steps of groups."""
    return replace(steps, free=True) if isinstance(steps, RowAscents) and not steps.grouped else None
