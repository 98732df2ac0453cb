"""What prepared losses of whole groups or samples have in common."""

from __future__ import annotations

from bmrm.losses._core.prepared import Array, Curve, along_by_slopes


class KinkedSample:
    """One score per row, never below 0, with kinks: write `value_and_slope` and set `mass`."""

    scores_per_row = 1
    extra_dim = 0
    infimum = 0.0
    smooth = False
    mass: float

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The sum at scores `f`, and its slope, a new array like `f`."""
        raise TypeError(f"{type(self).__name__} does not define value_and_slope(f)")

    def along(self, f: Array, step: Array) -> Curve:
        """The function t -> (the sum at f + t step, its derivative in t), for a vector of t."""
        return along_by_slopes(self.value_and_slope, f, step)
