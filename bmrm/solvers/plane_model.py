"""The piecewise linear model of the risk: planes, the master that minimises over them, and their coming and going."""

from __future__ import annotations

from bmrm.masters.planes import MemoryPlanes
from bmrm.problem import HasMaster, IncompatibleError, MasterSolution, Regularizer, Vector

CLEANING = 10
"""Solutions between two clearings of idle planes."""


class PlaneModel:
    """max_j (<a_j, w> + b_j), from which planes leave that have not mattered for a while.

    Parameters
    ----------
    regularizer : must offer a master.
    dim, infimum : of the risk; the infimum is the floor plane.
    idle_limit : a plane leaves when its multiplier was zero in so many solutions in a row; None keeps all.
    """

    def __init__(self, regularizer: Regularizer, dim: int, infimum: float, idle_limit: int | None) -> None:
        if not isinstance(regularizer, HasMaster):
            raise IncompatibleError(
                f"regularizer {type(regularizer).__name__} offers no master, which cutting planes need;"
                " solver lbfgs does without"
            )
        self.planes = MemoryPlanes(dim, (infimum,))
        self.master = regularizer.master(self.planes)
        self.idle_limit = idle_limit
        self._solved = 0
        self._last_used: dict[int, int] = {}

    def add(self, a: Vector, value: float, w: Vector) -> None:
        """The tangent plane with slope `a` that passes through `value` at `w`."""
        plane = self.planes.add(a, value - float(a @ w))
        self.master.add(plane)
        self._last_used[plane] = self._solved

    def solve(self, accuracy: float) -> MasterSolution:
        """The minimiser of the regularized model; planes that are long idle leave afterwards."""
        solution = self.master.solve(accuracy)
        self._solved += 1
        for plane, multiplier in solution.multipliers.items():
            if multiplier > 0.0:
                self._last_used[plane] = self._solved
        # all at once now and then: each time costs a compaction
        if self.idle_limit is not None and self._solved % CLEANING == 0:
            self._drop(self._solved - self.idle_limit)
        return solution

    def _drop(self, limit: int) -> None:
        gone = [plane for plane, used in self._last_used.items() if used <= limit]
        if gone:
            self.master.remove(gone)
            self.planes.drop(gone)
        for plane in gone:
            del self._last_used[plane]


def master_accuracy(relative_gap: float) -> float:
    """How exactly to solve the master: a tenth of the gap is as good as exact, and cheaper."""
    return min(max(0.1 * relative_gap, 1e-15), 0.1)
