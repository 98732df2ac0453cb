"""Problems without a minimum, where the regularizer leaves weights free: that this is so, and what is separated."""

from __future__ import annotations

from typing import Any

import numpy as np

from bmrm.data.dataset import Dataset
from bmrm.data.matrix import features_of
from bmrm.problem import (
    BlockSeparable,
    LossFacts,
    Regularizer,
    Risk,
    Scored,
    Solution,
    Status,
    Summary,
    Vector,
    ability,
    provides,
)

LARGEST = 4_000_000
"""Rows times features up to which a linear program looks for a separating plane."""
APART = 1e-6
"""Least margin, of 1, of a row that is separated."""
FAR = 30.0
"""A score at which a loss without a minimum still has a slope."""
FALLS = 0.9
"""J with twice the weights over J, below which it falls for ever as far as can be seen."""


def unattained(
    facts: LossFacts,
    data: Dataset,
    summary: Summary,
    risk: Risk,
    regularizer: Regularizer,
    solution: Solution,
    bias: str,
) -> str:
    """What to say where J has no minimum; "" where it has one, or nothing is known.

    Parameters
    ----------
    data : all rows, or those of this rank; these may be separated though all are not.
    risk, regularizer : as they were minimised.
    bias : as of configs.
    """
    free = provides(regularizer, BlockSeparable) and regularizer.penalty.free.size == len(solution.w)
    if not free or solution.status in (Status.CONVERGED, Status.NON_FINITE) or not np.any(solution.w):
        return ""
    if facts.task == "binary" and _never_attained(risk, data, summary, solution.w):
        found = _separated(data, summary, bias != "none")
        if found is not None and found.any():
            return _said(found, data)
    at = [risk.value_and_subgradient(scale * solution.w)[0] for scale in (1.0, 2.0, 100.0)]
    if at[1] < FALLS * at[0] and at[2] <= at[1]:
        return (
            f"there seems to be no minimum: with these weights the loss is {at[0]:.4g}, with twice their size"
            f" {at[1]:.4g}, with a hundred times {at[2]:.4g}; take a regularizer, such as l2"
        )
    return ""


def _never_attained(risk: Risk, data: Dataset, summary: Summary, w: Vector) -> bool:
    """Whether a row on the right side, however far, still has a slope; False where some rows are of other ranks."""
    scored = ability(risk, Scored)
    if scored is None:
        return False
    phi = scored.of_rows
    y = np.where(np.asarray(data.targets.y) == summary.labels[-1], FAR, -FAR)
    if phi.collect(scored.map.matvec(w)).shape != y.shape:
        return False
    return bool(np.any(phi.collect(phi.value_and_slope(phi.hand_out(y))[1])))


def _separated(data: Dataset, summary: Summary, constant: bool) -> Any:
    """Which rows a plane separates that has none on the wrong side (Konis 2007); None where that is not looked for.

    max sum z_i with y_i (<x_i, v> + c) >= z_i and 0 <= z_i <= 1: a row is separated where z_i > 0.
    """
    from scipy import sparse  # not at the top: ranks that answer import no more than they need
    from scipy.optimize import linprog

    if data.rows * data.features > LARGEST:
        return None
    y = np.where(np.asarray(data.targets.y) == summary.labels[-1], 1.0, -1.0)
    counts = np.ones(data.rows) if data.targets.weights is None else np.asarray(data.targets.weights) > 0.0
    table = sparse.csr_array(features_of(data.X).block(np.arange(data.rows)), dtype=np.float64)
    size = np.maximum(abs(table).max(axis=0).toarray().ravel(), 1e-300)
    parts = [table @ sparse.diags(1.0 / size), *([np.ones((data.rows, 1))] if constant else [])]
    rows = sparse.diags(-y) @ sparse.hstack(parts)
    width = rows.shape[1]
    found = linprog(
        np.concatenate([np.zeros(width), -np.ones(data.rows)]),
        sparse.hstack([rows, sparse.identity(data.rows)]),
        np.where(counts, 0.0, 1e9),
        bounds=[(None, None)] * width + [(0.0, 1.0)] * data.rows,
        method="highs",
    )
    return None if found.x is None else (found.x[width:] > APART) & (counts > 0.0)


def _said(found: Any, data: Dataset) -> str:
    never = "so that the loss falls for ever as weights grow; take a regularizer, such as l2"
    if np.count_nonzero(found) == data.rows:
        return f"there is no minimum: the classes are separable, a plane has all rows on their sides, {never}"
    return (
        f"there is no minimum: a plane separates {np.count_nonzero(found)} of {data.rows} rows, the first of them row"
        f" {int(np.argmax(found))}, and has none on the wrong side, {never}"
    )
