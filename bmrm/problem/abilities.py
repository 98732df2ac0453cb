"""What a risk may offer besides value and subgradient; asked for with `ability(risk, kind)`.

Four abilities concern subsets of rows; they have different requirements. `RowSubsets` can be offered by a user's risk
and over ranks. `ModifiedLoss` needs a loss that can be changed. `RowSample` makes a risk with a free intercept of its
own; over ranks rows stay where they are. `RowParts` exists in one process, for losses without parameters; a free
intercept stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bmrm.problem.basics import Scores, Vector
from bmrm.problem.regularizer import BlockPenalty
from bmrm.problem.risk import LinearMap, Risk, ScoreFunction, Settled


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

    def active_set(self, quiet: int, least: int, most: int, seed: int, first: int = 0) -> ActiveSet:
        """An evaluation that leaves out rows which have not mattered for a while (PROBE); rows count from `first`."""
        ...


class ActiveSet(Protocol):
    """R(w) from the rows that matter, one step after another.

    A row whose slope has been 0 in `quiet` steps in a row becomes dormant for `least` to `most` steps (drawn at random
    by seed, step and row alone, so that sharing out the rows changes nothing), then is tried again. Rows dormant
    count as loss 0.
    """

    def step(self, w: Vector) -> tuple[float, Vector, float]:
        """Value and subgradient at `w` of the active rows, and their share of all rows."""
        ...

    def rest(self, w: Vector) -> tuple[float, Vector]:
        """Value and subgradient of the rows that `step`, just called with `w`, left out; some become active."""
        ...


class ModifiedLoss(Protocol):
    """The ability to state phi anew: of some rows only, or with a loss changed within limits (IRLS, CG-MLE)."""

    rows: int
    """Number of rows, over all ranks."""
    offset: int | None
    """Where in w the weight of a constant feature stands, with one score per row; None where there is none."""

    def target_sums(self) -> tuple[float, float]:
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


@dataclass(frozen=True)
class Fingerprint:
    """The ability to tell whether two risks are the same function, so that planes of one hold for the other.

    Attributes
    ----------
    fingerprint : gives a digest of data, weights, scaling, intercept mode and loss; reads the data once.
    """

    fingerprint: Callable[[], str]


@dataclass(frozen=True)
class ProblemSize:
    """The ability to say how large the data are, over all ranks.

    Attributes
    ----------
    rows : number of rows.
    entries : stored numbers, rows times features for dense data.
    estimate : gives `square` and `overlap`; called once, when one of them is first asked for.
    ranks : processes that share the data.
    threads : at most so many in each.
    resident : whether rows may be copied and read at random; else they are read from the first to the last.
    """

    rows: int
    entries: int
    estimate: Callable[[], tuple[float, float]]
    ranks: int = 1
    threads: int = 1
    resident: bool = True

    @cached_property
    def _estimated(self) -> tuple[float, float]:
        return self.estimate()

    @property
    def square(self) -> float:
        """Mean squared norm of the rows of features, estimated from some of them."""
        return self._estimated[0]

    @property
    def overlap(self) -> float:
        """Mean squared product of two different rows, estimated from some of them."""
        return self._estimated[1]

    @property
    def effective_rank(self) -> float:
        """tr(S)^2 / tr(S^2) of the second moments S of the rows: how many directions they spread over, at least 1."""
        return max(1.0, self.square**2 / max(self.overlap, 1e-300))


@dataclass(frozen=True, eq=False)
class Magnitudes:
    """What is added, in absolute values, where a risk is evaluated: times the unit roundoff it bounds the rounding.

    Attributes
    ----------
    sizes : |A|'|s|, (dim,), with s the slopes of the scores at this point, or so near to it that scores cannot tell.
    terms : what makes the value besides <sizes, |w|>.
    length : the number of terms of the longest sum.
    growth : by what share `sizes` are larger where w is 1 further away, in norm: rounding of the scores there is in the
        slopes of smooth losses of several scores, through the exponents.
    """

    sizes: Vector
    terms: float
    length: float
    growth: float = 0.0


@dataclass(frozen=True)
class Rounding:
    """The ability to say what is added, terms that cancel included, where R is evaluated.

    Attributes
    ----------
    subject : what is evaluated, for messages: `loss NAME`.
    foreign : whether it is a user's, of which less can be taken for granted.
    at : (w, constant=None, reach=0.0) -> the magnitudes at w, with a constant, (scores per row,), added to all scores;
        about 3 passes. Kinks count that rounding at points of norm `reach` cannot tell from w, and slopes at 0.
    row_norm : () -> the norm of the features of a row, the mean of a few, those of one rank: how much a long step may
        add.
    constant : () -> the size of the constants that were last added to all scores; 0 where there are none.
    """

    subject: str
    foreign: bool
    at: Callable[..., Magnitudes]
    row_norm: Callable[[], float]
    constant: Callable[[], float] = float


@dataclass(frozen=True)
class Sent:
    """What has gone between the ranks so far, as rank 0 sees it.

    Attributes
    ----------
    waited : seconds that rank 0 has waited.
    ahead : those of them in which the others, on the mean, were still computing: rank 0 was done before them.
    messages : broadcasts, reductions, gatherings.
    bytes : in them, those that a reduction or a broadcast has counted once for all ranks.
    """

    waited: float
    ahead: float
    messages: int
    bytes: int


class Traffic(Protocol):
    """The ability of a distributed risk to say what has gone between the ranks."""

    def so_far(self) -> Sent: ...


@dataclass(frozen=True)
class RowSample:
    """The ability to state the risk of a random sample of the rows: a cheap place to start from.

    Attributes
    ----------
    rows : number of rows.
    sample : (rows, seed) -> the mean loss of so many rows drawn without repetition; weights of rows count. InputError
        where these are all 0.
    """

    rows: int
    sample: Callable[[int, int], Risk]


@dataclass(frozen=True)
class Gathered:
    """The ability of a risk whose rows lie on many ranks to be stated once more in one process, of all rows.

    Offered where that is allowed, and where one process has room for all rows.

    Attributes
    ----------
    gathered : gives the same R(w), but for rounding; the rows come to this process, which takes time and memory.
    """

    gathered: Callable[[], Risk]


@dataclass(frozen=True)
class RowPart:
    """Some of the rows: their part of R(w) is phi(A w), divided by the mass of all rows.

    Attributes
    ----------
    map, phi : of these rows; with a free intercept before the minimisation over b, as in `Intercept`.
    restrict : from scores of all rows to those of these.
    rows : how many.
    parts : to take some of them out in turn.
    """

    map: LinearMap
    phi: ScoreFunction
    restrict: Callable[[Scores], Scores]
    rows: int
    parts: RowParts


class RowParts(Protocol):
    """The ability to take some of the rows out, those that still matter to a solver; one process only."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        ...

    def part(self, weights: Scores) -> RowPart:
        """A copy of the rows of weight other than 0; with several scores per row, of any weight other than 0."""
        ...

    def curved_rows(self, z: Scores, sigma: float, reach: float) -> Scores:
        """Weights for `part`, of rows where the envelope at scores within `reach` of `z` is curved.

        Only where phi is `proximal`.
        """
        ...

    def products(self) -> NDArray[np.float64]:
        """A A' of one score: the inner products of what the rows' scores are made of, a new (rows, rows) matrix."""
        ...


