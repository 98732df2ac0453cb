"""A' H A for several scores per row, H a matrix diag(c) - c c' / sum(c) for each row."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.csr import active_rows

Array = NDArray[np.float64]


def gram_of_scores(table: Array, inputs: int, gram: Callable[[Array], Array]) -> Array:
    """The matrix of (inputs, K) weights in C order; (inputs K, inputs K).

    H is the Laplacian of a graph of the scores whose edges weigh c_j c_k / sum(c): a Gram matrix of the inputs for each
    two scores that meet in any row.

    Parameters
    ----------
    table : c, (rows, K), not negative.
    gram : the inputs' matrix for weights of rows, (rows,) to (inputs, inputs).
    """
    width = table.shape[1]
    out = np.zeros((inputs, width, inputs, width))
    rows = active_rows(table.sum(axis=1))
    shares = table[rows]
    rates = shares / shares.sum(axis=1)[:, None]
    for j, k in combinations(range(width), 2):
        edges = shares[:, j] * rates[:, k]
        if edges.any():
            weights = np.zeros(table.shape[0])
            weights[rows] = edges
            part = gram(weights)
            out[:, j, :, j] += part
            out[:, k, :, k] += part
            out[:, j, :, k] -= part
            out[:, k, :, j] -= part
    return out.reshape(inputs * width, inputs * width)
