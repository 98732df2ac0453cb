"""Measures of predicted numbers, means and quantiles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk

from bmrm.metrics.core import AMOUNT, SKILL, Number, Scored, measure
from bmrm.registry import Range

_NUMBERS = ("regression", "multivariate")
_TAU = Number("tau", Range(above=0.0, below=1.0, doc="the quantile or expectile"), 0.5)
_POWER = Number("power", Range(doc="power of the variance's mean"), required=True, gap=(0.0, 1.0))


@measure(*_NUMBERS, source="scikit-learn: r2_score", of="predictions", within=SKILL)
def r2(s: Scored) -> float | None:
    """1 - squared error / squared deviation from the mean; mean over outputs; not defined for fewer than two rows."""
    if len(s.present.y) < 2:
        return None
    return float(sk.r2_score(s.y, s.predicted, sample_weight=s.weights))


@measure(*_NUMBERS, source="scikit-learn: explained_variance_score", of="predictions", within=SKILL)
def explained_variance(s: Scored) -> float | None:
    """1 - variance of y - prediction / variance of y; mean over outputs; not defined for fewer than two rows."""
    if len(s.present.y) < 2:
        return None
    return float(sk.explained_variance_score(s.y, s.predicted, sample_weight=s.weights))


@measure(*_NUMBERS, "ordinal", source="scikit-learn: mean_absolute_error", of="predictions", within=AMOUNT)
def mae(s: Scored) -> float:
    """Mean of |y - prediction|, of grades in steps of them."""
    return float(sk.mean_absolute_error(s.y, s.predicted, sample_weight=s.weights))


@measure("regression", source="scikit-learn: median_absolute_error", of="predictions", within=AMOUNT)
def median_absolute_error(s: Scored) -> float:
    """Median of |y - prediction|, by weight."""
    return float(sk.median_absolute_error(s.y, s.predicted, sample_weight=s.weights))


@measure("regression", source="scikit-learn: max_error", of="predictions", within=AMOUNT)
def max_error(s: Scored) -> float:
    """Largest |y - prediction| of rows of weight above 0."""
    return float(sk.max_error(s.present.y, s.present.predicted))


@measure(*_NUMBERS, "ordinal", source="scikit-learn: mean_squared_error", of="predictions", within=AMOUNT)
def mse(s: Scored) -> float:
    """Mean of (y - prediction)^2; mean over outputs."""
    return float(sk.mean_squared_error(s.y, s.predicted, sample_weight=s.weights))


@measure(*_NUMBERS, "ordinal", source="root of scikit-learn's mean_squared_error", of="predictions", within=AMOUNT)
def rmse(s: Scored) -> float:
    """Root of the mean of (y - prediction)^2."""
    return float(np.sqrt(sk.mean_squared_error(s.y, s.predicted, sample_weight=s.weights)))


@measure("regression", source="Newey & Powell 1987", of="predictions", number=_TAU, within=AMOUNT)
def asymmetric_mse(s: Scored, tau: float) -> float:
    """Mean of |tau - [prediction > y]| (y - prediction)^2; without a number at the loss's `tau`, else at 1/2."""
    sides = np.where(s.predicted > s.y, 1.0 - float(tau), float(tau))
    return float(np.average(sides * (s.y - s.predicted) ** 2, weights=s.weights))


@measure("regression", source="scikit-learn: mean_pinball_loss", of="predictions", number=_TAU, within=AMOUNT)
def pinball(s: Scored, tau: float) -> float:
    """Mean of max(tau (y - q), (tau - 1) (y - q)), q predicted; without a number at the loss's `tau`, else at 1/2."""
    return float(sk.mean_pinball_loss(s.y, s.predicted, alpha=float(tau), sample_weight=s.weights))


@measure("regression", source="custom of quantile regression", of="predictions")
def coverage(s: Scored) -> float:
    """Share of rows at or below their prediction: near `tau` for a good quantile model."""
    return float(np.average(s.y <= s.predicted, weights=s.weights))


@measure("novelty", source="Schoelkopf et al. 2001", of="predictions")
def novel_share(s: Scored) -> float:
    """Share of rows predicted novel."""
    return float(np.average(s.predicted < 0.0, weights=s.weights))


def _deviates(s: Scored, power: float) -> Scored | None:
    """The rows, all means above 0 where exp has come to 0 too; None where targets or means have no deviance."""
    s = s.present
    least = float(s.y.min())
    if (power >= 1.0 and least < 0.0) or (power >= 2.0 and least <= 0.0) or (power != 0.0 and s.predicted.min() < 0.0):
        return None
    means: NDArray[np.float64] = np.maximum(s.predicted, np.finfo(np.float64).tiny) if power != 0.0 else s.predicted
    return Scored(s.y, s.scores, means, s.weights, 0, {})


def _deviance(s: Scored, power: float) -> float | None:
    """Mean unit deviance."""
    fit = _deviates(s, power)
    if fit is None:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        return float(sk.mean_tweedie_deviance(fit.y, fit.predicted, sample_weight=fit.weights, power=power))


@measure("regression", source="scikit-learn: mean_poisson_deviance", of="predictions", within=AMOUNT)
def poisson_deviance(s: Scored) -> float | None:
    """Mean of 2 (y log(y / mean) - y + mean); not defined where a y or predicted mean is below 0."""
    return _deviance(s, 1.0)


@measure("regression", source="scikit-learn: mean_gamma_deviance", of="predictions", within=AMOUNT)
def gamma_deviance(s: Scored) -> float | None:
    """Mean of 2 (log(mean / y) + y / mean - 1); not defined where a y is 0 or below, or a predicted mean below 0."""
    return _deviance(s, 2.0)


@measure("regression", source="scikit-learn: mean_tweedie_deviance", of="predictions", number=_POWER, within=AMOUNT)
def tweedie_deviance(s: Scored, power: float) -> float | None:
    """Mean of 2 (y^(2-p) / ((1-p)(2-p)) - y mean^(1-p) / (1-p) + mean^(2-p) / (2-p)), p the power.

    Its limits at p = 1 and 2; without a number at the loss's `power`. Not defined where y or a predicted mean is
    outside the domain.
    """
    return _deviance(s, float(power))


def _explained(s: Scored, power: float) -> float | None:
    """1 - deviance / deviance of the constant mean; not defined for fewer than two rows."""
    fit = _deviates(s, power)
    if fit is None or len(fit.y) < 2 or (power != 0.0 and np.average(fit.y, weights=fit.weights) <= 0.0):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        return float(sk.d2_tweedie_score(fit.y, fit.predicted, sample_weight=fit.weights, power=power))


@measure("regression", source="scikit-learn: d2_tweedie_score, power 1", of="predictions", within=SKILL)
def d2_poisson(s: Scored) -> float | None:
    """Share of the Poisson deviance explained: 1 is perfect, 0 no better than the mean."""
    return _explained(s, 1.0)


@measure("regression", source="scikit-learn: d2_tweedie_score, power 2", of="predictions", within=SKILL)
def d2_gamma(s: Scored) -> float | None:
    """Share of the gamma deviance explained: 1 is perfect, 0 no better than the mean."""
    return _explained(s, 2.0)


@measure("regression", source="scikit-learn: d2_tweedie_score", of="predictions", number=_POWER, within=SKILL)
def d2_tweedie(s: Scored, power: float) -> float | None:
    """Share of the Tweedie deviance explained: 1 is perfect, 0 no better than the mean; the power as there."""
    return _explained(s, float(power))
