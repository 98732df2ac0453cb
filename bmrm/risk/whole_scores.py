"""Scores of all rows in one process."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import Scores


class WholeScores:
    """The ability `RowScores` where scores are arrays."""

    def collect(self, scores: Scores) -> NDArray[np.float64]:
        """As of `RowScores`."""
        return np.array(scores, np.float64)

    def hand_out(self, whole: NDArray[np.float64]) -> Scores:
        """As of `RowScores`."""
        return np.array(whole, np.float64)
