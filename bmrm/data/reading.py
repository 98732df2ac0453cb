"""Reading of all data: files in any format, bundled and generated sets, divided among ranks.

Reading has two steps, because the parts must agree on how many features there are and whether they count from 1:

    raw = scan("shards/*.svm", part=group.rank, parts=group.size)      # errors: wrap in `together(group)`
    extent = group.max(raw.extent)                                     # the only thing to agree on
    data = raw.dataset(extent, features=None)                          # a Dataset; InputError if too wide
    test = scan("test.svm", ...).dataset(test_extent, features=data.features, one_based=from_one(extent))

`read(source)` is both steps for one process.

A source is a path, a glob, a list of these, `sklearn:NAME` or `synthetic:NAME?option=value`. What each part reads:

- several files (a list or a glob): a contiguous run of them for each part, of about the same size; it begins and ends
inside a file where that is plain svmlight text, else with whole files;
- a single file: a share of its bytes if it is plain svmlight text, else everything is read and a share of the rows is
kept;
- `{rank}` in a path stands for `part` (`{rank:03d}` for padding): that file, whole;
- `sklearn:`, `synthetic:`: a share of the rows.

Shares are contiguous and in the order of the parts, so a row's place in the whole is its place in the part plus the
rows of the parts before (which is how the result of `read_weights` is divided). A part may be left without rows; a file
that is named and has none is an error, and so is a glob that matches nothing.
"""

from __future__ import annotations

import glob
import importlib
import math
import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bmrm.data.dataset import Dataset
from bmrm.data.files import divisible, is_number, open_text
from bmrm.data.layout import Alike, Layout
from bmrm.data.raw_columns import Coding
from bmrm.data.readers._core.formats import ByBytes, Format, Tabular, by_suffix, formats, recognised
from bmrm.data.readers._core.raw import Raw, from_one, join, nothing
from bmrm.data.readers._core.shares import file_share
from bmrm.data.readers._core.thesis_names import parsed
from bmrm.problem import InputError, Vector, shown

__all__ = ["Source", "format_for", "from_one", "read", "scan"]

Source = str | PathLike[str] | Sequence[str | PathLike[str]]

# Prefix of a source -> the function that makes its data set.
_MAKERS = {"sklearn": "bmrm.data.generators:bundled", "synthetic": "bmrm.data.generators:load"}
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_RANK = re.compile(r"\{rank(?::(0?(?:\d{1,2}|1\d\d|2[0-4]\d|25[0-5]))d)?\}")


def scan(
    source: Source,
    *,
    format: str | Mapping[str, Any] | Format = "auto",
    part: int = 0,
    parts: int = 1,
    alike: Alike | None = None,
    coding: Coding | None = None,
) -> Raw:
    """The share of the rows of a source, before the parts have agreed; see the head of this file.

    Parameters
    ----------
    source : path, glob, list of these, `sklearn:NAME` or `synthetic:NAME?option=value`; also `rows.txt:42.42+` and
        `factors.ssv:activations.ssv:Act`, the names of spardat and june.
    format : "auto", the name of a format, `{"name": name, option: value}`, or an instance such as
        `Svmlight(one_based=True)`. With the name "auto" there may be the options `header` and `ignore`, see
        `with_columns`.
    part, parts : the number of this share, from 0, and of all shares.
    alike : read as other files were read, the test data as the training data: in their format, unless the name or
        `format` says otherwise, labels in the columns of the same names, features in the order of their names.
    coding : what is wanted of columns that hold text or lack values, in training files. Default: text is categories,
        or what `alike` says.

    Raises
    ------
    InputError
        Naming the file, and the line where there is one.
    """
    coding = Coding() if coding is None and alike is None else coding
    sources = [source] if isinstance(source, (str, PathLike)) else list(source)
    names = [fspath(one) for one in sources]
    if not names:
        raise InputError("the list of files is empty")
    names, format = parsed(names, format)
    _refuse_addresses(names)
    origin = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    prefix, _, rest = names[0].partition(":")
    if prefix in _MAKERS:
        if len(names) > 1:
            raise InputError(f"{names[0]}: cannot be one of a list")
        made = _without(Raw(_maker(prefix)(rest), origin), format, alike)
        _refuse_coding(coding, origin, "bundled or generated rows")
        return _in_order(made.share(part, parts), alike)
    if any(_RANK.search(name) for name in names):
        files = [path for name in names for path in _files(_RANK.sub(lambda match: _padded(part, match), name))]
        return _scan_files(files, format, origin, alike, coding)
    files = [path for name in names for path in _files(name)]
    if len(files) == 1:
        return _scan_file(files[0], format, part, parts, alike, coding)
    return _scan_files(files, format, origin, alike, coding, part, parts)


