"""Models whose weights are all 0 though targets differ: that this is so, and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.mpi.group import Group
from bmrm.problem import LossFacts, Solution, Status, Summary, Targets
from bmrm.regularizers.base import ScaledBy

AT_A_MINIMUM = Status.CONVERGED, Status.OWN_RULE, Status.STALLED
LIMITS = Status.ITERATION_LIMIT, Status.TIME_LIMIT


def targets_differ(facts: LossFacts, targets: Targets, summary: Summary, group: Group) -> bool:
    """Collective: whether there is anything to learn, over the rows of all ranks."""
    if not facts.needs_targets:
        return False
    if summary.labels:
        return sum(count > 0 for count in summary.counts) > 1
    width = max(1, summary.outputs)
    ends = np.full((2, width), -np.inf)
    y = np.asarray(targets.y)
    if targets.weights is not None:
        y = y[np.asarray(targets.weights) > 0.0]
    if y.dtype.kind in "fiu" and y.size:
        table = y.astype(np.float64).reshape(len(y), -1)
        ends[0], ends[1] = table.max(axis=0), (-table).max(axis=0)
    highest, lowest = group.max(ends.ravel()).reshape(2, width)
    return bool(np.any(highest > -lowest))


def nothing_learned(facts: LossFacts, regularizer: Any, weights: NDArray[np.float64], solution: Solution) -> str:
    """What to say where all weights are 0; "" where some are not."""
    if weights.any():
        return ""
    if solution.status in LIMITS:
        return "all weights are still 0: no better ones were found before the limit"
    if solution.status not in AT_A_MINIMUM:
        return ""
    smaller = "take a smaller lambda" + (f" than {regularizer.lam:.4g}" if isinstance(regularizer, ScaledBy) else "")
    ways = [*([facts.at_zero] if facts.at_zero else []), smaller, "scale the features where they are tiny"]
    return (
        "all weights are 0 though the targets differ: no feature lowers this objective, and all rows get one score; "
        f"{', or '.join(ways)}"
    )
