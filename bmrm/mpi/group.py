"""The ranks that work together: one process alone, or those that mpirun started.

Everything that ranks say to one another outside the risk goes through a `Group`: plain values as JSON (nothing is
pickled), arrays as buffers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import BmrmError, InputError


class OtherRankError(BmrmError):
    """Another rank failed and says so itself; this one only stops."""


class Group:
    """Collective calls: every rank makes the same ones in the same order. Here for one process; `MpiGroup` for more."""

    rank: int = 0
    size: int = 1
    cores_per_rank: int | None = None
    """Threads that a rank may use without taking a core from another; None where all cores are its own."""
    timeout: float | None = None
    """Seconds without a sign of life of a rank after which all end with a message; None for never."""

    def broadcast(self, value: Any) -> Any:
        """The JSON-able `value` of rank 0."""
        return value

    def gather(self, value: Any) -> list[Any] | None:
        """The JSON-able values of all ranks in rank order, on rank 0; None elsewhere."""
        return [value]

    def broadcast_array(self, array: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """The float64 array of rank 0, of any shape."""
        assert array is not None
        return array

    def gather_array(self, array: NDArray[Any]) -> NDArray[Any] | None:
        """Numeric arrays of equal dtype, joined along axis 0 in rank order, on rank 0; None elsewhere."""
        return array

    def gather_bytes(self, content: NDArray[np.uint8]) -> list[NDArray[np.uint8]] | None:
        """Those of all ranks in rank order, on rank 0; None elsewhere."""
        return [content]

    def exchange(self, pieces: Sequence[NDArray[np.uint8]]) -> list[NDArray[np.uint8]]:
        """Send bytes to each rank, in rank order; returns what each rank has sent to this one."""
        return list(pieces)

    def sum(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """The elementwise sum over ranks, the same bits on all."""
        return array

    def sum_in_place(self, numbers: NDArray[np.float64]) -> None:
        """The same of a one-dimensional array, which becomes the sum."""

    def max(self, array: NDArray[np.float64]) -> NDArray[np.float64]:
        """The elementwise maximum over ranks."""
        return array

    def first_per_node(self, function: Callable[[], object]) -> None:
        """Call `function` on one rank of each node while the others wait: they find its files (compiled kernels)."""
        function()

    def abort(self, status: int) -> None:
        """End every rank at once; alone, do nothing."""


class Alone(Group):
    """The group of one process."""


_ALONE = nullcontext()


def together(group: Group) -> AbstractContextManager[None]:
    """Run a block on every rank; if any rank raises BmrmError or OSError there, all stop.

    Of several ranks, rank 0 raises InputError with the name and the message of the lowest failing one, the others
    OtherRankError: so the user reads it once.
    """
    return _ALONE if group.size == 1 else _together(group)


@contextmanager
def _together(group: Group) -> Iterator[None]:
    message = None
    try:
        yield
    except (BmrmError, OSError) as error:
        message = str(error)
    messages = group.gather(message)
    failed = None
    if messages is not None:
        failed = next(((k, text) for k, text in enumerate(messages) if text is not None), None)
    failed = group.broadcast(failed)
    if failed is None:
        return
    if group.rank == 0:
        raise InputError(f"rank {failed[0]}: {failed[1]}")
    raise OtherRankError(failed[1])


def to_bytes(value: Any) -> bytes:
    """JSON as bytes; nan and inf are kept, as JSON extensions."""
    return json.dumps(value, separators=(",", ":")).encode()


def from_bytes(text: bytes) -> Any:
    """The inverse of `to_bytes`; tuples come back as lists."""
    return json.loads(text)
