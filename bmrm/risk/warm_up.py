"""All that ranks may be asked for, once and on few rows: one process of a node compiles, and the others need not.

What is called follows the methods of `LinearMap`, `ScoreFunction` and `AscentRows`, not the kernels behind them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bmrm.problem import Elastic, Regularizer, ScoreFunction, Scores, provides
from bmrm.problem.abilities import DualBlocks
from bmrm.risk.dual.joint import LocalRows
from bmrm.risk.linear import LinearRisk
from bmrm.risk.linear_map import DataMap
from bmrm.risk.products import Columns, gram_of
from bmrm.risk.score_layout import TailedMap

TINY = 1e-200
"""Size of the weights: at 0 there would be no product with the data."""
LAMBDA = 1.0
"""l2 for the warm-up of dual steps where the regularizer has none."""
SWEEPS = 3
"""Sweeps of the warm-up: the order of the rows is drawn anew after the first."""


def warm_up_map(map: DataMap | TailedMap) -> Scores:
    """Every product with the data; returns scores."""
    f: Scores = map.matvec(np.full(map.dim, TINY))
    map.rmatvec(f)
    if isinstance(map, DataMap):
        ones = np.ones(map.rows)
        map.active(ones)
        if map.scores_per_row == 1:
            map.diagonal(ones)
        map.gram_product(np.zeros(f.shape), np.full(map.dim, TINY))
        map.gram_work(np.ones(f.shape), None)
        for matrix in map.X.tiny():  # a Gram matrix of all features might not fit into memory
            for chosen in (None, np.arange(2)):
                gram_of(matrix, Columns(), False, np.ones(2), chosen)
    return f


def warm_up(risk: LinearRisk, regularizer: Regularizer) -> None:
    """Every question that the ranks of a loss by rows or groups answer with what `risk` is made of."""
    f = warm_up_map(risk.map)
    risk.value_and_subgradient(np.full(risk.dim, TINY))
    risk.problem_size.estimate()
    _warm_up_phi(risk.phi, f)
    steps: Any = risk.ability(DualBlocks)
    if steps is not None and provides(regularizer, Elastic):
        l1, l2 = regularizer.l1, regularizer.l2 or LAMBDA
        for start, near in ((None, None), (f, None), (None, f)):
            _warm_up_rows(steps.make(l1, l2, 0), start, near, steps)


def _warm_up_phi(phi: ScoreFunction, f: Scores) -> None:
    """Every method that the loss has."""
    _, slope = phi.value_and_slope(f)
    phi.product(slope, f)
    phi.magnitude(f)
    phi.along(f, f)(np.zeros(1))
    phi.total(phi.constant(np.zeros(phi.facts.scores_per_row)))
    if phi.facts.piecewise_linear:
        phi.breakpoints(f, f)
    if phi.facts.curved:
        phi.hessian_product(f, f)
    if phi.facts.diagonal:
        phi.hessian_diagonal(f)
    if phi.facts.shared:
        phi.hessian_shares(f)
    if phi.facts.prox:
        phi.moreau(f, 1.0)
        phi.moreau_along(f, f, 1.0)(np.zeros(1))


def _warm_up_rows(rows: LocalRows, start: Scores | None, near: Scores | None, steps: Any) -> None:
    """Every method of the rows of dual steps."""
    shift = np.zeros(steps.scores_per_row)
    rows.begin(start, near, not steps.grouped)
    v = rows.settle(shift)
    for _ in range(SWEEPS):
        v, _ = rows.sweep(v, shift, 0.0)
    rows.draw()
    rows.close(rows.visit(0, 1, v, shift, 0.0, 1.0))
    rows.unshrink()
    rows.totals(shift)
    rows.settle(shift + np.arange(1.0, 1.0 + shift.size))
    rows.offset()
    rows.sizes()
    rows.slope()
