"""What rank 0 says to the others: one short message of numbers a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from bmrm.mpi.communicator import MpiGroup
from bmrm.problem import Vector

HEAD = 64
"""Numbers of the first message of a request; a longer one continues in a second."""


class Operation(IntEnum):
    """What to do; the arguments are slot numbers unless said otherwise. Variant 0 is the risk's own phi."""

    END = 0  # 1 if rank 0 ended well, else 0
    EVALUATE = 1
    SCORES = 2  # new
    RMATVEC = 3  # slope
    VALUE_AND_SLOPE = 4  # scores, new, variant
    ALONG = 5  # scores, step, variant, then the trial points
    CURVATURE = 6  # scores, step, new, variant
    CONSTANT = 7  # new, then the constant
    TOTAL = 8  # scores, 1 for the sum of absolute values, else 0
    ROWS = 9  # count of row indices, which follow as an array
    BLOCKS = 10  # count of blocks
    INFIMA = 11  # count of blocks
    COLLECT = 12  # scores
    HAND_OUT = 13  # new
    FINGERPRINT = 14
    DIAGONAL = 15  # weights
    ACTIVE_SET = 16  # new, then what makes a row become dormant
    STEP = 17  # watch
    REST = 18  # watch
    OUTCOMES = 19
    MASS = 20  # count of row indices (-1 for all rows), which follow as an array, then the changes as text
    VARIANT = 21  # new, mass, then as for MASS
    GRAM = 22  # weights, count of columns (-1 for all), part, parts, sum of parts; columns follow as an array
    SECOND = 23  # scores, new, variant
    ENVELOPE = 24  # scores, sigma, new slope, new curvature
    ENVELOPE_ALONG = 25  # scores, step, sigma, then the trial points
    DUAL_BEGIN = 26  # new, l1, l2, seed, start, near (0 for none)
    DUAL_SWEEP = 27  # rows, penalty, 1 where it may be broken off, then the constant
    DUAL_UNSHRINK = 28  # rows
    DUAL_TOTALS = 29  # rows, share, then the shifts
    DUAL_SETTLE = 30  # rows, shift, share
    DUAL_SUMS = 31  # rows
    DUAL_SLOPE = 32  # rows, new, 1 for the scores instead
    ACTIVE = 33  # weights
    GRAM_BLOCKS = 34  # weights, the least that count, part, parts, sum of parts
    PRODUCT = 35  # slope, scores
    ROUNDING = 36  # the constant, if there is one
    ABSOLUTE_SCORES = 37  # new
    ABSOLUTE_RMATVEC = 38  # slope


Terms = tuple[tuple[int, float], ...]
"""A linear combination: slot numbers and factors."""


@dataclass(frozen=True)
class Request:
    """First form the combinations of `define` (slot number -> terms), then forget the slots of `forget`, then act."""

    operation: Operation
    arguments: tuple[float, ...] = ()
    define: dict[int, Terms] = field(default_factory=dict)
    forget: tuple[int, ...] = ()

    def encode(self) -> Vector:
        """As numbers."""
        numbers: list[float] = [self.operation, len(self.define)]
        for number, terms in self.define.items():
            numbers += [number, len(terms), *(part for term in terms for part in term)]
        return np.array([*numbers, len(self.forget), *self.forget, *self.arguments], dtype=np.float64)

    @classmethod
    def decode(cls, message: Vector) -> Request:
        """The inverse of `encode`."""
        numbers = iter(message.tolist())
        operation = Operation(int(next(numbers)))
        define = {}
        for _ in range(int(next(numbers))):
            number, length = int(next(numbers)), int(next(numbers))
            define[number] = tuple((int(next(numbers)), next(numbers)) for _ in range(length))
        forget = tuple(int(next(numbers)) for _ in range(int(next(numbers))))
        return cls(operation, tuple(numbers), define, forget)


def send(group: MpiGroup, request: Request) -> None:
    """Rank 0 asks."""
    message = request.encode()
    head = np.zeros(HEAD)
    head[0] = message.size
    first = message[: HEAD - 1]
    head[1 : 1 + first.size] = first
    group.send_out(head)
    if message.size > first.size:
        group.send_out(message[first.size :])


def receive(group: MpiGroup) -> Request:
    """The next request of rank 0."""
    head = np.empty(HEAD)
    group.send_out(head)
    size = int(head[0])
    message = head[1 : 1 + min(size, HEAD - 1)]
    if size > message.size:
        rest = np.empty(size - message.size)
        group.send_out(rest)
        message = np.concatenate((message, rest))
    return Request.decode(message)
