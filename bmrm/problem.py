"""The vocabulary: what a risk, a regularizer, a master and a solver promise one another.

This file imports nothing of ours; every other room speaks in its terms. The problem is always

    minimise over w:   J(w) = Omega(w) + R(w)

with `R` a convex risk and `Omega` a convex regularizer that has its own lambda inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
"""A float64 vector; weights have shape (dim,)."""

Scores = Any
"""Scores of the rows, one float64 per row or (rows, scores per row).

Opaque to solvers: they keep scores and form linear combinations (`f + t * step`), nothing else,
because under MPI the object stands for arrays that live on other ranks.
"""

T = TypeVar("T")


# ---------------------------------------------------------------------------------------------
# Errors
# ---------------------------------------------------------------------------------------------


class BmrmError(Exception):
    """Every error that this package raises on purpose."""


class InputError(BmrmError, ValueError):
    """A config, file, array or label is not what was asked for; the message names the place."""


class IncompatibleError(BmrmError, TypeError):
    """A solver lacks an ability of the risk or the regularizer; the message says which, and what would do."""


# ---------------------------------------------------------------------------------------------
# The risk and its abilities
# ---------------------------------------------------------------------------------------------


@runtime_checkable
class Risk(Protocol):
    """All that a solver may know of data and loss."""

    dim: int
    """Length of w."""
    infimum: float
    """A number that R(w) never goes below; 0.0 for most losses, -inf when unknown."""

    def value_and_subgradient(self, w: Vector) -> tuple[float, Vector]:
        """R(w) and one subgradient, a new array of shape (dim,); never changes `w`."""
        ...


def ability(risk: object, kind: type[T]) -> T | None:
    """What `risk` offers of `kind` (`Scored`, `RowSubsets`, `Blocks`, `Variants`, `Identity`, `Traffic`), or None.

    Asks `risk.ability(kind)` where the risk has that method: abilities depend on the instance (its loss,
    its data), not on the class, and a wrapper forwards or withholds each.
    """
    method = getattr(risk, "ability", None)
    return method(kind) if method is not None else None


class LinearMap(Protocol):
    """A: data times weights; the only place where passes over the data happen."""

    def scores(self, w: Vector) -> Scores:
        """A w, half a pass."""
        ...

    def pull_back(self, slope: Scores) -> Vector:
        """A' slope, shape (dim,), half a pass; rows of slope 0 are skipped."""
        ...

    def diagonal(self, weights: Scores) -> Vector:
        """The diagonal of A' diag(weights) A, shape (dim,), half a pass; for one score per row."""
        ...


class ScoreFunction(Protocol):
    """phi, a convex function of the scores, normalised like the risk: R(w) = phi(A w)."""

    @property
    def smooth(self) -> bool:
        """Differentiable everywhere with a Lipschitz gradient on bounded sets."""
        ...

    @property
    def scores_per_row(self) -> int: ...

    def value_and_slope(self, f: Scores) -> tuple[float, Scores]:
        """phi(f) and a subgradient with respect to f."""
        ...

    def along(self, f: Scores, step: Scores) -> Callable[[Vector], tuple[Vector, Vector]]:
        """The function t -> (phi(f + t step), its derivative in t), for a whole vector of t at once.

        At a kink the derivative is any element of the subdifferential. A batch costs one network
        reduction, so a search asks for several t together.
        """
        ...

    def curvature_product(self, f: Scores, step: Scores) -> Scores:
        """phi''(f) step; raises IncompatibleError where the loss has no second derivative."""
        ...

    def constant(self, b: Vector) -> Scores:
        """The scores whose every row is `b`, shape (scores per row,)."""
        ...

    def total(self, scores: Scores) -> Vector:
        """The sum over all rows, shape (scores per row,): what `constant` is to a slope, transposed."""
        ...


@dataclass(frozen=True)
class Scored:
    """The ability R(w) = phi(A w)."""

    map: LinearMap
    phi: ScoreFunction


class RowSubsets(Protocol):
    """The ability to evaluate chosen rows (PROBE, Pegasos)."""

    rows: int
    """Number of rows, over all ranks."""

    def value_and_subgradient_of(self, rows: NDArray[np.int64], w: Vector) -> tuple[float, Vector]:
        """An estimate of R(w) and a subgradient from `rows` alone (indices in [0, self.rows), repetition allowed).

        It is (self.rows / number of chosen rows) times their part of R(w), weights included: drawn uniformly, its
        expectation is R(w).
        """
        ...

    def watch(self, quiet: int, least: int, most: int, seed: int, first: int = 0) -> Watch:
        """An evaluation that leaves out rows which have not mattered for a while (PROBE); rows count from `first`."""
        ...


