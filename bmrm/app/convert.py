"""Data from one format to another; a store is written part by part."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from bmrm.app.filling import fill
from bmrm.app.guarded import refuse_of_owner
from bmrm.data.dataset import Dataset
from bmrm.data.files import bare_suffix
from bmrm.data.layout import Layout
from bmrm.data.layout import columns_of as columns_in_order
from bmrm.data.matrix import features_of
from bmrm.data.parts import AT_A_TIME, Parts
from bmrm.data.raw_columns import Coding
from bmrm.data.readers._core.formats import Format
from bmrm.data.readers._core.raw import Raw
from bmrm.data.reading import read
from bmrm.data.store import StoreWriter, new_store
from bmrm.data.table_writers import columns_of, write_arrow, write_csv
from bmrm.data.thesis_writers import write_harwell_boeing, write_june, write_spardat
from bmrm.data.writers import write_npz, write_svmlight
from bmrm.mpi.group import Alone, Group, together
from bmrm.problem import InputError, Vector, shown
from bmrm.registry import Range, checked_value

WRITERS: Mapping[str, Callable[[str | PathLike[str], Dataset], None]] = {
    ".npz": write_npz,
    **dict.fromkeys((".svm", ".svmlight", ".libsvm"), write_svmlight),
    **dict.fromkeys((".csv", ".tsv"), write_csv),
    **dict.fromkeys((".parquet", ".pq", ".arrow", ".feather"), write_arrow),
    ".spardat": write_spardat,
    ".ssv": write_june,
    ".hb": write_harwell_boeing,
}
TABLES = {write_csv: "csv", write_arrow: "arrow"}
"""Writers of columns, and the formats that read them."""
STORE = ".store"


@dataclass(frozen=True)
class Converted:
    """What was written."""

    rows: int
    features: int
    entries: int
    format: Mapping[str, Any] | None = None
    """What a reader of the file must be told, as `data.format`; None for nothing."""


def convert(
    source: str | Sequence[str],
    target: str | PathLike[str],
    *,
    format: str | Mapping[str, Any] | Format = "auto",
    columns: int | None = None,
    seed: int = 0,
    at_a_time: int = AT_A_TIME,
    group: Group | None = None,
) -> Converted | None:
    """Collective: write the rows of a source in another format, which the name of the target says.

    A store is written part by part, in memory for a part, and for labels: from svmlight text and csv, compressed or
    not, from Parquet by row groups and from Arrow by record batches. Ranks read a share each. All else is the work of
    rank 0, which reads the rows whole.

    Parameters
    ----------
    source, format : those of `bmrm.data.reading.scan`.
    target : `.store` (a folder), `.npz`, `.svm`, `.csv`, `.tsv`, `.parquet`, `.arrow`, `.spardat`, `.hb`, or `.ssv` for
        the two files of june; `.svm.gz` and the like are compressed.
    columns : so many features, drawn without replacement, in their order; None for all.
    seed : of the draw.
    at_a_time : bytes of text in a part, about.
    group : the ranks; None for this process alone.

    Returns
    -------
    Converted
        On rank 0; None elsewhere.

    Raises
    ------
    InputError
        For a name of another kind; for what cannot be read, or written in this format; for more columns than there are;
        where ranks share out a store, and the owner of one asks for a guard (`bmrm.app.guarded.VARIABLE`).
    """
    checked_value("columns", columns, (int, NoneType), Range(least=1))
    checked_value("seed", seed, (int,), Range(least=0))
    group = Alone() if group is None else group
    with together(group):
        suffix = checked_target(target)
        if group.size > 1 and suffix == STORE and columns is None:
            refuse_of_owner("`bmrm convert` puts the rows of all ranks into one store; run it alone")
    names = [source] if isinstance(source, str) else list(source)
    if suffix == STORE and columns is None:
        parts = Parts(names, format, at_a_time, group.rank, group.size)
        return _to_store(parts, Path(target), group)
    found = None
    with together(group):
        if group.rank == 0:
            found = write_as(target, chosen_columns(read(source, format=format), columns, seed), ", ".join(names))
    return found


def _to_store(parts: Parts, target: Path, group: Group) -> Converted | None:
    """Collective: each rank writes a store of its rows beside the target, in which rank 0 puts them together."""
    token = group.broadcast(secrets.token_hex(4))
    mine = target if group.rank == 0 else target.with_name(f".{target.name}.{token}.{group.rank}.part")
    try:
        with ExitStack() as stack:
            with together(group):
                store = stack.enter_context(new_store(mine))
            fill(store, parts, Coding(), group, parts.origin)
            share = [str(mine), store.extent.tolist(), store.numbered] if store.rows else None
            with together(group):
                if share is not None and group.rank > 0:
                    store.finish(parts.origin, agreed=False)
                    stack.close()
            shares = group.gather(share) or []
            found = None
            with together(group):
                if group.rank == 0:
                    for path, extent, numbered in filter(None, shares[1:]):
                        _append(store, path, np.array(extent), 0 if numbered else None)
                    header = store.finish(parts.origin)
                    rows, features = header["shape"]
                    found = Converted(rows, features, store.entries)
        return found
    finally:
        if group.rank > 0:
            shutil.rmtree(mine, ignore_errors=True)


def _append(store: StoreWriter, path: str, extent: Vector, first: int | None) -> None:
    """The rows of another store, some at a time."""
    data = read(path, format={"name": "store", "stream": True})
    for start, stop, _ in features_of(data.X).parts():
        store.add(data.part(start, stop), extent, first)


def checked_target(target: str | PathLike[str]) -> str:
    """The suffix of a file or folder that can be written; InputError for another."""
    suffix = bare_suffix(Path(target))
    if suffix != STORE and suffix not in WRITERS:
        known = ", ".join([STORE, *WRITERS])
        raise InputError(f"{shown(fspath(target))}: expected a name that ends in one of {known}")
    return suffix


def write_as(target: str | PathLike[str], data: Dataset, origin: str) -> Converted:
    """Write rows of an origin in the format that the name says; InputError where it cannot hold them."""
    suffix, told = checked_target(target), None
    if suffix == STORE:
        with new_store(target) as store:
            raw = Raw(data, origin)
            store.add(data, raw.extent, raw.first)
            store.finish(origin)
    else:
        writer = WRITERS[suffix]
        writer(target, data)
        if writer in TABLES:
            told = columns_of(target, data).format(TABLES[writer])
    return Converted(data.rows, data.features, data.nnz, told)


def chosen_columns(data: Dataset, columns: int | None, seed: int) -> Dataset:
    """Some features, drawn without replacement, in their order; all for None. InputError for more than there are."""
    if columns is None:
        return data
    if columns > data.features:
        raise InputError(f"columns is {columns}, expected at most the {data.features} features")
    kept = np.sort(np.random.default_rng(seed).choice(data.features, columns, replace=False))
    names = data.feature_names
    layout = replace(
        data.layout or Layout(),
        features=columns,
        names=None if names is None else tuple(names[k] for k in kept),
        encoding=None,
    )
    return replace(data, X=columns_in_order(data.X, kept), layout=layout)
