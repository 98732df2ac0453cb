"""Shared parts of regularizers: lambda with its check, engines named by module and class, Omega along a line."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from bmrm.problem import Master, Space, Vector
from bmrm.registry import check_parameters, parameter
from bmrm.vocabulary import ParameterError

S = TypeVar("S", bound="ScaledBy")
Line = Callable[[Vector], tuple[Vector, Vector]]
"""t -> (values, derivatives), for a vector of t."""

ANYWHERE = Space(1)
"""A space whose inner products are plain, for vectors of any length that hold all coordinates."""


def engine_parameter(engines: Mapping[str, str]) -> Any:
    """The option that picks one of `engines`, a table from names to `module:class`; the first is the default.

    Parameters
    ----------
    engines : `module:class` by name; at least two.
    """
    default, another, *_ = engines
    return parameter(default, doc="who solves the master problem", choices=tuple(engines), example=another)


def load(place: str) -> Callable[..., Master]:
    """The class at `module:class`, imported only when used: engines need libraries that the other ranks do not load."""
    module, _, name = place.partition(":")
    return cast("Callable[..., Master]", getattr(importlib.import_module(module), name))


@dataclass(frozen=True)
class ScaledBy:
    """The option lambda, and the check of all options.

    Parameters
    ----------
    lam : lambda > 0.

    Raises
    ------
    InputError : an option is outside its range.
    """

    lam: float = parameter(doc="strength, > 0", above=0.0, below=math.inf, example=0.01)

    def __post_init__(self) -> None:
        try:
            check_parameters(self)
        except ParameterError as error:
            if error.field == "lam" and np.ndim(self.lam) == 0 and self.lam == 0:
                said = f"{error.said}; without a regularizer take `none`"
                raise ParameterError(error.owner, error.field, said, error.word) from None
            raise

    def with_lambda(self: S, lam: float) -> S:
        """The same with another lambda, for many of them.

        Parameters
        ----------
        lam : lambda > 0.
        """
        return replace(self, lam=lam)


def l1_line(l1: float, w: Vector, step: Vector) -> Line:
    """The function t -> (l1 ||w + t step||_1, its derivative in t); one sweep over both vectors per call, no copies."""
    from bmrm.kernels.products.lines import (
        absolute_line,  # not at the top: regularizers are made where nothing is compiled
    )
    from bmrm.kernels.products.vectors import plain

    w, step = plain(w), plain(step)

    def evaluate(t: Vector) -> tuple[Vector, Vector]:
        places = plain(t).ravel()
        values, slopes = np.empty(places.size), np.empty(places.size)
        absolute_line(w, step, places, values, slopes)
        return (l1 * values).reshape(np.shape(t)), (l1 * slopes).reshape(np.shape(t))

    return evaluate


def l2_line(l2: float, w: Vector, step: Vector, space: Space = ANYWHERE) -> Line:
    """The function t -> (l2/2 ||w + t step||^2, its derivative in t): a parabola, set up once."""
    ww, ws, ss = space.dot(w, w), space.dot(w, step), space.dot(step, step)

    def evaluate(t: Vector) -> tuple[Vector, Vector]:
        t = np.asarray(t, dtype=np.float64)
        return 0.5 * l2 * np.maximum(ww + t * (2.0 * ws + t * ss), 0.0), l2 * (ws + t * ss)

    return evaluate


def soft_threshold(v: Vector, threshold: float) -> Vector:
    """sign(v) max(|v| - threshold, 0)."""
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)
