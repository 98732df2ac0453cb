"""Probabilities of labels as formulas of scores that other programs can compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from bmrm.problem import facts_of


@dataclass(frozen=True)
class Probabilities:
    """Of the labels, in their order.

    Attributes
    ----------
    form : of one score f, whose second label has the probability 1 / (1 + exp(-factor f)) ("sigmoid") or (1 +
        min(max(f, -1), 1)) / 2 ("clip"); of several exp(f_k) / sum_j exp(f_j) ("softmax").
    factor : of the score.
    """

    form: Literal["sigmoid", "clip", "softmax"]
    factor: float = 1.0


KNOWN = {
    "logistic": Probabilities("sigmoid"),
    "exponential": Probabilities("sigmoid", 2.0),
    "modified_huber": Probabilities("clip"),
    "softmax": Probabilities("softmax"),
}
"""By the name of the loss; those of a loss of a user's are not written."""


def probabilities_of(loss: Any) -> Probabilities | None:
    """Those of the models of a loss; None where there are none."""
    return KNOWN.get(facts_of(loss).name)
