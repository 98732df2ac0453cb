"""Writing of data sets as tables of named columns: csv, Parquet and Arrow files."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from bmrm.data.dataset import Dataset
from bmrm.data.files import bare_suffix, compressed_like_its_name, named_compressed, whole_file
from bmrm.data.label_types import restored_rows
from bmrm.data.labels import LabelSets
from bmrm.data.matrix import Csr
from bmrm.problem import InputError, MissingLibraryError

NUMBERS_AT_A_TIME = 1 << 20
"""Of a part that is held in memory as a dense table."""


@dataclass(frozen=True)
class Columns:
    """The names of the columns of a table.

    Attributes
    ----------
    features : their names, `x0`, `x1`, ... where they have none.
    beside : weights, groups and offset, where rows have them.
    targets : the last ones; none for rows without labels.
    """

    features: tuple[str, ...]
    beside: tuple[str, ...]
    targets: tuple[str, ...]

    @property
    def all(self) -> list[str]:
        """In their order."""
        return [*self.features, *self.beside, *self.targets]

    def format(self, name: str) -> dict[str, Any] | None:
        """What a reader must be told; None where it reads the last column as labels without being told."""
        told: dict[str, Any] = {}
        if len(self.targets) != 1:
            told["label"] = list(self.targets) or None
        for column in self.beside:
            role = column.rstrip("_")
            if role in ("weight", "group"):
                told[role] = column
        return {"name": name, **told} if told else None


def columns_of(path: str | PathLike[str], data: Dataset) -> Columns:
    """The names; InputError for sets of labels and several offsets a row, which a table has no columns for."""
    targets = data.targets
    y: Any = targets.y
    if isinstance(y, LabelSets) and data.labelled:
        raise InputError(f"{fspath(path)}: a table holds no sets of labels, expected svmlight or npz")
    if targets.offset is not None and targets.offset.ndim != 1:
        raise InputError(f"{fspath(path)}: a table holds one offset a row, expected npz")
    features = data.feature_names or tuple(f"x{k}" for k in range(data.features))
    taken = set(features)

    def free(name: str) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    beside = (("weight", targets.weights), ("group", targets.groups), ("offset", targets.offset))
    if not data.labelled:
        names: Sequence[str] = ()
    elif y.ndim == 1:
        known = None if data.layout is None else data.layout.labels
        names = known if known is not None and len(known) == 1 else ("target",)
    else:
        names = [f"target{k}" for k in range(y.shape[1])]
    return Columns(features, tuple(free(n) for n, one in beside if one is not None), tuple(map(free, names)))


def _parts(data: Dataset) -> Iterator[list[Any]]:
    """The columns of some rows at a time, in the order of `Columns.all`."""
    step = max(1, NUMBERS_AT_A_TIME // max(1, data.features))
    for start in range(0, data.rows, step):
        part = data.part(start, min(start + step, data.rows))
        X: Any = part.X.to_dense() if isinstance(part.X, Csr) else part.X
        targets = part.targets
        found = [*X.T]
        found += [one for one in (targets.weights, targets.groups, targets.offset) if one is not None]
        if data.labelled:
            y = restored_rows(targets.y, targets.dtype)  # type: ignore[arg-type]
            found += [y] if y.ndim == 1 else [*y.T]
        yield found


def write_csv(path: str | PathLike[str], data: Dataset) -> None:
    """Write a line of names and a line for each row, targets last; tabs between them where the name says tsv.

    Numbers are the shortest text that reads back to the same bits.

    Raises
    ------
    InputError
        For sets of labels, several offsets a row, and a file that cannot be written.
    """
    columns = columns_of(path, data)
    delimiter = "\t" if bare_suffix(Path(path)) == ".tsv" else ","
    with compressed_like_its_name(path) as file:
        _write_lines(file, [columns.all], delimiter)
        for part in _parts(data):
            _write_lines(file, zip(*(_texts(one) for one in part)), delimiter)


def _write_lines(file: Any, rows: Any, delimiter: str) -> None:
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter, lineterminator="\n").writerows(rows)
    file.write(stream.getvalue().encode())


def _texts(column: Any) -> list[Any]:
    return [repr(v).removesuffix(".0") if isinstance(v, float) else v for v in column.tolist()]


def write_arrow(path: str | PathLike[str], data: Dataset) -> None:
    """Write a Parquet file, or an Arrow file where the name says so, a part of the rows at a time; targets last.

    Raises
    ------
    InputError
        For sets of labels, several offsets a row, a name of a compressed file (Parquet compresses itself), and a file
        that cannot be written.
    """
    try:
        import pyarrow
        from pyarrow import ipc, parquet
    except ImportError as error:
        raise MissingLibraryError(f"{fspath(path)}: Parquet and Arrow files need", "pyarrow", "arrow") from error
    if named_compressed(Path(path)):
        raise InputError(
            f"{fspath(path)}: Parquet and Arrow files are not compressed again, expected a name without that"
        )
    columns = columns_of(path, data)
    of_parquet = bare_suffix(Path(path)) in (".parquet", ".pq")
    new: Callable[[Any, Any], Any] = parquet.ParquetWriter if of_parquet else ipc.new_file
    with whole_file(path) as file:
        writer = None
        for part in _parts(data):
            table = pyarrow.table(dict(zip(columns.all, map(pyarrow.array, part))))
            writer = writer or new(file, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()
