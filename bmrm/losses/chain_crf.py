"""Conditional random field on chains: the negative log likelihood of the labels of a sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.losses import register
from bmrm.losses._core.chain import ChainLoss
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.structure import LOG


@register("chain_crf", task="sequence")
@dataclass(frozen=True)
class ChainCrf(ChainLoss):
    """log(sum over labelings y' of exp s(y')) - s(y): the negative log likelihood of a sentence's labels.

    Scores, transitions and the mean are those of every chain loss (`ChainLoss`): s(y) is the sum of the scores of
    tokens and transitions. Domain: at least two labels; a sentence for each token (`groups`). The sums over labelings
    are exact, by forward and backward recursions, scaled at each token; in logarithms where scores differ by more than
    500. Convex and smooth, never below 0. With one token a sentence it is `softmax`.
    """

    formula = "log(sum_y' exp s(y')) - s(y) per sentence, s(y) = sum_t f[t, y_t] + T[y_t-1, y_t]"
    source = "Lafferty, McCallum & Pereira 2001"
    smooth = True
    form = LOG

    def probabilities(self, f: Array, transitions: Array, groups: NDArray[np.int64] | None = None) -> Array:
        """The marginals of the labels of each token, (tokens, K); arguments as of `predict`."""
        return self.label_marginals(f, transitions, groups)
