"""What every rank does for dual coordinate ascent: sweeps over its own rows; see `bmrm.mpi.local`.

All ranks move at once from the same weights. Each takes the curvature of its rows times the
number of ranks, so that the sum of all moves is safe (Ma et al., ICML 2015: gamma = 1, sigma' = the number of ranks).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import Check, DualBlocks, ability, unchecked
from bmrm.risk.dual.rows import AscentRows, Visits

if TYPE_CHECKING:
    from bmrm.mpi.communicator import MpiGroup
    from bmrm.mpi.local import LocalRisk

Floats = NDArray[np.float64]
Arguments = tuple[float, ...]
Sent = NDArray[Any] | None


def begin(local: LocalRisk, arguments: Arguments, sent: Sent) -> None:
    """Set up this rank's rows, each rank with an order of its own."""
    number, l1, l2, seed, start, near, intercept = arguments
    assert local.share.risk is not None
    steps: Any = ability(local.share.risk, DualBlocks)
    rows = steps.make(l1, l2, int(seed) * local.group.size + local.group.rank, local.group.size)
    given = [local.store[int(slot)] if slot else None for slot in (start, near)]
    rows.begin(*given, bool(intercept))
    local.objects[int(number)] = rows


def _rows(local: LocalRisk, number: float) -> AscentRows:
    rows: AscentRows = local.objects[int(number)]
    return rows


class Halt(BaseException):
    """Unwinds a sweep that is broken off on all ranks."""


class Lookout:
    """Whether a sweep is to be broken off: rank 0 asks a check, the others whether it has told them to.

    Rank 0 tells each of them once, when its own part is done or broken off; `end` hears that, if nothing did before.

    Attributes
    ----------
    reason : what the check has raised, on rank 0.
    """

    def __init__(self, group: MpiGroup, check: Check) -> None:
        self._group, self._check = group, check
        self._heard = group.start_hearing() if group.rank else None
        self.reason: BaseException | None = None

    def __call__(self) -> None:
        """Raises Halt where it is."""
        if self._heard is not None:
            number, request = self._heard
            if request.Test() and number[0]:
                raise Halt
            return
        try:
            self._check()
        except BaseException as reason:  # whatever it is, the others are to know of it before
            self.reason = reason
            raise Halt from reason

    def end(self) -> None:
        """This rank's part is over."""
        if self._heard is None:
            self._group.tell(float(self.reason is not None))
        else:
            self._group.wait(self._heard[1])


def sweep(local: LocalRisk, arguments: Arguments, sent: Sent) -> Floats:
    """The move of v, then the total, the gap, the visits and the rows left; the last three nan if it is broken off."""
    number, penalty, watched, *constant = arguments
    v = local.weights(sent)
    after, lookout = v.copy(), Lookout(local.group, local.check) if watched else None
    visits = Visits(np.zeros(len(constant)), np.nan, np.nan, np.nan)
    try:
        after, visits = _rows(local, number).sweep(after, np.array(constant), penalty, lookout or unchecked)
    except Halt:
        assert lookout is not None
        local.reason = lookout.reason
    if lookout is not None:
        lookout.end()
    after -= v
    after /= local.group.size
    return local.group.add_up(np.concatenate((after, visits.total, (visits.gap, visits.visited, visits.left))))


def unshrink(local: LocalRisk, arguments: Arguments, sent: Sent) -> None:
    """All rows again."""
    _rows(local, arguments[0]).unshrink()


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
