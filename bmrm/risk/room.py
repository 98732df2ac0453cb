"""Whether the weights of a problem fit into memory, asked before anything of their size is made."""

from __future__ import annotations

from bmrm.data.memory import available_bytes
from bmrm.problem import InputError

VECTORS = 4
"""Default number of vectors of length dim that a solver holds at its peak: w, a subgradient, the best w and a step.
Registered solvers say how many they hold (`vectors`), bundles with 30 planes."""
WIDE = 1 << 22
"""Features up to which memory is not checked: 32 MB for a vector. Hashing to 2**20 columns is usual for few rows,
too."""
SPARSEST = 100
"""Ratio of features to entries above which the number of a feature is taken for a mistake."""
SMALL = 1 << 20
"""Bytes up to which free memory is not checked: the check may take as long as a small fit."""


def refuse_too_wide(features: int, scores: int, vectors: int = VECTORS, solver: str = "a solver") -> None:
    """Raise InputError where the vectors of weights, float64, that a solver holds at its peak exceed free memory."""
    vector = 8 * features * scores
    if vectors * vector <= SMALL:
        return
    free = available_bytes()
    if free is None or vectors * vector <= free:
        return
    by_scores = f" of {scores} scores each" if scores > 1 else ""
    raise InputError(
        f"{features} features{by_scores} take {_shown(vector)} for a vector of weights, and {solver} needs "
        f"{vectors} of these, {_shown(vectors * vector)}; {_shown(free)} are free; {WAY_OUT}"
    )


def refuse_too_many_numbers(numbers: int, said: str, way_out: str) -> None:
    """Raise InputError where so many float64, held up to three times while they are made, exceed free memory."""
    needed = 24 * numbers
    if needed <= SMALL:
        return
    free = available_bytes()
    if free is not None and needed > free:
        raise InputError(f"{said} take {_shown(needed)} while they are made; {_shown(free)} are free; {way_out}")


WAY_OUT = (
    "if a number of a feature is a slip, data.dimension: N (fewer features) finds the file that has it; text may be "
    "hashed to fewer columns (hash_bits)"
)


def refuse_mostly_empty(features: int, entries: int) -> None:
    """Raise InputError for far more features than entries of all rows: a slip in the number of a feature, as a rule."""
    if features > WIDE and features > SPARSEST * entries:
        raise InputError(
            f"{features} features, but all rows have {entries} entries that are not 0; {WAY_OUT}; if so many features "
            f"are meant, data.dimension: {features} says so (Dataset.from_arrays(X, y).with_features({features}) in "
            "Python)"
        )


def _shown(count: float) -> str:
    return f"{count / 2**30:.1f} GiB"
