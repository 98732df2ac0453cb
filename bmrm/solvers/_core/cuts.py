"""Planes of the risk at points that carry their scores, with or without free constants among these."""

from __future__ import annotations

import numpy as np

from bmrm.problem import Intercept, Scored, Scores, Space, Vector, plane_at
from bmrm.problem.risk import pulled
from bmrm.solvers._core.joint_planes import Joint, JointPlanes, Plane

NONE = np.empty(0)


class Cuts:
    """Of R(w) = phi(A w).

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
        value, slope = self.phi.value_and_slope(f)
        return Joint(w, b, f, value, slope)

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

    def plane(self, here: Joint, accuracy: float) -> tuple[Plane, Joint | None]:
        """A plane that is at most so far below the risk, if possible; and a lower point that was met on the way."""
        a, product = pulled(self.map, self.phi, here.slope, here.f)
        return Plane(a, here.value - product, here.value), None

    def settle(self, w: Vector, b: Vector, objective: float) -> None:
        """Remember that these constants go with w."""


class FreeCuts(Cuts):
    """Of R(w) = min over several b of phi(A w + b), the points having some b: the minimum is sought by planes only.

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

    def plane(self, here: Joint, accuracy: float) -> tuple[Plane, Joint | None]:
        """As of `Cuts`."""
        plane, lower = self._planes.plane(here, accuracy)
        if plane is not None:
            return plane, lower
        value, _, a, product = plane_at(self.map, self._minimum, here.f)  # an exact search, then
        return Plane(a, value - product, value), self._lower(here, here if lower is None else lower, value)

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