def files_of(source: Source) -> list[Path]:
    """The files of a source, those that match its globs in their order; none of one that is no list of files.

    Such as bundled and generated rows, or a file of each rank.
    """
    names = [fspath(one) for one in ([source] if isinstance(source, (str, PathLike)) else source)]
    if parsed(names, "auto")[0] != names or any(is_made(name) or _RANK.search(name) for name in names):
        return []
    _refuse_addresses(names)
    return [path for name in names for path in _files(name)]


def is_made(source: str) -> bool:
    """Whether a source is bundled or generated, not read from files."""
    return source.partition(":")[0] in _MAKERS


def read(
    source: Source,
    *,
    format: str | Mapping[str, Any] | Format = "auto",
    features: int | None = None,
    one_based: bool | None = None,
    coding: Coding | None = None,
) -> Dataset:
    """All rows of a source. `features` and `one_based` are those of `Raw.dataset`, the rest that of `scan`."""
    return scan(source, format=format, coding=coding).dataset(features=features, one_based=one_based)


def _scan_files(
    files: Sequence[Path],
    format: str | Mapping[str, Any] | Format,
    origin: str,
    alike: Alike | None,
    coding: Coding | None,
    part: int = 0,
    parts: int = 1,
) -> Raw:
    """A share of the rows of some files, all read as the first of them."""
    given = alike

    def by_bytes(path: Path) -> bool:
        return isinstance(_chosen(path, format, given), ByBytes) and divisible(path)

    raws: list[Raw] = []
    for path, span in file_share(files, part, parts, by_bytes):
        raws.append(_scan_file(path, format, 0, 1, alike, coding, span))
        layout = raws[0].layout
        if alike is None and layout is not None:
            alike = Alike(layout)
    return join(raws, origin) if raws else nothing(origin)


def _scan_file(
    path: Path,
    format: str | Mapping[str, Any] | Format,
    part: int,
    parts: int,
    alike: Alike | None = None,
    coding: Coding | None = None,
    span: tuple[int, int] | None = None,
) -> Raw:
    """A share of the rows of a file, or those that begin in a span of its bytes."""
    chosen = _chosen(path, format, alike)
    if alike is not None:
        alike = replace(alike, layout=alike.layout.of_format(getattr(chosen, "name", "")))
    if isinstance(chosen, Tabular) and span is None:
        return _in_order(chosen.scan_columns(path, part, parts, alike, coding), alike)
    _refuse_coding(coding, str(path), f"{getattr(chosen, 'name', type(chosen).__name__)} files")
    if span is None:
        raw = chosen.scan(path, part, parts, alike)
    elif isinstance(chosen, ByBytes):
        raw = chosen.scan_bytes(path, *span, alike)
    else:
        raise InputError(f"{path}: expected a file of the same format as the first")
    return _in_order(raw, alike)


def _chosen(path: Path, format: str | Mapping[str, Any] | Format, alike: Alike | None) -> Format:
    """The format of a file; that of the files that it is read like, unless its name or `format` says otherwise."""
    known = None if alike is None else alike.layout.format
    auto, columns = parted(format)
    if auto == "auto" and known is not None and by_suffix(path) in (None, known["name"]):
        return _with(format_for(path, known), columns, str(path))
    return format_for(path, format)


def _in_order(raw: Raw, alike: Alike | None) -> Raw:
    return raw if alike is None else raw.like(alike.layout)


def _refuse_coding(coding: Coding | None, origin: str, what: str) -> None:
    if coding is not None and coding.stated:
        have = ", ".join(entry.name for entry in formats.all() if issubclass(entry.cls, Tabular))
        raise InputError(f"{origin}: data.{coding.stated[0]} is for {have}, not for {what}")


def format_for(path: Path, format: str | Mapping[str, Any] | Format) -> Format:
    """The format of a file, as of `scan`."""
    plain, columns = parted(format)
    if isinstance(plain, str):
        return _with(recognised(path) if plain == "auto" else formats.make(plain), columns, str(path))
    if not isinstance(plain, Mapping):
        made: Format = plain
        return made
    options = dict(plain)
    name = options.pop("name", "auto")
    if name == "auto":
        raise InputError(f"format {dict(plain)!r}, expected a name beside the options")
    return _with(formats.make(name, options), columns, str(path))


def with_columns(
    format: str | Mapping[str, Any], header: bool | None = None, ignore: Sequence[str | int] | None = None
) -> str | Mapping[str, Any]:
    """A format with what `data.header` and `data.ignore` say of columns: `{"name": ..., "header": ..., ...}`.

    Raises InputError where the format says something else.
    """
    given = {"header": header, "ignore": None if ignore is None else tuple(ignore)}
    given = {key: value for key, value in given.items() if value is not None}
    if isinstance(format, str):
        return {"name": format, **given} if given else format
    for key, value in given.items():
        if format.get(key) is not None and format[key] != value:
            raise InputError(f"data.{key} is {value!r}, but data.format has {key}: {format[key]!r}")
    return {**format, **given}


