"""Margins and slacks rescaled by the cost of a mistake: the options of such losses, and what they make of costs.

A mistake of cost Delta violates its margin by Delta^beta (margin + its score - the score of the truth), where the
margin is 1 or Delta. The loss is the largest violation, and 0 where there is none: a maximum of functions that are
linear in the scores, so it is convex, and the slope of the worst mistake, Delta^beta times the difference of the
derivatives of the two scores, is a subgradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import InputError
from bmrm.registry import parameter

Array = NDArray[np.float64]
Cost = tuple[tuple[float, ...], ...]
COST = ((0.0, 2.0, 1.0), (1.0, 0.0, 1.0), (3.0, 1.0, 0.0))
"""An example of three classes."""


def cost_option(example: Cost = COST, beside: Mapping[str, Any] | None = None) -> Any:
    """The option `cost`."""
    doc = "cost of each mistake, a row per true class; or a file of numbers"
    return parameter(None, doc=doc, example=example, beside=beside)


def margin_option(default: str, example: str, beside: Mapping[str, Any] | None = None) -> Any:
    """The option `margin`."""
    doc = "what a mistake's score must stay below the true one's by: 1, or its cost"
    return parameter(default, choices=("one", "cost"), doc=doc, example=example, beside=beside)


def beta_option(default: float, beside: Mapping[str, Any] | None = None) -> Any:
    """The option `beta`."""
    doc = "power of the cost that multiplies the violation of the margin"
    return parameter(default, least=0.0, below=np.inf, doc=doc, example=0.5, beside=beside)


def rescaled(cost: Array, true: NDArray[np.bool_], margin: str, beta: float, title: str) -> tuple[Array, Array]:
    """Margins and rates of outputs: an output violates its margin by rate (margin + its score - the true one's).

    Parameters
    ----------
    cost : of each output, >= 0; the power 0 of a cost of 0 is 1.
    true : whether the output is the truth, like `cost`; its margin is 0.
    margin : "one" or "cost".
    beta : power of the cost, >= 0.
    title : who asks, for messages.

    Raises
    ------
    InputError
        A power of a cost is no finite number.
    """
    with np.errstate(over="ignore"):
        margins = np.where(true, 0.0, 1.0 if margin == "one" else cost)
        rates = cost**beta
        if not np.all(np.isfinite(rates * margins)):
            raise InputError(f"{title}: beta is {beta:g}, too large a power of costs up to {np.max(cost):g}")
    return margins, rates


def checked_cost(cost: Any, title: str, classes: int | None = None) -> Cost:
    """The matrix as tuples, which make a loss hashable and comparable where YAML has lists.

    InputError unless it is square, finite, never negative and 0 on the diagonal, with a row for each of `classes`.
    """
    try:
        table = np.array(cost, np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        raise InputError(f"{title}: cost is no matrix of numbers, expected a row per class") from error
    square = table.ndim == 2 and table.shape[0] == table.shape[1] and table.shape[0] >= 2
    if not square or classes not in (None, table.shape[0]):
        wanted = "(classes, classes)" if classes is None else f"({classes}, {classes})"
        raise InputError(f"{title}: cost has shape {table.shape}, expected {wanted}")
    if not np.all(np.isfinite(table)) or table.min() < 0.0 or np.any(np.diag(table) != 0.0):
        raise InputError(f"{title}: cost must be finite, never negative, and 0 on the diagonal")
    return tuple(tuple(row) for row in table.tolist())
