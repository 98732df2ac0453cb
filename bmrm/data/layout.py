"""Description of the files that a model was trained from, so that others are read in the same way, columns by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.matrix import Csr, Matrix
from bmrm.data.vocabulary import renumbered
from bmrm.problem import InputError
from bmrm.registry import nearest

SHOWN = 3
"""Most names in a message; of more their number is given."""
LONGEST = 40
"""Most characters of a name in a message."""


@dataclass(frozen=True, eq=False)
class Layout:
    """How the rows of some files were read; None where that is unknown.

    Attributes
    ----------
    format : `{name: ..., option: value}`.
    features : the number of columns, labels apart.
    names : of these columns.
    labels : the names of the columns of labels; () where there are none.
    places : the positions of these columns, from 0.
    one_based : for numbered features: whether they count from 1.
    text : for features that are text: the `TextReader`.
    encoding : for columns that are not the features themselves: the `Encoding` that makes these, and has their names.
    unknown : what the rows have that the encoding does not know.
    ignored : the names of columns that were left out.
    notes : what was decided in reading them, for the user; no property of the format.
    stated : whether the number of columns was given, not found.
    offset : the name of the column with the offset, which is no feature; None without.
    """

    format: Mapping[str, Any] | None = None
    features: int | None = None
    names: tuple[str, ...] | None = None
    labels: tuple[str, ...] | None = None
    places: tuple[int, ...] | None = None
    one_based: bool | None = None
    text: Any = None
    encoding: Any = None
    unknown: tuple[Any, ...] = ()
    ignored: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    stated: bool = False
    offset: str | None = None

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the columns of files, labels apart; None where they have none."""
        if self.encoding is None:
            return self.names
        names: tuple[str, ...] = self.encoding.sources
        return names if self.encoding.headed else None

    @property
    def width(self) -> int | None:
        """The number of columns of files, labels apart; None where it is unknown."""
        return self.features if self.encoding is None else len(self.encoding.sources)

    def described(self) -> dict[str, Any] | None:
        """Format and place of the labels as JSON, as ranks exchange them and a model file keeps them."""
        if self.format is None and not self.ignored and self.offset is None:
            return None
        labels = None if self.labels is None else list(self.labels)
        return {
            "format": None if self.format is None else dict(self.format),
            "labels": labels,
            "places": None if self.places is None else list(self.places),
            "ignored": list(self.ignored),
        } | ({} if self.offset is None else {"offset": self.offset})

    @classmethod
    def from_described(cls, plain: Any, **known: Any) -> Layout:
        """The inverse of `described`; InputError where it is damaged. A format outside the package is left out."""
        if plain is None:
            return cls(**known)
        format, labels, places, ignored = (plain.get(key) if isinstance(plain, dict) else None for key in DESCRIBED)
        fits = isinstance(format, dict) and isinstance(format.get("name"), str)
        offset = plain.get("offset") if isinstance(plain, dict) else None
        fits = fits or (format is None and isinstance(ignored, list) and bool(ignored or offset))
        fits = fits and isinstance(offset, (str, NoneType))
        for values, kind in ((labels, str), (places, int), (ignored, str)):
            fits = fits and (values is None or (isinstance(values, list) and all(type(v) is kind for v in values)))
        if not fits:
            raise InputError("the description of its input format is damaged")
        return cls(
            None if format is None or ":" in format["name"] else format,
            labels=None if labels is None else tuple(labels),
            places=None if places is None else tuple(places),
            ignored=tuple(ignored or ()),
            offset=offset,
            **known,
        )

    def of_format(self, name: str) -> Layout:
        """The part that applies to files of that format."""
        if self.format is not None and self.format["name"] == name:
            return self
        return replace(self, format=None, labels=None, places=None)


DESCRIBED = ("format", "labels", "places", "ignored")


@dataclass(frozen=True)
class Alike:
    """A request to read a file as others were read.

    Attributes
    ----------
    layout : that of the others.
    labelled : whether there must be labels.
    """

    layout: Layout
    labelled: bool = True


def aligned(X: Matrix, names: Sequence[str] | None, wanted: Sequence[str] | None, origin: str) -> Matrix:
    """The columns of `X` in the order of the names `wanted`; as they are where either has no names.

    Raises
    ------
    InputError
        If names are missing or unknown (some are listed), or are not distinct.
    """
    if names is None or wanted is None or tuple(names) == tuple(wanted):
        return X
    return columns_of(X, np.array(order_of(names, wanted, origin), np.intp))


def order_of(names: Sequence[str], wanted: Sequence[str], origin: str) -> list[int]:
    """The position of each wanted name.

    Raises
    ------
    InputError
        If names are missing or unknown (some are listed), or are not distinct.
    """
    place = {name: k for k, name in enumerate(names)}
    expected = dict.fromkeys(wanted)
    missing = [name for name in expected if name not in place]
    unknown = [name for name in place if name not in expected]
    if missing or unknown:
        complaints = []
        if missing:
            close = nearest(missing[0], unknown) if unknown else ""
            complaints.append(f"no {shown_names(missing, 'column')}{close}")
        if unknown:
            complaints.append(f"{'' if missing else 'has '}unknown {shown_names(unknown, 'column')}")
        raise InputError(f"{origin}: {'; '.join(complaints)}; expected the {len(expected)} columns of the training")
    if len(place) != len(names) or len(expected) != len(wanted):
        counts = Counter(names) | Counter(wanted)
        twice = next(name for name, count in counts.items() if count > 1)
        raise InputError(f"{origin}: several columns are named {shown(twice)}, so names do not tell their order")
    return [place[name] for name in wanted]


def columns_of(X: Matrix, order: NDArray[np.intp]) -> Matrix:
    """The matrix whose column j is column `order[j]` of `X`; columns that are not there are left out."""
    if not isinstance(X, Csr):
        return np.ascontiguousarray(X[:, order])
    place = np.full(X.columns, -1, np.int64)
    place[order] = np.arange(len(order))
    return renumbered(X, place, len(order))


def shown(name: str) -> str:
    """A name in quotes, cut where it is long."""
    return repr(name if len(name) <= LONGEST else name[: LONGEST - 3] + "...")


def shown_names(names: Sequence[str], what: str) -> str:
    """`columns 'a', 'b', 'c' and 4 more`."""
    first = ", ".join(map(shown, names[:SHOWN]))
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{what}{'s' if len(names) > 1 else ''} {first}{more}"
