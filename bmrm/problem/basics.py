"""Vectors, scores and errors: what the whole vocabulary is spelled with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
"""A float64 vector; weights have shape (dim,)."""

Scores = Any
"""Scores of the rows, one float64 per row or (rows, scores per row).

Opaque to solvers: they keep scores and form linear combinations (`f + t * step`), nothing else,
because under MPI the object stands for arrays that live on other ranks.
"""


class BmrmError(Exception):
    """Every error that this package raises on purpose."""


class InputError(BmrmError, ValueError):
    """A config, file, array or label is not what was asked for; the message names the place."""


class IncompatibleError(BmrmError, TypeError):
    """A solver lacks an ability of the risk or the regularizer; the message says which, and what would do."""
