"""Proximal points of lines and parabolas in NumPy, against the compiled ones, and of smooth losses by bracketing."""

import numpy as np

from bmrm.losses._core.smooth_rows import smooth_points


def linear_margin_points(z, step, y, reach, positive, negative):
    short, far = reach - y * z, step * np.where(y > 0.0, positive, negative)
    kept = (short <= 0.0) | (short >= far)
    f = np.where(short <= 0.0, z, np.where(short >= far, y * np.minimum(y * (z + y * far), reach), y * reach))
    return f, np.where(kept, 1.0, 0.0)


def quadratic_margin_points(z, step, y, reach, width, scale):
    pull = np.asarray(step * scale)
    left = np.maximum(0.0, reach - y * z) / (1.0 + pull)
    inside = (left > 0.0) & (left <= width)
    moved = z + y * (pull * np.minimum(left, width))
    moved = np.where(left > width, y * np.minimum(y * moved, reach - width), moved)
    return np.where(inside & (pull > 1.0), y * (reach - left), moved), np.where(inside, 1.0 / (1.0 + pull), 1.0)


def linear_residual_points(z, step, y, epsilon, above, below):
    over, sign = np.abs(z - y) - epsilon, np.where(z > y, 1.0, -1.0)
    far = step * np.where(z > y, above, below)
    inside = (over >= 0.0) & (over < far)
    moved, end = z - sign * np.where(over < 0.0, 0.0, far), y + sign * epsilon
    beyond = (over >= 0.0) & (sign * moved < sign * end)
    return np.where(inside | beyond, end, moved), np.where(inside, 0.0, 1.0)


def quadratic_residual_points(z, step, y, epsilon, width, above, below):
    over, sign = np.abs(z - y) - epsilon, np.where(z > y, 1.0, -1.0)
    pull = step * np.where(z > y, above, below)
    left = np.maximum(0.0, over) / (1.0 + pull)
    inside = (over >= 0.0) & (left <= width)
    moved, end = z - sign * (pull * np.minimum(left, width)), y + sign * (epsilon + width)
    moved = np.where((left > width) & (sign * moved < sign * end), end, moved)
    f = np.where(inside & (pull > 1.0), y + sign * (epsilon + left), moved)
    return f, np.where(inside, 1.0 / (1.0 + pull), 1.0)


MARGINS = {
    "perceptron": (linear_margin_points, lambda loss: (0.0, 1.0, 1.0)),
    "hinge": (linear_margin_points, lambda loss: (1.0, 1.0, 1.0)),
    "novelty": (linear_margin_points, lambda loss: (loss.rho, 1.0, 1.0)),
    "cost_sensitive_hinge": (linear_margin_points, lambda loss: (1.0, loss.cost_positive, loss.cost_negative)),
    "squared_perceptron": (quadratic_margin_points, lambda loss: (0.0, np.inf, 1.0)),
    "squared_hinge": (quadratic_margin_points, lambda loss: (1.0, np.inf, 1.0)),
    "huber_hinge": (quadratic_margin_points, lambda loss: (1.0 + loss.h, 2.0 * loss.h, 0.5 / loss.h)),
    "modified_huber": (quadratic_margin_points, lambda loss: (1.0, 2.0, 2.0)),
}
RESIDUALS = {
    "least_absolute_deviation": (linear_residual_points, lambda loss: (0.0, 1.0, 1.0)),
    "quantile": (linear_residual_points, lambda loss: (0.0, 1.0 - loss.tau, loss.tau)),
    "epsilon_insensitive": (linear_residual_points, lambda loss: (loss.epsilon, 1.0, 1.0)),
    "least_squares": (quadratic_residual_points, lambda loss: (0.0, np.inf, 1.0, 1.0)),
    "squared_epsilon_insensitive": (quadratic_residual_points, lambda loss: (loss.epsilon, np.inf, 1.0, 1.0)),
    "huber": (quadratic_residual_points, lambda loss: (0.0, loss.delta, 1.0, 1.0)),
    "expectile": (
        quadratic_residual_points,
        lambda loss: (0.0, np.inf, 2.0 * (1.0 - loss.tau), 2.0 * loss.tau),
    ),
}


def twin_points(loss, z, step, y):
    """As `loss.prox`."""
    known = {**MARGINS, **RESIDUALS}.get(loss.name)
    if known is None:
        return smooth_points(loss, z, step, y)
    points, pieces = known
    return points(z, step, y, *pieces(loss))
