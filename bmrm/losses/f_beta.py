"""The F-measure as a loss of the whole sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bmrm.kernels.jit import jit
from bmrm.kernels.products.vectors import dot, plain
from bmrm.losses import register
from bmrm.losses._core import domain
from bmrm.losses._core.multivariate import MeasureLoss, Table
from bmrm.losses._core.over_ranks import Flags, ManyRanks, OverRanks
from bmrm.losses._core.prepared import Array
from bmrm.losses.base import signs
from bmrm.problem import Summary, Targets
from bmrm.registry import parameter


@jit
def worst_table(lost, won, weight, positives, least_a, least_b):  # type: ignore[no-untyped-def]
    """The largest 1 - F(a, b) - lost[n_pos - a] + won[b] with its a and b, the least ones; see `FBeta` for the search.

    `lost[i]` is the sum of the i lowest scores of positive rows and `won[b]` of the b highest of negative ones, both
    over m; `weight` is beta^2. Both may be parts of the whole: the last of `lost` is that for a = `least_a`, the first
    of `won` that for b = `least_b`, and the maximum is over the a and b that are there.
    """
    base, most = weight * positives, won.size - 1
    best, best_a, best_b = -np.inf, least_a, least_b
    j = 0
    for k in range(lost.size):
        a = least_a + k
        gain, rest = (1.0 + weight) * a, base + a + least_b
        while j < most and gain / (rest + j) - gain / (rest + j + 1) + won[j + 1] - won[j] > 0.0:
            j += 1
        while j > 0 and gain / (rest + j - 1) - gain / (rest + j) + won[j] - won[j - 1] <= 0.0:
            j -= 1
        value = 1.0 - gain / (rest + j) - lost[lost.size - 1 - k] + won[j]
        if value > best:
            best, best_a, best_b = value, a, least_b + j
    return best, best_a, best_b


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
        _, a, b = worst_table(lost / rows, won / rows, weight, positive.size, 0, 0)
        return int(a), int(b), self.delta(positive.size, int(a), int(b))

    def delta(self, positives: int, a: int, b: int) -> float:
        """1 - F of a true and b false positives."""
        weight = self.beta**2
        return 1.0 - (1.0 + weight) * a / (weight * positives + a + b)

    def prepare_over_ranks(self, targets: Targets, summary: Summary, ranks: ManyRanks) -> TablesOverRanks:
        """Bind to the rows of this rank, see `bmrm.losses._core.over_ranks`."""
        domain.refuse_weights(targets, self.title)
        return TablesOverRanks(self, ranks, signs(targets, summary, self.title) > 0.0)


SLACK, ROUNDINGS = 1e-9, 4.0 * float(np.finfo(np.float64).eps)
"""Where two numbers differ by less, relative to them or to the sums that are compared, a range more is tried."""


class TablesOverRanks(OverRanks):
    """The F-measure of rows on many ranks.

    Each rank has a range of the positive rows, by which it knows its a, and one of the negative rows. It tries the b of
    those ranges in which the best b of one of its a may lie; they come one after another.
    """

    structured_max = True
    nothing = "f_beta: expected rows of both classes"

    def __init__(self, loss: FBeta, ranks: ManyRanks, positive: Flags) -> None:
        self.loss, self.ranks = loss, ranks
        self.positive, self.negative = np.flatnonzero(positive), np.flatnonzero(~positive)

    def meet(self) -> None:
        """As of `OverRanks`."""
        counts = self.ranks.sum(np.array([self.positive.size, self.negative.size], np.float64))
        self.positives, self.rows = int(counts[0]), int(counts.sum())
        self.mass = float(counts.min() > 0.0)

    def value_and_slope(self, f: Array) -> tuple[float, Array]:
        """R at scores `f` of this rank's rows, see `OverRanks`, and its slope, a new array like `f`."""
        f = plain(f)
        lost, won = Sums(self.ranks, f[self.positive]), Sums(self.ranks, -f[self.negative])
        a, b = self._worst(lost, won)
        slope = np.zeros_like(f)
        slope[self.positive] = -lost.lowest(self.positives - a)
        slope[self.negative] = won.lowest(b)
        slope /= self.rows
        product = float(self.ranks.sum(np.array([dot(slope, f)]))[0])
        return self.on_one(self.loss.delta(self.positives, a, b) + product), slope

    def _worst(self, lost: Sums, won: Sums) -> tuple[int, int]:
        """The a and b of the worst labeling, the least ones."""
        weight, positives = self.loss.beta**2, self.positives
        least_a, below = positives - lost.first - lost.size, lost.sums / self.rows
        best = [(-np.inf, 0, 0)]
        for rank, above in self.ranks.blocks(-won.sums / self.rows, self._wanted(lost, won)):
            least_b = int(won.sizes[:rank].sum())
            best.append(worst_table(below, above, weight, positives, least_a, least_b))
        of_all = self.ranks.table(np.array(min(best, key=worst_first), np.float64))
        _, a, b = min(of_all.tolist(), key=worst_first)
        return int(a), int(b)

    def _wanted(self, lost: Sums, won: Sums) -> Flags:
        """The ranks among whose negative rows the best b of an a of this rank may lie.

        By the increments at the last row of each range, which for fixed b rise and then fall with a; see `FBeta`.
        """
        weight, positives = self.loss.beta**2, self.positives
        wanted = won.sizes > 0
        if not lost.size:
            return np.zeros_like(wanted)
        least, most = positives - lost.first - lost.size, positives - lost.first
        scores, s = -won.last[wanted], weight * positives + np.cumsum(won.sizes)[wanted] - 1.0
        a = np.array([np.full_like(s, least), np.clip(np.sqrt(s * (s + 1.0)), least, most), np.full_like(s, most)])
        gains = self.rows * (1.0 + weight) * a / ((s + a) * (s + a + 1.0))
        unsure = SLACK * (gains + np.abs(scores)) + ROUNDINGS * np.abs(won.ends[wanted])
        beyond = (gains + scores > -unsure).any(axis=0)
        before = (gains + scores <= unsure).any(axis=0)
        before[-1] = True
        wanted[wanted] = np.append(True, beyond[:-1]) & before
        return wanted


