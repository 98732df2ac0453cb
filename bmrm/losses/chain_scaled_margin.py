"""Maximum-margin Markov network on chains, slack rescaled by the number of wrong labels."""

from __future__ import annotations

from dataclasses import dataclass

from bmrm.losses import register
from bmrm.losses._core.chain import ChainLoss, ScaledMarginChains


@register("chain_scaled_margin", task="sequence")
@dataclass(frozen=True)
class ChainScaledMargin(ChainLoss):
    """max over labelings y' of errors(y, y') (1 + s(y') - s(y)): slack rescaled by the number of wrong labels.

    Scores, transitions and the mean are those of every chain loss (`ChainLoss`); errors(y, y') is the number of
    tokens with another label (Hamming distance), so that y' = y gives 0. Domain: at least two labels; a sentence for
    each token (`groups`). The maximum is exact: a Viterbi recursion finds the best labeling for each number of
    errors, which costs a factor of the sentence length. Never below 0. With one token a sentence it is
    `scaled_multiclass_hinge`.
    """

    formula = "max_y' errors(y, y') (1 + s(y') - s(y)) per sentence, s(y) = sum_t f[t, y_t] + T[y_t-1, y_t]"
    source = "Tsochantaridis, Joachims, Hofmann & Altun 2005; Teo, Le, Smola & Vishwanathan 2007, table 2"
    prepared = ScaledMarginChains
