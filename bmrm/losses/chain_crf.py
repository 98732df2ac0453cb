"""Conditional random field on chains: the negative log likelihood of the labels of a sentence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.losses import register
from bmrm.losses._core.chain import ChainLoss, LikelihoodChains, sentence_starts
from bmrm.losses._core.prepared import Array


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
    prepared = LikelihoodChains
    dual = "crf"
    """Its slopes are the marginals of labels and transitions minus the true ones; dual steps use their entropy."""

    def probabilities(self, f: Array, transitions: Array, groups: NDArray[np.int64] | None = None) -> Array:
        """The marginals of the labels of each token, (tokens, K).

        Parameters
        ----------
        f, transitions, groups : as of `predict`.
        """
        labels, tokens = transitions.shape[0], f.shape[0]
        first = np.zeros(tokens, np.int64)
        sentences = self.prepared(self, first, sentence_starts(groups, tokens, self.title), None, labels)
        _, slope = sentences.value_and_slope(np.concatenate((f.ravel(), transitions.ravel())))
        marginals: Array = slope[: f.size].reshape(f.shape)[:, :labels].copy()
        marginals[:, 0] += 1.0  # the slope is marginals minus the labeling, here that of the first label throughout
        np.clip(marginals, 0.0, 1.0, out=marginals)
        return marginals
