"""Planes of the risk at points that carry their scores, with or without free constants among these.

With several free constants, planes of the weights are made from planes of weights and constants, mixed until the
constants cancel. A tangent of phi(A w + b) at any point is a plane R(w, b) >= <a, w> + <g, b> + c. With shares
theta >= 0 that add up to 1 and make sum theta_j g_j = 0, the mixture of such planes bounds min over b of phi(A w + b)
from below, for all w. The best shares at a given w are the dual of the model of that minimum, so that they also say how
far the mixture may lie below the minimum there, and which b to look at if that is too far: mostly none, since planes
taken elsewhere serve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.masters._core.mixing import AWAY, EPS, Mixing
from bmrm.masters._core.planes import PlaneStore
from bmrm.problem import Intercept, LinearMap, Scored, ScoreFunction, Scores, Space, Vector, plane_at
from bmrm.problem.risk import pulled, rounding_of_slopes
from bmrm.solvers._core.rounding import OF_NO_ACCOUNT

Array = NDArray[np.float64]
NONE = np.empty(0)
WALLS = (1e1, 1e2, 1e3, 1e4)
"""Depth of the artificial planes below the best value, in multiples of 1 + |value|. They bound the search for
constants; the next depth is taken while they have weight in the solution."""
FALL = 16.0 * EPS
"""Minimum relative decrease."""
LOST, LOST_SHARE = 1e-9, 1e-3
"""Largest rounding error of a plane, as a share of the value and of the requested accuracy. Planes with more are not
taken: scores lose their digits where constants are large."""
LOOKS = 30
"""Most evaluations at one w to improve the mixture of planes."""
FIRST = 20
"""Most evaluations for the first mixture, for each constant: a limit, chosen without a sweep."""
HUGE = 1e150
"""Sum of absolute terms from which products overflow: no plane is taken there."""
SHIFT = 1e-12
"""Largest sum of slopes over all constants, relative to the sum of absolute slopes, that counts as 0: the loss then
ignores a common shift."""
STORED, BYTES = 100, 2**28
"""Most planes that are kept, and their memory in bytes, unless twice the number of constants needs more."""


@dataclass(frozen=True, eq=False)
class Joint:
    """A point (w, b): scores with b, the value of phi there, a slope.

    Attributes
    ----------
    value : at least the minimum over b.
    """

    w: Vector
    b: Vector
    f: Scores
    value: float
    slope: Scores


def joint(phi: ScoreFunction, w: Vector, b: Vector, f: Scores) -> Joint:
    """The point w with scores f, of which b is a part."""
    value, slope = phi.value_and_slope(f)
    return Joint(w, b, f, value, slope)


@dataclass(frozen=True, eq=False)
class ProfiledPlane:
    """R~(v) >= <a, v> + offset for all v; at the point asked for it is `height`, at most R~ but for `rounding`."""

    a: Vector
    offset: float
    height: float
    rounding: float = 0.0


class JointPlanes:
    """All planes of one run.

    Parameters
    ----------
    map, phi : R~(w) = min over b of phi(A w + b).
    space : of w.
    """

    def __init__(self, map: LinearMap, phi: ScoreFunction, space: Space) -> None:
        self.map, self.phi = map, phi
        self.constants = phi.facts.scores_per_row
        self._planes = PlaneStore(space)
        self._sums: Array = np.empty((0, self.constants))
        """Slopes in the constants, in the order of the planes."""
        self._terms: Vector = np.empty(0)
        """What was added to make each offset, in absolute values."""
        self._noises: Vector = np.empty(0)
        """The rounding of each plane's sums."""
        self._mixing: Mixing | None = None
        self._errors = self._rows = self._steepest = 0.0
        self._wall = 0
        self._begun = False
        """Whether there was a mixture before."""
        self._failed = 0
        self._products: Vector = np.empty(0)
        """Of all slopes with the w visited last."""
        self.looks = 0

    def constants_at(self, w: Vector, near: Vector) -> Vector:
        """The minimiser over b of the model at w; `near` before there is one."""
        if self._mixing is None or not self._mixing.feasible:
            return near
        self._visit(w)
        return near + self._solved(near)[0]

    def plane(self, point: Joint, accuracy: float) -> tuple[ProfiledPlane | None, Joint | None]:
        """A plane that is at the point's w at most `accuracy` below the minimum over b, if a few looks suffice.

        None where no mixture was found at all. And the lowest point, if that is another than the given one.
        """
        self._visit(point.w)
        self._take(point)
        best, inward, found = point, 0.5, False
        for look in range(LOOKS if self._begun else max(LOOKS, (FIRST * self.constants) >> self._failed)):
            x, height = self._solved(best.b, best.value)
            found = self._mixing is not None and self._mixing.feasible
            near = best.value - height <= max(accuracy, 64.0 * EPS * abs(best.value))
            if found and (near or look >= LOOKS):
                break
            if near:
                self._lower()
            move = (1.0 - inward) * x + best.b - point.b
            trial = joint(self.phi, point.w, point.b + move, point.f + self.phi.constant(move))
            self.looks += 1
            if not self._take(trial, max(LOST * abs(best.value), LOST_SHARE * accuracy)):
                inward, self._wall = 0.5 * (1.0 + inward), 0
                continue
            cuts_off = trial.value > height + 0.1 * (best.value - height)
            inward = 0.5 if cuts_off else 0.0
            best = trial if trial.value < best.value - FALL * abs(best.value) else best
        self._begun |= bool(found)
        self._failed += not found
        return self._mixed(point.w, best.b) if found else None, None if best is point else best

    def _take(self, point: Joint, lost: float = math.inf) -> bool:
        """The plane at the point; False, and nothing taken, where the rounding of it is more than `lost`."""
        sums = self.phi.total(point.slope)
        sizes = self.phi.magnitude(point.slope)
        terms = float(sizes.sum())
        if self._mixing is None:
            self._rows = float(self.phi.total(self.phi.constant(np.ones(self.constants)))[0])
            self._errors = EPS * (16.0 + math.sqrt(self._rows))
        product = self.phi.product(point.slope, point.f)
        added = abs(point.value) + abs(product) + float(sizes @ np.abs(point.b))
        if self.phi.facts.smooth:  # slopes are exponentials of differences of scores
            added *= 1.0 + float(self.phi.magnitude(point.f).max()) / self._rows
        if not (self._errors * added <= lost and added < HUGE):
            return False
        a = self.map.rmatvec(point.slope)
        self._steepest = max(self._steepest, terms)
        noise = rounding_of_slopes(self.phi, point.f, point.slope, self._rows)
        noise = max(noise, self._errors * self._steepest)
        shift_invariant = abs(float(sums.sum())) <= SHIFT * self._steepest + self.constants * noise
        if self._mixing is None:
            self._begin(self.constants - int(shift_invariant and self.constants > 1))
        elif self._mixing.size < self.constants and not shift_invariant:
            self._begin(self.constants)
        assert self._mixing is not None
        self._planes.add(a, point.value - product)
        self._products = np.append(self._products, self._planes.space.dot(a, point.w))
        self._sums, self._terms = np.vstack((self._sums, sums)), np.append(self._terms, added)
        self._noises = np.append(self._noises, noise)
        self._mixing.add(sums[: self._mixing.size], 0.0, noise)
        self._forget()
        return True

    def _begin(self, size: int) -> None:
        self._mixing = Mixing(size)
        for sums, noise in zip(self._sums, self._noises.tolist()):
            self._mixing.add(sums[:size], 0.0, noise)

    def _visit(self, w: Vector) -> None:
        """What follows is asked at w."""
        self._products = self._planes.products(w)

    def _solved(self, centre: Vector, value: float | None = None) -> tuple[Vector, float]:
        """How far from the centre the model at the w visited has its minimum, and the height there.

        `value` is that at the centre; None for that of the model.
        """
        mixing = self._mixing
        assert mixing is not None
        costs = self._products + self._planes.offsets + self._sums @ centre
        top = float(np.max(costs)) if value is None else value
        mixing.price(costs, top, WALLS[self._wall] * (1.0 + abs(top)))
        x, height = mixing.solve()
        return np.concatenate((x, np.zeros(self.constants - mixing.size))), height

    def _lower(self) -> None:
        """Enlarge the box and drop the perturbation against cycling: only artificial planes limit the model."""
        assert self._mixing is not None
        self._mixing.part_no_ties()
        self._wall = min(self._wall + 1, len(WALLS) - 1)

    def _mixed(self, w: Vector, b: Vector) -> ProfiledPlane:
        """The mixture as a plane; b are good constants at w."""
        assert self._mixing is not None
        shares = np.zeros(len(self._planes))
        for k, share in self._mixing.mixture():
            shares[k] = share
        a, offset = self._planes.combine(shares), float(shares @ self._planes.offsets)
        terms = float(shares @ (self._terms + np.abs(self._products)))
        # What the sums leave counts at other constants than 0, and with it that of a constant that stays where it is.
        size = self._mixing.size
        left = self._mixing.lost(b[:size]) + float(np.abs(shares @ self._sums[:, size:]) @ np.abs(b[size:]))
        rounding = self._errors * terms + AWAY * left
        height = self._planes.space.dot(a, w) + offset
        if rounding > OF_NO_ACCOUNT * abs(height):
            return ProfiledPlane(a, offset - rounding, height - rounding)
        return ProfiledPlane(a, offset, height, rounding)

    def _forget(self) -> None:
        """The older half of the planes that are not at work, where there are too many."""
        mixing, count = self._mixing, len(self._planes)
        most = max(2 * (self.constants + 1), min(STORED + 2 * self.constants, BYTES // (8 * self._planes.dim)))
        if mixing is None or count <= most:
            return
        ids = self._planes.ids
        older = np.sort(ids)[: count - most // 2]
        order = self._planes.drop(np.setdiff1d(older, ids[mixing.used]).tolist())
        mixing.keep(order)
        self._sums, self._terms, self._products = self._sums[order], self._terms[order], self._products[order]
        self._noises = self._noises[order]


class Cuts:
    """Planes of R(w) = phi(A w).

    Parameters
    ----------
    scored : map and phi.
    space : of w.
    """

    free = False
    """Whether there are free constants in the scores."""

    def __init__(self, scored: Scored, space: Space) -> None:
        self.map, self.phi, self.space = scored.map, scored.phi, space

    def start(self, w: Vector) -> Joint:
        """The first point."""
        return self.at(w, NONE, self.map.matvec(w))

    def at(self, w: Vector, b: Vector, f: Scores) -> Joint:
        """The point w with scores f, of which b is a part."""
        return joint(self.phi, w, b, f)

    def again(self, w: Vector, f: Scores, b: Vector) -> Joint:
        """The point at w, its constants optimised over the plane model where there is one; b are those of f."""
        return self.at(w, b, f)

    def scores(self, w: Vector, near: Vector) -> tuple[Scores, Vector]:
        """Scores at w, with constants that are good ones there, presumably; `near` are those of a point nearby."""
        return self.map.matvec(w), near

    def scores_with(self, w: Vector, b: Vector) -> Scores:
        """Scores at w with constants b."""
        return self.map.matvec(w)

    def constants_of(self, w: Vector, near: Vector) -> Vector:
        """The constants that go with w; `near` where none are known."""
        return near

    def plane(self, here: Joint, accuracy: float) -> tuple[ProfiledPlane, Joint | None]:
        """A plane that is at most so far below the risk, if possible; and a lower point that was met on the way."""
        a, product = pulled(self.map, self.phi, here.slope, here.f)
        return ProfiledPlane(a, here.value - product, here.value), None

    def settle(self, w: Vector, b: Vector, objective: float) -> None:
        """Remember that these constants go with w."""


class FreeCuts(Cuts):
    """Planes of R(w) = min over several b of phi(A w + b). Points carry some b; only the planes minimise over it.

    Parameters
    ----------
    scored : map and phi of the minimum.
    space : of w.
    intercept : phi before the minimisation.
    """

    free = True

    def __init__(self, scored: Scored, space: Space, intercept: Intercept) -> None:
        self.map, self.phi, self.space = scored.map, intercept.phi, space
        self._minimum, self._settled = scored.phi, intercept.settled
        self._planes = JointPlanes(self.map, self.phi, space)

    def start(self, w: Vector) -> Joint:
        """As of `Cuts`."""
        settled = self._settled.of(w)
        b = np.zeros(self.phi.facts.scores_per_row) if settled is None else settled
        return self.at(w, b, self.scores_with(w, b))

    def again(self, w: Vector, f: Scores, b: Vector) -> Joint:
        """As of `Cuts`."""
        better = self._planes.constants_at(w, b)
        here, there = self.at(w, b, f), self.at(w, better, f + self.phi.constant(better - b))
        return there if there.value < here.value else here

    def scores(self, w: Vector, near: Vector) -> tuple[Scores, Vector]:
        """As of `Cuts`."""
        b = self._planes.constants_at(w, near)
        return self.scores_with(w, b), b

    def scores_with(self, w: Vector, b: Vector) -> Scores:
        """As of `Cuts`."""
        return self.map.matvec(w) + self.phi.constant(b)

    def constants_of(self, w: Vector, near: Vector) -> Vector:
        """As of `Cuts`."""
        settled = self._settled.of(w)
        return near if settled is None else settled

    def plane(self, here: Joint, accuracy: float) -> tuple[ProfiledPlane, Joint | None]:
        """As of `Cuts`."""
        plane, lower = self._planes.plane(here, accuracy)
        if plane is not None:
            return plane, lower
        value, _, a, product = plane_at(self.map, self._minimum, here.f)  # an exact search, then
        return ProfiledPlane(a, value - product, value), self._lower(here, here if lower is None else lower, value)

    def _lower(self, here: Joint, best: Joint, minimum: float) -> Joint | None:
        """The point with the constants of an exact search, or `best`, with others; None for `here`.

        Where planes give no mixture they give no constants either: those of the scores would stay, however far off.
        """
        if minimum < best.value:
            _, b = self._minimum.attained(here.f)
            if b is not None:
                found = self.at(here.w, here.b + b, here.f + self.phi.constant(b))
                best = found if found.value < best.value else best
        return None if best is here else best

    def settle(self, w: Vector, b: Vector, objective: float) -> None:
        """As of `Cuts`."""
        self._settled.note(w, b, objective)
