"""A loss bound to some rows, for losses that are sums over rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.jit import fast_jit, specialised
from bmrm.kernels.products import laplacian
from bmrm.kernels.products.vectors import dot, plain
from bmrm.kernels.rows import envelopes
from bmrm.problem import Hessian, PreparedLoss, Vector
from bmrm.problem.basics import provides
from bmrm.problem.loss import HasRowCurvature, HasTotalHessian

Array = NDArray[np.float64]
Positions = NDArray[np.int64]
"""For each row the position of its label."""
Curve = Callable[[Vector], tuple[Vector, Vector]]
"""t -> (values, derivatives), for a vector of t."""

BLOCK = 16384
"""Scores of a block of rows whose intermediate arrays stay in the cache."""
NO_WEIGHTS = np.empty(0)
"""Stands for weights of 1 in kernels, which take arrays only."""


class PreparedRows(PreparedLoss):
    """Targets of some rows, checked and converted, beside the loss.

    Attributes
    ----------
    loss : gives the formulas and kernels, see `bmrm.losses.base`.
    y : (rows,): -1.0 and 1.0, numbers, or positions of labels (int64).
    weights : (rows,) or None where all are 1.
    scores_per_row : 1, or the number of classes.
    arguments : what the kernels of the loss take after the arrays.
    """

    def __init__(
        self,
        loss: Any,
        y: NDArray[Any],
        weights: Vector | None,
        scores_per_row: int,
        arguments: tuple[Any, ...],
    ) -> None:
        self.loss = loss
        self.y = y
        self.weights = weights
        self.scores_per_row = scores_per_row
        self.arguments = arguments
        self.mass = float(y.shape[0]) if weights is None else float(weights.sum())
        self.infimum = _least(loss.floor(y), weights, self.mass)
        self.smooth = bool(loss.smooth)
        self.piecewise_linear = scores_per_row == 1 and loss.kinks(y[:0]) is not None
        self._kernel_weights = NO_WEIGHTS if weights is None else weights

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.y.shape[0])

    def part(self, start: int, stop: int) -> PreparedRows:
        """The rows [start, stop), as views."""
        return self._of(slice(start, stop))

    def take(self, rows: NDArray[np.int64]) -> PreparedRows:
        """A copy of the chosen rows, repetition allowed."""
        return self._of(rows)

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """The weighted sum of the loss over the rows at scores `f`, and its slope, a new array like `f`."""
        f = plain(f)
        if self.loss.kernel is not None:
            slope = np.empty_like(f)
            return float(self.loss.kernel(f, self.y, self._kernel_weights, slope, *self.arguments)), slope
        values = self.loss.value(f, self.y)
        slope = self.loss.slope(f, self.y)
        if self.weights is None:
            return float(np.sum(values)), np.ascontiguousarray(slope, np.float64)
        return times_present(self.weights, values), weigh(self.weights, slope)

    def along(self, f: Array, step: Array) -> Curve:
        """The function t -> (sum at f + t step, its derivative in t), for a vector of t."""
        f, step = plain(f), plain(step)
        kernel = self.loss.along_kernel
        if kernel is None:
            return along_by_slopes(self.value_and_slope, f, step)

        def curve(ts: Vector) -> tuple[Vector, Vector]:
            ts = np.array(ts, np.float64)
            values, derivatives = np.empty_like(ts), np.empty_like(ts)
            kernel(f, step, self.y, self._kernel_weights, ts, values, derivatives, *self.arguments)
            return values, derivatives

        return curve

    def breakpoints(self, f: Array, step: Array) -> tuple[float, Array]:
        """As of `PreparedLoss`: a row's score passes a kink k at t = (k - f) / step."""
        kinks = self.loss.kinks(self.y)
        edges = np.column_stack((kinks[:, :1] - 1.0, kinks, kinks[:, -1:] + 1.0))
        inside = 0.5 * (edges[:, :-1] + edges[:, 1:])
        slopes = np.column_stack([self.loss.slope(plain(one), self.y) for one in inside.T])
        if self.weights is not None:
            slopes *= self.weights[:, None]
        ahead = np.where(step[:, None] > 0.0, kinks > f[:, None], kinks < f[:, None])
        passed = np.where(step > 0.0, kinks.shape[1] - ahead.sum(axis=1), ahead.sum(axis=1))
        now = np.take_along_axis(slopes, passed[:, None], axis=1)[:, 0]
        ahead &= step[:, None] != 0.0
        jumps = np.abs(step[:, None] * np.diff(slopes, axis=1))[ahead]
        with np.errstate(divide="ignore", invalid="ignore"):
            at = ((kinks - f[:, None]) / step[:, None])[ahead]
        return float(now @ step), np.column_stack((at, jumps))

    def _of(self, rows: Any) -> PreparedRows:
        weights = None if self.weights is None else self.weights[rows]
        return type(self)(self.loss, self.y[rows], weights, self.scores_per_row, self.arguments)


