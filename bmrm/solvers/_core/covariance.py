"""When a quadratic is worth a Gram matrix of the columns of its working set.

Friedman, Hastie & Tibshirani 2010 (glmnet), section 2.2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import Scores
from bmrm.problem.abilities import ProblemSize
from bmrm.problem.meter import Meter
from bmrm.solvers._core.gram_model import GramModel
from bmrm.solvers._core.rowwise import RowwiseRisk

Columns = NDArray[np.int64]

PRODUCTS = 3.0
"""Products of two numbers in a Gram matrix that take the time of one entry in a sweep: measured, 2.6 to 3.3 for dense
data, 2.1 to 2.4 for sparse data with many entries in a row."""
AT_ONCE = 40.0
"""Number of sweeps over dense columns from which copying them, in the time of ten sweeps, pays: measured."""
AFRESH = 15.0
"""Number of sweeps over dense columns whose time a Gram matrix may take that serves one model, the next one having
another curvature: copies of these columns, and products of those of a block, are made for every one, too. Chosen
without a sweep; `benchmarks/groups.py` judges it (logistic)."""
SPOILT = 0.2
"""Share of the largest violation that is left after a step only where a Gram matrix has become inaccurate by
rounding."""


class Covariance:
    """Covariance updates (Friedman, Hastie & Tibshirani 2010, section 2.2), and when they are worth a Gram matrix.

    With r = A d, a step of w_k changes r by a column: two products with the rows. With H = A' s A it changes the
    gradients H d by a row of H: one with the features. That pays where features are fewer than rows, and for a
    quadratic, whose H never changes. With v entries in a row of the working set, H costs as much as (v + 1) / 6 sweeps
    with updates of the residual. It is formed at once where these are up to `AT_ONCE`; else as soon as the run has
    taken as many passes, so that it takes about twice as long at most as with the better of both.

    Parameters
    ----------
    meter : of the run.
    rows : the data and the loss.
    size : of the data; None where unknown: then no Gram matrix is formed.
    afresh : whether one is formed for every model of a loss that is not quadratic, too, where it takes fewer sweeps
        than the copies of the columns that it saves, `AFRESH`.

    Attributes
    ----------
    grams : Gram matrices formed.
    trusted : whether they have given true models so far.
    worst : the largest violation before the last step by one, among its columns.
    curvature : of the last model; None before the first.
    """

    def __init__(self, meter: Meter, rows: RowwiseRisk, size: ProblemSize | None, afresh: bool = False) -> None:
        self.grams, self.trusted, self.worst = 0, True, np.inf
        self.curvature: Scores | None = None
        self._meter, self._rows, self._before = meter, rows, meter.reading
        self._quadratic = rows.phi.facts.quadratic
        self._size = size if self._quadratic or afresh else None
        self._model: GramModel | None = None

    def look_back(self, left: float) -> None:
        """Trust them no more if the last step was by one, and so large a violation is left among its columns."""
        if self._quadratic and left > SPOILT * self.worst:
            self.trusted = False

    def curvature_at(self, f: Scores, damping: float) -> tuple[Scores, bool]:
        """Of the next model, and whether it is that of the last one."""
        before, self.curvature = self.curvature, self._rows.curvature(f, damping)
        kept = before is not None and not self._rows.phi.total((self.curvature - before) ** 2)[0] > 0.0
        return self.curvature, kept

    def model(self, W: Columns, curvature: Scores, kept: bool) -> GramModel | None:
        """Of the columns `W` or more; the last one where it has them and `kept`, the curvature, too."""
        model = self._model
        if not self.trusted:
            return None
        if model is not None and kept and np.isin(W, model.columns, assume_unique=True).all():
            return model
        self._model = None
        if self._pays(W.size):
            self._model, self.grams = GramModel(self._rows, curvature, W), self.grams + 1
            self._before = self._meter.reading
        return self._model

    def _pays(self, count: int) -> bool:
        size = self._size
        if size is None or not size.rows:
            return False
        share = count / self._rows.dim
        entries = share * size.entries
        sweeps = (entries / size.rows + 1.0) / (2.0 * PRODUCTS)
        if not self._quadratic:
            return count**2 <= entries and sweeps <= AFRESH
        taken = self._meter.reading - self._before
        return count**2 <= entries and (sweeps <= AT_ONCE or taken >= 0.5 * share * sweeps)
