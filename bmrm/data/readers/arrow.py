"""Tables of Apache Arrow, in Parquet or Arrow files (Feather too); needs pyarrow, the extra `arrow`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.files import about, compression, open_bytes
from bmrm.data.layout import Alike
from bmrm.data.raw_columns import CATEGORY, DATES, NUMBER, REMEDY, Codes, Coding, RawTable, level_of, no_levels
from bmrm.data.readers._core.columns import Roles, Table, Wanted, must_be_encoded
from bmrm.data.readers._core.formats import formats
from bmrm.data.readers._core.raw import Raw
from bmrm.data.readers._core.shares import even_share
from bmrm.problem import InputError, MissingLibraryError, shown
from bmrm.registry import nearest

_PARQUET, _ARROW = b"PAR1", b"ARROW1"
BATCH = 1 << 16
"""Rows of a Parquet file in a batch."""


@formats.register("arrow")
@dataclass(frozen=True)
class Arrow(Wanted):
    """A Parquet or Arrow file: columns of numbers, text and categories, with names."""

    suffixes: ClassVar[tuple[str, ...]] = (".parquet", ".pq", ".arrow", ".feather", ".ipc")

    @staticmethod
    def recognises(head: bytes) -> bool:
        """Whether the content is that of a Parquet or an Arrow file."""
        return head.startswith((_PARQUET, _ARROW))

    def scan(self, path: Path, part: int = 0, parts: int = 1, alike: Alike | None = None) -> Raw:
        """The share of the rows; every part reads the whole file."""
        return self.scan_columns(path, part, parts, alike, Coding() if alike is None else None)

    def scan_columns(
        self, path: Path, part: int, parts: int, alike: Alike | None = None, coding: Coding | None = None
    ) -> Raw:
        """As of `Tabular`."""
        with _opened(path) as stored:
            table = stored.table()
        if not table.num_rows:
            raise InputError(f"{path}: the file has no rows")
        return self._raw(path, table, alike, 0, coding).share(part, parts)

    def batches(
        self, path: Path, alike: Alike | None, coding: Coding | None = None, part: int = 0, parts: int = 1
    ) -> Iterator[Raw]:
        """As of `Batched`: the row groups of a Parquet file, some rows at a time, the record batches of another."""
        with _opened(path) as stored:
            start, stop = even_share(stored.groups, part, parts)
            first = sum(map(stored.rows_of, range(start)))
            for table in stored.batches(range(start, stop)):
                if table.num_rows:
                    yield self._raw(path, table, alike, first, coding)
                first += table.num_rows
        if parts == 1 and not first:
            raise InputError(f"{path}: the file has no rows")

    def _raw(self, path: Path, table: Any, alike: Alike | None, first: int, coding: Coding | None = None) -> Raw:
        """The rows of a table that begins with row `first` of the file."""
        names = _names(table, path)
        columns = Table(path, names, True, _index(table, names))
        roles = columns.roles(self, alike)
        complete, kinds = columns.kinds(roles, coding, alike)
        with about(path):
            said = _categories(table, names)
            wanted = [(k, kinds[k] or (CATEGORY if k in said else None)) for k in roles.features]
            found = _raw_table(table, names, wanted, complete, first)
            plain = not must_be_encoded(coding, alike) and all(kind == NUMBER for kind in found.kinds)
            data = _dataset(table, names, roles, first, found if plain else None)
        data = replace(data, layout=roles.layout(formats.describe(self), names), labelled=bool(roles.label))
        return Raw(data, str(path), table=None if plain else found, coding=coding)


def raw_of(format: Arrow, rows: Any, origin: str, coding: Coding, offset: str | None = None) -> Raw:
    """The rows of a record batch or a table in memory; errors name their `origin`.

    The column `offset` is no feature: it is added to the scores.
    """
    import pyarrow

    table = rows if isinstance(rows, pyarrow.Table) else _table(rows)
    if offset is None:
        return format._raw(Path(origin), table, None, 0, coding)
    with about(origin):
        names = _names(table, Path(origin))
        if names.count(offset) != 1:
            found = f"{names.count(offset)} columns are named {shown(offset)}, expected one"
            raise InputError(f"offset: {found}{nearest(offset, names)}")
        place = names.index(offset)
        numbers = _numbers(table.column(place), offset, 0)
    raw = format._raw(Path(origin), table.remove_column(place), None, 0, coding)
    return replace(raw, data=raw.data.with_offset(numbers))


@dataclass(frozen=True)
class _Stored:
    """An open file: its whole table, or that of some groups of rows in batches, as tables of pyarrow.

    Attributes
    ----------
    groups, rows_of : how many there are, and the number of rows of each.
    """

    table: Callable[[], Any]
    batches: Callable[[range], Iterator[Any]]
    groups: int
    rows_of: Callable[[int], int]


@contextmanager
def _opened(path: Path) -> Iterator[_Stored]:
    """The file; whatever pyarrow says of damage is an InputError."""
    try:
        import pyarrow
        from pyarrow import ipc, parquet
    except ImportError as error:
        raise MissingLibraryError(f"{path}: Parquet and Arrow files need", "pyarrow", "arrow") from error
    with open_bytes(path) as file:
        head = file.read(len(_ARROW))
        file.seek(0)
        if not head.startswith((_PARQUET, _ARROW)):
            raise InputError(f"{path}: neither a Parquet nor an Arrow file")
        try:
            source = pyarrow.BufferReader(file.read()) if compression(path) else pyarrow.PythonFile(file)
            if head.startswith(_PARQUET):
                rows = parquet.ParquetFile(source)
                count = rows.num_row_groups
                of_group = rows.metadata.row_group
                yield _Stored(
                    rows.read, lambda some: _of_groups(rows, some), count, lambda k: int(of_group(k).num_rows)
                )
            else:
                reader = ipc.open_file(source)
                batch, count = reader.get_batch, reader.num_record_batches
                yield _Stored(
                    reader.read_all,
                    lambda some: (_table(batch(k)) for k in some),
                    count,
                    lambda k: int(batch(k).num_rows),
                )
        except (pyarrow.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise InputError(f"{path}: the file is damaged ({reason})") from error
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: the name of a column is not UTF-8 ({error.reason})") from error


def _of_groups(rows: Any, some: range) -> Iterator[Any]:
    """Row groups of a Parquet file one after the other, each in batches."""
    for group in some:
        yield from map(_table, rows.iter_batches(BATCH, row_groups=[group]))


def _table(batch: Any) -> Any:
    import pyarrow

    return pyarrow.Table.from_batches([batch])


def _names(table: Any, path: Path) -> list[str]:
    """The names of the columns."""
    names = []
    for k in range(table.num_columns):
        try:
            names.append(str(table.schema.field(k).name))
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: the name of column {k} is not UTF-8 ({error.reason})") from error
    return names


_INDEX = re.compile(r"__index_level_\d+__")
"""pandas' names for levels of an index that have none."""


