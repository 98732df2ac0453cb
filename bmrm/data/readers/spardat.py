"""`spardat` of Komarek's thesis (2004, B.3): a target, then the bare indices of the features that a row has.

Indices count from 0; those of a row are distinct, in any order; `:1` behind one means nothing. Text behind a `#` at the
start of a line is a comment. With a threshold targets become 1 and 0, as `rows.txt:42.42+` says it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.files import is_number, open_text
from bmrm.data.label_types import type_of_numbers
from bmrm.data.layout import Alike, Layout
from bmrm.data.matrix import MOST_COLUMNS, Csr
from bmrm.data.readers._core.formats import Divisible, formats
from bmrm.data.readers._core.raw import Raw
from bmrm.data.readers._core.thesis_names import THRESHOLD
from bmrm.problem import InputError, Targets, shown
from bmrm.registry import check_parameters, parameter

COMMENT = "#"


@formats.register("spardat")
@dataclass(frozen=True)
class Spardat(Divisible):
    """A target and bare indices, from 0, of the features that are 1: `-3.5 0 17 204`, one row a line."""

    threshold: str | None = parameter(
        None,
        doc="targets of at least (+) or at most (-) this number are 1, others 0; null: they stay as they are",
        example="0.5+",
    )

    suffixes: ClassVar[tuple[str, ...]] = (".spardat",)

    def __post_init__(self) -> None:
        check_parameters(self)
        if self.threshold is not None and not THRESHOLD.fullmatch(self.threshold):
            raise InputError(
                f"threshold is {shown(self.threshold)}, expected a number with + (at least) or - (at most): 42.42+"
            )

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Never: the text may be that of a table, too."""
        return False

    def last_border(self, text: bytes) -> int:
        """As of `Divisible`."""
        return text.rfind(b"\n") + 1

    def has_rows(self, text: bytes) -> bool:
        """As of `Divisible`."""
        return any(line.strip() and not line.startswith(COMMENT.encode()) for line in text.split(b"\n"))

    def scan(self, path: Path, part: int = 0, parts: int = 1, alike: Alike | None = None) -> Raw:
        """The share of the rows; every part reads the whole file."""
        with open_text(path) as file:
            targets, X = _rows(file, path)
        if not X.shape[0]:
            raise InputError(f"{path}: the file has no rows")
        y, dtype = self._labels(targets)
        layout = Layout(formats.describe(self))
        return Raw(Dataset(X, Targets(y, dtype=dtype), layout), str(path), 0, 0).share(part, parts)

    def _labels(self, targets: NDArray[np.float64]) -> tuple[NDArray[np.float64], str]:
        if self.threshold is None:
            return targets, type_of_numbers(targets)
        limit = float(self.threshold[:-1])
        positive = targets >= limit if self.threshold[-1] == "+" else targets <= limit
        return positive.astype(np.float64), "int64"


def _rows(lines: Iterator[str] | Any, path: Path) -> tuple[NDArray[np.float64], Csr]:
    targets, indices, ends = array("d"), array("q"), array("q", [0])
    for number, line in enumerate(lines, 1):
        tokens = [] if line.startswith(COMMENT) else line.split()
        if not tokens:
            continue
        target = float(tokens[0]) if is_number(tokens[0]) else np.nan
        if not np.isfinite(target):
            raise InputError(f"{path}, line {number}: the target is {shown(tokens[0])}, expected a finite number")
        targets.append(target)
        indices.extend(indices_of(tokens[1:], path, number))
        ends.append(len(indices))
    return np.array(targets), table_of(indices, ends)


def indices_of(tokens: Sequence[str], path: Path, line: int) -> list[int]:
    """The indices of a row, rising; InputError names the line, and what is no index, or there twice."""
    try:
        found = sorted(int(token.removesuffix(":1")) for token in tokens)
    except ValueError:
        found = [-1]
    if (found and not 0 <= found[0] <= found[-1] < MOST_COLUMNS) or any("_" in token for token in tokens):
        strange = next(token for token in tokens if not _is_index(token))
        more = "; index:value pairs are those of svmlight" if ":" in strange else ""
        raise InputError(f"{path}, line {line}: {shown(strange)}, expected the index of a feature that is 1{more}")
    twice = next((a for a, b in pairwise(found) if a == b), None)
    if twice is not None:
        raise InputError(f"{path}, line {line}: the index {twice} is there twice")
    return found


def _is_index(token: str) -> bool:
    text = token.removesuffix(":1")
    return text.isascii() and text.isdigit() and int(text[:20]) < MOST_COLUMNS


def table_of(indices: Any, ends: Any) -> Csr:
    """Rows that are 1 at these indices."""
    columns = np.array(indices, np.int64)
    return Csr(np.array(ends, np.int64), columns.astype(np.int32), None, int(columns.max(initial=-1)) + 1)
