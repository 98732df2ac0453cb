"""Maximum-margin Markov network on chains, margin rescaled by the number of wrong labels."""

from __future__ import annotations

from dataclasses import dataclass

from bmrm.losses import register
from bmrm.losses._core.chain import ChainLoss
from bmrm.losses._core.structure import MARGIN


@register("chain_margin", task="sequence")
@dataclass(frozen=True)
class ChainMargin(ChainLoss):
    """max over labelings y' of (errors(y, y') + s(y')) - s(y): the max-margin Markov network (M3N).

    Scores, transitions and the mean are those of every chain loss (`ChainLoss`); errors(y, y') is the number of
    tokens with another label (Hamming distance). Domain: at least two labels; a sentence for each token (`groups`).
    The maximum is exact, by the Viterbi recursion with the errors added to the scores of tokens. At ties the slope is
    that of the lower labels from the end of the sentence, and 0 where the true labeling is among the best. Never
    below 0. With one token a sentence it is `multiclass_hinge`.
    """

    formula = "max_y' (errors(y, y') + s(y')) - s(y) per sentence, s(y) = sum_t f[t, y_t] + T[y_t-1, y_t]"
    source = "Taskar, Guestrin & Koller 2003; Teo, Le, Smola & Vishwanathan 2007, table 2"
    at_zero = "take loss chain_crf"
    form = MARGIN
