"""Maximum-margin Markov network on chains, slack rescaled by the number of wrong labels, and the margin too."""

from __future__ import annotations

from dataclasses import dataclass

from bmrm.losses import register
from bmrm.losses._core.chain import ChainLoss
from bmrm.losses._core.prepared import Array
from bmrm.losses._core.rescaling import beta_option, margin_option, rescaled
from bmrm.losses._core.structure import SLACK


@register("chain_scaled_margin", task="sequence")
@dataclass(frozen=True)
class ChainScaledMargin(ChainLoss):
    """max over labelings y' of errors(y, y')^beta (margin + s(y') - s(y)): slack rescaled by the number of errors.

    Scores, transitions and the mean are those of every chain loss (`ChainLoss`); errors(y, y') is the number of
    tokens with another label (Hamming distance). Domain: at least two labels; a sentence for each token (`groups`).

    The margin is 1 for all labelings (`margin: one`) or their number of errors (`margin: cost`); y' = y gives 0. By
    default, `margin: one` and `beta: 1`, it is the slack rescaling of Tsochantaridis and others. `margin: cost` is
    table 2 of the KDD paper (2007) as printed, Delta^beta (Delta + s(y') - s(y)) with the errors for Delta: its scaled
    soft margin with `beta: 1`, and with `beta: 0` its soft margin, which is `chain_margin`; that one has dual steps.

    The maximum is exact for all of these: a Viterbi recursion finds the best labeling for each number of errors, on
    which alone margin and factor depend; this costs a factor of the sentence length. Never below 0. With one token a
    sentence it is `scaled_multiclass_hinge` without costs.
    """

    margin: str = margin_option("one", example="cost")
    beta: float = beta_option(1.0)

    formula = (
        "max_y' errors(y, y')^beta (margin + s(y') - s(y)) per sentence, margin = 1 or errors(y, y'), "
        "s(y) = sum_t f[t, y_t] + T[y_t-1, y_t]"
    )
    source = (
        "Tsochantaridis, Joachims, Hofmann & Altun 2005; with margin cost Teo, Le, Smola & Vishwanathan 2007, table 2"
    )
    at_zero = "take loss chain_crf"
    form = SLACK

    def rescaled(self, errors: Array) -> tuple[Array, Array]:
        """Margins and rates by the number of errors."""
        return rescaled(errors, errors == 0.0, self.margin, self.beta, self.title)
