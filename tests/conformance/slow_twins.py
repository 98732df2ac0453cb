"""The losses once more, from their formulas: slow, row by row or pair by pair. Sums over rows, or over pairs."""

import math

from tests.conformance import twins_chains, twins_ranking, twins_rows
from tests.conformance.twins_rows import rows


def _softplus(x):
    return x if x > 700.0 else math.log1p(math.exp(x))


def _softmax(loss, y, f):
    top = max(f)
    return top - f[y] + math.log(math.fsum(math.exp(score - top) for score in f))


def _multiclass_hinge(loss, y, f):
    def cost(k):
        return float(k != y) if loss.cost is None else loss.cost[y][k]

    return max(cost(k) + f[k] - f[y] for k in range(len(f)))


def _pairs(loss, y, f):
    high = [score for target, score in zip(y, f, strict=True) if target > 0]
    low = [score for target, score in zip(y, f, strict=True) if target < 0]
    return math.fsum(max(0.0, 1.0 - (p - n)) for p in high for n in low)


TWINS = {
    **twins_chains.TWINS,
    **twins_ranking.TWINS,
    **twins_rows.TWINS,
    "hinge": rows(lambda loss, y, f: max(0.0, 1.0 - y * f)),
    "squared_hinge": rows(lambda loss, y, f: 0.5 * max(0.0, 1.0 - y * f) ** 2),
    "logistic": rows(lambda loss, y, f: _softplus(-y * f)),
    "least_squares": rows(lambda loss, y, f: 0.5 * (f - y) ** 2),
    "quantile": rows(lambda loss, y, f: max(loss.tau * (y - f), (1.0 - loss.tau) * (f - y))),
    "epsilon_insensitive": rows(lambda loss, y, f: max(0.0, abs(f - y) - loss.epsilon)),
    "softmax": rows(_softmax),
    "multiclass_hinge": rows(_multiclass_hinge),
    "roc_area": _pairs,
}
