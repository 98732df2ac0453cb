"""Bounds of rounding errors: unit roundoff times the magnitudes that were added, those that cancel included."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from bmrm.problem import Risk, Scored, Vector, ability, relative_gap
from bmrm.problem.abilities import Magnitudes, Rounding
from bmrm.problem.regularizer import space_of

ROUNDOFF = 0.5 * float(np.finfo(np.float64).eps)
SMALLEST = 2.0**-1074
"""Error of an operation whose result is below the smallest normal float64: the smallest subnormal number."""
ERRORS = 4.0
"""Rounding error of a term before it is added, in units of roundoff: products, differences, elementary functions."""
UNDOUBTED = 64.0
"""Rounding error that is always assumed, in units of roundoff of the sum of absolute terms; a smaller excess needs no
explanation."""
UNKNOWN_LENGTH = 1024.0
"""Assumed number of terms, besides the weights, in the sums of a risk that does not say how many they have."""
NEIGHBOURS, SPREAD = 8, 64.0
"""Points next to w at which such a risk is evaluated, and the largest rounding error in multiples of the spread of its
values there."""

OF_NO_ACCOUNT = 1e-12
"""Rounding below this share of a bound is ignored."""


DOUBT = 2.0**12
"""Guess of the rounding error of a bound before it is measured, in units of roundoff of the sum of absolute terms."""
SHARE = 0.01
"""Largest guessed rounding error, as a share of the gap, that is subtracted from a bound without being measured."""
WIDE = 0.01
"""Gap, as a share of J(w) or of Omega(w), above which the rounding of a bound is always counted: the minimum may be far
from w."""
FARTHER = 3.0
"""Planes within this multiple of the best point's distance from 0 round no more than R does there and need no
correction."""
HEAVY = 1e6
"""Cancellation (sum of absolute products over what is left of it) above which planes round more than J(0) does, so J(0)
is evaluated too."""


class ProvingPlanes(Protocol):
    """The planes that prove a bound."""

    def highest(self, w: Vector) -> tuple[float, Vector | None]:
        """The value at `w` of the plane that is highest there, and the point where it was taken, if that is known."""
        ...

    def farthest(self, sizes: Vector) -> float:
        """<sizes, |v|> of the points v where planes of the proof were taken, as far as they are known; the largest."""
        ...


class Proof(NamedTuple):
    """A lower bound of min J, and what its rounding depends on.

    Attributes
    ----------
    size : the absolute values of what was added to make it.
    reach : the norm of the points where its planes were taken, their weighted mean.
    planes : that it rests on.
    floor : the share of the infimum of R in it.
    sure : whether its rounding has been taken off.
    """

    bound: float = -math.inf
    size: float = 0.0
    reach: float = 0.0
    planes: ProvingPlanes | None = None
    floor: float = 0.0
    sure: bool = False


def doubtful(proof: Proof, objective: float, share: float) -> bool:
    """Whether the bound is above `objective` by more than this share of what was added."""
    excess = proof.bound - objective
    return excess > 0.0 and excess > share * (proof.size + abs(objective))


def cautious(bound: float, size: float) -> float:
    """The bound less what its rounding may be, where numbers of absolute values `size` have cancelled in it."""
    slack = UNDOUBTED * ROUNDOFF * size
    return bound - slack if slack > OF_NO_ACCOUNT * abs(bound) else bound


class RoundingError:
    """Upper estimates of the rounding error of a risk's values and planes.

    The error of a sum of n terms is at most n units of roundoff times the sum of their absolute values (Higham,
    "Accuracy and stability of numerical algorithms", 2002, section 3.1). A plane that lies above the risk at a point,
    by rounding only, has nearly a subgradient there for its slope: so what was added for it is known from the
    magnitudes at that point and from how far away it was taken, without the slopes of the rows.

    A risk that cannot say what it adds is evaluated at points that differ in the last digits: its values then scatter
    by what rounding does to them (More & Wild, "Estimating computational noise", SIAM J. Sci. Comput. 33, 2011).

    Parameters
    ----------
    risk : with the ability `Rounding` or without.
    """

    def __init__(self, risk: Risk) -> None:
        self._risk, self._space = risk, space_of(risk)
        self._dim = float(self._space.total(self._space.dim))
        self._known: tuple[Vector, float, Magnitudes] | None = None

    def at(self, w: Vector, size: float, reach: float = 0.0, *, likely: bool = False) -> float:
        """The most by which rounding can put a plane, or a mixture of them, above the risk at `w`.

        Parameters
        ----------
        w : the point.
        size : absolute values that were plainly added: of the risk, of the regularizer, of the products <a, w>.
        reach : the norm of the point where the plane was taken; of several the weighted mean.
        likely : what long sums stay below but by bad luck, which goes with the root of their length (Higham & Mary, "A
            new approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41, 2019, eq. 3.4, lambda = 4).
        """
        magnitudes = self._magnitudes(w, reach)
        if magnitudes is None:
            terms = UNKNOWN_LENGTH + self._dim
            return ERRORS * ROUNDOFF * terms * size + SPREAD * self._scatter(w)
        sizes, dot, norm = magnitudes.sizes, self._space.dot, self._space.norm
        added = size + magnitudes.terms + dot(sizes, np.abs(w)) + norm(sizes) * reach
        if reach > 0.0 and magnitudes.growth > 0.0:
            away = reach + norm(w)
            added += norm(sizes) * magnitudes.growth * away * away
        length = max(magnitudes.length, self._dim)
        if likely:
            length = math.sqrt(length)
        return ERRORS * length * (ROUNDOFF * added + SMALLEST)

    def sizes(self, w: Vector, reach: float) -> Vector | None:
        """|A|'|s| as of `Magnitudes`; None where the risk cannot tell."""
        found = self._magnitudes(w, reach)
        return None if found is None else found.sizes

    def _magnitudes(self, w: Vector, reach: float) -> Magnitudes | None:
        if self._known is None or reach != self._known[1] or not self._space.same(self._known[0], w):
            rounding = ability(self._risk, Rounding)
            if rounding is None:
                return None
            self._known = w.copy(), reach, rounding.at(w, None, reach)
        return self._known[2]

    def _scatter(self, w: Vector) -> float:
        rng = np.random.default_rng(0)
        value, values = self._risk.value_and_subgradient(w)[0], []
        for _ in range(NEIGHBOURS if self._space.norm(w) > 0.0 else 0):
            beside = w * (1.0 + 2.0 * ROUNDOFF * rng.integers(-2, 3, w.size))
            values.append(self._risk.value_and_subgradient(beside)[0])
        spread = max((abs(each - value) for each in values), default=0.0)
        return spread if math.isfinite(spread) else 0.0


