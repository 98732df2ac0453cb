"""What every rank does for second-order methods; see `bmrm.mpi.local`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bmrm.mpi.local import LocalRisk

Floats = NDArray[np.float64]
Arguments = tuple[float, ...]
Sent = NDArray[Any] | None


def gram(local: LocalRisk, arguments: Arguments, sent: Sent) -> Floats | None:
    """This rank's part of the Gram matrix; where there are several parts, of some of its rows, until the last."""
    weights, count, part, parts, total = map(int, arguments)
    chosen = None
    if count >= 0:
        message = np.empty(count) if sent is None else np.asarray(sent, np.float64)
        local.group.send_out(message)
        chosen = message.astype(np.int64)
    assert local.share.map is not None
    matrix = local.share.map.gram(_part(local.store[weights], part, parts), chosen)
    return _added(local, matrix.reshape(-1), part, parts, total)


def gram_blocks(local: LocalRisk, arguments: Arguments, sent: Sent) -> Floats | None:
    """This rank's part of the Gram matrices, one for each score of a row; see `gram`."""
    assert local.share.map is not None
    least = arguments[1]
    number, part, parts, total = (int(arguments[k]) for k in (0, 2, 3, 4))
    weights = local.store[number]
    if parts > 1 and least > 0.0 and len(weights):
        weights, least = np.where(weights >= least * weights.mean(axis=0), weights, 0.0), 0.0
    matrices = local.share.map.gram_blocks(_part(weights, part, parts), least)
    return _added(local, matrices.reshape(-1), part, parts, total)


def _part(weights: Floats, part: int, parts: int) -> Floats:
    """The weights of some of the rows, zeros for the others."""
    if parts == 1:
        return weights
    first, last = (len(weights) * k // parts for k in (part, part + 1))
    return np.concatenate((np.zeros_like(weights[:first]), weights[first:last], np.zeros_like(weights[last:])))


def _added(local: LocalRisk, flat: Floats, part: int, parts: int, total: int) -> Floats | None:
    """Parts are kept until the last, then added up over ranks."""
    if part > 0:
        flat += local.objects[total]
    if part < parts - 1:
        local.objects[total] = flat
        return None
    return local.group.add_up(flat)


def active(local: LocalRisk, arguments: Arguments, sent: Sent) -> Floats:
    """How many of this rank's rows have a weight other than 0."""
    assert local.share.map is not None
    return local.group.add_up(np.array([float(local.share.map.active(local.store[int(arguments[0])]))]))


def curvature(local: LocalRisk, arguments: Arguments, sent: Sent) -> None:
    """Keep the diagonal of phi''."""
    f, new, variant = map(int, arguments)
    local.store[new] = local.phi(variant).hessian_diagonal(local.store[f])


def envelope(local: LocalRisk, arguments: Arguments, sent: Sent) -> Floats:
    """Keep slope and curvature of the envelope; value and conjugate are added up."""
    z, sigma, slope, second = arguments
    found = local.phi(0).moreau(local.store[int(z)], sigma)
    local.store[int(slope)], local.store[int(second)] = found.slope, found.curvature
    return local.group.add_up(np.array([found.value, found.conjugate]))


def envelope_along(local: LocalRisk, arguments: Arguments, sent: Sent) -> Floats:
    """Values of the envelope along a step, and derivatives."""
    z, step, sigma = arguments[:3]
    # a key of four, unlike that of the curves of phi
    return local.on_line((z, step, sigma, 0.0), local.phi(0).moreau_along, arguments[3:], sigma)
