"""The cycles of PROBE: how phi, the estimated share of f_min above the minimum, is probed (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

UNSEEN = 1e100
"""The paper's f before the first step."""


class Kind(IntEnum):
    """Of a cycle."""

    NORMAL = 0
    TEST = 1
    RETEST = 2


class Cycles:
    """phi, and the cycle that is under way.

    Parameters
    ----------
    gamma : factor of phi.
    ccf : rises of f that end a cycle.
    """

    def __init__(self, gamma: float, ccf: int) -> None:
        self.gamma, self.ccf = gamma, ccf
        self.phi = gamma
        self.kind = Kind.NORMAL
        self._rises = 0
        self._steps = 0
        self._least_before = UNSEEN
        self._average_before = 0.0

    def numbers(self) -> list[float]:
        """What another one needs to go on from here."""
        known = self.phi, self.kind, self._rises, self._steps, self._least_before, self._average_before
        return [float(number) for number in known]

    def resume(self, numbers: Sequence[float]) -> None:
        """Go on from there."""
        self.phi, kind, rises, steps, self._least_before, self._average_before = (float(one) for one in numbers)
        self.kind, self._rises, self._steps = Kind(int(kind)), int(rises), int(steps)

    def step(self, rose: bool, least: float) -> None:
        """One step is done: whether f rose in it, and the least f so far."""
        self._steps += 1
        self._rises += rose
        if self._rises < self.ccf:
            return
        average = (self._least_before - least) / self._steps
        _ENDS[self.kind](self, least, average)
        self._rises = self._steps = 0
        self._least_before = least

    def _end_normal(self, least: float, average: float) -> None:
        if least == self._least_before:
            self.phi *= self.gamma
            self.kind = Kind.TEST

    def _end_test(self, least: float, average: float) -> None:
        self.phi /= self.gamma
        self._average_before = average
        self.kind = Kind.RETEST

    def _end_retest(self, least: float, average: float) -> None:
        if average <= self._average_before:
            self.phi *= self.gamma
        self.kind = Kind.NORMAL


_ENDS = {Kind.NORMAL: Cycles._end_normal, Kind.TEST: Cycles._end_test, Kind.RETEST: Cycles._end_retest}
