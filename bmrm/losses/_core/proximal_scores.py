"""Rows of losses of several scores whose proximal maps are compiled: Moreau envelopes for Newton's method."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from bmrm.kernels.jit import specialised
from bmrm.kernels.products.vectors import plain
from bmrm.kernels.rows import envelopes_many
from bmrm.losses._core.prepared import Array, Curve, PreparedRows
from bmrm.problem import Vector

Kernel = Callable[..., Any]


@cache
def _kernels(prox_scores_row: Kernel, settle_scores_row: Kernel, offset_scores_row: Kernel) -> tuple[Kernel, Kernel]:
    along = specialised(envelopes_many.envelope_along, prox_scores_row=prox_scores_row)
    functions = {"settle_scores_row": settle_scores_row, "offset_scores_row": offset_scores_row}
    return specialised(envelopes_many.envelope, prox_scores_row=prox_scores_row, **functions), along


class ProximalScoresRows(PreparedRows):
    """`PreparedRows` of a loss with `prox_scores_row`, `offset_scores_row` and `settle_scores_row`."""

    prox = True

    def moreau(self, z: Array, sigma: float) -> tuple[tuple[float, float, float], Array, Array]:
        """As of `ProximalRows`: sums, slope, and the table that `MoreauEnvelope.curvature` is for several scores."""
        z = plain(z)
        slope, curvature = np.empty_like(z), np.empty_like(z)
        kernel = self._kernels()[0]
        sums = kernel(z, self.y, self._kernel_weights, sigma, slope, curvature, *self.arguments)
        return sums, slope, curvature

    def moreau_along(self, z: Array, step: Array, sigma: float) -> Curve:
        """As of `ProximalRows`."""
        z, step = plain(z), plain(step)
        kernel = self._kernels()[1]

        def curve(ts: Vector) -> tuple[Vector, Vector]:
            ts = np.array(ts, np.float64)
            values, derivatives = np.empty_like(ts), np.empty_like(ts)
            kernel(z, step, self.y, self._kernel_weights, sigma, ts, values, derivatives, *self.arguments)
            return values, derivatives

        return curve

    def curved_rows(self, z: Array, sigma: float, reach: float) -> Array:
        """As of `ProximalRows`: the true class's lead may grow or shrink by twice the reach."""
        rows, wider, found = np.arange(self.rows), sigma / (1.0 + 2.0 * sigma * reach), np.zeros(z.shape)
        for shift in (-2.0 * reach, 2.0 * reach):
            moved = np.array(z, np.float64)
            moved[rows, self.y] += shift
            found += self.moreau(moved, wider)[2]
        return found

    def _kernels(self) -> tuple[Kernel, Kernel]:
        """The envelope, and the envelope along a step."""
        loss = self.loss
        return _kernels(loss.prox_scores_row, loss.settle_scores_row, loss.offset_scores_row)
