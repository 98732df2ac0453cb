"""Least squares for several numbers per row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.losses import register
from bmrm.losses._core import domain
from bmrm.losses._core.prepared import Array, PreparedRows
from bmrm.losses.base import Labels, RowLoss
from bmrm.problem import InputError, Summary, Targets
from bmrm.registry import parameter

Square = tuple[tuple[float, ...], ...]
NEGLIGIBLE = 1e-12
"""Negative eigenvalues down to this share of the largest are rounding."""


@register("multivariate_least_squares", task="multivariate")
@dataclass(frozen=True)
class MultivariateLeastSquares(RowLoss):
    """1/2 (f - y)' M (f - y): least squares for a vector of targets, their errors weighed against one another.

    Domain: the same number of finite targets in every row. `M` is symmetric and positive semi-definite, a row per
    target; None is the identity, the sum of `least_squares` over the targets. The inverse of the noise's covariance
    makes it a negative log likelihood.
    """

    M: Square | None = parameter(  # noqa: RUF009
        None,
        doc="symmetric positive semi-definite matrix, a row per target; or a file of numbers",
        example=((2.0, -1.0, 0.0), (-1.0, 2.0, 0.5), (0.0, 0.5, 1.0)),
    )

    task: ClassVar[str] = "multivariate"
    formula = "1/2 (f - y)' M (f - y)"
    source = "Teo, Le, Smola & Vishwanathan 2007, table 2"
    smooth = True
    quadratic = True
    metrics = ("r2", "mse", "mae")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.M is None:
            return
        try:
            table = np.array(self.M, np.float64)
        except (OverflowError, TypeError, ValueError) as error:
            raise InputError(f"{self.title}: M is no matrix of numbers, expected a row per target") from error
        if table.ndim != 2 or table.shape[0] != table.shape[1] or not table.size:
            raise InputError(f"{self.title}: M has shape {table.shape}, expected (targets, targets)")
        if not np.all(np.isfinite(table)) or np.any(np.abs(table - table.T) > NEGLIGIBLE * np.abs(table).max()):
            raise InputError(f"{self.title}: M must be finite and symmetric")
        values = np.linalg.eigvalsh(table)
        if values[0] < -NEGLIGIBLE * max(values[-1], -values[0]):
            raise InputError(
                f"{self.title}: M has the eigenvalue {values[0]:g}, expected a positive semi-definite matrix"
            )
        # Lists come from YAML; tuples make the loss hashable and comparable.
        object.__setattr__(self, "M", tuple(tuple(row) for row in table.tolist()))

    def summarise(self, targets: Targets) -> Summary:
        """Number of rows, their weight, and the targets per row."""
        summary = domain.summary_of_rows(targets, self.title)
        if not targets.rows:
            return summary
        return Summary(summary.rows, summary.weight, outputs=domain.vectors(targets, self.title).shape[1])

    def prepare(self, targets: Targets, summary: Summary) -> PreparedRows:
        """Bind to some rows; InputError if a target is not a finite number, or their number is not that of M."""
        outputs = summary.outputs
        if self.M is not None and summary.rows and len(self.M) != outputs:
            raise InputError(f"{self.title}: M is for {len(self.M)} targets, the data have {outputs} per row")
        y = domain.vectors(targets, self.title) if targets.rows else np.zeros((0, outputs))
        if y.shape[1] != outputs:
            raise InputError(f"{self.title}: {y.shape[1]} targets per row, expected {outputs}")
        return self._prepared(targets, y[:, 0].copy() if outputs == 1 else y, outputs, summary)

    def value(self, f: Array, y: Array) -> Array:
        """The loss of each row."""
        miss = _wide(f - y)
        with np.errstate(over="ignore", invalid="ignore"):
            loss: Array = 0.5 * np.einsum("ik,ik->i", self._times(miss), miss)
        return np.where(np.isnan(loss), np.inf, np.maximum(loss, 0.0))  # nan: infinities of both signs met

    def slope(self, f: Array, y: Array) -> Array:
        """Its slope, M (f - y)."""
        return self._times(_wide(f - y)).reshape(f.shape)

    def cancelled(self, f: Array, y: Array) -> Array | float:
        """1/2 |f - y|' |M| |f - y|."""
        miss = np.abs(_wide(f - y))
        sizes = miss if self.M is None else miss @ np.abs(_matrix(self.M))
        total: Array = 0.5 * np.einsum("ik,ik->i", sizes, miss)
        return total

    def hessian_product(self, f: Array, y: Array, step: Array) -> Array:
        """M step, for each row."""
        return self._times(_wide(step)).reshape(f.shape)

    def hessian_total(self, f: Array, weights: Array) -> Array:
        """M times the sum of the weights."""
        outputs = _wide(f).shape[1]
        return float(weights.sum()) * (np.eye(outputs) if self.M is None else _matrix(self.M))

    def predict(self, f: Array, labels: Labels) -> NDArray[Any]:
        """The scores themselves, (rows, targets)."""
        return f

    def _times(self, rows: Array) -> Array:
        product: Array = rows.copy() if self.M is None else rows @ _matrix(self.M)
        return product


def _wide(rows: Array) -> Array:
    """(rows,) as (rows, 1)."""
    return rows[:, None] if rows.ndim == 1 else rows


def _matrix(table: Sequence[Sequence[float]]) -> Array:
    """The symmetric part, so that the slope is exactly the derivative."""
    matrix = np.array(table, np.float64)
    symmetric: Array = 0.5 * (matrix + matrix.T)
    return symmetric
