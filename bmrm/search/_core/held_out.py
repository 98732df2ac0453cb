"""Rows that were held out, with what a model says of them, and several of these joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.metrics import ScoredRows


@dataclass(frozen=True)
class Judged:
    """A candidate on one fold, on rank 0.

    Attributes
    ----------
    rows : those held out, with the scores of the model; None where it is not usable.
    facts : of the solution: status, objective, lower_bound, passes, seconds.
    w : where a further training begins; None where there is none.
    """

    rows: ScoredRows | None
    facts: Mapping[str, Any]
    w: NDArray[np.float64] | None = None


def joined(parts: Sequence[ScoredRows]) -> ScoredRows | None:
    """The rows of all parts as one; None where their models know different labels."""
    first = parts[0]
    if any(part.labels != first.labels or part.y.ndim != first.y.ndim for part in parts):
        return None
    each: dict[str, Any] = {"y": [part.y for part in parts], "scores": [part.scores for part in parts]}
    each["predicted"] = [part.predicted for part in parts]
    found = {name: np.concatenate(arrays) for name, arrays in each.items()}
    weights = [np.ones(len(p.y)) if p.weights is None else np.asarray(p.weights, np.float64) for p in parts]
    groups = None
    if all(part.groups is not None for part in parts):
        groups = np.concatenate([part.groups for part in parts])  # type: ignore[misc]
    mass = None if all(part.weights is None for part in parts) else np.concatenate(weights)
    return ScoredRows(
        found["y"],
        found["scores"],
        found["predicted"],
        mass,
        first.classes,
        first.parameters,
        groups,
        first.labels,
    )
