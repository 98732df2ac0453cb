"""What every rank does to watch its rows, and to state phi anew; see `bmrm.mpi.local`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import ModifiedLoss, RowSubsets, ability

if TYPE_CHECKING:
    from bmrm.mpi.local import LocalRisk

Floats = NDArray[np.float64]
Arguments = tuple[float, ...]
Sent = NDArray[Any] | None
Rows = NDArray[np.int64]


def packed(rows: Rows | None, changes: Mapping[str, float]) -> tuple[Arguments, Floats]:
    """Row indices and named numbers as arguments of a request and an array that follows it."""
    text = np.frombuffer(json.dumps(dict(changes)).encode(), np.uint8).astype(np.float64)
    count = -1 if rows is None else len(rows)
    indices = np.empty(0) if rows is None else np.asarray(rows, np.float64)
    return (float(count), float(text.size)), np.concatenate((indices, text))


def active_set(local: LocalRisk, arguments: Arguments, sent: Sent) -> None:
    """Begin to watch."""
    number, quiet, least, most, seed = map(int, arguments)
    subsets = _offered(local, RowSubsets)
    local.objects[number] = subsets.active_set(quiet, least, most, seed, local.rows_before)


def step(local: LocalRisk, arguments: Arguments, sent: Sent) -> Floats:
    """Value, number of rows evaluated, subgradient."""
    w = local.weights(sent)
    value, subgradient, share = local.objects[int(arguments[0])].step(w)
    return local.group.add_up(np.concatenate(([value, share * local.share.rows], subgradient)))


def rest(local: LocalRisk, arguments: Arguments, sent: Sent) -> Floats:
    """Value and subgradient of the rows left out."""
    w = local.weights(sent)
    value, subgradient = local.objects[int(arguments[0])].rest(w)
    return local.group.add_up(np.concatenate(([value], subgradient)))


def outcomes(local: LocalRisk, arguments: Arguments, sent: Sent) -> Floats:
    """Sums of outcomes and of weights."""
    return local.group.add_up(np.array(_offered(local, ModifiedLoss).target_sums()))


def mass(local: LocalRisk, arguments: Arguments, sent: Sent) -> Floats:
    """The mass of the chosen rows."""
    rows, changes = _unpacked(local, arguments, sent)
    return local.group.add_up(np.array([_offered(local, ModifiedLoss).mass(rows, changes)]))


def variant(local: LocalRisk, arguments: Arguments, sent: Sent) -> None:
    """Keep another phi."""
    number, total, *counts = arguments
    rows, changes = _unpacked(local, tuple(counts), sent)
    local.objects[int(number)] = _offered(local, ModifiedLoss).variant(rows, changes, total)


def _unpacked(local: LocalRisk, counts: Arguments, sent: Sent) -> tuple[Rows | None, dict[str, float]]:
    """This rank's rows among the chosen ones, numbered from 0; the inverse of `packed`."""
    count, length = map(int, counts)
    message = np.empty(max(0, count) + length) if sent is None else np.ascontiguousarray(sent, np.float64)
    local.group.send_out(message)
    changes: dict[str, float] = json.loads(message[max(0, count) :].astype(np.uint8).tobytes())
    if count < 0:
        return None, changes
    return local.own(message[:count].astype(np.int64)), changes


def _offered(local: LocalRisk, kind: type[Any]) -> Any:
    assert local.share.risk is not None
    offered = ability(local.share.risk, kind)
    assert offered is not None
    return offered