class Watch(Protocol):
    """R(w) from the rows that matter, one step after another.

    A row whose slope has been 0 in `quiet` steps in a row falls asleep for `least` to `most` steps (drawn at random
    by seed, step and row alone, so that sharing out the rows changes nothing), then is tried again. Rows asleep
    count as loss 0.
    """

    def step(self, w: Vector) -> tuple[float, Vector, float]:
        """Value and subgradient at `w` of the rows awake, and their share of all rows."""
        ...

    def rest(self, w: Vector) -> tuple[float, Vector]:
        """Value and subgradient of the rows that `step`, just called with `w`, left out; those that matter wake."""
        ...


class Variants(Protocol):
    """The ability to state phi anew: of some rows only, or with a loss changed within limits (IRLS)."""

    rows: int
    """Number of rows, over all ranks."""
    offset: int | None
    """Where in w the weight of a constant feature stands, with one score per row; None where there is none."""

    def outcome_sums(self) -> tuple[float, float]:
        """The weighted sum of the targets, for two classes of the positive ones, and the sum of the weights."""
        ...

    def mass(self, rows: NDArray[np.int64] | None, changes: Mapping[str, float]) -> float:
        """What the loss of `rows` (None for all) is divided by, with `changes` made to it.

        Raises IncompatibleError where the loss knows no such changes.
        """
        ...

    def variant(
        self, rows: NDArray[np.int64] | None, changes: Mapping[str, float], mass: float | None = None
    ) -> ScoreFunction:
        """phi of `rows` alone, divided by `mass` (None for theirs), with `changes` made to the loss."""
        ...


class Blocks(Protocol):
    """The ability to give a value and a subgradient per block of rows: several cuts a pass."""

    def values_and_subgradients(self, w: Vector, blocks: int) -> tuple[Vector, NDArray[np.float64]]:
        """Values (blocks,) and subgradients (blocks, dim) of the terms of R(w) = sum over blocks of R_k(w).

        Block borders are the same in every call with the same `blocks`.
        """
        ...

    def infima(self, blocks: int) -> Vector:
        """A lower bound of each R_k, shape (blocks,)."""
        ...


class Identity(Protocol):
    """The ability to tell whether two risks are the same function, so that planes of one hold for the other."""

    def fingerprint(self) -> str:
        """A digest of data, weights, scaling, intercept mode and loss; reads the data once."""
        ...


class Traffic(Protocol):
    """The ability of a distributed risk to say how long it has waited for the network."""

    def seconds(self) -> float: ...


# ---------------------------------------------------------------------------------------------
# The regularizer, its planes and its master
# ---------------------------------------------------------------------------------------------


@runtime_checkable
class Regularizer(Protocol):
    """Omega, its lambda included; immutable, convex, and nowhere negative."""

    @property
    def smooth(self) -> bool:
        """Differentiable everywhere."""
        ...

    def value(self, w: Vector) -> float: ...

    def subgradient(self, w: Vector) -> Vector: ...

    def along(self, w: Vector, step: Vector) -> Callable[[Vector], tuple[Vector, Vector]]:
        """The function t -> (Omega(w + t step), its derivative in t), for a vector of t."""
        ...


@runtime_checkable
class HasMaster(Protocol):
    """A regularizer that can serve the bundle method."""

    def master(self, planes: Planes, blocks: int = 1) -> Master: ...


@runtime_checkable
class HasConjugate(Protocol):
    """A regularizer whose conjugate Omega*(v) = max over w of <v, w> - Omega(w) is known."""

    def conjugate(self, v: Vector) -> float:
        """Omega*(v), possibly +inf."""
        ...

    def feasible(self, v: Vector) -> float:
        """The largest scale s in [0, 1] with Omega*(s v) finite: 1.0 for L2, min(1, lam / max |v|) for L1."""
        ...


@runtime_checkable
class HasProx(Protocol):
    """A regularizer whose proximal map is known."""

    def prox(self, v: Vector, step: float) -> Vector:
        """argmin over w of step * Omega(w) + 1/2 ||w - v||^2."""
        ...


@runtime_checkable
class StronglyConvex(Protocol):
    """A regularizer with Omega(w) - modulus/2 ||w||^2 convex."""

    @property
    def modulus(self) -> float:
        """Greater than 0: lambda for L2."""
        ...


