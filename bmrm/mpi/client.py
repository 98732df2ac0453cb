"""What the abilities of a risk on many ranks need of it, to ask the ranks."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bmrm.mpi.local import LocalRisk
from bmrm.mpi.remote_scores import RemoteScores, Slot
from bmrm.mpi.requests import Operation
from bmrm.problem import Vector


class Client(Protocol):
    """What is needed of a `MultiplexedRisk`; see there."""

    dim: int
    rows: int
    infimum: float
    local: LocalRisk

    def ask(self, operation: Operation, *arguments: float, sent: NDArray[np.float64] | None = None) -> Vector: ...

    def slot(self) -> Slot: ...

    def new(self) -> tuple[RemoteScores, int]: ...

    def number(self, scores: RemoteScores) -> int: ...