def _index(table: Any, names: Sequence[str]) -> list[int]:
    """The columns that are the index of a data frame of pandas, by its metadata or by their names."""
    said = _of_pandas(table, "index_columns")
    named = {name for name in said if isinstance(name, str)} if isinstance(said, list) else set()
    return [k for k, name in enumerate(names) if name in named or _INDEX.fullmatch(name)]


def _of_pandas(table: Any, key: str) -> Any:
    """What pandas has written beside a data frame."""
    with suppress(ValueError, AttributeError):  # metadata are of whoever wrote them
        return json.loads((table.schema.metadata or {}).get(b"pandas", b"{}")).get(key, [])
    return []


def _categories(table: Any, names: Sequence[str]) -> set[int]:
    """The columns that were categories in a data frame of pandas, also those of numbers."""
    said = _of_pandas(table, "columns")
    listed = [one for one in said if isinstance(one, dict)] if isinstance(said, list) else []
    named = {one.get("name") for one in listed if one.get("pandas_type") == "categorical"}
    return {k for k, name in enumerate(names) if name in named and _is_dictionary(table.column(k).type)}


def _raw_table(
    table: Any, names: Sequence[str], wanted: Sequence[tuple[int, str | None]], complete: bool, first: int
) -> RawTable:
    """The columns of the features, of these kinds; None where their types say what they are."""
    kinds, columns = [], []
    for k, kind in wanted:
        held = _decoded(table.column(k), names[k], first)
        _refuse_times(held, names[k], kind)
        if kind is None and _is_text(held.type):
            kind = CATEGORY
            if not _is_dictionary(table.column(k).type):
                _refuse_no_levels(held, names[k], first)
        kinds.append(kind or NUMBER)
        columns.append(
            _numbers(held, names[k], first, complete)
            if kinds[-1] == NUMBER
            else _codes(held, names[k], first, complete)
        )
    return RawTable(tuple(names[k] for k, _ in wanted), tuple(kinds), tuple(columns), table.num_rows)


