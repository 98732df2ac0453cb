"""Scores that live on many ranks, as rank 0 sees them: names of arrays and linear combinations of names."""

from __future__ import annotations

from typing import Protocol

MOST = 4
"""Most terms of a sum that is not yet formed, so that the ranks need not keep all arrays it was made of."""


class Keeper(Protocol):
    """The keeper of the arrays on the ranks, as seen from rank 0."""

    def forget(self, number: int) -> None:
        """Called when the last reference to that array on rank 0 is dropped."""

    def form(self, scores: RemoteScores) -> None:
        """Have a sum formed before anything else is done, and call it by a name of its own."""


class Slot:
    """One array of scores per rank, under a number; the ranks forget it when the last reference here goes."""

    __slots__ = ("keeper", "number")

    def __init__(self, number: int, keeper: Keeper) -> None:
        self.number, self.keeper = number, keeper

    def __del__(self) -> None:
        self.keeper.forget(self.number)


class RemoteScores:
    """A linear combination of slots; supports what a solver may do with scores: `+`, `-`, and products with numbers."""

    __slots__ = ("terms",)
    __array_ufunc__ = None  # numpy numbers leave `number * scores` to us

    def __init__(self, terms: dict[Slot, float]) -> None:
        self.terms = terms

    def __add__(self, other: RemoteScores) -> RemoteScores:
        if not isinstance(other, RemoteScores):
            return NotImplemented
        terms = dict(self.terms)
        for slot, factor in other.terms.items():
            terms[slot] = terms.get(slot, 0.0) + factor
        found = RemoteScores(terms)
        if len(terms) > MOST:
            next(iter(terms)).keeper.form(found)
        return found

    def __mul__(self, factor: float) -> RemoteScores:
        return RemoteScores({slot: float(factor) * old for slot, old in self.terms.items()})

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> RemoteScores:
        return self * (1.0 / float(divisor))

    def __neg__(self) -> RemoteScores:
        return self * -1.0

    def __sub__(self, other: RemoteScores) -> RemoteScores:
        if not isinstance(other, RemoteScores):
            return NotImplemented
        return self + (-other)

    def single(self) -> Slot | None:
        """The slot that this stands for, if it is one as it is."""
        if len(self.terms) == 1:
            (slot, factor) = next(iter(self.terms.items()))
            return slot if factor == 1.0 else None
        return None
