"""Block coordinate descent on second-order models, with working sets of blocks.

Tseng & Yun 2009; Friedman, Hastie & Tibshirani 2010 (covariance updates); Massias, Gramfort & Salmon 2018 (working
sets); Bertrand, Klopfenstein, Bannier, Gidel & Massias 2022 (skglm).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bmrm.kernels.blocks.descent import survey
from bmrm.kernels.products.vectors import norm as norm_of
from bmrm.numerics.block_sweeps import GramSweeps
from bmrm.problem import IncompatibleError, Scored, Scores, Vector, ability
from bmrm.problem.abilities import BlockModel, ProblemSize, QuadraticModel
from bmrm.problem.regularizer import BlockPenalty
from bmrm.solvers._core.best import ROUNDING
from bmrm.solvers._core.block_sets import Blocks, Marks, Omega, chosen_blocks, part_of
from bmrm.solvers._core.covariance import Covariance
from bmrm.solvers._core.gap_safe import SafeBlocks
from bmrm.solvers._core.gram_model import GramModel
from bmrm.solvers._core.monitor import Monitor
from bmrm.solvers._core.outer import UNTRUE, Outer
from bmrm.solvers._core.points import Point
from bmrm.solvers._core.rowwise import ProfiledLoss
from bmrm.solvers._core.working_set_newton import AIM, FINISH, MOST_AIM

COLUMNS_NEEDED = "coordinate_descent needs the columns of the data in one process"
GROWTH, FULL = 2, 0.75
"""Columns of a working set, in multiples of those of the blocks in use; twice as many where the last one had more than
this share of its columns in use. Chosen with the next two on the tuning half of `benchmarks/groups.py`:
against 500 columns at first and four times those in use, least squares on 20,000 x 300 takes half the time; with nearly
all of 2,000 columns in use, a third more."""
LEAST, SHARE = 50, 50
"""A first working set has at most this part of all columns, but so many: at w = 0 little is known of those in use."""
FINER = 0.2
"""Factor of the distance from optimality up to which models are solved, whenever one that was solved as far as the
tolerance seemed to ask has not met it. Chosen without a sweep."""
FIRST = 0.1
"""Distance from optimality up to which the first Gram matrix of a quadratic is solved, over the tolerance times that of
w = 0, where no gap is known yet: one step then often is enough on tall data. Chosen without a sweep."""
CHEAPER = 0.1
"""Factor of the share of a decrease that a model of a loss that is not quadratic may be left with where its sweeps,
by a Gram matrix, do not read the rows. Chosen without a sweep."""


class BlockRun(Outer):
    """Models by columns, minimised block by block; the outer iterations are those of one coordinate at a time.

    Models are minimised for kinks that are smaller by a share of the tolerance, so that slopes come out feasible for
    Omega itself (`working_set_newton.Run`).

    Parameters
    ----------
    run : the bookkeeping.
    penalty : Omega.
    first_columns, sweeps : of the solver.
    """

    rough = 0.3

    def __init__(self, run: Monitor, penalty: BlockPenalty, first_columns: int, sweeps: int) -> None:
        offered = ability(run.risk, QuadraticModel)
        if ability(run.risk, Scored) is not None:  # or the message is the one below
            super().__init__("coordinate_descent", run)
        if offered is None:
            raise IncompatibleError(f"{COLUMNS_NEEDED}; use proximal_gradient or bundle")
        self.penalty, self.columns = penalty, offered
        self.first_columns = min(first_columns, max(LEAST, penalty.l1.size // SHARE))
        self.sweeps = sweeps
        self.zeros: SafeBlocks = SafeBlocks(run, self.rows, penalty)
        self.covariance = Covariance(run.meter, self.rows, ability(run.risk, ProblemSize), afresh=True)
        self.inside: Blocks = np.empty(0, np.int64)
        """The last working set."""
        self.model: BlockModel | None = None
        """Of it, with updates of the residual; as large as the data."""
        self.gram: tuple[GramModel, Blocks, GramSweeps] | None = None
        """The last Gram matrix, and its blocks."""
        self.by_residual = False
        """Whether the last step was by updates of the residual."""
        self.finer = 1.0
        """How much more accurately than the tolerance seems to ask models are solved, see `FINER`."""
        self.steepest = 0.0
        """The largest distance from optimality so far, where weights are free."""
        self.quadratic = self.rows.phi.facts.quadratic
        self.sizes = np.diff(penalty.starts)
        self._owner = np.repeat(np.arange(penalty.blocks), self.sizes)
        kinks = penalty.l2 == 0.0
        self.loose = kinks & (penalty.l1 > 0.0)
        """Coordinates with an |w| and no curvature."""
        self.groups = (penalty.strengths > 0.0) & kinks[
            penalty.coordinates[penalty.starts[:-1].clip(max=kinks.size - 1)]
        ]
        """Blocks with a norm and no curvature."""

    def details(self) -> dict[str, Any]:
        """Also how often a Gram matrix was formed."""
        return {**super().details(), "grams": self.covariance.grams}

    def rejected(self) -> None:
        """The next model is solved roughly again. A Gram matrix of a quadratic promises too much by rounding alone."""
        self.share = self.rough
        if self.quadratic and not self.by_residual:
            self.covariance.trusted = False

    def step_from(self, at: Point, profiled: ProfiledLoss) -> tuple[Vector, ProfiledLoss] | None:
        """As of `Outer`."""
        self.zeros.update(self.certificate)
        aim = self._aimed(at.w)
        away, used = np.empty(aim.blocks), np.empty(aim.blocks, np.bool_)
        with np.errstate(over="ignore", invalid="ignore"):
            survey(at.w, -at.a, tuple(aim), away, used)
            after, step = self._proposed(at, aim, away, used)
        return self.moved(at, profiled, Omega(aim), after, step)

    def _flat(self, at: Point) -> bool:
        """Where weights are free, a bound is looked for as the distances from optimality shrink."""
        if not self.run.free:
            return False
        away, used = np.empty(self.penalty.blocks), np.empty(self.penalty.blocks, np.bool_)
        with np.errstate(over="ignore", invalid="ignore"):
            survey(at.w, -at.a, tuple(self.penalty), away, used)
            slope, left = norm_of(at.a), norm_of(away)
        self.steepest = max(self.steepest, left)
        return self.run.flat(left, slope, self.steepest)

    def _aimed(self, w: Vector) -> BlockPenalty:
        """Smaller kinks near w, where there is no curvature: slopes there must be feasible."""
        penalty, run = self.penalty, self.run
        size = float(penalty.l1[self.loose] @ np.abs(w[self.loose]))
        lengths = np.sqrt(np.bincount(self._owner, w[penalty.coordinates] ** 2, penalty.blocks)[self.groups])
        size += float(penalty.strengths[self.groups] @ lengths)
        if not 0.0 < size < math.inf:
            return penalty
        less = 1.0 - min(MOST_AIM, AIM * run.goal * abs(run.objective) / size)
        l1, strengths = penalty.l1.copy(), penalty.strengths.copy()
        l1[self.loose] *= less
        strengths[self.groups] *= less
        return penalty._replace(l1=l1, strengths=strengths)

    def _goal(self, at: Point, aim: BlockPenalty) -> float:
        """A distance from optimality below which nothing is gained: of the gap, and of what feasibility needs."""
        run, size = self.run, float(np.abs(at.w).sum())
        scale = float(np.abs(at.a).max(initial=0.0))
        goal = run.goal * abs(run.objective) / size if size > 0.0 else scale
        easier = np.concatenate(
            [(self.penalty.l1 - aim.l1)[self.loose], (self.penalty.strengths - aim.strengths)[self.groups]]
        )
        if easier.size and easier.max() > 0.0:
            goal = min(goal, float(easier[easier > 0.0].min()))
        return max(FINISH * self.finer * min(goal, scale), 0.1 * ROUNDING * scale)

    def _proposed(self, at: Point, aim: BlockPenalty, away: Vector, used: Marks) -> tuple[Vector, Scores]:
        if not self.by_residual:
            self.covariance.look_back(float(away[self.inside].max(initial=0.0)))
        curvature, kept = self.covariance.curvature_at(at.f, self.damping)
        count = int(self.sizes[used].sum())
        full = count > FULL * self.sizes[self.inside].sum() > 0
        room = max(self.first_columns, GROWTH * (1 + full) * count)
        blocks = chosen_blocks(away, used, self.sizes, room, self.zeros.found)
        W, _ = part_of(aim, blocks)
        gram = self.covariance.model(W, curvature, kept)
        goal = self._goal(at, aim)
        if gram is not None:
            return self._by_gram(gram, blocks, at, aim, away, goal)
        return self._by_residual(blocks, kept, at, aim, away, goal)

    def _by_gram(
        self, gram: GramModel, blocks: Blocks, at: Point, aim: BlockPenalty, away: Vector, goal: float
    ) -> tuple[Vector, Scores]:
        """Of a quadratic the model is the problem on these blocks: it is solved as accurately as the tolerance asks."""
        share = 0.0 if self.quadratic else CHEAPER * self.judged(away, self.inside)
        self.model, self.by_residual = None, False
        if self.gram is None or self.gram[0] is not gram:
            self.gram = gram, blocks, GramSweeps(gram.H, part_of(aim, blocks)[1], self.run.budget.check)
        _, self.inside, sweeps = self.gram
        self.covariance.worst = float(away[self.inside].max(initial=0.0))
        W, part = part_of(aim, self.inside)
        after = at.w.copy()
        if self.quadratic and not at.w.any():  # nothing is known of the gap yet
            goal = min(goal, FIRST * self.run.goal * float(away.max(initial=0.0)))
        with self.run.master():
            after[W], self.left = sweeps.minimise(at.a[W], at.w[W], part, goal, share, self.sweeps)
        self._refine(goal)
        step = self.rows.map.matvec(after - at.w)
        constant = gram.constant(after - at.w)
        return after, step + self.rows.ones * constant if self.rows.free else step

    def _by_residual(
        self, blocks: Blocks, kept: bool, at: Point, aim: BlockPenalty, away: Vector, goal: float
    ) -> tuple[Vector, Scores]:
        """The model may be solved roughly: the next one, around a better point, will do the rest."""
        self.gram = None
        if self.model is not None and away[self.inside].max(initial=0.0) > UNTRUE * self.left:
            self.left = max(self.left, self.model.distance())
        share, (W, part) = self.judged(away, self.inside), part_of(aim, blocks)
        if self.model is None or not (kept and np.array_equal(blocks, self.inside)):
            curvature = self.covariance.curvature
            assert curvature is not None
            self.model = None  # before another one is made
            self.model = self.columns.model(W, curvature, self.rows.free).by_blocks(part)
        after = at.w.copy()
        with self.run.master():
            after[W], self.left = self.model.minimise(at.a[W], at.w[W], part, goal, share, self.sweeps)
        self.inside, self.by_residual = blocks, True
        self._refine(goal)
        return after, self.model.scores

    def _refine(self, goal: float) -> None:
        """A model solved up to `goal` has not met the tolerance: the next one is solved further."""
        if self.left <= goal:
            self.finer *= FINER
