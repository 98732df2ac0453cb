"""Models whose weights are all 0, or no better than that, though targets differ: that this is so, and what to do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.mpi.group import Group
from bmrm.problem import LossFacts, Regularizer, Risk, Solution, Status, Summary, Targets

AT_A_MINIMUM = Status.CONVERGED, Status.OWN_RULE, Status.STALLED
LIMITS = Status.ITERATION_LIMIT, Status.TIME_LIMIT
ROUNDING = 1e-9
"""Relative gap below which the point is the minimum within rounding, not only within the tolerance."""

UNPROVED = 1e-2
"""Relative gap of a run that ended without reaching its own, above which there may be much better weights."""


def targets_differ(facts: LossFacts, targets: Targets, summary: Summary, group: Group) -> bool:
    """Collective: whether there is anything to learn, over the rows of all ranks."""
    if not facts.needs_targets:
        return False
    if summary.labels:
        return sum(map(bool, summary.counts)) > 1
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


def nothing_learned(
    facts: LossFacts, regularizer: Regularizer, weights: NDArray[np.float64], solution: Solution, no_better: bool
) -> str:
    """What to say where all weights are 0, or zeros are as good; "" where something was learned.

    Parameters
    ----------
    no_better : whether J at weights of 0 is at most that of the solution, as of `zeros_are_as_good`.
    """
    zero = not weights.any()
    if zero and solution.status in LIMITS:
        return "all weights are still 0: no better ones were found before the limit"
    if zero and solution.status is Status.STALLED and solution.relative_gap > UNPROVED:
        return "all weights are still 0: no better ones were found; scale the features where they are huge or tiny"
    if _far_from_proved(solution):
        return "all weights are still 0: no better ones were found before the run's own rule ended it" if zero else ""
    if solution.status not in AT_A_MINIMUM or not (zero or no_better):
        return ""
    if not zero and solution.status is Status.STALLED and solution.relative_gap > UNPROVED:
        return "weights of 0 have no larger objective: the run has stalled far from the minimum; start it from 0"
    found = "all weights are 0" if zero else "weights of 0 are as good as these, within the tolerance,"
    why = "no feature lowers this objective, and all rows get one score"
    if not zero:
        why = "no feature lowers this objective by more than that"
    return f"{found} though the targets differ: {why}; {_ways_out(facts, regularizer, solution)}"


def _far_from_proved(solution: Solution) -> bool:
    """Whether a rule of the solver's own has ended the run far from a bound that it knew."""
    known = np.isfinite(solution.lower_bound)
    return bool(solution.status is Status.OWN_RULE and known and solution.relative_gap > UNPROVED)


def _ways_out(facts: LossFacts, regularizer: Regularizer, solution: Solution) -> str:
    exact = solution.relative_gap < ROUNDING
    if regularizer.smooth and exact and not regularizer.subgradient(np.zeros_like(solution.w)).any():
        # Where the slope of Omega is 0, that of R is 0 too: R itself is smallest there, whatever lambda and scales are.
        return f"no lambda and no scale changes that: {facts.at_zero or 'take another loss, or other features'}"
    given = getattr(regularizer, "lam", None)
    smaller = "take a smaller lambda" + ("" if given is None else f" than {given:.4g}")
    if regularizer.smooth and not exact:
        smaller += " or a smaller tolerance"
    ways = [smaller, "scale the features where they are tiny", facts.at_zero]
    return ", or ".join(filter(None, ways))


def zeros_are_as_good(risk: Risk, regularizer: Regularizer, weights: NDArray[np.float64], solution: Solution) -> bool:
    """Whether J with weights of 0, and what else there is as it is, is at most that of the solution.

    It is looked at only where it can be: by the convexity of J and that of Omega, which is a multiple of a square
    or nearly so, Omega is then at most four times the gap.

    Parameters
    ----------
    weights : those of the features, first in `solution.w`.
    """
    w = solution.w
    if solution.status not in AT_A_MINIMUM or _far_from_proved(solution) or not weights.any():
        return False
    if regularizer.value(w) > 4.0 * (solution.objective - solution.lower_bound):
        return False
    without = w.copy()
    without[: weights.size] = 0.0
    return risk.value_and_subgradient(without)[0] + regularizer.value(without) <= solution.objective
