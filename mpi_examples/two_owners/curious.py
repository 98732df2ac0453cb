"""A solver that would rather know the rows: at weights of one feature alone, the gradient tells of that feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bmrm import Solution, Status


@dataclass(frozen=True)
class Curious:
    """Asks at unit vectors, and returns what it has learned as if these were weights."""

    def minimize(self, risk: Any, regularizer: Any, *, start: Any = None, callback: Any = None) -> Solution:
        """As of `Solver`."""
        learned = np.array([risk.value_and_subgradient(unit)[1][k] for k, unit in enumerate(np.eye(risk.dim))])
        value = risk.value_and_subgradient(learned)[0] + regularizer.value(learned)
        return Solution(learned, value, -np.inf, Status.OWN_RULE, risk.dim, risk.dim + 1.0, 0.0)
