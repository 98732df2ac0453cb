"""What value_and_subgradient returned, looked at: where a user wrote it, it may be anything."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.problem.basics import InputError, Vector
from bmrm.problem.risk import Risk


class WrongResultError(InputError):
    """A value or subgradient that breaks the law `law`: "shapes" or "finite"."""

    def __init__(self, law: str, message: str) -> None:
        super().__init__(message)
        self.law = law


def checked_result(
    result: Any, shape: tuple[int, ...], letter: str = "w", slope: str = "subgradient"
) -> tuple[float, NDArray[Any]]:
    """The value as a float and the slope as an array of its own precision.

    Raises
    ------
    WrongResultError
        No pair, a value that is no single number, nan or -inf, a slope of another shape than `shape`, or not finite
        where the value is.
    """
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise WrongResultError("shapes", f"returned {type(result).__name__}, expected (value, {slope})")
    try:
        value, array = np.asarray(result[0]), np.asarray(result[1])
    except ValueError as error:  # ragged lists
        raise WrongResultError("shapes", f"the {slope} is no array: {error}") from error
    if value.shape != () or value.dtype.kind not in "fiub":
        found = f"has shape {value.shape}" if value.dtype.kind in "fiub" else f"is of type {type(result[0]).__name__}"
        raise WrongResultError("shapes", f"the value {found}, expected one number")
    if array.shape != shape or array.dtype.kind not in "fiu":
        found = f"has shape {array.shape}" if array.dtype.kind in "fiu" else f"has entries of type {array.dtype}"
        raise WrongResultError("shapes", f"the {slope} {found}, expected numbers of shape {shape}, as {letter}")
    number = float(value)
    if math.isnan(number) or number == -math.inf:
        raise WrongResultError("finite", f"the value is {number}, expected a finite number, or inf beyond float64")
    if math.isfinite(number) and not np.isfinite(array).all():
        text = f"the {slope} has entries that are not finite where the value is {number:.6g}"
        raise WrongResultError("finite", text)
    return number, array if array.dtype.kind == "f" else array.astype(np.float64)


def is_own(one: object) -> bool:
    """Whether its class is one of this package, whose tests hold it to the laws."""
    return type(one).__module__.partition(".")[0] == __name__.partition(".")[0]


def evaluator(risk: Risk) -> Callable[[Vector], tuple[float, Vector]]:
    """`risk.value_and_subgradient`, with its results looked at where the risk is a user's.

    Raises
    ------
    InputError
        The risk has no `dim`, no `infimum` or no `value_and_subgradient`; while evaluating: WrongResultError.
    """
    name = type(risk).__name__
    for member in ("dim", "infimum", "value_and_subgradient"):
        if not hasattr(risk, member):
            raise InputError(f"risk {name} has no `{member}`; a risk has dim, infimum and value_and_subgradient(w)")
    if is_own(risk):
        return risk.value_and_subgradient

    def evaluate(w: Vector) -> tuple[float, Vector]:
        try:
            value, slope = checked_result(risk.value_and_subgradient(w), (risk.dim,))
        except WrongResultError as wrong:
            raise WrongResultError(wrong.law, f"risk {name}, value_and_subgradient: {wrong}") from None
        return value, slope.astype(np.float64, copy=False)

    return evaluate