class CurvedRows(PreparedRows):
    """`PreparedRows` of a loss with a second derivative."""

    hessian: Hessian = "product"

    def __init__(self, *bound: Any) -> None:
        super().__init__(*bound)
        self.totals = provides(self.loss, HasTotalHessian)

    def hessian_product(self, f: Array, step: Array) -> Array:
        """The (generalised) second derivative of the weighted sum at `f`, times `step`; a new array like `f`."""
        product: Array = self.loss.hessian_product(f, self.y, step)
        return np.asarray(product, np.float64) if self.weights is None else weigh(self.weights, product)

    def hessian_total(self, f: Array) -> Array:
        """The sum of the rows' second derivatives, weights inside; (K, K)."""
        return np.asarray(self.loss.hessian_total(f, np.ones(self.rows) if self.weights is None else self.weights))


class DiagonalRows(CurvedRows):
    """`CurvedRows` of a loss that knows the diagonal of its second derivative."""

    hessian: Hessian = "diagonal"

    def hessian_diagonal(self, f: Array) -> Array:
        """The (generalised) second derivative of each row's loss in each of its scores, weights inside; like `f`."""
        curvature = np.asarray(self.loss.curvature(f, self.y), np.float64)
        return curvature if self.weights is None else weigh(self.weights, curvature)


class SharedRows(DiagonalRows):
    """`DiagonalRows` of a loss that knows its second derivative by shares, see `ScoreFunction.hessian_shares`."""

    hessian: Hessian = "shares"

    def __init__(self, *bound: Any) -> None:
        super().__init__(*bound)
        self.totals = True

    def hessian_shares(self, f: Array) -> Array:
        """c with diag(c) - c c' / sum(c) in each row, weights inside; like `f`."""
        shares: Array = self.loss.shares(f, self.y)
        return shares if self.weights is None else weigh(self.weights, shares)

    def hessian_total(self, f: Array) -> Array:
        """As of `CurvedRows`."""
        return laplacian.total(self.hessian_shares(f))


