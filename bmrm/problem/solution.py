"""The solver and its answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bmrm.problem.basics import Vector
from bmrm.problem.regularizer import Regularizer, SavedPlanes
from bmrm.problem.risk import Risk


class Status(Enum):
    """How a solver stopped; `advice` says what to do next."""

    CONVERGED = "the gap is within the tolerance"
    OWN_RULE = "the solver's own stopping rule is met; only the gap reported beside it is proved"
    ITERATION_LIMIT = "max_iterations reached; raise it, or accept the gap reported"
    TIME_LIMIT = "time_limit reached (compiling kernels is not counted); raise it, or accept the gap reported"
    STALLED = "rounding or a kink stops further progress; the tolerance is out of reach for this solver"
    NON_FINITE = "the objective is not finite at any point tried; scale the features or enlarge lambda"
    NOT_CONVEX = "values and slopes contradict one another, so that nothing is proved; correct the loss or the risk"
    INTERRUPTED = "stopped from outside; the best point so far is returned"

    @property
    def advice(self) -> str:
        """Why a run ended, and what may help, in words."""
        return self.value

    @classmethod
    def _missing_(cls, value: object) -> Status | None:
        return cls.__members__.get(str(value))

    def __reduce_ex__(self, protocol: object) -> tuple[type[Status], tuple[str]]:
        """By name, since the advice may be worded otherwise in another version; skops asks for `__reduce__`."""
        return Status, (self.name,)

    def __reduce__(self) -> tuple[type[Status], tuple[str]]:
        return self.__reduce_ex__(0)


MOST_FIGURES = -math.log10(float(np.finfo(np.float64).eps))
"""Decimal digits of float64, about 15.7."""
TINY = float(np.finfo(np.float64).tiny)
"""Smallest normal float64."""


@dataclass(frozen=True)
class Iteration:
    """One line of the history; objective is that of the best point so far, seconds since the start.

    Compiling kernels, or loading compiled ones, does not count.
    A bound above the objective by more than rounding explains is left as it is: the run then ends with NOT_CONVEX.
    """

    iteration: int
    objective: float
    lower_bound: float
    passes: float
    seconds: float
    seconds_risk: float = 0.0
    seconds_master: float = 0.0
    seconds_waiting: float = 0.0
    """For other ranks that were still computing."""
    seconds_network: float = 0.0
    passes_gram: float = 0.0
    """Those of `passes` that products of Gram matrices were worth; the rest have read the data."""
    w: Vector | None = field(default=None, repr=False, compare=False)
    """The best point so far, not to be changed: in the lines that callbacks get, not in a history."""
    state: Callable[[], State] | None = field(default=None, repr=False, compare=False)
    """What a later run needs besides `w` to go on from here (see `Start`); to be called within the callback only."""
    iterate: Vector | None = field(default=None, repr=False, compare=False)
    """The point that a solver without descent (`probe`, `pegasos`) is at, w_t of the papers; None from the others. Not
    to be changed, and in the lines that callbacks get, as `w`."""

    @property
    def gap(self) -> float:
        """objective - lower_bound."""
        return self.objective - self.lower_bound

    @property
    def relative_gap(self) -> float:
        """(objective - lower_bound) / |objective|; inf without a bound, or with one above the objective."""
        return relative_gap(self.objective, self.lower_bound)

    @property
    def significant_figures(self) -> float:
        """How many decimal digits of the objective are proved; see the function of this name."""
        return significant_figures(self.objective, self.lower_bound)

    def told(self, w: Vector | None, state: Callable[[], State] | None, iterate: Vector | None = None) -> Iteration:
        """The same line as callbacks get it; `dataclasses.replace` takes several times as long.

        Parameters
        ----------
        w : (dim,), the best weights so far; None where they are not handed over.
        state : makes what a solver needs to go on; None where it cannot.
        iterate : (dim,), the point of this iteration; default None.
        """
        return Iteration(
            self.iteration,
            self.objective,
            self.lower_bound,
            self.passes,
            self.seconds,
            self.seconds_risk,
            self.seconds_master,
            self.seconds_waiting,
            self.seconds_network,
            self.passes_gram,
            w,
            state,
            iterate,
        )


State = Mapping[str, npt.NDArray[Any]]
"""Arrays of numbers or text by name; `solver` is whose they are. Names that begin with `rows_` have a row for each row
of the data, in their order over all ranks."""


@dataclass(frozen=True, eq=False)
class Start:
    """Where another run on the same problem was: risk and regularizer are the same functions.

    Attributes
    ----------
    w : its best point, (dim,).
    lower_bound : what it had proved of min J; -inf for nothing.
    history : its lines; iterations, passes and seconds go on from the last. () begins anew.
    state : of its solver. Another solver goes on from w and the bound alone, as does one that has no use for it.
    """

    w: Vector
    lower_bound: float = -math.inf
    history: tuple[Iteration, ...] = ()
    state: State = field(default_factory=dict)

    def state_of(self, solver: str, *names: str) -> State | None:
        """The state, where it is of this solver and has these arrays.

        Parameters
        ----------
        solver : its name.
        names : of arrays that must be there.
        """
        mine = str(self.state.get("solver", "")) == solver and all(name in self.state for name in names)
        return self.state if mine else None


def relative_gap(objective: float, lower_bound: float) -> float:
    """(objective - lower_bound) / |objective|; inf without a bound, or with one above the objective.

    A bound that rounding has put above the objective is to be cut before: any other such bound proves nothing.
    """
    if not (math.isfinite(objective) and -math.inf < lower_bound <= objective):
        return math.inf
    return (objective - lower_bound) / max(abs(objective), TINY)


def relative_goal(objective: float, tolerance: float, absolute_tolerance: float = 0.0) -> float:
    """The relative gap at which a run ends: where either tolerance is met, absolute_tolerance being one of the gap."""
    if not absolute_tolerance > 0.0:
        return tolerance
    return max(tolerance, absolute_tolerance / max(abs(objective), TINY))


def significant_figures(objective: float, lower_bound: float) -> float:
    """log10((|J| + |B|) / (2 (J - B))), J the objective and B the lower bound: so many of its decimal digits are sure.

    At most -log10(eps) = 15.65, those of float64; nan without a bound. Eq. 16 of Teo, Smola, Vishwanathan & Le, KDD
    2007, where B is a bound from one gradient; here it is the best known.
    """
    if not relative_gap(objective, lower_bound) < math.inf:
        return math.nan
    size, gap = abs(objective) + abs(lower_bound), objective - lower_bound
    return math.log10(size / max(2.0 * gap, size * float(np.finfo(np.float64).eps))) if size > 0.0 else MOST_FIGURES


@dataclass(frozen=True, eq=False)
class Solution:
    """A point, what it costs, and what is proved about it."""

    w: Vector = field(repr=False)
    objective: float
    """J(w), evaluated in float64."""
    lower_bound: float
    """A true lower bound of min J, at most the objective; -inf where there is none, as with NOT_CONVEX."""
    status: Status
    iterations: int
    passes: float
    """One product with the data (A w or A' s) counts one half, a Gram matrix what its products cost besides."""
    seconds: float
    """Without `seconds_compiling`, as those of the history."""
    history: tuple[Iteration, ...] = field(default=(), repr=False)
    solver: str = ""
    """The name of the solver; what `auto` chose and why."""
    planes: SavedPlanes | None = field(default=None, repr=False)
    """The planes of a bundle method that was told to keep them."""
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What a solver records beyond the history, by name; its docstring says what.

    With NOT_CONVEX `points` (those of the message), `amount`, what `rounding` explains of it, and `raw_bound`.
    """
    message: str = ""
    """What has contradicted what, where the status is NOT_CONVEX: the loss or risk, the points, the amount."""
    seconds_compiling: float = 0.0
    """What compiling kernels took besides, or loading compiled ones: no time limit counts it."""

    @property
    def gap(self) -> float:
        """objective - lower_bound."""
        return self.objective - self.lower_bound

    @property
    def relative_gap(self) -> float:
        """(objective - lower_bound) / |objective|; inf without a bound, or with one above the objective."""
        return relative_gap(self.objective, self.lower_bound)

    @property
    def significant_figures(self) -> float:
        """How many decimal digits of the objective are proved; see the function of this name."""
        return significant_figures(self.objective, self.lower_bound)

    @property
    def converged(self) -> bool:
        """Whether the status is CONVERGED: the gap is within the tolerance."""
        return self.status is Status.CONVERGED


Callback = Callable[[Iteration], Any]
"""Called after every iteration; a returned True asks the solver to stop (INTERRUPTED)."""


class Solver(Protocol):
    """A frozen dataclass of options; all that changes lives in local state."""

    def minimize(
        self,
        risk: Risk,
        regularizer: Regularizer,
        *,
        start: Vector | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Minimise J = regularizer + risk from `start` (zero when None), which is not changed.

        An `IterativeSolver` is also given a `Start`, which `monitor` understands.

        Parameters
        ----------
        risk : R, with the abilities that the solver asks for.
        regularizer : Omega.
        start : (dim,), where to begin; default None: at zero.
        callback : called with an `Iteration` after each iteration; default None.

        Raises
        ------
        IncompatibleError
            The risk or the regularizer lacks what the solver needs.
        """
        ...
