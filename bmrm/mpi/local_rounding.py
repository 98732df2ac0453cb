"""What every rank does to measure rounding; see `bmrm.mpi.local`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import Rounding, ability
from bmrm.risk.rounding import AbsoluteMap

if TYPE_CHECKING:
    from bmrm.mpi.local import LocalRisk

Floats = NDArray[np.float64]
Arguments = tuple[float, ...]
Sent = NDArray[Any] | None


def rounding(local: LocalRisk, arguments: Arguments, sent: Sent) -> Floats:
    """What is added on this rank: the terms, the length of sums, the growth times all sizes, and the sizes."""
    w = local.weights(sent)
    assert local.share.risk is not None
    offered = ability(local.share.risk, Rounding)
    assert offered is not None
    found = offered.at(w, np.array(arguments) if arguments else None)
    grown = found.growth * float(found.sizes.sum())
    return local.group.add_up(np.concatenate(([found.terms, found.length, grown], found.sizes)))


def scores(local: LocalRisk, arguments: Arguments, sent: Sent) -> Floats:
    """|A| times weights >= 0, kept here; the length of the longest row."""
    w = local.weights(sent)
    without = AbsoluteMap(local.share.map)  # type: ignore[arg-type]
    local.store[int(arguments[0])] = without.matvec(w)
    return local.group.add_up(np.array([float(without.longest)]))


def rmatvec(local: LocalRisk, arguments: Arguments, sent: Sent) -> Floats:
    """|A|' times slopes >= 0."""
    without = AbsoluteMap(local.share.map)  # type: ignore[arg-type]
    return local.group.add_up(without.rmatvec(local.store[int(arguments[0])]))
