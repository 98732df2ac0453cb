"""Measures by name: what they judge, their register, and how several are taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import InputError, Vector
from bmrm.registry import nearest


@dataclass(frozen=True, eq=False)
class Scored:
    """Some rows with a model's verdict on them.

    Attributes
    ----------
    y : (rows,) or (rows, outputs) numbers; for tasks with classes their codes 0..K-1 (of two, 1 is positive), and K
        for a label that the model does not know, which counts as an error.
    scores : (rows,) or (rows, K).
    predicted : like `y`.
    weights : (rows,) or None.
    classes : K, or 0 for tasks without classes.
    parameters : of the loss, by field name.
    groups : (rows,) the query of each row, or None; measures of rankings are then means over the queries.
        Of sequences the sentence of each token.
    labels : the names of the codes, K of them.
    """

    y: NDArray[Any]
    scores: NDArray[np.float64]
    predicted: NDArray[Any]
    weights: Vector | None
    classes: int
    parameters: Mapping[str, Any]
    groups: NDArray[np.int64] | None = None
    labels: tuple[str, ...] = ()


Measure = Callable[[Scored], float | None]
MEASURES: dict[str, Measure] = {}


def measure(function: Measure) -> Measure:
    """Make a measure known under its name."""
    MEASURES[function.__name__] = function
    return function


def evaluate(names: Iterable[str], scored: Scored) -> dict[str, float | None]:
    """The measures `names`; None where a measure is not defined (ROC area with one class only)."""
    table: dict[str, float | None] = {}
    for name in names:
        if name not in MEASURES:
            raise InputError(f"unknown metric {name!r}{nearest(name, MEASURES)}")
        value = MEASURES[name](scored) if len(scored.y) else None
        table[name] = None if value is None or not np.isfinite(value) else float(value)
    return table


def both_classes(s: Scored) -> bool:
    """Whether there are positive and negative rows of weight > 0."""
    y = s.y if s.weights is None else s.y[s.weights > 0]
    return bool(np.any(y == 1) and np.any(y == 0))


def known_labels(s: Scored) -> bool:
    """Whether the model knows the label of every row."""
    return bool(np.all(s.y < s.classes))