class ProximalRows(PreparedRows):
    """`PreparedRows` of a loss of one score with a proximal map."""

    prox = True

    def moreau(self, z: Array, sigma: float) -> tuple[tuple[float, float, float], Array, Array]:
        """Where f minimises loss(f) + sigma/2 ||f - z||^2: sums, slope sigma (z - f), and its derivative in z.

        The sums are those of the loss at f, of slope * f, and of (f - z)^2.
        """
        z = plain(z)
        kernels = envelope_kernels(self.loss)
        if kernels is None:
            return self._envelope(z, sigma)
        slope, curvature = np.empty_like(z), np.empty_like(z)
        given = (z, self.y, self._kernel_weights, sigma, slope, curvature, *self.arguments)
        sums = kernels.envelope(*given)
        if kernels.refined is not None:
            kernels.refined(*given)
        else:
            self._refine(z, sigma, slope, curvature)
        return sums, slope, curvature

    def moreau_along(self, z: Array, step: Array, sigma: float) -> Curve:
        """The function t -> (sum of the envelopes at z + t step, its derivative in t), for a vector of t."""
        z, step = plain(z), plain(step)
        kernels = envelope_kernels(self.loss)

        def curve(ts: Vector) -> tuple[Vector, Vector]:
            ts = np.array(ts, np.float64)
            values, derivatives = np.empty_like(ts), np.empty_like(ts)
            if kernels is not None:
                arguments = (self._kernel_weights, sigma, ts, values, derivatives, *self.arguments)
                kernels.along(z, step, self.y, *arguments)
                return values, derivatives
            for k, t in enumerate(ts):
                (total, _, square), slope, _ = self._envelope(z + t * step, sigma)
                values[k], derivatives[k] = total + 0.5 * sigma * square, dot(slope, step)
            return values, derivatives

        return curve

    def curved_rows(self, z: Array, sigma: float, reach: float) -> Array:
        """Not 0 in rows where `moreau` is curved at some scores within `reach` of `z`; shaped like `z`."""
        wider = sigma / (1.0 + 2.0 * sigma * reach)
        found: Array = self.moreau(z - reach, wider)[2] + self.moreau(z + reach, wider)[2]
        return found

    def _envelope(self, z: Array, sigma: float) -> tuple[tuple[float, float, float], Array, Array]:
        """As `bmrm.kernels.rows.envelopes.envelope`, for losses without compiled functions of one row."""
        f, change = self.loss.prox(z, (1.0 if self.weights is None else self.weights) / sigma, self.y)
        total, rates = self.value_and_slope(f)
        steep, away = self.value_and_slope(z)[1], z - f
        slope = sigma * away
        kinks = (change <= 0.0) & (np.abs(slope) > np.abs(steep))
        within = np.abs(rates - slope) <= sigma * (envelopes.DIGITS * (np.abs(z) + np.abs(f)))
        within |= (change > 0.5) & self.smooth
        slope[kinks] = steep[kinks]
        slope[within] = rates[within]
        curvature = sigma * (1.0 - change)
        self._refine(z, sigma, slope, curvature)
        return (total, dot(slope, f), dot(away, away)), slope, curvature

    def _refine(self, z: Array, sigma: float, slope: Array, curvature: Array) -> None:
        """As `bmrm.kernels.rows.envelopes.refined`, in place."""
        if self.smooth and provides(self.loss, HasRowCurvature):
            few = curvature <= envelopes.STILL * sigma
            own = np.asarray(self.loss.curvature(z - slope / sigma, self.y), np.float64)
            own = own if self.weights is None else weigh(self.weights, own)
            curvature[few] = (own * (1.0 - curvature / sigma))[few]


class DiagonalProximalRows(DiagonalRows, ProximalRows):
    """Both."""


PREPARED: dict[tuple[bool, bool, bool], type[PreparedRows]] = {
    (False, False, False): PreparedRows,
    (False, False, True): ProximalRows,
    (True, False, False): CurvedRows,
    (True, True, False): DiagonalRows,
    (True, True, True): DiagonalProximalRows,
}
"""Classes by whether the loss has Hessian products, second derivatives by rows, and a proximal map."""


Kernel = Callable[..., Any]


class EnvelopeKernels(NamedTuple):
    """Compiled templates of `bmrm.kernels.rows.envelopes`.

    Attributes
    ----------
    settled : of one row.
    envelope, along : of all, and along a step.
    refined : for losses with a compiled curvature, else None.
    """

    settled: Kernel
    envelope: Kernel
    along: Kernel
    refined: Kernel | None


