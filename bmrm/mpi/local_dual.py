"""What every rank does for dual coordinate ascent: sweeps over its own rows; see `bmrm.mpi.local`.

All ranks move at once from the same weights. Each takes the curvature of its rows times the
number of ranks, so that the sum of all moves is safe (Ma et al., ICML 2015: gamma = 1, sigma' = the number of ranks).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import DualSteps, ability
from bmrm.risk.dual_rows import AscentRows

if TYPE_CHECKING:
    from bmrm.mpi.local import LocalRisk

Floats = NDArray[np.float64]
Arguments = tuple[float, ...]
Sent = NDArray[Any] | None


def begin(local: LocalRisk, arguments: Arguments, sent: Sent) -> None:
    """Set up this rank's rows, each rank with an order of its own."""
    number, l1, l2, seed, start, near, intercept = arguments
    assert local.share.risk is not None
    steps: Any = ability(local.share.risk, DualSteps)
    rows = steps.make(l1, l2, int(seed) * local.group.size + local.group.rank, local.group.size)
    given = [local.store[int(slot)] if slot else None for slot in (start, near)]
    rows.begin(*given, bool(intercept))
    local.objects[int(number)] = rows


def _rows(local: LocalRisk, number: float) -> AscentRows:
    rows: AscentRows = local.objects[int(number)]
    return rows


def sweep(local: LocalRisk, arguments: Arguments, sent: Sent) -> Floats:
    """The move of v, then the total, the gap, the visits and the rows left."""
    number, spring, *constant = arguments
    v = local.weights(sent)
    after, visits = _rows(local, number).sweep(v.copy(), np.array(constant), spring)
    after -= v
    after /= local.group.size
    return local.group.add_up(np.concatenate((after, visits.total, (visits.gap, visits.visited, visits.left))))


def reopen(local: LocalRisk, arguments: Arguments, sent: Sent) -> None:
    """All rows again."""
    _rows(local, arguments[0]).reopen()


def totals(local: LocalRisk, arguments: Arguments, sent: Sent) -> Floats:
    """Sums of slopes after a shift."""
    number, share, *shift = arguments
    return local.group.add_up(_rows(local, number).totals(np.array(shift), share))


def settle(local: LocalRisk, arguments: Arguments, sent: Sent) -> Floats:
    """Move the slopes; their product with the data."""
    number, share, *shift = arguments
    return local.group.add_up(_rows(local, number).settle(np.array(shift), share))


def sums(local: LocalRisk, arguments: Arguments, sent: Sent) -> Floats:
    """Minus the conjugates, the squared norms of rows, and their number."""
    rows = _rows(local, arguments[0])
    return local.group.add_up(np.array([rows.offset(), *rows.squares()]))


def slope(local: LocalRisk, arguments: Arguments, sent: Sent) -> None:
    """Keep the slopes, or the scores that belong to them."""
    number, new, scores = arguments
    rows = _rows(local, number)
    local.store[int(new)] = rows.scores() if scores else rows.slope()
