"""Novelty detection: one class, no labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.losses import register
from bmrm.losses._core import domain
from bmrm.losses._core.pieces import linear_margin_prox
from bmrm.losses._core.prepared import Array, PreparedRows
from bmrm.losses.base import Labels, OneScoreLoss, Pair, Scalar, row
from bmrm.problem import Summary, Targets, Vector
from bmrm.registry import parameter


@register("novelty", task="novelty")
@dataclass(frozen=True)
class Novelty(OneScoreLoss):
    """max(0, rho - f): scores of normal rows should reach rho; those that do not are novel.

    Domain: any rows; their targets are ignored. Kink at f = rho, where the slope is 0. `rho` only sets the scale: with
    L2, rho -> c rho and lambda -> lambda / c give weights c w. Schoelkopf et al. learn rho too: their nu is the share
    of rows left below it, here it follows from lambda. The origin must be separable from the data (features >= 0, rows
    of unit norm). Table 1 of the KDD paper (2007) has rho = 1. A free intercept could attain rho alone, so it is
    refused.
    """

    rho: float = parameter(1.0, above=0.0, doc="the score that normal rows should reach", example=0.5)

    task: ClassVar[str] = "novelty"
    formula = "max(0, rho - f)"
    source = "Schoelkopf, Platt, Shawe-Taylor, Smola & Williamson 2001"
    metrics = ("novel_share",)
    shown_target = 1.0
    needs_targets = False
    no_free_intercept = "an intercept of rho alone brings it to 0, whatever the rows"

    @row
    def value_slope(f: Scalar, y: Scalar, rho: Scalar) -> Pair:
        short = rho - f
        return (0.0, 0.0) if short <= 0.0 else (short, -1.0)

    @row
    def prox(z: Scalar, step: Scalar, y: Scalar, rho: Scalar) -> Pair:
        return linear_margin_prox(z, step, 1.0, rho, 1.0)

    def kinks(self, y: Array) -> Array:
        """rho."""
        return np.full((len(y), 1), self.rho)

    def summarise(self, targets: Targets) -> Summary:
        """Number of rows and their weight."""
        return domain.summary_of_rows(targets, self.title)

    def prepare(self, targets: Targets, summary: Summary) -> PreparedRows:
        """Bind to some rows."""
        return self._prepared(targets, np.ones(targets.rows), 1, summary)

    def predict(self, f: Array, labels: Labels) -> NDArray[Any]:
        """-1.0 for novel rows, f < rho, else 1.0; (rows,)."""
        return np.where(f < self.rho, -1.0, 1.0)

    def measured(self, targets: Targets, labels: Labels, part: str) -> Vector:
        """What measures compare predictions with: nothing."""
        return np.zeros(targets.rows)
