"""Counting what a risk does that knows no `metered`: a user's, or one whose rows are elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast

from bmrm.problem.abilities import Blocks, DualBlocks, ModifiedLoss, Rounding, RowSubsets
from bmrm.problem.basics import Vector, provides
from bmrm.problem.meter import Meter, Metered
from bmrm.problem.results import evaluator
from bmrm.problem.risk import Intercept, Risk, Scored, ability

T = TypeVar("T")

COUNTED = Blocks, DualBlocks, ModifiedLoss, Rounding, RowSubsets
"""Abilities whose calls are counted as passes."""
PASSES = {
    **dict.fromkeys(("matvec", "rmatvec", "diagonal", "gram", "gram_blocks", "plane"), 0.5),
    "values_and_subgradients": 1.0,
    "gram_product": 1.0,
    "at": 1.5,
}
"""Cost of calls in passes, by the name of the method; others cost nothing, or what `_FOUND` says."""
_FOUND: dict[str, Callable[[Any, tuple[Any, ...], Any, float], float]] = {
    "value_and_subgradient_of": lambda subsets, arguments, found, last: len(arguments[0]) / max(1, subsets.rows),
    "step": lambda active_set, arguments, found, last: float(found[2]),
    "rest": lambda active_set, arguments, found, last: 1.0 - last,
    "sweep": lambda ascent, arguments, found, last: float(found.visits),
}
"""Cost of calls, computed from object, arguments, result and the cost of the last such call of this object."""
_PARTS = "active_set", "ascent", "variant"
"""Methods whose results are counted objects, too."""
_CURVES = "along", "moreau_along"
"""Methods that return functions whose calls are counted."""


def metered(offered: T, meter: Meter) -> T:
    """`offered`, whose work is charged to `meter`: by itself, or else call by call."""
    if provides(offered, Metered):
        return cast("T", offered.metered(meter))
    return cast("T", Counted(offered, meter))


def metered_risk(risk: Risk, meter: Meter) -> Risk:
    """`risk` with all its abilities, whose work is charged to `meter`.

    Raises
    ------
    InputError
        The risk has no `dim`, no `infimum` or no `value_and_subgradient`.
    """
    return risk.metered(meter) if provides(risk, Metered) else CountedRisk(risk, meter)


class Counted:
    """An object whose methods are timed, and charged by their names."""

    def __init__(self, inner: Any, meter: Meter) -> None:
        self.inner, self.meter, self._last = inner, meter, 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if not callable(found):
            return found
        call = partial(self._call, name, found) if name in _FOUND or name in _PARTS or name in _CURVES else None
        made = partial(self.meter.timed, PASSES.get(name, 0.0), found) if call is None else call
        setattr(self, name, made)
        return made

    def _call(self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        found = self.meter.timed(0.0, function, *arguments, **options)
        if name in _PARTS:
            return metered(found, self.meter)
        if name in _CURVES:
            return partial(self.meter.timed, 0.0, found)
        self._last = _FOUND[name](self.inner, arguments, found, self._last)
        self.meter.charge(self._last)
        return found


class CountedRisk:
    """A risk whose evaluations are passes, and whose abilities are counted."""

    def __init__(self, inner: Risk, meter: Meter) -> None:
        self._evaluate = evaluator(inner)
        self.inner, self.meter = inner, meter
        self.dim, self.infimum = inner.dim, inner.infimum

    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        """As of the risk inside; one pass."""
        return self.meter.timed(1.0, self._evaluate, w)

    def ability(self, kind: type[T]) -> T | None:
        """As of the risk inside, counted."""
        offered = ability(self.inner, kind)
        if isinstance(offered, Scored):
            intercept = offered.intercept
            if intercept is not None:
                intercept = Intercept(metered(intercept.phi, self.meter), intercept.settled)
            return cast("T", Scored(metered(offered.map, self.meter), metered(offered.phi, self.meter), intercept))
        known = offered is not None and (kind in COUNTED or provides(offered, Metered))
        return metered(offered, self.meter) if known else offered