class DualBlocks(Protocol):
    """The ability to ascend the dual row by row."""

    rows: int
    """Number of rows, over all ranks."""
    grouped: bool
    """Whether a step is of a group of rows, such as a sentence; read as False where there is none."""

    def ascent(
        self,
        l1: float,
        l2: float,
        *,
        seed: int,
        start: Scores | None = None,
        near: Scores | None = None,
        intercept: bool = False,
    ) -> DualAscent:
        """An ascent for Omega(w) = l1 ||w||_1 + l2/2 ||w||^2, l2 > 0.

        It begins at w = 0; or with the slopes `start` of phi; or with what a step of every row makes of them (of 0
        where they are None) at the scores `near`, of a good w. Dual variables are projected
        onto the domain of the conjugate.

        With `intercept` the regularizer does not touch a constant b added to all scores: the slopes of each score
        must sum to 0 in the end. `near` is without it; b begins where the slopes then sum to 0.
        """
        ...


class DualAscent(Protocol):
    """A slope s of phi, kept where the rows are, and the plane R(w) >= <a, w> + b that it makes.

    a = A's and b = -phi*(s), so that any state proves a lower bound.
    """

    def sweep(self) -> DualSweep:
        """Visit the open rows in a random order, once or more often if they are few; maximise over each row's slope.

        Rows that will hardly move are shrunk meanwhile.
        """
        ...

    def unshrink(self) -> None:
        """Take all rows back that sweeps have shrunk."""
        ...

    @property
    def weights(self) -> Vector:
        """The w that belongs to the slopes, a new array: the minimiser of <a, w> + Omega(w)."""
        ...

    def value(self) -> float:
        """The dual value, from running sums; no bound where the slopes need not sum to 0 yet."""
        ...

    def slope(self) -> Scores:
        """s, a copy; with a free intercept not yet summing to 0, but for just after `plane`."""
        ...

    def plane(self, anew: bool = False) -> tuple[Vector, float]:
        """(a, b), b computed from the slopes; with a free intercept of slopes moved so that they sum to 0.

        So is a, in half a pass, with a free intercept, where `anew` asks for it, and now and then: else it is what
        sweeps have kept up to date. Sweeps go on from there. Before the first one, where nothing is known, it is the
        infimum of R.
        """
        ...

    @property
    def constant(self) -> Vector:
        """The present b of the free intercept, (scores per row,); zeros without."""
        ...

    def scores(self) -> Scores | None:
        """With a free intercept scores at which the rows have the slopes s, for `near` of another ascent; else None."""
        ...

    @property
    def balance(self) -> Vector:
        """With a free intercept where it is and how it moves: for `resume` of another ascent; else empty."""
        ...

    def resume(self, balance: Vector) -> None:
        """Move the free intercept from there on; this one has begun with that one's slopes and scores."""
        ...


