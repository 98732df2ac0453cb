"""The best point and the best bound of a run: that neither claims more than is so."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bmrm.problem import (
    BlockSeparable,
    BmrmError,
    Intercept,
    Regularizer,
    Risk,
    Scored,
    Space,
    Vector,
    ability,
    provides,
    relative_gap,
)
from bmrm.problem.abilities import Rounding
from bmrm.problem.meter import Meter
from bmrm.problem.regularizer import space_of
from bmrm.solvers._core.audit import Audit, Contradiction, searches_constants
from bmrm.solvers._core.certificate import Certificate, SinglePlane
from bmrm.solvers._core.rounding import ROUNDOFF, UNDOUBTED, Proof, Slack, cautious, doubtful

ROUNDING = 4 * float(np.finfo(np.float64).eps)

NAN = "the objective is nan; a risk must return finite values or +inf"


class Evaluated(NamedTuple):
    """A point where J was evaluated, and its free constants where others would make another J."""

    objective: float
    w: Vector
    constants: Vector | None = None


@dataclass
class Best:
    """The best point and bound so far, from `improve`, `raise_bound` and `take_plane`.

    Solvers may carry along what objective and bound are made of; `_verify` makes both anew, from the weights of the
    point and from what the bound rests on.

    Parameters
    ----------
    risk, regularizer : of the run.
    start : its first point.
    meter : what the risk is charged to.
    """

    risk: Risk
    regularizer: Regularizer
    start: Vector
    meter: Meter = field(kw_only=True)
    w: Vector = field(init=False)
    objective: float = field(default=math.inf, init=False)
    proof: Proof = field(default_factory=Proof, init=False)
    confirm: Callable[[], None] | None = field(default=None, init=False)
    """Of a solver whose bounds rest on what is carried along (`raise_bound(fresh=False)`): raises the bound by what
    its present state proves, all parts of it computed anew."""
    free: bool = field(default=False, init=False)
    """Whether Omega leaves weights free; then the infimum of R is no bound to speak of, unless it is reached."""
    _space: Space = field(init=False)
    """Of w."""
    _fresh: bool = field(default=False, init=False)
    """Whether `objective` was evaluated at `w` itself."""
    _sure: Evaluated = field(init=False)
    """The best of them."""
    _earlier: tuple[float, Vector] | None = field(default=None, init=False)
    """The best point before the present one, and what was said of J there, where that may be too low."""
    _proved: Proof = field(init=False)
    """The best bound of which all was computed anew."""
    _own: float = field(default=-math.inf, init=False)
    """The best bound of this run alone."""
    _searched: bool = field(default=False, init=False)
    """Whether values of R end a search for constants, which leaves a little below what is attained."""
    _at_0: bool = field(default=False, init=False)
    """Whether J(0) was evaluated, because of rounding or where a run from elsewhere had stalled."""
    _chosen: bool = field(default=False, init=False)
    """Whether the point was chosen by another measure than J, so that a better one does not take its place."""
    _audit: Audit | None = field(default=None, init=False)
    """Of a user's loss or risk."""
    _slack: Slack | None = field(default=None, init=False)
    """Of the package's own."""

    def __post_init__(self) -> None:
        self.w, self._space = self.start, space_of(self.risk)
        self.free = provides(self.regularizer, BlockSeparable) and self.regularizer.penalty.free.size > 0
        if math.isfinite(self.risk.infimum) and not self.free:
            # Omega >= 0 for every regularizer here, so the infimum of R bounds J too.
            self.proof = Proof(self.risk.infimum, abs(self.risk.infimum), floor=1.0)
        self._sure, self._proved = Evaluated(math.inf, self.start), self.proof
        self._searched = searches_constants(self.risk)
        measure = ability(self.risk, Rounding)
        if measure is None or measure.foreign:
            self._audit = Audit(self.risk, self.regularizer)
        else:
            self._slack = Slack(self.risk, measure)

    @property
    def relative_gap(self) -> float:
        """Of the best point and the best bound so far; inf once they contradict one another."""
        return relative_gap(self.objective, self._cut)

    @property
    def lower_bound(self) -> float:
        """The best bound so far, raw: rounding may have put it above the objective."""
        return self.proof.bound

    @property
    def contradiction(self) -> Contradiction | None:
        """The first that was found: the run is to end, with NOT_CONVEX."""
        return None if self._audit is None else self._audit.found

    def improve(self, w: Vector, objective: float, *, fresh: bool = False) -> bool:
        """Keep `w` if it is better than the best point; True if so.

        Parameters
        ----------
        fresh : whether the objective was evaluated at `w` itself: not by scores that were carried along, nor at some
            value of a free intercept. Otherwise that is done before a run ends with this point.
        """
        if math.isnan(objective):
            raise BmrmError(NAN)
        fresh = fresh and not self._searched
        if fresh and objective < self._sure[0]:
            self._sure = Evaluated(objective, w)
        if objective < self.objective:
            if self._searched and w is not self.w and math.isfinite(self.objective):
                self._earlier = self.objective, self.w
            self.w, self.objective, self._fresh = w, objective, fresh
            self._compare()
            return True
        return False

    def raise_bound(self, proof: Proof | float, *, fresh: bool = True) -> None:
        """Take a lower bound into account, less what its parts lose by cancelling.

        Parameters
        ----------
        proof : the bound with what its rounding depends on, or the number alone where that is nothing.
        fresh : whether all that it rests on was computed for it, and nothing kept up to date by differences; if not,
            `confirm` is called before a run ends with it.
        """
        proof = proof if isinstance(proof, Proof) else Proof(proof)
        bound = cautious(proof.bound, proof.size)
        self._own = max(self._own, bound)
        proof = proof._replace(bound=bound) if bound != proof.bound else proof
        if fresh and proof.bound > self._proved.bound:
            self._proved = proof
        if proof.bound > self.proof.bound:
            self.proof = proof
            self._compare()

    def take_plane(
        self, certificate: Certificate, w: Vector, value: float, a: Vector, offset: float | None = None
    ) -> None:
        """Raise the bound by what R(w), the subgradient `a` there and the planes before prove.

        A plane that contradicts what was seen is left out, and ends the run unless rounding explains it.

        Parameters
        ----------
        offset : of the plane R(v) >= <a, v> + offset, where it is known better than by value - <a, w>.
        """
        if not math.isfinite(value):
            return
        if self._audit is None or (self.fits(w, value, a) and certificate.holds(self._audit, w, value, a)):
            certificate.take(w, value, a, offset)
            self.raise_bound(certificate.proof)

    def fits(self, w: Vector, value: float, a: Vector, height: float | None = None) -> bool:
        """Whether R(w) and the subgradient there contradict neither the infimum nor the last point that was told.

        `height` is that of the plane with slope `a`, where it is not the value.
        """
        return self._audit is None or self._audit.holds(w, value, a, height)

    def _look_at(self, w: Vector) -> bool:
        """J at w and what its plane proves; whether it is better than the best point."""
        intercept = self._intercept
        # to minimise over constants may take long
        if intercept is not None and (self.meter.spent() or intercept.settled.of(w) is not None):
            return self.improve(w, self._value(w), fresh=True)
        value, a = self.risk.value_and_subgradient(w)
        self.take_plane(SinglePlane(self.regularizer, self.risk.infimum, self._space), w, value, a)
        return self.improve(w, value + self.regularizer.value(w), fresh=True)

    def _conclude(self, complete: bool) -> None:
        """Whether anything that was seen contradicts the proof, before it is given.

        `complete` where the bound belongs to the end, not to the moment at which a limit was met.
        """
        audit = self._audit
        if audit is not None:
            audit.compare()
            if complete and audit.found is None:
                for seen in audit.other_points(self.w, self.proof):
                    audit.bound_holds(self.proof, seen.w, seen.value + self.regularizer.value(seen.w))
        self._compare()

    def _compare(self) -> None:
        """Bound and objective: they may contradict one another, where neither was carried along."""
        carried = self.confirm is not None and self.proof.bound > self._proved.bound
        if carried and self._doubts():
            self.confirm()  # type: ignore[misc]
            self.proof = self._proved
        if self._audit is not None and self.proof.bound > self.objective and self.contradiction is None:
            objective = self._audit.bound_holds(self.proof, self.w, self.objective)
            if objective != self.objective:
                self._evaluated(self._at(self.w) if self._searched else Evaluated(objective, self.w))

    def _doubts(self) -> bool:
        """Whether the bound is above J by more than plainly is rounding."""
        if self._audit is not None:
            return self._audit.doubts(self.proof, self.objective)
        return doubtful(self.proof, self.objective, UNDOUBTED * ROUNDOFF)

    def _verify(self, goal: float) -> bool:
        """Evaluate the best point from its weights, and the bound anew, where that is not done; whether they changed.

        By more than rounding, that is. `goal` is the relative gap that is wanted.
        """
        if self.contradiction is not None or not math.isfinite(self.objective):
            return False
        before = self.objective, self.lower_bound
        self._verify_point_and_bound()
        if self._slack is not None:
            if not (self._at_0 or self._chosen) and self._slack.less_at_0(self.proof):
                self._look_at_0()
            omega = self.regularizer.value(self.w)
            self.proof = self._proved = self._slack.off(self.proof, self.w, self.objective, omega, goal)
        scale = ROUNDING * abs(before[0])
        return any(abs(new - old) > scale for new, old in zip((self.objective, self.lower_bound), before, strict=True))

    def _look_at_0(self) -> None:
        """Evaluate J(0), once in a run; 0 becomes the best point where that is less."""
        self._evaluated(self._at(np.zeros_like(self.w)))
        self._at_0 = True

    def _verify_point_and_bound(self) -> None:
        """Evaluate both anew, where that is not done: J from the weights, the bound from all that it rests on."""
        if self.proof.bound > self._proved.bound:
            if self.confirm is not None:
                self.confirm()
            self.proof = self._proved
        if not self._fresh and math.isfinite(self.objective):
            self._evaluated(self._at(self.w))

    def _proved_less_rounding(self, proof: Proof, w: Vector, objective: float) -> float:
        """The bound that a run which goes on from here may start with."""
        sure = self._slack is None or proof.sure or not proof.bound > self.risk.infimum
        return proof.bound if sure else self._slack.guessed(proof, w, objective).bound  # type: ignore[union-attr]

    def _value(self, w: Vector) -> float:
        """J(w); half a pass where there are scores."""
        return self._at(w).objective

    def _at(self, w: Vector) -> Evaluated:
        scored, b = ability(self.risk, Scored), None
        intercept = None if scored is None else scored.intercept
        if intercept is not None:
            b = intercept.settled.of(w, self.objective)
        if scored is None:
            value = self.risk.value_and_subgradient(w)[0]
        elif intercept is not None and b is not None:
            value = intercept.phi.value_and_slope(scored.map.matvec(w) + intercept.phi.constant(b))[0]
        else:
            value, constants = scored.phi.attained(scored.map.matvec(w))
            b = constants if self._searched else None
        objective = value + self.regularizer.value(w)
        if math.isnan(objective):
            raise BmrmError(NAN)
        return self._noted(Evaluated(objective, w, b))

    def _evaluated(self, seen: Evaluated) -> None:
        """Replace the estimate of J(w) by a fresh evaluation; fall back to the best verified point."""
        self._sure = min(seen, self._sure, key=lambda each: each.objective)
        if self._earlier is not None and self._earlier[0] < self._sure.objective:
            (_, w), self._earlier = self._earlier, None
            self._sure = min(self._at(w), self._sure, key=lambda each: each.objective)
        self.objective, self.w, _ = self._noted(self._sure)
        self._fresh = True

    def _noted(self, seen: Evaluated) -> Evaluated:
        """The model gets these constants and no others."""
        intercept = self._intercept
        if intercept is not None and seen.constants is not None:
            intercept.settled.note(seen.w, seen.constants, seen.objective)
        return seen

    @property
    def _intercept(self) -> Intercept | None:
        scored = ability(self.risk, Scored)
        return None if scored is None else scored.intercept

    @property
    def _cut(self) -> float:
        """The bound, cut to the objective where rounding explains that it is above."""
        bound = self.proof.bound
        return bound if self._audit is not None and self._audit.found is not None else min(bound, self.objective)