@cache
def _envelopes_of(smooth: bool, prox_row: Kernel, value_slope: Kernel, curvature: Kernel | None) -> EnvelopeKernels:
    template = envelopes.smooth if smooth else envelopes.kinked
    settled = specialised(template, fast_jit, prox_row=prox_row, value_slope=value_slope)
    whole, along = (
        specialised(each, fast_jit, settled=settled) for each in (envelopes.envelope, envelopes.envelope_along)
    )
    refined = None if curvature is None else specialised(envelopes.refined, fast_jit, curvature=curvature)
    return EnvelopeKernels(settled, whole, along, refined)


def envelope_kernels(loss: Any) -> EnvelopeKernels | None:
    """Those of a loss with `prox_row` and `value_slope`; where that has no `value_row`, arrays have taken its place."""
    formula, smooth = type(loss).value_slope, bool(loss.smooth)
    if loss.prox_row is None or loss.value_row is None or formula is None:
        return None
    curvature = getattr(getattr(type(loss), "curvature", None), "compiled", None) if smooth else None
    return _envelopes_of(smooth, loss.prox_row, formula.compiled, curvature)


def _least(floor: Array | float, weights: Vector | None, mass: float) -> float:
    """The weighted sum of infima of rows, a rounding error below it where they differ."""
    if not isinstance(floor, np.ndarray) or floor.ndim == 0:
        return float(floor) * mass if mass else 0.0
    each = np.asarray(floor) if weights is None else weigh(weights, np.asarray(floor))
    return float(each.sum() - 1e-15 * np.abs(each).sum())


def along_by_slopes(value_and_slope: Callable[[Array], tuple[float, Array]], f: Array, step: Array) -> Curve:
    """A curve from nothing but values and slopes; one evaluation and one dot product for each t."""

    def curve(ts: Vector) -> tuple[Vector, Vector]:
        values, derivatives = np.empty(len(ts)), np.empty(len(ts))
        for k, t in enumerate(ts):
            values[k], slope = value_and_slope(f + t * step)
            derivatives[k] = dot(slope, step)
        return values, derivatives

    return curve


def times_present(weights: Vector, values: Array) -> float:
    """sum of weights times values, where weight 0 hides even an infinite value."""
    with np.errstate(over="ignore"):
        return float(np.sum(np.multiply(weights, values, where=weights != 0.0, out=np.zeros_like(weights))))


def weigh(weights: Vector, slope: Array) -> Array:
    """Each row of `slope` times its weight, 0 where the weight is 0."""
    factors = weights if slope.ndim == 1 else weights[:, None]
    with np.errstate(over="ignore"):
        return np.multiply(factors, slope, where=factors != 0.0, out=np.zeros(slope.shape))


def block_rows(f: Array) -> int:
    """How many rows a block of scores like `f`, (rows,) or (rows, K), has at most."""
    width: int = f.shape[1] if f.ndim == 2 else 1
    rows: int = f.shape[0]
    return min(rows, max(1, BLOCK // width))


def blocks(f: Array) -> Iterator[slice]:
    """The rows of each block."""
    size = block_rows(f)
    return (slice(start, min(start + size, f.shape[0])) for start in range(0, f.shape[0], max(1, size)))


def along_by_blocks(kernel: Callable[..., float]) -> Callable[..., None]:
    """The `along_kernel` of a `kernel` for rows: block by block, so that a block is read once for all points."""

    def along(
        f: Array,
        step: Array,
        y: NDArray[Any],
        weights: Vector,
        ts: Vector,
        values: Vector,
        derivatives: Vector,
        *arguments: Any,
    ) -> None:
        values[:] = derivatives[:] = 0.0
        point, slope = np.empty((2, block_rows(f), *f.shape[1:]))
        for rows in blocks(f):
            here, along, targets, masses = f[rows], step[rows], y[rows], weights[rows]
            at, slopes = point[: here.shape[0]], slope[: here.shape[0]]
            for k, t in enumerate(ts):
                np.multiply(along, t, out=at)
                at += here
                values[k] += kernel(at, targets, masses, slopes, *arguments)
                derivatives[k] += dot(slopes, along)

    return along
