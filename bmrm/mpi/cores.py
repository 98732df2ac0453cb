"""The cores that a rank has: those it may run on, divided among the ranks of its node that may run there, too."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def mask_of(cores: set[int], width: int) -> NDArray[np.float64]:
    """(width,), 1 for these cores."""
    mask = np.zeros(width)
    mask[sorted(cores)] = 1.0
    return mask


def fair_share(mine: NDArray[np.float64], on_node: NDArray[np.float64]) -> float:
    """Cores for this rank, where every core is divided among those who may use it.

    Parameters
    ----------
    mine : (cores,), 1 for those that this rank may run on.
    on_node : (cores,), the number of ranks of the node that may run there.
    """
    used = mine > 0.0
    return float((mine[used] / on_node[used]).sum())


def threads_for(share: float) -> int:
    """Threads of a rank with this share of the cores; at least one."""
    return max(1, int(share + 1e-9))
