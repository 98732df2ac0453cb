"""How fast a solver gets to its tolerance, judged while it runs."""

from __future__ import annotations

import math

from bmrm.problem import Iteration, relative_goal

EARLY = 12.0
"""Passes within which a solver is not judged at first."""
LATE, LESS = 8.0, 2.0
"""After LATE times `early` passes patience is at most LESS, and the run is judged on its own: that an alternative is
slower is no excuse any more."""
HOPELESS = 12.0
"""The factor of patience before `early` passes: only a hopeless run ends then."""
RECENT = 0.25
"""The last part of a long run from which its rate is estimated, so that a plateau is seen."""
LOOSE = math.log(0.5)
"""The logarithm of the relative gap above which an estimate is not kept: planes far from the minimum prove little."""
CLEARLY = 2.0
"""An alternative that would need so many times fewer passes is preferred."""


class StageBudget:
    """Extrapolates a run to the tolerance; in passes, to be repeatable.

    A Gram matrix counts as the half pass that reads the data, as when the numbers here were measured.

    What counts is the last half or the last quarter, whichever is faster: bounds tell nothing at first. Later it is the
    last quarter.

    Parameters
    ----------
    tolerance : relative gap that is wanted.
    patience : a run is slow when what is left would take so many times longer than it has taken.
    alternative : passes that another solver would still take, 0 where that is not known, None where there is no other.
        A run is slow, too, when it would take twice as many; it is not when it would take fewer.
    early : passes within which the run is not judged; after 8 times as many it is judged more severely.
    unjudged : where it is less than `early`, the run is left where it is hopeless between the two.
    loose_factor : so many times more patience while the gap is above 1/2: the bound may be far behind the objective.
    absolute_tolerance : as of `IterativeSolver`.
    """

    def __init__(
        self,
        tolerance: float,
        patience: float,
        alternative: float | None = 0.0,
        early: float = EARLY,
        unjudged: float | None = None,
        loose_factor: float = 1.0,
        absolute_tolerance: float = 0.0,
    ) -> None:
        self.slow = False
        self.left = math.inf
        """Passes to the tolerance at the latest rate; inf before there was any progress, 0 where nothing is known."""
        self._patience, self._alternative, self._early, self._loose_factor = patience, alternative, early, loose_factor
        self._unjudged = early if unjudged is None else unjudged
        self._tolerances = max(tolerance, 1e-14), absolute_tolerance
        self._whole, self._own = _Fall(early), _Fall(early)

    def too_slow(self, whole: Iteration, own: Iteration | None = None) -> bool:
        """Whether the run is slow at this line; `own` is the line of the run without what was known before it."""
        falls = [(self._whole, whole)] if own is None else [(self._whole, whole), (self._own, own)]
        for fall, line in falls:
            fall.note(whole.passes - whole.passes_gram, line.relative_gap, line.objective)
        used, goal = self._whole.used, math.log(relative_goal(whole.objective, *self._tolerances))
        if used < self._unjudged or self._whole.gap <= goal:
            return False
        late = used > LATE * self._early
        patience = self._patience if used >= self._early else HOPELESS * self._patience
        loose = falls[-1][0].gap > LOOSE
        if loose:
            patience *= self._loose_factor
        shares = (RECENT,) if late else (0.5, RECENT)
        lefts = [left for fall, _ in falls if (left := fall.left(shares, goal)) is not None]
        if lefts:
            self.left = min(lefts)
            slow = self.left > (min(LESS, patience) if late else patience) * used
        else:  # some solvers look at the gap now and then only
            slow = all(used > (1.0 + patience) * max(fall.fallen_for, self._early) for fall, _ in falls)
        if self._alternative is not None:
            beaten = 0.0 < CLEARLY * self._alternative < self.left < math.inf
            self.slow = beaten or (slow and (late or self.left > self._alternative))
        if self.slow and loose:
            self.left = 0.0
        return self.slow


class _Fall:
    """How a gap fell, as its logarithm.

    Parameters
    ----------
    grace : passes that do not count at first, as long as the objective falls and the bound says nothing.
    """

    def __init__(self, grace: float) -> None:
        self.gap, self.used = math.inf, 0.0
        self._grace = grace
        self._moves: list[tuple[float, float]] = []
        self._objective, self._late = math.inf, math.inf

    def note(self, passes: float, gap: float, objective: float) -> None:
        """The gap after so many passes."""
        self.gap = min(math.log(gap) if 0.0 < gap < math.inf else math.inf, 50.0)
        if not self._moves:
            self._late = passes + self._grace
        if not self._moves or self.gap < self._moves[-1][1]:
            self._moves.append((passes, self.gap))
        elif len(self._moves) == 1 and objective < self._objective and passes <= self._late:
            self._moves[0] = passes, self.gap
        self._objective = min(objective, self._objective)
        self.used = passes - self._moves[0][0]

    @property
    def fallen_for(self) -> float:
        """Passes from the first line to the last with a smaller gap than before it."""
        return self._moves[-1][0] - self._moves[0][0]

    def left(self, shares: tuple[float, ...], goal: float) -> float | None:
        """Passes to the goal at the fastest rate of the last `shares` of the run; None where it has not just fallen."""
        if self.fallen_for < self.used:
            return None
        return min(self._left(share * self.used, goal) for share in shares)

    def _left(self, passes: float, goal: float) -> float:
        now, gap = self._moves[-1]
        since = now - passes
        then, before = [pair for pair in self._moves if pair[0] <= since][-1]
        fallen = before - gap
        return (gap - goal) * (now - max(then, since)) / fallen if fallen > 0.0 else math.inf