class Planes(Protocol):
    """Where cutting planes R_k(w) >= <a_j, w> + b_j live.

    The floor planes (a = 0, b = floors[k]) are not stored: masters know them from `floors`.
    """

    dim: int
    floors: tuple[float, ...]
    """Per block, a number that R_k never goes below; -inf when unknown."""

    def add(self, a: Vector, b: float, block: int = 0) -> int:
        """Keep a copy of the plane; returns its id, never used before."""
        ...

    def products(self, a: Vector) -> Vector:
        """<a_j, a> for all planes, in the order of `ids`: a Gram row."""
        ...

    def combine(self, alpha: Vector) -> Vector:
        """sum_j alpha_j a_j, in the order of `ids`."""
        ...

    def drop(self, ids: Sequence[int]) -> None: ...

    def fold(self, ids: Sequence[int], alpha: Vector) -> int:
        """Replace planes of one block by their average with weights `alpha`, still a lower bound; returns its id."""
        ...

    def plane(self, id: int) -> tuple[Vector, float, int]:
        """(a, b, block); the array must not be changed."""
        ...

    @property
    def ids(self) -> tuple[int, ...]: ...

    @property
    def offsets(self) -> Vector:
        """b_j in the order of `ids`."""
        ...


@dataclass(frozen=True)
class MasterSolution:
    """The minimiser of the model, and what it proves."""

    w: Vector
    multipliers: dict[int, float]
    """Plane id -> alpha; planes that are not here have 0."""
    lower_bound: float
    """A true lower bound of min J, from a feasible dual point: never above the minimum but for rounding."""


@dataclass(frozen=True, eq=False)
class SavedPlanes:
    """The planes of a finished run, for another run on the same risk with any lambda.

    Attributes
    ----------
    slopes : (planes, dim).
    offsets, blocks : (planes,).
    fingerprint : of the risk (`Identity`).
    """

    slopes: NDArray[np.float64]
    offsets: Vector
    blocks: NDArray[np.int64]
    floors: tuple[float, ...]
    fingerprint: str


class Master(Protocol):
    """min over w of Omega(w) + sum over blocks of max_j (<a_j, w> + b_j), kept hot between calls."""

    def add(self, plane: int) -> None:
        """Take plane `plane` of `planes` into the model."""
        ...

    def remove(self, planes: Sequence[int]) -> None:
        """Forget planes; call before they are dropped from `planes`."""
        ...

    def solve(self, accuracy: float) -> MasterSolution:
        """Solve to `accuracy` relative to the objective of the model; `lower_bound` is valid at any accuracy."""
        ...


# ---------------------------------------------------------------------------------------------
# The loss
# ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Targets:
    """All that a loss may know of the rows besides their scores.

    `y` has one entry per row: numbers, strings, or one row of several numbers. `weights` (rows,) float64 or None
    for all 1; `groups` (rows,) int64 or None.
    """

    y: NDArray[Any]
    weights: Vector | None = None
    groups: NDArray[np.int64] | None = None

    @property
    def rows(self) -> int:
        return int(self.y.shape[0])

    def part(self, start: int, stop: int) -> Targets:
        """The rows [start, stop), as views."""
        w, g = self.weights, self.groups
        return Targets(
            self.y[start:stop],
            None if w is None else w[start:stop],
            None if g is None else g[start:stop],
        )


@dataclass(frozen=True)
class Summary:
    """What a loss must know of all rows, over all ranks, before it can prepare some of them.

    `labels` are the distinct classes in score order (of two, the second is positive), empty for tasks without
    classes; `counts` the rows of each; `outputs` the targets per row where that is more than a label or a number, 0
    where it is not asked for. JSON-able, so that ranks can exchange it.
    """

    rows: int
    weight: float
    labels: tuple[float | str, ...] = ()
    counts: tuple[int, ...] = ()
    outputs: int = 0

    def merge(self, other: Summary) -> Summary:
        """The summary of both sets of rows; labels in sort order."""
        table = dict(zip(self.labels, self.counts, strict=True))
        for label, count in zip(other.labels, other.counts, strict=True):
            table[label] = table.get(label, 0) + count
        if len({isinstance(label, str) for label in table}) > 1:
            raise InputError("labels are numbers in one part of the data and text in another")
        if self.outputs != other.outputs and self.outputs and other.outputs:
            raise InputError(f"{self.outputs} targets per row in one part of the data, {other.outputs} in another")
        labels = tuple(sorted(table, key=lambda label: (label,)))
        counts = tuple(table[label] for label in labels)
        outputs = max(self.outputs, other.outputs)
        return Summary(self.rows + other.rows, self.weight + other.weight, labels, counts, outputs)


