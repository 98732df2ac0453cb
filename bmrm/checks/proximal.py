"""The laws of the proximal map of a loss: f = prox(z) minimises step loss(f) + 1/2 (f - z)^2."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from bmrm.checks.cases import Case
from bmrm.checks.convex import UNIT, Array
from bmrm.checks.laws import BrokenLawError, Laws, NotOfferedError, Violation, shown
from bmrm.losses.base import RowLoss
from bmrm.problem import lacking, provides
from bmrm.problem.loss import HasRowProx

STEPS = (1e-12, 1e-3, 0.3, 1.0, 7.0, 1e3, 1e12)
ROUNDINGS = 500.0
"""Largest error of a proximal point, in units of roundoff of the magnitudes: that of a converged iteration."""

PROX_LAWS: Laws[Case] = Laws()
law = PROX_LAWS.law


def scores(case: Case) -> list[Array]:
    """Random ones, adversarial ones, and far ones of both signs."""
    return [*case.all_scores(case.seed + 1), *(30.0 * case.generic_scores(case.seed + k) for k in (3, 4))]


def mapped(case: Case, step: Any, z: Array) -> tuple[Array, Array, Any]:
    """f, its derivative in z, and the targets; BrokenLawError for wrong shapes and points that are not finite."""
    if any(lacking(case.loss, ("prox",))):
        raise NotOfferedError("the loss has no `prox`")
    y = case.whole.y
    f, change = (np.asarray(part) for part in case.loss.prox(z.copy(), step, y))
    if f.shape != z.shape or change.shape != z.shape:
        text = f"it gave shapes {f.shape} and {change.shape} for z of shape {z.shape}, expected that"
        raise BrokenLawError(Violation("shapes", "prox", np.inf, text))
    if not np.isfinite(f).all():
        row = int(np.argmin(np.isfinite(f)))
        raise BrokenLawError(Violation("finite", _where(case, z, step, row), np.inf, f"prox is {f[row]}"))
    return f, change, y


def _where(case: Case, z: Array, step: Any, row: int) -> str:
    step = np.broadcast_to(step, z.shape[:1])[row]
    target = case.target_text(np.array([row]))
    return f"z = {shown(z[row])}, step = {step:g}, y = {target} (row {row})"


def _worst(case: Case, law: str, z: Array, step: Any, excess: Array, text: str, *found: Array) -> Iterator[Violation]:
    """A violation at the row of the largest excess above 0; `text` is filled with that row's numbers of `found`."""
    if excess.size and float(np.max(excess)) > 0.0:
        row = int(np.argmax(excess))
        numbers = [shown(one[row]) for one in found]
        yield Violation(law, _where(case, z, step, row), float(excess[row]), text.format(*numbers), (z,))


@law("prox")
def nothing_is_better(case: Case) -> Iterator[Violation]:
    """By strong convexity step (loss(g) - loss(f)) >= (z - f) (g - f) for every g."""
    rng = np.random.default_rng(0)
    for step in STEPS:
        for z in scores(case):
            f, _, y = mapped(case, step, z)
            loss = case.loss.value(f, y)
            if not np.isfinite(loss).all():
                row = int(np.argmin(np.isfinite(loss)))
                yield Violation(
                    "prox", _where(case, z, step, row), np.inf, f"the loss at f = {f[row]:.8g} is {loss[row]}"
                )
                return
            for size in (1e-3, 1.0, 100.0):
                g = f + size * rng.normal(size=f.shape)
                other = case.loss.value(g, y)
                rounding = step * (1.0 + np.abs(loss)) + (np.abs(z) + np.abs(f)) * np.abs(g - f)
                excess = (z - f) * (g - f) - step * (other - loss) - 2.0 * ROUNDINGS * UNIT * rounding
                text = "f = {} is not the minimiser of step loss(f) + (f - z)^2 / 2: g = {} is better"
                yield from _worst(case, "prox", z, step, excess, text, f, g)