def _dataset(table: Any, names: Sequence[str], roles: Roles, first: int, found: RawTable | None) -> Dataset:
    """The rows; without features where these are not the columns `found` themselves."""
    columns: list[Any] = [] if found is None else list(found.columns)
    kind = np.float32 if columns and all(column.dtype == np.float32 for column in columns) else np.float64
    X = np.empty((table.num_rows, len(columns)), kind)
    for k, column in enumerate(columns):
        X[:, k] = column
    y: Any = None
    if len(roles.label) == 1:
        y = _values(table.column(roles.label[0]), names[roles.label[0]], first)
    elif roles.label:
        y = np.stack([_numbers(table.column(k), names[k], first) for k in roles.label], axis=1).astype(np.float64)
    weights = None if roles.weight is None else _numbers(table.column(roles.weight), names[roles.weight], first)
    groups = None if roles.group is None else _values(table.column(roles.group), names[roles.group], first)
    if found is not None:
        return Dataset.from_arrays(X, y, weights, groups)
    rows = Dataset.from_arrays(np.zeros((table.num_rows, 1)), y, weights, groups)
    return replace(rows, X=X)


def _numbers(column: Any, name: str, first: int, complete: bool = True) -> NDArray[Any]:
    """A column of numbers or truth values, float32 where it is, else float64; nan where one may be missing and is."""
    import pyarrow

    column = _decoded(column, name, first)
    kind = column.type
    number = pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind) or pyarrow.types.is_decimal(kind)
    nothing = pyarrow.types.is_null(kind) and not complete
    if not number and not nothing and not pyarrow.types.is_boolean(kind):
        raise InputError(f"column {shown(name)} holds {kind}, expected numbers")
    if complete:
        _refuse_nulls(column, name, first)
    wanted = pyarrow.float32() if pyarrow.types.is_float32(kind) else pyarrow.float64()
    found = np.asarray(column.cast(wanted, safe=False).to_numpy())
    bad = np.flatnonzero(~np.isfinite(found) if complete else np.isinf(found))
    if bad.size:
        said = f"; {REMEDY}" if np.isnan(found[bad[0]]) else ""
        raise InputError(f"column {shown(name)}, row {first + bad[0]}: {found[bad[0]]}, expected a finite number{said}")
    return found


def _codes(column: Any, name: str, first: int, complete: bool) -> Codes:
    """A column of text by the numbers of its levels; of numbers, each is its own level."""
    import pyarrow

    if complete:
        _refuse_nulls(column, name, first)
    if pyarrow.types.is_nested(column.type) or pyarrow.types.is_binary(column.type):
        raise InputError(f"column {shown(name)} holds {column.type}, expected text or numbers")
    if str(column.type) == "string_view":  # pyarrow has no dictionary of it
        column = pyarrow.chunked_array([column.combine_chunks().cast(pyarrow.large_string())])
    known = column.combine_chunks().dictionary_encode()
    levels = [level_of(value) for value in known.dictionary.to_pylist()]
    codes = known.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    merged = Codes.of(levels, len(levels))  # 1 and 1.0 are one level, and nan is none
    found = np.append(merged.codes, np.int32(-1))[codes]
    if complete and (found < 0).any():
        _refuse_row(int(np.argmax(found < 0)), name, first)
    return Codes(merged.levels, found)


