"""A' H A for several scores per row, H a matrix diag(c) - c c' / sum(c) for each row."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from bmrm.kernels.products.csr_many import active_rows
from bmrm.kernels.products.vectors import column_sums

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
    out = np.zeros((width, width, inputs, inputs))
    rows = active_rows(table)
    shares = np.ascontiguousarray(table.T if rows.size == table.shape[0] else table[rows].T)
    rates = shares / column_sums(shares)
    for j, k in combinations(range(width), 2):
        edges = shares[j] * rates[k]
        if edges.any():
            part = gram(_spread(edges, rows, table.shape[0]))
            out[j, j] += part
            out[k, k] += part
            out[j, k] -= part
            out[k, j] = out[j, k]
    return np.ascontiguousarray(out.transpose(2, 0, 3, 1)).reshape(inputs * width, inputs * width)


def _spread(edges: Array, rows: NDArray[np.int64], count: int) -> Array:
    """Weights of all rows from those of some."""
    if rows.size == count:
        return edges
    weights = np.zeros(count)
    weights[rows] = edges
    return weights
