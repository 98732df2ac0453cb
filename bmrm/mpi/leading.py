"""Rank 0 leads, the others answer: the shape of every distributed computation here."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from bmrm.kernels.blas_threads import one_thread
from bmrm.mpi.group import Group, OtherRankError
from bmrm.problem import BmrmError, Risk

if TYPE_CHECKING:
    from bmrm.mpi.multiplexed import MultiplexedRisk

T = TypeVar("T")


def lead(risk: Risk, group: Group, function: Callable[[Risk], T]) -> T | None:
    """Collective: rank 0 calls `function(risk)` while the other ranks answer its requests.

    Returns the value of `function` on rank 0, None elsewhere. When it raises, the others raise OtherRankError. An
    error in the middle of an answer, on whatever rank, is printed with its rank and ends all ranks at once: status
    2 for bad data, 1 for anything else.

    Parameters
    ----------
    risk : on rank 0 the whole, elsewhere the part that answers.
    group : all ranks.
    function : called on rank 0 with the risk.
    """
    from bmrm.mpi.group import Alone

    if isinstance(group, Alone):
        return function(risk)
    multiplexed: MultiplexedRisk = risk  # type: ignore[assignment]
    ranks = multiplexed.ranks
    if group.rank != 0:
        with _deaf_to_signals(), one_thread(), ending_all(group):
            well = ranks.serve()
        if not well:
            raise OtherRankError("rank 0 stopped with an error")
        return None
    try:
        result = function(multiplexed)
        if ranks.refused is not None:  # a solver of the user's has gone on from it
            raise ranks.refused
    except BaseException as error:
        if ranks.broken:
            _print_and_end(group, error)
        ranks.end(well=False)
        raise
    ranks.end(well=True)
    return result


@contextmanager
def _deaf_to_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM go to every rank; only rank 0, which can stop in good order, listens."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ending_all(group: Group) -> Iterator[None]:
    """A block in which an error of this rank alone ends all ranks, with its message."""
    try:
        yield
    except BaseException as error:
        _print_and_end(group, error)
        raise


def _print_and_end(group: Group, error: BaseException) -> None:
    """The other ranks wait in a reduction that this one has left: no good order is possible any more."""
    if isinstance(error, BmrmError):
        print(f"bmrm: rank {group.rank}: {error}", file=sys.stderr)
    else:
        print(f"bmrm: rank {group.rank} failed:", file=sys.stderr)
        traceback.print_exception(error, file=sys.stderr)
    group.abort(2 if isinstance(error, BmrmError) else 1)