def _is_text(kind: Any) -> bool:
    import pyarrow

    return pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind) or str(kind) == "string_view"


def _is_dictionary(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_dictionary(kind))


def _refuse_times(column: Any, name: str, kind: str | None) -> None:
    import pyarrow

    if kind in (None, NUMBER) and pyarrow.types.is_temporal(column.type):
        raise InputError(f"column {shown(name)} holds {column.type}: {DATES}")


def _refuse_no_levels(column: Any, name: str, first: int) -> None:
    """Raise InputError where text of which nobody has said that it is levels seems to be something else."""
    codes = _codes(column, name, first, complete=False)
    found = no_levels(codes.levels)
    if found is None or found[1] == "numbers and text":
        return
    told = DATES if found[1] == "dates" else "expected numbers; convert them, or name the column in data.categorical"
    raise InputError(f"column {shown(name)}, row {first + codes.first_of(found[0])}: text ({found[0]!r:.40}), {told}")


def _values(column: Any, name: str, first: int) -> NDArray[Any]:
    """Labels or groups: text, numbers, truth values or times."""
    import pyarrow

    column = _decoded(column, name, first)
    kind = column.type
    _refuse_nulls(column, name, first)
    if _is_text(kind):
        return np.array(column.to_pylist(), np.str_)
    if pyarrow.types.is_decimal(kind):
        column = column.cast(pyarrow.float64())
    if pyarrow.types.is_nested(kind) or pyarrow.types.is_binary(kind):
        raise InputError(f"column {shown(name)} holds {kind}, expected labels")
    found = np.asarray(column.to_numpy())
    if found.dtype.kind == "f" and np.isnan(found).any():
        row = first + int(np.argmax(np.isnan(found)))
        raise InputError(f"column {shown(name)}, row {row}: the value is missing (nan)")
    return found


def _decoded(column: Any, name: str, first: int) -> Any:
    """The column, of categories their values."""
    import pyarrow

    _refuse_damage(column, name, first)
    if not pyarrow.types.is_dictionary(column.type):
        return column
    kind = column.type.value_type
    values = [chunk.dictionary for chunk in column.chunks]
    if str(kind) == "string_view":  # as polars writes categories; pyarrow has no `take` for it
        kind = pyarrow.large_string()
        values = [pyarrow.array(some.to_pylist(), kind) for some in values]
    taken = [some.take(chunk.indices) for some, chunk in zip(values, column.chunks, strict=True)]
    return pyarrow.chunked_array(taken, kind)


def _refuse_damage(column: Any, name: str, first: int) -> None:
    """Raise InputError where a column refers to what is not there, or has text that is not UTF-8: pyarrow trusts it."""
    import pyarrow

    row = first
    for chunk in column.chunks:
        try:
            chunk.validate(full=True)
        except pyarrow.ArrowException as error:
            reason = str(error).splitlines()[0][:200]
            found = _NOT_TEXT.search(reason)
            if found is None:
                raise InputError(f"column {shown(name)}: the file is damaged ({reason})") from error
            raise InputError(f"column {shown(name)}, row {row + int(found[1])}: the text is not UTF-8") from error
        row += len(chunk)


_NOT_TEXT = re.compile(r"[Ii]nvalid UTF-?8 sequence at string index (\d+)")


def _refuse_nulls(column: Any, name: str, first: int) -> None:
    if column.null_count:
        _refuse_row(next(k for k, missing in enumerate(column.is_null().to_pylist()) if missing), name, first)


def _refuse_row(row: int, name: str, first: int) -> NoReturn:
    raise InputError(f"column {shown(name)}, row {first + row}: the value is missing; {REMEDY}")
