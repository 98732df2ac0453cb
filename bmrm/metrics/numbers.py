"""Measures of predicted numbers, means and quantiles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.metrics.core import AMOUNT, SKILL, Number, ScoredRows, measure
from bmrm.registry import Range

_NUMBERS = ("regression", "multivariate")
_TAU = Number("tau", Range(above=0.0, below=1.0, doc="the quantile or expectile"), 0.5)
_POWER = Number("power", Range(doc="power of the variance's mean"), required=True, gap=(0.0, 1.0))


@measure(*_NUMBERS, source="scikit-learn: r2_score", of="predictions", within=SKILL)
def r2(s: ScoredRows) -> float | None:
    """1 - squared error / squared deviation from the mean; mean over outputs; not defined for fewer than two rows."""
    if len(s.present.y) < 2:
        return None
    return _skill(s, s.y - s.predicted)


@measure(*_NUMBERS, source="scikit-learn: explained_variance_score", of="predictions", within=SKILL)
def explained_variance(s: ScoredRows) -> float | None:
    """1 - variance of y - prediction / variance of y; mean over outputs; not defined for fewer than two rows."""
    if len(s.present.y) < 2:
        return None
    error = s.y - s.predicted
    return _skill(s, error - np.average(error, axis=0, weights=s.weights))


def _skill(s: ScoredRows, error: NDArray[np.float64]) -> float:
    """1 - mean square of the error / variance of y, mean over outputs; of a constant y 1 without an error, else 0."""
    left = np.average(error**2, axis=0, weights=s.weights)
    all_ = np.average((s.y - np.average(s.y, axis=0, weights=s.weights)) ** 2, axis=0, weights=s.weights)
    flat = np.where(left > 0.0, 1.0, 0.0)
    return float(np.mean(1.0 - np.divide(left, all_, out=flat, where=all_ > 0.0)))


def _over_outputs(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of each row."""
    return values if values.ndim == 1 else values.mean(axis=1)


@measure(*_NUMBERS, "ordinal", source="scikit-learn: mean_absolute_error", of="predictions", within=AMOUNT)
def mae(s: ScoredRows) -> float:
    """Mean of |y - prediction|, of grades in steps of them."""
    return s.mean(_over_outputs(np.abs(s.y - s.predicted)))


@measure("regression", source="scikit-learn: median_absolute_error", of="predictions", within=AMOUNT)
def median_absolute_error(s: ScoredRows) -> float:
    """Median of |y - prediction|, by weight."""
    from sklearn import metrics as sk

    return float(sk.median_absolute_error(s.y, s.predicted, sample_weight=s.weights))


@measure("regression", source="scikit-learn: max_error", of="predictions", within=AMOUNT)
def max_error(s: ScoredRows) -> float:
    """Largest |y - prediction| of rows of weight above 0."""
    return float(np.abs(s.present.y - s.present.predicted).max())


@measure(*_NUMBERS, "ordinal", source="scikit-learn: mean_squared_error", of="predictions", within=AMOUNT)
def mse(s: ScoredRows) -> float:
    """Mean of (y - prediction)^2; mean over outputs."""
    return s.mean(_over_outputs((s.y - s.predicted) ** 2))


@measure(*_NUMBERS, "ordinal", source="root of scikit-learn's mean_squared_error", of="predictions", within=AMOUNT)
def rmse(s: ScoredRows) -> float:
    """Root of the mean of (y - prediction)^2."""
    return float(np.sqrt(s.mean(_over_outputs((s.y - s.predicted) ** 2))))


@measure("regression", source="Newey & Powell 1987", of="predictions", number=_TAU, within=AMOUNT)
def asymmetric_mse(s: ScoredRows, tau: float) -> float:
    """Mean of |tau - [prediction > y]| (y - prediction)^2; without a number at the loss's `tau`, else at 1/2."""
    sides = np.where(s.predicted > s.y, 1.0 - float(tau), float(tau))
    return s.mean(sides * (s.y - s.predicted) ** 2)


@measure("regression", source="scikit-learn: mean_pinball_loss", of="predictions", number=_TAU, within=AMOUNT)
def pinball(s: ScoredRows, tau: float) -> float:
    """Mean of max(tau (y - q), (tau - 1) (y - q)), q predicted; without a number at the loss's `tau`, else at 1/2."""
    over = s.y - s.predicted
    return s.mean(np.maximum(float(tau) * over, (float(tau) - 1.0) * over))


@measure("regression", source="custom of quantile regression", of="predictions", wanted="none")
def coverage(s: ScoredRows) -> float:
    """Share of rows at or below their prediction: near `tau` for a good quantile model."""
    return s.mean(s.y <= s.predicted)


