"""How fast a solver gets to its tolerance, judged while it runs."""

from __future__ import annotations

import math

from bmrm.problem import Iteration

EARLY = 12.0
"""Passes within which a solver is not judged at first."""
LATE, LESS = 8.0, 2.0
"""After so many times as many passes there is no more patience than this, and no rival's greater slowness helps."""
HOPELESS = 12.0
"""Where it is judged earlier still it takes so much more."""
RECENT = 0.25
"""The share of a long run that tells how fast it is: one that has come to a plateau is not to be praised for before."""
CLEARLY = 2.0
"""A rival that would need so many times fewer passes is preferred."""


class Pace:
    """Extrapolates a run to the tolerance; in passes, to be repeatable.

    What counts is the last half or the last quarter, whichever is faster: bounds tell nothing at first. Later it is the
    last quarter.

    Parameters
    ----------
    tolerance : relative gap that is wanted.
    patience : a run is slow when what is left would take so many times longer than it has taken.
    rival : passes that another solver would still take, 0 where that is not known, None where there is no other. A run
        is slow, too, when it would take twice as many; it is not when it would take fewer.
    early : passes within which the run is not judged; after 8 times as many it is judged more severely.
    unjudged : where it is less than `early`, the run is left where it is hopeless between the two.
    """

    def __init__(
        self,
        tolerance: float,
        patience: float,
        rival: float | None = 0.0,
        early: float = EARLY,
        unjudged: float | None = None,
    ) -> None:
        self.slow = False
        self.left = math.inf
        """Passes to the tolerance at the latest rate; inf before there was any progress."""
        self._patience, self._rival, self._early = patience, rival, early
        self._unjudged = early if unjudged is None else unjudged
        self._goal = math.log(max(tolerance, 1e-14))
        self._moves: list[tuple[float, float]] = []

    def too_slow(self, line: Iteration) -> bool:
        """Whether the run is slow at this line."""
        gap = math.log(line.relative_gap) if 0.0 < line.relative_gap < math.inf else math.inf
        gap = min(gap, 50.0)
        first, last, least = self._span(line.passes, gap)
        used = line.passes - first
        if used < self._unjudged or gap <= self._goal:
            return False
        late = used > LATE * self._early
        patience = self._patience if used >= self._early else HOPELESS * self._patience
        if gap == least and last == line.passes:
            self.left = min(self._left(share * used) for share in ((RECENT,) if late else (0.5, RECENT)))
            slow = self.left > (min(LESS, patience) if late else patience) * used
        else:  # some solvers look at the gap now and then only
            slow = used > (1.0 + patience) * max(last - first, self._early)
        if self._rival is not None:
            beaten = 0.0 < CLEARLY * self._rival < self.left < math.inf
            self.slow = beaten or (slow and (late or self.left > self._rival))
        return self.slow

    def _left(self, passes: float) -> float:
        """Passes to the tolerance at the rate of the last so many."""
        now, gap = self._moves[-1]
        since = now - passes
        then, before = [pair for pair in self._moves if pair[0] <= since][-1]
        fallen = before - gap
        return (gap - self._goal) * (now - max(then, since)) / fallen if fallen > 0.0 else math.inf

    def _span(self, passes: float, gap: float) -> tuple[float, float, float]:
        """Passes of the first line and of the last with a smaller gap than before it, and that gap."""
        if not self._moves or gap < self._moves[-1][1]:
            self._moves.append((passes, gap))
        return self._moves[0][0], *self._moves[-1]
