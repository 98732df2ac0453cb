"""A NumPy array in a file, `.npy`: a row of numbers for each example. Nothing is unpickled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bmrm.data.archives import read_array
from bmrm.data.dataset import Dataset
from bmrm.data.files import about, open_bytes
from bmrm.data.layout import Alike
from bmrm.data.readers._core.columns import GROUP_DOC, IGNORE_DOC, WEIGHT_DOC, Roles, Table, Wanted
from bmrm.data.readers._core.formats import formats
from bmrm.data.readers._core.raw import Raw
from bmrm.problem import InputError
from bmrm.registry import parameter

_MAGIC = b"\x93NUMPY"


@formats.register("npy")
@dataclass(frozen=True)
class Npy(Wanted):
    """A NumPy array of numbers, (rows, columns), of which one column may hold the labels."""

    label: int | tuple[int, ...] | None = parameter(
        -1, doc="the column of labels, from 0 (-1: the last), or a list of columns of targets; null: none", example=0
    )
    weight: int | None = parameter(None, doc=WEIGHT_DOC, example=0)
    group: int | None = parameter(None, doc=GROUP_DOC, example=0)
    ignore: tuple[int, ...] | None = parameter(None, doc=IGNORE_DOC, example=(0,))

    suffixes: ClassVar[tuple[str, ...]] = (".npy",)

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Whether the content is that of `numpy.save`."""
        return head.startswith(_MAGIC)

    def scan(self, path: Path, part: int = 0, parts: int = 1, alike: Alike | None = None) -> Raw:
        """The share of the rows; every part reads the whole file."""
        with open_bytes(path) as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise InputError(f"{path}: not a NumPy array (.npy)")
            with about(path):
                array = read_array(file)
        if array.ndim != 2 or array.dtype.kind not in "fiub":
            raise InputError(f"{path}: an array of {array.dtype} of shape {array.shape}, expected rows of numbers")
        if not len(array):
            raise InputError(f"{path}: the file has no rows")
        roles = Table(path, list(map(str, range(array.shape[1]))), False).roles(self, alike)
        with about(path):
            data = _dataset(array, roles)
        data = replace(data, layout=roles.layout(formats.describe(self), None), labelled=bool(roles.label))
        return Raw(data, str(path)).share(part, parts)


def _dataset(array: Any, roles: Roles) -> Dataset:
    label: Any = list(roles.label)
    y = None if not label else array[:, label[0]] if len(label) == 1 else array[:, label]
    weights, groups = (None if column is None else array[:, column] for column in (roles.weight, roles.group))
    return Dataset.from_arrays(np.ascontiguousarray(array[:, list(roles.features)]), y, weights, groups)