@measure("novelty", source="Schoelkopf et al. 2001", of="predictions", wanted="none")
def novel_share(s: ScoredRows) -> float:
    """Share of rows predicted novel."""
    return s.mean(s.predicted < 0.0)


def _deviates(s: ScoredRows, power: float) -> ScoredRows | None:
    """The rows, all means above 0 where exp has come to 0 too; None where targets or means have no deviance."""
    s = s.present
    least = float(s.y.min())
    if (power >= 1.0 and least < 0.0) or (power >= 2.0 and least <= 0.0) or (power != 0.0 and s.predicted.min() < 0.0):
        return None
    means: NDArray[np.float64] = np.maximum(s.predicted, np.finfo(np.float64).tiny) if power != 0.0 else s.predicted
    return ScoredRows(s.y, s.scores, means, s.weights, 0, {})


def _deviance(s: ScoredRows, power: float) -> float | None:
    """Mean unit deviance."""
    fit = _deviates(s, power)
    return None if fit is None else _mean_deviance(fit, fit.predicted, power)


def _mean_deviance(s: ScoredRows, mean: NDArray[np.float64], power: float) -> float:
    """Of the targets from these means (Jorgensen 1987)."""
    y = s.y
    with np.errstate(over="ignore", invalid="ignore"):
        if power == 0.0:
            return s.mean((y - mean) ** 2)
        if power == 1.0:
            return s.mean(2.0 * (y * np.log(np.where(y > 0.0, y / mean, 1.0)) - y + mean))
        if power == 2.0:
            return s.mean(2.0 * (np.log(mean / y) + y / mean - 1.0))
        a, b = 1.0 - power, 2.0 - power
        own = np.maximum(y, 0.0) ** b if power < 0.0 else y**b
        return s.mean(2.0 * (own / (a * b) - y * mean**a / a + mean**b / b))


@measure("regression", source="scikit-learn: mean_poisson_deviance", of="predictions", within=AMOUNT)
def poisson_deviance(s: ScoredRows) -> float | None:
    """Mean of 2 (y log(y / mean) - y + mean); not defined where a y or predicted mean is below 0."""
    return _deviance(s, 1.0)


@measure("regression", source="scikit-learn: mean_gamma_deviance", of="predictions", within=AMOUNT)
def gamma_deviance(s: ScoredRows) -> float | None:
    """Mean of 2 (log(mean / y) + y / mean - 1); not defined where a y is 0 or below, or a predicted mean below 0."""
    return _deviance(s, 2.0)


@measure("regression", source="scikit-learn: mean_tweedie_deviance", of="predictions", number=_POWER, within=AMOUNT)
def tweedie_deviance(s: ScoredRows, power: float) -> float | None:
    """Mean of 2 (y^(2-p) / ((1-p)(2-p)) - y mean^(1-p) / (1-p) + mean^(2-p) / (2-p)), p the power.

    Its limits at p = 1 and 2; without a number at the loss's `power`. Not defined where y or a predicted mean is
    outside the domain.
    """
    return _deviance(s, float(power))


def _explained(s: ScoredRows, power: float) -> float | None:
    """1 - deviance / deviance of the constant mean; not defined for fewer than two rows."""
    fit = _deviates(s, power)
    if fit is None or len(fit.y) < 2:
        return None
    constant = fit.mean(fit.y)
    if power != 0.0 and constant <= 0.0:
        return None
    left, all_ = (_mean_deviance(fit, mean, power) for mean in (fit.predicted, np.full(len(fit.y), constant)))
    return 1.0 - left / all_ if all_ else None


@measure("regression", source="scikit-learn: d2_tweedie_score, power 1", of="predictions", within=SKILL)
def d2_poisson(s: ScoredRows) -> float | None:
    """Share of the Poisson deviance explained: 1 is perfect, 0 no better than the mean."""
    return _explained(s, 1.0)


@measure("regression", source="scikit-learn: d2_tweedie_score, power 2", of="predictions", within=SKILL)
def d2_gamma(s: ScoredRows) -> float | None:
    """Share of the gamma deviance explained: 1 is perfect, 0 no better than the mean."""
    return _explained(s, 2.0)


@measure("regression", source="scikit-learn: d2_tweedie_score", of="predictions", number=_POWER, within=SKILL)
def d2_tweedie(s: ScoredRows, power: float) -> float | None:
    """Share of the Tweedie deviance explained: 1 is perfect, 0 no better than the mean; the power as there."""
    return _explained(s, float(power))