def parted(format: Any) -> tuple[Any, dict[str, Any]]:
    """A format without `header` and `ignore`, and these."""
    if not isinstance(format, Mapping):
        return format, {}
    columns = {key: format[key] for key in ("header", "ignore") if format.get(key) is not None}
    rest = {key: value for key, value in format.items() if key not in ("header", "ignore")}
    return (rest.get("name", "auto") if set(rest) <= {"name"} else rest), columns


def manner(layout: Layout, format: str | Mapping[str, Any], labelled: bool) -> tuple[str | Mapping[str, Any], Alike]:
    """The format of files, given that of the user, and the request to read them as those of a layout were read.

    Parameters
    ----------
    layout : how the others were read.
    format : a name, or `{name: ..., option: value}`; "auto" for that of the others.
    labelled : whether there must be labels.
    """
    plain, columns = parted(format)
    if isinstance(plain, Mapping):  # its label column is the user's word
        layout = replace(layout, format=None, labels=None, places=None)
    elif layout.format is not None and plain == layout.format["name"]:
        format = {**layout.format, **columns}
    return format, Alike(layout, labelled)


def _with(chosen: Format, columns: Mapping[str, Any], origin: str) -> Format:
    """The format with these options, if it has them."""
    known: list[str] = [field.name for field in fields(chosen)] if is_dataclass(chosen) else []
    for key in columns:
        if key not in known:
            have = ", ".join(e.name for e in formats.all() if key in {field.name for field in e.parameters})
            raise InputError(f"{origin}: data.{key} is for {have}, not for {getattr(chosen, 'name', 'this format')}")
    return replace(chosen, **columns) if columns else chosen  # type: ignore[type-var]


def _without(raw: Raw, format: Any, alike: Alike | None) -> Raw:
    """The rows of a bundled or generated set without columns that are to be left out by name."""
    columns = parted(format)[1]
    if "header" in columns:
        raise InputError(f"{raw.origin}: data.header is for csv files")
    return raw.without(columns.get("ignore") or (), alike)


def _files(name: str) -> list[Path]:
    """The file of that name, or the sorted files that match it as a pattern."""
    if "{rank" in name:
        raise InputError(f"{shown(name)}: expected {{rank}}, or {{rank:03d}} with at most 255 digits")
    try:
        there = Path(name).exists()
    except (OSError, ValueError) as error:  # ValueError: a NUL, or a character that no name has
        raise InputError(f"{shown(name)}: {getattr(error, 'strerror', None) or error}") from error
    if there or not glob.has_magic(name):
        return [Path(name)]
    found = sorted(glob.glob(name))
    if not found:
        raise InputError(f"{name}: no file matches")
    return [Path(one) for one in found]


def _refuse_addresses(names: Sequence[str]) -> None:
    for name in names:
        if _ADDRESS.match(name):
            raise InputError(
                f"{shown(name)}: an address, but only files are read; copy it (`curl -O`, `aws s3 cp`) or mount it"
            )


def _padded(part: int, match: re.Match[str]) -> str:
    return format(part, f"{match[1]}d") if match[1] else str(part)


def _maker(prefix: str) -> Callable[[str], Dataset]:
    module, _, attribute = _MAKERS[prefix].partition(":")
    maker: Callable[[str], Dataset] = getattr(importlib.import_module(module), attribute)
    return maker


def read_weights(path: str | Path) -> Vector:
    """The weights of a file with one number per line, for all rows in their order, float64, each finite and >= 0.

    Blank lines and text after a '#' are skipped. The file may be compressed by gzip, bzip2 or xz.

    Raises
    ------
    InputError
        Naming the file and the line.
    """
    table = _numbers(Path(path), "weights", 0.0, "a finite number >= 0", width=1)
    return table[:, 0]


def read_offset(path: str | Path) -> NDArray[np.float64]:
    """The offset of a file, as `read_weights` but any finite numbers; (rows,), or (rows, scores) with several a line.

    Raises
    ------
    InputError
        Naming the file and the line.
    """
    table = _numbers(Path(path), "numbers", -math.inf, "finite numbers, as many as in the first line")
    return table[:, 0] if table.shape[1] == 1 else table


def _numbers(path: Path, what: str, least: float, expected: str, width: int | None = None) -> NDArray[np.float64]:
    """A row for each line that is not blank, of `width` numbers, by default as many as in the first."""
    numbers = array("d")
    with open_text(path) as file:
        for line, text in enumerate(file, start=1):
            told = text.split("#", 1)[0].strip()
            if not told:
                continue
            tokens = [told] if width == 1 else told.split()
            width = len(tokens) if width is None else width
            found = [float(token) if is_number(token) else math.nan for token in tokens]
            if len(found) != width or not all(least <= number < math.inf and number > -math.inf for number in found):
                raise InputError(f"{path}, line {line}: {told!r:.60}, expected {expected}")
            numbers.extend(found)
    if not numbers:
        raise InputError(f"{path}: the file has no {what}")
    return np.array(numbers, np.float64).reshape(-1, width or 1)