@law("derivative of prox")
def derivative(case: Case) -> Iterator[Violation]:
    """What the points change by, away from kinks; between 0 and 1; 0 where many z lead to one f."""
    for step in (1e-3, 0.3, 1.0, 7.0, 1e3):
        for z in scores(case):
            f, at, _ = mapped(case, step, z)
            outside = np.maximum(-at, at - 1.0)
            yield from _worst(case, "derivative of prox", z, step, outside, "it is {}, expected 0 to 1", at)
            low, high = (mapped(case, step, z + t)[0] for t in (-1e-3, 1e-3))
            stuck = (np.abs(low - f) <= 1e-12) & (np.abs(high - f) <= 1e-12)
            text = "it is {}, expected 0: the points for all z nearby are the same"
            yield from _worst(case, "derivative of prox", z, step, np.where(stuck, at, 0.0), text, at)
        for seed, size in ((5, 1.0), (6, 0.1), (7, 30.0)):
            z, h = size * case.generic_scores(case.seed + seed), 1e-6
            (low, at_low, _), (high, at_high, _) = (mapped(case, step, z + t) for t in (-h, h))
            _, at, _ = mapped(case, step, z)
            difference = (high - low) / (2.0 * h)
            rounding = 64.0 * UNIT * (np.abs(z) + np.abs(low)) / h + 1e-6 * (1.0 + np.abs(difference))
            excess = np.abs(at - difference) - rounding - np.abs(at_high - at_low)
            excess = np.where(np.abs(at_high - at_low) <= 1e-3, excess, 0.0)  # no kink between
            yield from _worst(
                case, "derivative of prox", z, step, excess, "it is {}, differences say {}", at, difference
            )


@law("prox contracts")
def contracts(case: Case) -> Iterator[Violation]:
    """Firmly non-expansive: (f - g)^2 <= (f - g) (z - x); and with step 0 nothing moves."""
    for step in STEPS:
        for z, x in itertools.pairwise(scores(case)):
            f, g = mapped(case, step, z)[0], mapped(case, step, x)[0]
            rounding = 100.0 * UNIT * (np.abs(f) + np.abs(g) + np.abs(z) + np.abs(x))
            excess = (f - g) ** 2 - (f - g) * (z - x) - rounding * (rounding + np.abs(z - x))
            text = "f = {} and that of z = {}, {}, are further apart than they may be"
            yield from _worst(case, "prox contracts", z, step, excess, text, f, x, g)
    for z in scores(case):
        f, at, _ = mapped(case, 0.0, z)
        yield from _worst(case, "prox contracts", z, 0.0, np.abs(f - z), "with step 0 it moved to {}", f)
        yield from _worst(case, "prox contracts", z, 0.0, np.abs(at - 1.0), "with step 0 its derivative is {}", at)
        steps = np.where(np.arange(case.rows) % 2 == 0, 0.0, 0.5)
        mixed = np.where(steps == 0.0, np.abs(mapped(case, steps, z)[0] - z), 0.0)
        yield from _worst(case, "prox contracts", z, steps, mixed, "with step 0 beside others it moved")


@law("compiled prox")
def compiled(case: Case) -> Iterator[Violation]:
    """The functions of one row, `prox_row` and `value_row`, against the arrays."""
    loss = case.loss
    rows = (loss.prox_row, loss.value_row) if isinstance(loss, RowLoss) and provides(loss, HasRowProx) else (None, None)
    if rows[0] is None or rows[1] is None:
        raise NotOfferedError("the loss has no `prox_row` with `value_row`")
    arguments = case.whole.arguments
    for step in (0.0, *STEPS):
        for z in scores(case):
            f, at, y = mapped(case, step, z)
            found, change = np.array([rows[0](a, step, b, *arguments) for a, b in zip(z, y, strict=True)]).T
            # Two that are right up to rounding differ by no more than what rounding of z, y and the slope moves.
            slack = np.abs(z) + np.abs(f) + np.abs(y) + step * np.abs(loss.slope(f, y)) * at
            text = "prox_row says {}, prox {}"
            yield from _worst(case, "compiled prox", z, step, np.abs(found - f) - 100.0 * UNIT * slack, text, found, f)
            apart = np.abs(change - at) - 1e-9 * np.abs(at) - 1e-12
            yield from _worst(case, "compiled prox", z, step, apart, "derivatives: " + text, change, at)
            values = np.array([rows[1](a, b, *arguments) for a, b in zip(f, y, strict=True)])
            expected = loss.value(f, y)
            sizes = float(np.max(1.0 + np.abs(f) + np.abs(y)))
            apart = np.abs(values - expected) - 1e-12 * np.abs(expected) - 100.0 * UNIT * sizes
            text = "value_row at the point says {}, value {}"
            yield from _worst(case, "compiled prox", z, step, apart, text, values, expected)
