"""What takes part: a competitor prepares its own copy of the data, then trains at each rung of its ladder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from benchmarks.race.problem import Task

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Rung:
    """A tolerance, and whatever else changes with it, in the competitor's own terms.

    `label` names it in the results; `target` is the suboptimality that a certifying competitor promises, else None.
    """

    label: str
    options: Mapping[str, Any]
    target: float | None = None


@dataclass
class Trial:
    """One run that is ready to go.

    Attributes
    ----------
    train : what is timed; a returned float counts as the seconds instead (programs that tell their own).
    weights : w after `train`, laid out as the judge wants it; not timed.
    details : after `train`: `status`, `solver`, `bound` and `history` where there are any.
    """

    train: Callable[[], float | None]
    weights: Callable[[], Vector]
    details: Callable[[], dict[str, Any]] = field(default=dict)


Prepared = Callable[[Rung], Trial]


class Competitor(Protocol):
    """A method of a program.

    Besides, it may say `compiles` (its first run of a kind compiles, which is done before the race) and `own_space`
    (it has fewer weights than ours, so that its suboptimality is measured from its own best point).
    """

    name: str
    """As in the tables."""
    family: str
    """The program or package."""

    def missing(self) -> str:
        """Why it cannot run on this machine; empty where it can."""
        ...

    def serves(self, task: Task) -> bool:
        """Whether it minimises this very objective."""
        ...

    def ladder(self, task: Task) -> Sequence[Rung]:
        """Its settings, the loosest first."""
        ...

    def prepare(self, task: Task) -> Prepared:
        """Copy and convert the data, untimed."""
        ...


def rungs(name: str, values: Sequence[float], **fixed: Any) -> tuple[Rung, ...]:
    """A ladder over one tolerance."""
    return tuple(Rung(f"{name}={value:g}", {name: value, **fixed}) for value in values)