class Slack:
    """The rounding error of a lower bound for a risk of the package, subtracted once, when a run is about to end.

    A slope whose terms cancel has their rounding error, and its plane that times the distance of its point from w.

    Parameters
    ----------
    risk : with the ability `Rounding`.
    measure : that ability.
    """

    def __init__(self, risk: Risk, measure: Rounding) -> None:
        self._rounding, self._measure = RoundingError(risk), measure
        self._row_norm: float | None = None
        self._space = space_of(risk)
        self._norm = self._space.norm
        scored = ability(risk, Scored)
        self._exponents = scored is not None and scored.phi.facts.smooth and scored.phi.facts.scores_per_row > 1
        """Whether slopes are exponentials of differences of scores, whose rounding they have."""
        self._best = Proof(risk.infimum)
        self.refuted: Proof | None = None
        """The last bound that was above J by more than rounding explains."""

    def off(self, proof: Proof, w: Vector, objective: float, omega: float, goal: float) -> Proof:
        """The bound minus its rounding error, which is measured (about 3 passes) unless a guess of it serves.

        It does, without a pass, where it is small against the gap to J(w) or leaves the wanted gap met. Near the
        minimum, planes that were taken near w round as J(w) does, and are not measured. If a bound exceeds J(w) by more
        than rounding, it is replaced by the last verified one, or by the infimum of R.

        Parameters
        ----------
        omega : Omega(w).
        goal : the relative gap that is wanted, which a guess must not undo.
        """
        if proof.sure or not proof.bound > self._best.bound:
            return proof
        met = relative_gap(objective, min(proof.bound, objective)) <= goal
        guessed = self.guessed(proof, w, objective, math.inf if met else None)
        if guessed.sure and not (met and relative_gap(objective, guessed.bound) > goal):
            return self._surest(guessed)
        if not self._counts(proof, w, objective, omega, goal):
            return proof
        account = OF_NO_ACCOUNT * abs(proof.bound)
        for likely in (True, False):
            slack = self._rounding.at(w, proof.size, proof.reach, likely=likely)
            bound = proof.bound - slack if slack > account else proof.bound
            if bound - objective <= OF_NO_ACCOUNT * abs(objective):
                return self._surest(proof._replace(bound=bound, sure=True))
        self.refuted = proof
        return self._best

    def trust(self, proof: Proof) -> None:
        """Take for sure what another run has proved, less its rounding."""
        self._surest(proof)

    def guessed(self, proof: Proof, w: Vector, objective: float, most: float | None = None) -> Proof:
        """The proof less a guess of its rounding, where that is small against the gap; else as it is. No pass.

        `most` is the largest guess that is taken off; None for a share of the gap.
        """
        slack = self._guess(proof, w, objective)
        most = SHARE * (objective - proof.bound) if most is None else most
        if not (slack <= most and proof.bound - slack <= objective):
            return proof
        lowered = slack > OF_NO_ACCOUNT * abs(proof.bound)
        return proof._replace(bound=proof.bound - slack if lowered else proof.bound, sure=True)

    def _counts(self, proof: Proof, w: Vector, objective: float, omega: float, goal: float) -> bool:
        """Whether the bound may have more rounding than J(w) has, as far as can be known without a pass.

        Where the gap is a share of Omega(w), other weights than w may be as good, 0 among them, whose J rounds less.
        Where features are so large that their products with weights all but cancel, planes near w in norm may be far
        off in scores. Large constants round in exponents as they do in J(w), and leave open only a gap that is not met.
        """
        gap = objective - proof.bound
        if gap > WIDE * abs(objective) or -gap > OF_NO_ACCOUNT * abs(objective):
            return True
        if proof.reach > FARTHER * self._norm(w):
            return True
        if self._heavy(proof) and self._farther_in_scores(proof, w):
            return True
        if gap > WIDE * omega:
            return True
        if relative_gap(objective, min(proof.bound, objective)) <= goal:
            return False
        return self._exponents and self._measure.constant() > FARTHER * self._rows * self._norm(w)

    def _surest(self, proof: Proof) -> Proof:
        self._best = max(self._best, proof, key=lambda each: each.bound)
        return self._best

    def less_at_0(self, proof: Proof) -> bool:
        """Whether rounding may put the bound above J(0), though not above J where its planes were taken."""
        return not proof.sure and self._heavy(proof)

    def _farther_in_scores(self, proof: Proof, w: Vector) -> bool:
        """Whether planes were taken where products of features with weights are larger than at `w`."""
        sizes = self._rounding.sizes(w, proof.reach)
        if proof.planes is None or sizes is None:
            return False
        return proof.planes.farthest(sizes) > FARTHER * self._space.dot(sizes, np.abs(w))

    def _heavy(self, proof: Proof) -> bool:
        return self._rows * proof.reach > HEAVY * (abs(proof.bound) + proof.size)

    def _guess(self, proof: Proof, w: Vector, objective: float) -> float:
        """The rounding, as far as it can be known without a pass: slopes add up to about 1, or J where that is more."""
        products = self._rows * (proof.reach + self._norm(w))
        if self._exponents:
            products += 2.0 * self._measure.constant()
            products *= 1.0 + products
        return DOUBT * ROUNDOFF * (proof.size + abs(objective) + (1.0 + 2.0 * abs(objective)) * products)

    @property
    def _rows(self) -> float:
        if self._row_norm is None:
            self._row_norm = self._measure.row_norm()
        return self._row_norm
