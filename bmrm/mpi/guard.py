"""What owners of rows that must not move ask for, by `data.guard`, and what is refused before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.matrix import features_of
from bmrm.mpi.group import Group
from bmrm.problem import InputError, Regularizer, shown

Floats = NDArray[np.float64]
NAME = "data.guard"
WANTED = "expected true, false, or such as {min_rows: 10, secure_sums: false}, with min_rows of at least 2"


class RefusedError(InputError):
    """An owner's rank does not answer."""


@dataclass(frozen=True)
class Guard:
    """What a guarded rank holds back.

    Attributes
    ----------
    min_rows : of at least how many of its rows each sum is made, and each feature touched.
    secure_sums : whether rank 0 learns sums over the other ranks only, by masks that cancel (`bmrm.mpi.masks`).
    """

    min_rows: int = 10
    secure_sums: bool = False

    @classmethod
    def checked(cls, given: Any, name: str = NAME) -> Guard | None:
        """From true, false, null, or a mapping of the attributes; None for no guard.

        Raises
        ------
        InputError
            For anything else.
        """
        if given is None or isinstance(given, bool):
            return cls() if given else None
        if not isinstance(given, Mapping):
            raise InputError(f"{name} is {shown(given)}, {WANTED}")
        known = asdict(cls())
        rows, secure = (given.get(option, known[option]) for option in known)
        if set(given) - set(known) or type(rows) is not int or rows < 2 or type(secure) is not bool:
            raise InputError(f"{name} is {shown(dict(given))}, {WANTED}")
        return cls(rows, secure)

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    def grants(self, wanted: Guard) -> bool:
        """Whether it holds back at least as much."""
        return self.min_rows >= wanted.min_rows and self.secure_sums >= wanted.secure_sums


@dataclass(frozen=True)
class Guarding:
    """A guard, and the regularizer of the problem, of which each owner's part of the objective is made."""

    guard: Guard
    regularizer: Regularizer


class Rounded:
    """Sums as of a group, and maxima rounded up to powers of two: these tell no number of a row.

    Parameters
    ----------
    group : the ranks.
    """

    def __init__(self, group: Group) -> None:
        self._group = group

    def sum(self, array: Floats) -> Floats:
        """As of `Group`."""
        return self._group.sum(array)

    def max(self, array: Floats) -> Floats:
        """As of `Group`, of numbers >= 0."""
        mantissa, exponent = np.frexp(array)
        return self._group.max(np.ldexp(np.where(mantissa > 0.0, 1.0, 0.0), exponent))


def refuse_rare(data: Dataset, guard: Guard) -> None:
    """InputError where this rank has too few rows, or features that too few of them touch.

    Rows of weight 0 do not count.
    """
    there = np.ones(data.rows, bool)
    if data.targets.weights is not None:
        there = np.asarray(data.targets.weights) > 0.0
    rows = int(np.count_nonzero(there))
    if 0 < rows < guard.min_rows:
        raise InputError(f"{NAME}: {rows} rows, expected none or at least {guard.min_rows} (min_rows)")
    touched = features_of(data.X).touched(there)
    rare = int(np.count_nonzero((touched > 0) & (touched < guard.min_rows)))
    if rare:  # which they are is the owner's secret
        raise InputError(
            f"{NAME}: fewer than {guard.min_rows} rows (min_rows) touch {rare} of {data.features} features: leave such"
            " features out, merge rare levels (data.rare), or take a smaller min_rows"
        )