def worst_first(table: Sequence[float]) -> tuple[float, ...]:
    """By falling value, then by a and b."""
    value, a, b = table
    return -value, a, b


class Sums:
    """The sums of the lowest scores of all ranks, as far as they end in the range of this one.

    Attributes
    ----------
    sizes, last, ends : (ranks,), the scores in each range, the highest of them, and the sum up to that.
    first, size : the scores in the ranges before this one, and in this one.
    sums : (size + 1,), of the `first` lowest scores, of one more, and so on.
    """

    def __init__(self, ranks: ManyRanks, f: Array) -> None:
        self.ranks, self.f = ranks, f
        self.keys = ranks.sort(f).keys
        self.size = self.keys.size
        each = ranks.table(np.array([self.size, self.keys[-1] if self.size else 0.0, self.keys.sum()]))
        self.sizes, self.last, self.ends = each[:, 0].astype(np.int64), each[:, 1], np.cumsum(each[:, 2])
        self.first = int(self.sizes[: ranks.rank].sum())
        self.sums = each[: ranks.rank, 2].sum() + np.append(0.0, np.cumsum(self.keys))

    def lowest(self, count: int) -> Array:
        """As `bmrm.losses._core.multivariate.lowest`, of all ranks, for the scores of this one."""
        if count == 0:
            return np.zeros(self.f.size)
        at = count - 1 - self.first
        border = self.ranks.sum(np.array([self.keys[at] if 0 <= at < self.size else 0.0]))[0]
        chosen: Array = (self.f < border).astype(np.float64)
        here = self.f == border
        below, tied = self.ranks.sum(np.array([chosen.sum(), np.count_nonzero(here)]))
        if tied:
            chosen[here] = (count - below) / tied
        return chosen
