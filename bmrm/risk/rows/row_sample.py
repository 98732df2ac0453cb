"""A random sample of the rows, as a risk of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bmrm.problem import Check, InputError, Risk, unchecked

RiskOf = Callable[[NDArray[np.int64], Check], Risk]
"""The mean loss of some rows; the check is called now and then while they are copied."""


@dataclass(frozen=True)
class DrawnRows:
    """The ability `RowSample`.

    Parameters
    ----------
    rows : number of rows.
    risk_of : makes the risk of chosen rows, given in increasing order.
    check : called now and then while rows are copied.
    """

    rows: int
    risk_of: RiskOf
    check: Check = unchecked

    def sample(self, rows: int, seed: int) -> Risk:
        """The mean loss of `rows` rows drawn without repetition; InputError where their weights are all 0."""
        if not 0 < rows <= self.rows:
            raise InputError(f"a sample of {rows} rows, expected 1 to {self.rows}")
        chosen = np.random.default_rng(seed).choice(self.rows, rows, replace=False, shuffle=False)
        return self.risk_of(np.sort(chosen), self.check)