@dataclass(frozen=True)
class DualSweep:
    """What a sweep has found.

    Attributes
    ----------
    gap : about the difference of objective and dual value: the sum of what each row contributed to it just before its
        turn. A guess, mostly above the truth; nan where rows are met for the first time.
    visits : over the number of rows.
    open : share of the rows that are not shrunk.
    """

    gap: float
    visits: float
    open: float


class QuadraticModel(Protocol):
    """The ability to minimise second-order models of phi(A w) coordinate by coordinate; one process only."""

    def model(self, columns: NDArray[np.int64], curvature: Scores, intercept: bool = False) -> ColumnModel:
        """1/2 <A d, curvature A d> as a function of the steps d of some increasing `columns`.

        With `intercept` a constant is added to A d, always the best one.
        """
        ...


class ColumnModel(Protocol):
    """A quadratic in the steps of some columns."""

    def minimise(
        self, gradient: Vector, w: Vector, l1: float, l2: float, goal: float, share: float, most: int
    ) -> tuple[Vector, float]:
        """argmin over x of <gradient, x - w> + model(x - w) + l1 ||x||_1 + l2/2 ||x||^2, and what is left to do.

        All vectors are of the columns alone. Ends after about `most` sweeps, when no coordinate is farther than `goal`
        from what its subdifferential allows, or when a sweep brings no more than `share` of the decrease of all;
        returns x and the distance last met.
        """
        ...

    def distance(self) -> float:
        """How far the farthest coordinate of the last x is from what its subdifferential allows, anew; half a sweep."""
        ...

    def by_blocks(self, partition: BlockPenalty) -> BlockModel:
        """The same quadratic, to be minimised by blocks.

        Parameters
        ----------
        partition : the blocks, whose coordinates are these columns, numbered from 0; its other numbers do not matter.
        """
        ...

    @property
    def scores(self) -> Scores:
        """A d for the last x, with the step of the constant where there is a free intercept."""
        ...


class BlockModel(Protocol):
    """A quadratic in the steps of some columns, and a partition of these into blocks."""

    def minimise(
        self, gradient: Vector, w: Vector, penalty: BlockPenalty, goal: float, share: float, most: int
    ) -> tuple[Vector, float]:
        """argmin over x of <gradient, x - w> + model(x - w) + Omega(x), and what is left to do.

        All vectors are of the columns alone, as are the coordinates of `penalty`, which is Omega. Ends as
        `ColumnModel.minimise`, distances being Euclidean norms for a block.
        """
        ...

    def distance(self) -> float:
        """As of `ColumnModel`, of the farthest block."""
        ...

    @property
    def scores(self) -> Scores:
        """As of `ColumnModel`."""
        ...


@runtime_checkable
class SeveralPoints(Protocol):
    """A map A of one score per row that can be applied to several points at once, reading the rows once for all."""

    def several(self, count: int) -> LinearMap:
        """The same with a score per row for each of `count` points: w is (dim, count) in C order, scores likewise."""
        ...

    def shifts(self) -> Vector | None:
        """The size of what is taken off every entry of each column, (dim,), which is rounded with it; None for 0."""
        ...


@runtime_checkable
class FullColumns(Protocol):
    """A map A of one score per row some columns of which can be had in full."""

    def full_columns(self, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Some increasing columns of A, a new array (columns, rows)."""
        ...


class AtPoint(NamedTuple):
    """Weights, and the constant added to each score: 0 without a free intercept. None where it is not known."""

    w: Vector
    constants: Vector | None = None


class ReachedAtOnce(NamedTuple):
    """Where steps of which nothing was kept have ended.

    Attributes
    ----------
    w, constants : the point.
    objective, bound : J there, and a lower bound of min J from which rounding has been taken off.
    steps, passes : that it took.
    """

    w: Vector
    constants: Vector
    objective: float
    bound: float
    steps: int
    passes: float


Minimised = Callable[[float, float, bool, Callable[[float], float], int, AtPoint | None], ReachedAtOnce | None]
"""(l1, l2, free, wanted, most, start) -> where it ends; None where `most` steps do not get there. `free` says whether
there is a free intercept, `wanted` the gap for an objective; a run begins at `start`, at 0 for None."""


@dataclass(frozen=True, eq=False)
class AtOnce:
    """The ability to minimise R(w) + l1 ||w||_1 + l2/2 ||w||^2 in a few compiled calls, for little data.

    Nothing is charged.

    Attributes
    ----------
    minimised : the run.
    rows : how many.
    methods : the solvers whose steps are taken: for l1 = 0 and above 0, where they are.
    most : weights that it is worth for.
    entries : rows times weights that it is worth for.
    by_rows : whether steps are those of as many weights as there are rows, fewer than there are.
    settled : of a free intercept; None where there is none.
    """

    minimised: Minimised
    rows: int
    methods: Mapping[bool, str]
    most: int
    entries: int
    by_rows: bool = False
    settled: Settled | None = None


RESIDENT: frozenset[type] = frozenset({AtOnce, RowSubsets, RowParts, RowSample, DualBlocks, QuadraticModel})
"""Abilities that read rows at random, or copy them: rows that are larger than memory do not offer them."""
