"""Measures of predicted numbers, means and quantiles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk

from bmrm.metrics.core import Scored, measure


@measure
def r2(s: Scored) -> float | None:
    """1 - squared error / squared deviation from the mean; not defined for fewer than two rows."""
    if len(s.y) < 2:
        return None
    return float(sk.r2_score(s.y, s.predicted, sample_weight=s.weights))


@measure
def mae(s: Scored) -> float:
    """Mean of |y - prediction|."""
    return float(sk.mean_absolute_error(s.y, s.predicted, sample_weight=s.weights))


@measure
def mse(s: Scored) -> float:
    """Mean of (y - prediction)^2."""
    return float(sk.mean_squared_error(s.y, s.predicted, sample_weight=s.weights))


@measure
def rmse(s: Scored) -> float:
    """Root of the mean of (y - prediction)^2."""
    return float(np.sqrt(sk.mean_squared_error(s.y, s.predicted, sample_weight=s.weights)))


@measure
def asymmetric_mse(s: Scored) -> float:
    """Mean of |tau - [prediction > y]| (y - prediction)^2 at the loss's `tau`, at 1/2 where it has none."""
    tau = float(s.parameters.get("tau", 0.5))
    sides = np.where(s.predicted > s.y, 1.0 - tau, tau)
    return float(np.average(sides * (s.y - s.predicted) ** 2, weights=s.weights))


@measure
def pinball(s: Scored) -> float:
    """Mean pinball loss at the loss's `tau`, at the median where it has none."""
    alpha = float(s.parameters.get("tau", 0.5))
    return float(sk.mean_pinball_loss(s.y, s.predicted, alpha=alpha, sample_weight=s.weights))


@measure
def coverage(s: Scored) -> float:
    """Share of rows at or below their prediction: near `tau` for a good quantile model."""
    return float(np.average(s.y <= s.predicted, weights=s.weights))


@measure
def novel_share(s: Scored) -> float:
    """Share of rows predicted novel."""
    return float(np.average(s.predicted < 0.0, weights=s.weights))


def _means(s: Scored) -> NDArray[np.float64]:
    """Predicted means, all above 0 as deviances need them, where exp has come to 0 too."""
    means: NDArray[np.float64] = np.maximum(s.predicted, np.finfo(np.float64).tiny)
    return means


@measure
def poisson_deviance(s: Scored) -> float:
    """Mean of 2 (y log(y / mean) - y + mean)."""
    return float(sk.mean_poisson_deviance(s.y, _means(s), sample_weight=s.weights))


@measure
def gamma_deviance(s: Scored) -> float | None:
    """Mean of 2 (log(mean / y) + y / mean - 1); not defined where some y is 0."""
    return float(sk.mean_gamma_deviance(s.y, _means(s), sample_weight=s.weights)) if np.all(s.y > 0.0) else None


@measure
def tweedie_deviance(s: Scored) -> float:
    """Mean unit deviance at the loss's `power`."""
    power = float(s.parameters["power"])
    return float(sk.mean_tweedie_deviance(s.y, _means(s), sample_weight=s.weights, power=power))


def _explained(s: Scored, power: float) -> float | None:
    """1 - deviance / deviance of the constant mean; not defined for fewer than two rows."""
    if len(s.y) < 2 or np.any(s.y < 0.0) or (power >= 2.0 and np.any(s.y <= 0.0)) or not np.any(s.y > 0.0):
        return None
    return float(sk.d2_tweedie_score(s.y, _means(s), sample_weight=s.weights, power=power))


@measure
def d2_poisson(s: Scored) -> float | None:
    """Share of the Poisson deviance explained: 1 is perfect, 0 no better than the mean."""
    return _explained(s, 1.0)


@measure
def d2_gamma(s: Scored) -> float | None:
    """Share of the gamma deviance explained."""
    return _explained(s, 2.0)


@measure
def d2_tweedie(s: Scored) -> float | None:
    """Share of the Tweedie deviance explained, at the loss's `power`."""
    return _explained(s, float(s.parameters["power"]))
