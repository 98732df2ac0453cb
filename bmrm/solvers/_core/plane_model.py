"""The piecewise linear model of the risk: planes, the master that minimises over them, and their coming and going."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bmrm.masters._core.planes import PlaneStore, product_and_sizes
from bmrm.problem import (
    HasMaster,
    IncompatibleError,
    InputError,
    MasterSolution,
    Risk,
    SavedPlanes,
    Space,
    Start,
    State,
    Vector,
    ability,
    provides,
)
from bmrm.problem.abilities import Fingerprint
from bmrm.problem.regularizer import space_of
from bmrm.registry import parameter
from bmrm.solvers._core.instead import instead, name_of
from bmrm.solvers._core.monitor import Monitor, SlicedSolver
from bmrm.solvers._core.rounding import Proof

CLEANING = 10
"""Solutions of the master between two removals of idle planes, each of which compacts the store."""
FLOOR = 1e-9
"""Share of the infima in the bound below which it is rounding."""
POINTS = 1 << 22
"""Most bytes of the points that are kept beside their planes for messages."""


@dataclass(frozen=True)
class PlaneSolver(SlicedSolver):
    """Base class of the bundle methods.

    Parameters
    ----------
    idle_limit : a plane leaves when the master has not used it for so many iterations; null keeps all.
    max_planes : planes kept at most, null for no limit. Unused ones leave first, the oldest before; then those with
        the smallest multipliers are folded into one average. The bound stays true and the method still converges.
    keep_planes : whether the `Solution` holds the planes, from which `minimize(planes=...)` can start, with any
        lambda.

    Notes
    -----
    Memory is (planes kept) dim 8 bytes, and the square of their number for the Gram matrix of the master.
    """

    idle_limit: int | None = parameter(100, least=1, doc="iterations until an unused plane leaves", example=1)
    max_planes: int | None = parameter(None, least=4, doc="planes kept at most", example=4)
    keep_planes: bool = parameter(False, doc="keep the planes in the solution", example=True)

    def model(
        self, run: Monitor, infima: Sequence[float], planes: SavedPlanes | None, kept: KeptModel | None
    ) -> PlaneModel:
        """An empty model, or one that starts from the planes of another run.

        Then the run has its bound and, where the solver is to choose its start, begins at its minimiser.
        """
        model = kept.model if kept is not None else None
        if model is None or model.planes.infima != tuple(infima):
            if not provides(run.regularizer, HasMaster):
                raise IncompatibleError(
                    f"regularizer {name_of(run.regularizer)} offers no master, which cutting planes need; solver"
                    f" {instead(run)} does without"
                )
            model = PlaneModel(run.regularizer, space_of(run.risk), infima, self.idle_limit, self.max_planes)
        if kept is not None:
            kept.model = model
        if planes is not None:
            check_reuse(run.risk, planes, model.planes.infima)
        elif run.earlier is not None and model.planes.space.whole and not len(model.planes):
            planes = _saved_planes(run.earlier, run.risk.dim, model.planes.infima)
        if len(infima) == 1 and model.planes.space.whole:  # blocks of rows are others over other ranks, as are slices
            run.state = model.state
        with run.master():
            if planes is not None:
                model.take(planes)
            proposal = model.solve(master_accuracy(self.tolerance)) if len(model.planes) else None
        if proposal is not None:
            run.raise_bound(model.proof(proposal))
            run.start = proposal.w if run.chooses_start else run.start
        if self.keep_planes:
            run.saved = lambda: self._saved(run, model)
        return model

    def _saved(self, run: Monitor, model: PlaneModel) -> SavedPlanes:
        """The planes, if they are to be kept."""
        identity = ability(run.risk, Fingerprint)
        return model.saved(identity.fingerprint() if identity is not None else "")


@dataclass
class KeptModel:
    """A model that outlives a run, so that a later one on the same risk and regularizer goes on with its planes."""

    model: PlaneModel | None = None


class PlaneModel:
    """The sum over blocks of max_j (<a_j, w> + b_j), from which planes leave that have not mattered for a while.

    Parameters
    ----------
    regularizer : must offer a master.
    space : of w.
    infima : of each block of the risk; the lower-bound planes.
    idle_limit, max_planes : as of `PlaneSolver`.
    """

    def __init__(
        self,
        regularizer: HasMaster,
        space: Space,
        infima: Sequence[float],
        idle_limit: int | None = None,
        max_planes: int | None = None,
    ) -> None:
        if max_planes is not None and max_planes < 4 * len(infima):
            raise InputError(
                f"max_planes is {max_planes}, expected at least 4 for each of the {len(infima)} cuts a pass"
            )
        self.planes = PlaneStore(space, tuple(infima))
        self.master = regularizer.master(self.planes)
        self.idle_limit = idle_limit
        self.max_planes = max_planes
        self._solved = 0
        self._sizes: dict[int, tuple[float, float]] = {}
        """What was added to make each plane, in absolute values, and the norm of the point where it was taken."""
        self._points: dict[int, Vector] = {}
        self._point_bytes = 8 * int(space.total(space.dim))
        self._last_used: dict[int, int] = {}
        self._multipliers: dict[int, float] = {}

    def add(self, a: Vector, value: float, w: Vector, block: int = 0, offset: float | None = None) -> bool:
        """The tangent plane with slope `a` that passes through `value` at `w`; False where its numbers overflow.

        Its value at 0 is `offset` where that is known better than by value - <a, w>. A plane with an entry that
        overflows, as slopes of a loss that is just finite have beside large features, says nothing and is left out.
        """
        product, size, norm = product_and_sizes(self.planes.space, a, w)
        b = value - product if offset is None else offset
        if not (math.isfinite(b) and math.isfinite(size)):
            return False
        if self.max_planes is not None and len(self._last_used) >= self.max_planes:
            self._make_room(self.max_planes)
        plane = self._take(a, b, block, abs(value) + size, norm)
        self._points[plane] = w
        while len(self._points) * self._point_bytes > POINTS:
            del self._points[next(iter(self._points))]
        return True

    def take(self, planes: SavedPlanes) -> None:
        """All planes of another run."""
        sizes = np.abs(planes.offsets) if planes.sizes is None else planes.sizes
        norms = np.zeros_like(sizes) if planes.norms is None else planes.norms
        columns = planes.slopes, planes.offsets, planes.blocks, sizes, norms
        for a, b, block, size, norm in zip(*columns, strict=True):
            self._take(a, float(b), int(block), float(size), float(norm))

    def solve(self, accuracy: float) -> MasterSolution:
        """The minimiser of the regularized model; planes that are long idle leave afterwards."""
        solution = self.master.solve(accuracy)
        self._solved += 1
        self._multipliers = solution.multipliers
        for plane, multiplier in solution.multipliers.items():
            if multiplier > 0.0:
                self._last_used[plane] = self._solved
        if self.idle_limit is not None and self._solved % CLEANING == 0:
            limit = self._solved - self.idle_limit
            self._drop([plane for plane, used in self._last_used.items() if used <= limit])
        return solution

    def proof(self, solution: MasterSolution) -> Proof:
        """What the minimiser of the model proves."""
        size = reach = planes = 0.0
        for plane, multiplier in solution.multipliers.items():
            sizes = self._sizes[plane]
            size, reach, planes = size + multiplier * sizes[0], reach + multiplier * sizes[1], planes + multiplier
        infima = sum(abs(infimum) for infimum in self.planes.infima if math.isfinite(infimum))
        infimum = max(0.0, 1.0 - planes / len(self.planes.infima) - FLOOR)
        return Proof(solution.lower_bound, 2.0 * size + infima + abs(solution.lower_bound), reach, self, infimum)

    def highest(self, w: Vector) -> tuple[float, Vector | None]:
        """The model at `w`, and where the plane was taken that is highest there, if that is known."""
        planes = self.planes
        heights, blocks = planes.products(w) + planes.offsets, planes.blocks
        value, where = 0.0, None
        for block, infimum in enumerate(planes.infima):
            mine = np.flatnonzero(blocks == block)
            top = int(mine[np.argmax(heights[mine])]) if mine.size else -1
            if top >= 0 and heights[top] > infimum:
                value, where = value + float(heights[top]), self._points.get(int(planes.ids[top]), where)
            else:
                value += infimum
        return value, where

    def farthest(self, sizes: Vector) -> float:
        """As of `ProvingPlanes`."""
        used = (self._points.get(plane) for plane, share in self._multipliers.items() if share > 0.0)
        dot = self.planes.space.dot
        return max((dot(sizes, np.abs(point)) for point in used if point is not None), default=0.0)

    def saved(self, fingerprint: str) -> SavedPlanes:
        """All planes, for another run."""
        sizes = np.array([self._sizes[plane] for plane in self.planes.ids.tolist()]).reshape(-1, 2)
        return replace(self.planes.saved(fingerprint), sizes=sizes[:, 0], norms=sizes[:, 1])

    def state(self) -> State:
        """The planes that matter, as arrays."""
        saved = self.saved("")
        used = np.array([self._last_used[plane] == self._solved for plane in self.planes.ids.tolist()], bool)
        arrays = {"slopes": saved.slopes, "offsets": saved.offsets, "sizes": saved.sizes, "norms": saved.norms}
        return {name: array[used] for name, array in arrays.items() if array is not None}

    def _take(self, a: Vector, b: float, block: int, size: float, norm: float) -> int:
        plane = self.master.add(a, b, block)
        self._last_used[plane] = self._solved
        self._sizes[plane] = size, norm
        return plane

    def _drop(self, gone: Sequence[int]) -> None:
        if gone:
            self.master.remove(gone)
        for plane in gone:
            self._forget(plane)

    def _forget(self, plane: int) -> None:
        del self._last_used[plane], self._sizes[plane]
        self._points.pop(plane, None)

    def _make_room(self, limit: int) -> None:
        """Down to three quarters of `limit`: unused planes leave, then small multipliers are folded."""
        goal = 3 * limit // 4
        unused = sorted(
            (p for p in self._last_used if not self._multipliers.get(p, 0.0) > 0.0), key=lambda p: self._last_used[p]
        )
        self._drop(unused[: max(0, len(self._last_used) - goal)])
        if len(self._last_used) > goal:
            self._fold(goal // 2)

    def _fold(self, keep: int) -> None:
        """Fold all but the `keep` largest multipliers into one plane a block."""
        order = sorted(self._last_used, key=lambda plane: self._multipliers.get(plane, 0.0))
        small: dict[int, list[int]] = {}
        for plane in order[: max(2, len(order) - keep)]:
            small.setdefault(self.planes.plane(plane)[2], []).append(plane)
        for members in small.values():
            if len(members) < 2:
                continue
            alpha = np.array([self._multipliers[plane] for plane in members])
            average = self.planes.average(members, alpha)
            self.master.remove(members)
            folded = self.master.add(*average)
            sizes = np.array([self._sizes[plane] for plane in members])
            self._sizes[folded] = tuple((alpha @ sizes / alpha.sum()).tolist()) if alpha.sum() > 0.0 else sizes.max(0)
            for plane in members:
                self._forget(plane)
            self._last_used[folded] = self._solved
            self._multipliers = {**self._multipliers, folded: float(alpha.sum())}


PLANES = ("slopes", "offsets", "sizes", "norms")


def _saved_planes(earlier: Start, dim: int, infima: tuple[float, ...]) -> SavedPlanes | None:
    """The planes of another run's state; None where it has none."""
    state = earlier.state
    if len(infima) > 1 or not all(name in state for name in PLANES):
        return None
    slopes, offsets, sizes, norms = (np.asarray(state[name], np.float64) for name in PLANES)
    count = slopes.shape[0]
    if slopes.shape != (count, dim) or any(one.shape != (count,) for one in (offsets, sizes, norms)):
        raise InputError("the planes to go on from have another shape")
    return SavedPlanes(slopes, offsets, np.zeros(count, np.int64), infima, "", sizes, norms)


def master_accuracy(relative_gap: float) -> float:
    """How exactly to solve the master: a tenth of the gap is as good as exact, and cheaper."""
    return min(max(0.1 * relative_gap, 1e-15), 0.1)


def check_reuse(risk: Risk, planes: SavedPlanes, infima: tuple[float, ...]) -> None:
    """InputError unless the planes were made by the same risk with the same blocks."""
    identity = ability(risk, Fingerprint)
    if identity is None:
        raise IncompatibleError(
            "planes can be reused only with a risk that has a `fingerprint`, which tells its data from others"
        )
    if planes.slopes.shape[1] != risk.dim or len(planes.infima) != len(infima):
        raise InputError(
            f"the planes have dimension {planes.slopes.shape[1]} and {len(planes.infima)} blocks,"
            f" expected {risk.dim} and {len(infima)}"
        )
    if planes.fingerprint != identity.fingerprint():
        raise InputError("the planes were made by another risk: data, weights, scaling, intercept or loss differ")
