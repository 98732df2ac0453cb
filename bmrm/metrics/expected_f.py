"""The labels of largest expected F-beta, from probabilities: Ye, Chai, Lee & Chieu, ICML 2012, algorithm 1."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from bmrm.metrics.core import chosen
from bmrm.problem import InputError, shown

MOST = 1000
"""Largest sum of numerator and denominator of beta^2."""
DENOMINATOR = 400
"""Largest denominator that is looked for."""


def beta_of(measure: str) -> float:
    """The beta of `f_beta`, `f_beta@2` or `f1`; InputError for another measure."""
    stem, _, _ = str(measure).partition("@")
    if stem not in ("f_beta", "f1"):
        raise InputError(f"maximize is {shown(measure)}, expected f1, f_beta or such as f_beta@2")
    number = chosen(measure)[1]
    return 1.0 if number is None else float(number)


def best_count(p: NDArray[np.float64], beta: float = 1.0) -> tuple[int, float]:
    """How many rows of the largest probabilities to call positive, and the F-beta that is then expected.

    Exact in O(n^2) time, for labels that are drawn independently; the F-beta of no true positive is 0.

    Parameters
    ----------
    p : (rows,) probabilities of the positive label, in falling order.
    beta : weight of recall against precision; its square is a fraction of small numbers, such as 1/4, 1, 4.

    Raises
    ------
    InputError
        For another beta.

    Notes
    -----
    With beta^2 = q / r, k rows called positive, and i and j positive rows among these and the others, F-beta is
    (q + r) i / (r k + q i + q j). Of the others `s[a]` is the mean of 1 / (a + q j), so that s for k - 1 is
    p_k s[a + q] + (1 - p_k) s[a], and the probabilities of i follow from the front; kept at each sqrt(n)-th k.
    """
    square = Fraction(beta * beta).limit_denominator(DENOMINATOR)
    q, r = square.numerator, square.denominator
    if not q or q + r > MOST or abs(q / r - beta * beta) > 1e-9 * beta * beta:
        raise InputError(f"beta is {beta:g}, expected one whose square is a fraction of small numbers: 0.5, 1, 2")
    n = len(p)
    if not n:
        return 0, 0.0
    block = math.isqrt(n - 1) + 1
    marks = [np.ones(1)]
    for k in range(0, n - block, block):
        marks.append(_more(marks[-1], p[k : k + block])[-1])
    best, value = 1, -1.0
    s = np.zeros((q + r) * n + 1)
    s[1:] = 1.0 / np.arange(1, len(s))
    for mark in range(len(marks) - 1, -1, -1):
        first = mark * block
        counts = _more(marks[mark], p[first : first + block])
        for k in range(first + len(counts), first, -1):
            i = np.arange(1, k + 1)
            found = float((q + r) * (i * counts[k - first - 1][1:]) @ s[r * k + q * i])
            if found >= value:
                best, value = k, found
            length = (q + r) * (k - 1) + 1
            s = p[k - 1] * s[q : q + length] + (1.0 - p[k - 1]) * s[:length]
    return best, value


def _more(counts: NDArray[np.float64], p: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Probabilities of each number of positive rows, after each further row."""
    found = []
    for one in p:
        longer = np.zeros(len(counts) + 1)
        longer[:-1] = (1.0 - one) * counts
        longer[1:] += one * counts
        counts = longer
        found.append(counts)
    return found


def positive_rows(p: NDArray[np.float64], beta: float = 1.0) -> NDArray[np.bool_]:
    """Which rows to call positive for the largest expected F-beta, (rows,); of equal probabilities the first.

    Parameters
    ----------
    p : (rows,) probabilities of the positive label.
    beta : weight of recall against precision.
    """
    order = np.argsort(-p, kind="stable")
    count, _ = best_count(p[order], beta)
    found = np.zeros(len(p), bool)
    found[order[:count]] = True
    return found
