"""Sums over ranks of which rank 0 learns the total only: pairwise masks that cancel (Bonawitz et al. 2017, section 4).

Numbers become integers in words modulo 2^64, so that masks cancel to the last bit. Each pair of ranks other than 0 has
a secret key; the one adds the words that it makes, the other subtracts them, and what a rank sends looks like chance.
"""

from __future__ import annotations

import hashlib
import secrets

import numpy as np
from numpy.typing import NDArray

from bmrm.mpi.group import Group
from bmrm.problem import InputError

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
UNITS = tuple(2.0**power for power in (12, -40, -80, -120))
"""Of the words of a number, the highest first: below 2^64 they have 52, 52, 40 and 40 bits."""
BITS = 52, 40, 40
"""Of the words after the first."""
LARGEST = 2.0**63
"""Numbers from here on count as infinite."""
MARK = 1 << 51
"""What +inf adds to the last word, and nan and -inf to the one before: more than the numbers of `MOST` ranks do."""
MOST = 512
"""Ranks whose words have room in the sums."""
KEY = 32
"""Bytes of a key."""


def split(numbers: Floats) -> Words:
    """Numbers as words, (words, numbers).

    They are multiples of 2^-120: a number of 2^-67 or more is split as it is, of a smaller one 2^-121 may be missing,
    which is less than sums of floats lose beside any number of 2^-68.
    """
    with np.errstate(invalid="ignore"):
        far = ~(np.abs(numbers) < LARGEST)
        rest = np.where(far, 0.0, numbers)
    found = np.empty((len(UNITS), numbers.size), np.int64)
    for k, unit in enumerate(UNITS):
        part = np.trunc(rest / unit) if k < len(UNITS) - 1 else np.rint(rest / unit)
        rest = rest - part * unit
        found[k] = part.astype(np.int64)
    if far.any():
        positive = far & (numbers > 0.0)
        found[-1][positive] += MARK
        found[-2][far & ~positive] += MARK
    return found.view(np.uint64)


def joined(words: Words) -> Floats:
    """The numbers of summed words, within 2 units in the last place."""
    parts = [part.copy() for part in words.view(np.int64)]
    marked = []
    for part in (parts[-1], parts[-2]):
        count = (part + (MARK >> 1)) >> 51
        part -= count << 51
        marked.append(count > 0)
    for k in range(len(parts) - 1, 0, -1):  # carries, from the last to the first
        bits = BITS[k - 1]
        carry = (parts[k] + (1 << (bits - 1))) >> bits
        parts[k] -= carry << bits
        parts[k - 1] += carry
    total = np.zeros(words.shape[1])
    for part, unit in zip(parts, UNITS, strict=True):
        total += part.astype(np.float64) * unit
    total[marked[0]] = np.inf
    total[marked[1]] = np.nan
    return total


class Stream:
    """The words of one pair of ranks: SHAKE-256 of their key and of the number of the sum."""

    def __init__(self, key: bytes) -> None:
        self._key, self._number = key, 0

    def next(self, count: int) -> Words:
        """As many as a sum needs; another sum gets others."""
        self._number += 1
        made = hashlib.shake_256(self._key + self._number.to_bytes(8, "little"))
        return np.frombuffer(made.digest(8 * count), np.uint64)


class Masks:
    """The masks of one rank, that it adds or subtracts.

    Parameters
    ----------
    rank : this one.
    keys : by rank, those that it shares with others than 0.
    """

    def __init__(self, rank: int, keys: dict[int, bytes]) -> None:
        self._streams = [(other > rank, Stream(key)) for other, key in sorted(keys.items())]

    def masked(self, numbers: Floats) -> Words:
        """What this rank sends of numbers that are summed, flat."""
        words = split(numbers).reshape(-1)
        for adds, stream in self._streams:
            mask = stream.next(words.size)
            words = words + mask if adds else words - mask
        return words

    def total(self, words: Words) -> Floats:
        """On rank 0 the sum of the numbers, from that of what all ranks have sent."""
        return joined(words.reshape(len(UNITS), -1))


def agreed(group: Group) -> Masks:
    """Collective: the masks of this rank; keys go from rank to rank, past rank 0.

    Raises
    ------
    InputError
        More ranks than the words have room for.
    """
    if group.size > MOST:
        raise InputError(f"data.guard: secure_sums are of at most {MOST} ranks, there are {group.size}")
    nothing = np.zeros(0, np.uint8)
    mine = {other: secrets.token_bytes(KEY) for other in range(group.rank + 1, group.size) if group.rank}
    pieces = [np.frombuffer(mine[k], np.uint8) if k in mine else nothing for k in range(group.size)]
    received = group.exchange(pieces)
    theirs = {other: received[other].tobytes() for other in range(1, group.rank)}
    return Masks(group.rank, {**mine, **theirs})
