"""Probabilities of labels as formulas of scores that other programs can compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from bmrm.app.calibration.curves import Calibration, Sigmoid
from bmrm.losses._core.per_column import OneVsRest
from bmrm.problem import facts_of

Line = tuple[float, float]


@dataclass(frozen=True)
class Probabilities:
    """Of the labels, in their order.

    Attributes
    ----------
    form : "sigmoid": of two labels that of the second is 1 / (1 + exp(-(a f + b))), f the score, or the second less the
        first of two; of more each such a number divided by their sum. "clip": that of the second is (1 + min(max(f,
        -1), 1)) / 2. "softmax": exp(f_k) / sum_j exp(f_j).
    lines : a and b of "sigmoid", of two labels one pair, of more one each.
    """

    form: Literal["sigmoid", "clip", "softmax"]
    lines: tuple[Line, ...] = ((1.0, 0.0),)


KNOWN = {
    "logistic": Probabilities("sigmoid"),
    "exponential": Probabilities("sigmoid", ((2.0, 0.0),)),
    "modified_huber": Probabilities("clip"),
    "softmax": Probabilities("softmax"),
}
"""By the name of the loss; those of a loss of a user's are not written."""


def probabilities_of(loss: Any, calibration: Calibration | None, labels: int) -> Probabilities | None:
    """Those of a loss and so many labels, perhaps calibrated; None where there are none, or they are no formula."""
    if calibration is None and isinstance(loss, OneVsRest):
        one = KNOWN.get(facts_of(loss.loss).name)
        return None if one is None or one.form != "sigmoid" else Probabilities("sigmoid", labels * one.lines)
    if calibration is None:
        return KNOWN.get(facts_of(loss).name)
    curves = calibration.curves
    if not isinstance(curves, Sigmoid):
        return None
    return Probabilities("sigmoid", tuple((float(a), float(b)) for a, b in curves.lines))
