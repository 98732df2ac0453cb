"""Vectors, scores and errors: what the whole vocabulary is spelled with."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bmrm.words import shortened

if TYPE_CHECKING:
    from typing_extensions import TypeIs

T = TypeVar("T")
Vector = NDArray[np.float64]
"""A float64 vector; weights have shape (dim,)."""

Scores = Any
"""Scores of the rows, one float64 per row or (rows, scores per row).

Opaque to solvers: they keep scores and form linear combinations (`f + t * step`), nothing else,
because under MPI the object stands for arrays that live on other ranks.
"""


class BmrmError(Exception):
    """Every error that this package raises on purpose; words that are too long for a message are cut in the middle."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*(shortened(part) if isinstance(part, str) else part for part in parts))


class InputError(BmrmError, ValueError):
    """A config, file, array or label is not what was asked for; the message names the place."""


class MissingLibraryError(InputError):
    """A library of an extra is needed that is not installed; the message has the command that installs it.

    Parameters
    ----------
    what : what needs it, with its verb: "completion needs".
    library : its name.
    extra : of this package, that brings it.
    """

    def __init__(self, what: str, library: str, extra: str) -> None:
        super().__init__(f"{what} {library}, which is not installed; pip install 'bmrm[{extra}]'")


class OutputError(InputError):
    """Results could not be written; the message names the file and the reason."""


class IncompatibleError(BmrmError, TypeError):
    """A solver lacks an ability of the risk or the regularizer; the message says which, and what would do."""


_REPR = reprlib.Repr()  # looks at no more than it shows: aliases make small YAML text endless
_REPR.maxlevel = 4
_REPR.maxlist = _REPR.maxtuple = _REPR.maxdict = _REPR.maxset = _REPR.maxfrozenset = 8
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 1000
SHOWN = 60
"""Characters of a user's value in a message."""


def shown(value: object, most: int = SHOWN) -> str:
    """`repr` of a value for a message, cut in the middle where it is long; never fails."""
    try:
        text = _REPR.repr(value)
    except (ValueError, RecursionError):  # integers of more digits than Python writes, lists that hold themselves
        text = f"<{type(value).__name__}>"
    return text if len(text) <= most else f"{text[: most - 15]}...{text[-12:]}"


_ANSWERS: dict[tuple[type, type], bool] = {}


def provides(one: object, kind: type[T]) -> TypeIs[T]:
    """`isinstance(one, kind)` for a protocol, asked once for each class: to ask takes longer than a small problem."""
    question = type(one), kind
    if question not in _ANSWERS:
        _ANSWERS[question] = isinstance(one, kind)
    return _ANSWERS[question]


def lacking(one: object, names: Iterable[str]) -> Iterator[str]:
    """The members that `one` does not have, for messages about objects of a user's."""
    return (name for name in names if not hasattr(one, name))