class PreparedLoss(Protocol):
    """A loss bound to the targets of some rows. Thread-safe: no state changes after `prepare`."""

    scores_per_row: int
    extra_dim: int
    """Parameters of the loss learned with w (cut points, transitions)."""
    mass: float
    """R = sum of values / sum of masses."""
    infimum: float
    """The sum over its rows never goes below this."""
    smooth: bool

    def value_and_slope(self, f: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The sum over its rows (weights inside) at scores `f`, and the slope, a new array like `f`.

        `f` is (rows,) where `scores_per_row` is 1, else (rows, scores_per_row). With `extra_dim` above 0 it is flat:
        the scores of the rows in C order, then the parameters of the loss.
        """
        ...


@runtime_checkable
class HasCurvature(Protocol):
    """A prepared loss, or a regularizer, with a second derivative."""

    def curvature_product(self, f: NDArray[np.float64], step: NDArray[np.float64]) -> NDArray[np.float64]:
        """The second derivative at `f` times `step`, a new array."""
        ...


class Loss(Protocol):
    """A frozen dataclass of parameters: comparable, YAML-able."""

    decomposes: ClassVar[Literal["rows", "groups", "no"]]
    task: ClassVar[str]

    def summarise(self, targets: Targets) -> Summary: ...

    def prepare(self, targets: Targets, summary: Summary) -> PreparedLoss:
        """Bind to some rows, once; the one place for domain checks (raises InputError)."""
        ...


# ---------------------------------------------------------------------------------------------
# The solver and its answer
# ---------------------------------------------------------------------------------------------


class Status(Enum):
    """How a solver stopped; `advice` says what to do next."""

    CONVERGED = "the relative gap is within the tolerance"
    OWN_RULE = "the solver's own stopping rule is met; only the gap reported beside it is proved"
    ITERATION_LIMIT = "max_iterations reached; raise it, or accept the gap reported"
    TIME_LIMIT = "time_limit reached; raise it, or accept the gap reported"
    STALLED = "rounding or a kink stops further progress; the tolerance is out of reach for this solver"
    NON_FINITE = "the objective is not finite at any point tried; scale the features or enlarge lambda"
    INTERRUPTED = "stopped from outside; the best point so far is returned"

    @property
    def advice(self) -> str:
        return self.value


@dataclass(frozen=True)
class Iteration:
    """One line of the history; objective is that of the best point so far, seconds since the start."""

    iteration: int
    objective: float
    lower_bound: float
    passes: float
    seconds: float
    seconds_risk: float = 0.0
    seconds_master: float = 0.0
    seconds_network: float = 0.0
    w: Vector | None = field(default=None, repr=False, compare=False)
    """The best point so far, not to be changed: in the lines that callbacks get, not in a history."""

    @property
    def gap(self) -> float:
        return self.objective - self.lower_bound

    @property
    def relative_gap(self) -> float:
        return relative_gap(self.objective, self.lower_bound)


def relative_gap(objective: float, lower_bound: float) -> float:
    """(objective - lower_bound) / |objective|, 0 where rounding has put the bound above; inf without a bound."""
    if not (math.isfinite(objective) and math.isfinite(lower_bound)):
        return math.inf
    return max(0.0, objective - lower_bound) / max(abs(objective), float(np.finfo(np.float64).tiny))


@dataclass(frozen=True, eq=False)
class Solution:
    """A point, what it costs, and what is proved about it."""

    w: Vector
    objective: float
    """J(w), evaluated in float64."""
    lower_bound: float
    """A true lower bound of min J; -inf where there is none."""
    status: Status
    iterations: int
    passes: float
    """One product with the data (A w or A' s) counts one half."""
    seconds: float
    history: tuple[Iteration, ...] = field(default=(), repr=False)
    solver: str = ""
    """The name of the solver; what `auto` chose and why."""
    planes: SavedPlanes | None = field(default=None, repr=False)
    """The planes of a bundle method that was told to keep them."""
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What a solver records beyond the history, by name; its docstring says what."""

    @property
    def gap(self) -> float:
        """objective - lower_bound."""
        return self.objective - self.lower_bound

    @property
    def relative_gap(self) -> float:
        """gap / max(|objective|, tiny)."""
        return relative_gap(self.objective, self.lower_bound)

    @property
    def converged(self) -> bool:
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
        """Minimise J = regularizer + risk from `start` (zero when None), which is not changed."""
        ...
