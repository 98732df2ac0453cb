"""The F-measure as a loss of the whole sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import jit
from bmrm.losses import register
from bmrm.losses._core.multivariate import MeasureLoss, Table
from bmrm.losses._core.prepared import Array
from bmrm.registry import parameter


@jit
def worst_table(lost, won, weight):  # type: ignore[no-untyped-def]
    """The (a, b) that maximises 1 - F(a, b) - lost[n_pos - a] + won[b]; see `FBeta` for the search.

    `lost[i]` is the sum of the i lowest scores of positive rows and `won[b]` of the b highest of negative ones, both
    over m; `weight` is beta^2.
    """
    positives, negatives = lost.size - 1, won.size - 1
    base = weight * positives
    best, best_a, best_b = -np.inf, 0, 0
    b = 0
    for a in range(positives + 1):
        gain = (1.0 + weight) * a
        while b < negatives and gain / (base + a + b) - gain / (base + a + b + 1) + won[b + 1] - won[b] > 0.0:
            b += 1
        while b > 0 and gain / (base + a + b - 1) - gain / (base + a + b) + won[b] - won[b - 1] < 0.0:
            b -= 1
        value = 1.0 - gain / (base + a + b) - lost[positives - a] + won[b]
        if value > best:
            best, best_a, best_b = value, a, b
    return best_a, best_b


@register("f_beta", task="binary")
@dataclass(frozen=True)
class FBeta(MeasureLoss):
    """max over labelings y' of 1 - F_beta(y') + sum_i (y'_i - y_i) f_i / (2m): for the F-measure.

    F_beta = (1 + beta^2) a / (beta^2 n_pos + a + b) with a true and b false positives: the harmonic mean of precision
    and recall for beta = 1; recall counts more for beta > 1. For a = 0 it is 0.

    Domain: two classes; all rows of the sample at once; weights other than 1 are refused (copies of a row may be
    labeled differently). Scale: the value is in units of F, and bounds 1 - F_beta of the labels sign(f).

    Only few of the (n_pos + 1)(n_neg + 1) pairs (a, b) are evaluated. For fixed a, -F is concave in b, as -1/(c + b)
    is, and so is the sum of the b highest scores; the best b is where the increment

        h(a, b) + q_b / m,   h(a, b) = (1 + beta^2) a / ((s + a)(s + a + 1)),  s = beta^2 n_pos + b

    changes its sign (q_b: the (b+1)-th highest score of a negative row). For fixed b, h rises with a up to
    a^2 = s (s + 1) and then falls. So for every b the a whose best number is above b form an interval: the best b first
    rises and then falls with a. A search that starts at the best b of the previous a and moves up or down takes at most
    n_pos + 2 n_neg steps in all. With sorting this is O(m log m), without assumptions on beta or the scores.
    """

    beta: float = parameter(1.0, doc="recall counts beta times as much as precision", above=0.0, example=0.5)

    formula = "max over y' of 1 - F_beta(y') + sum_i (y'_i - y_i) f_i / (2m)"
    source = "Joachims 2005"
    at_zero = "take loss logistic and the best threshold, as fit_f_measure does"
    metrics = ("f_beta", "f1", "precision", "recall", "auc")

    def worst(self, positive: Array, negative: Array) -> Table:
        """As of `MeasureLoss`, in O(m) on sorted scores."""
        rows, weight = positive.size + negative.size, self.beta**2
        lost, won = np.zeros(positive.size + 1), np.zeros(negative.size + 1)
        np.cumsum(positive, out=lost[1:])
        np.cumsum(negative[::-1], out=won[1:])
        a, b = worst_table(lost / rows, won / rows, weight)
        return int(a), int(b), 1.0 - (1.0 + weight) * a / (weight * positive.size + a + b)
