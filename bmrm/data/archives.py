"""NumPy archives from untrusted sources: plain arrays, or one message about what is wrong; nothing is unpickled.

NumPy's own reader trusts headers, so a few bytes may allocate any amount of memory. Here an array may take no more than
its member of the archive holds, and a member no more than `RATIO` times the size of the file.
"""

from __future__ import annotations

import math
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bmrm.problem import InputError, shown

RATIO = 1100
"""Largest credible compression ratio: deflate reaches at most 1032."""
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA}
_MAGIC, _PICKLE, _ENCRYPTED = b"\x93NUMPY", b"\x80", 0x1


def write_arrays(stream: IO[bytes], arrays: Mapping[str, ArrayLike]) -> None:
    """An archive that `numpy.load` reads. `numpy.savez` pickles objects before NumPy 2.1, and is noisy on a full disk.

    Raises
    ------
    ValueError
        An array holds Python objects.
    """
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def read_arrays(stream: IO[bytes], but: str | None = None, only: str = "") -> Mapping[str, NDArray[Any]]:
    """The arrays of an archive by their names: those whose names start with `only`, without those that do with `but`.

    Raises
    ------
    InputError
        With the reason, without the name of the file.
    """
    head = stream.read(6)
    if head == _MAGIC:
        raise InputError("a single array")
    if head.startswith(_PICKLE):
        raise InputError("it holds pickled objects, which are never read")
    stream.seek(0, 2)
    most = RATIO * stream.tell()
    stream.seek(0)
    with _damage(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of headers that older versions of Python have written
        return _arrays(stream, most, but, only)


def read_array(stream: IO[bytes]) -> NDArray[Any]:
    """The one array of a `.npy` file; errors as of `read_arrays`."""
    with _damage():
        size = stream.seek(0, 2)
        stream.seek(0)
        return _array(stream, size, "the file")


def _arrays(stream: IO[bytes], most: int, but: str | None, only: str) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        if not any(member.filename.endswith(".npy") for member in members):
            return {}  # an archive of something else
        for member in members:
            name = member.filename.removesuffix(".npy")
            if (but is not None and name.startswith(but)) or not name.startswith(only):
                continue
            place = f"member {shown(member.filename)}"
            if member.flag_bits & _ENCRYPTED:
                raise InputError(f"{place} is encrypted")
            if member.compress_type not in _METHODS:
                raise InputError(f"{place} is packed by method {member.compress_type}, which is not known")
            if name == member.filename:
                raise InputError(f"{place} is no array (.npy)")
            if name in arrays:
                raise InputError(f"{place} is there twice")
            if member.file_size > most:
                raise InputError(
                    f"{place} says that it holds {member.file_size} bytes, more than {RATIO} times the size of the file"
                )
            with archive.open(member) as packed:
                arrays[name] = _array(packed, member.file_size, place)
    return arrays


def _array(packed: IO[bytes], size: int, place: str) -> NDArray[Any]:
    """The array of a member of `size` bytes; its header is checked before memory is allocated."""
    shape, fortran, dtype = _described(packed, size, place)
    count = math.prod(shape)
    content = packed.read(count * dtype.itemsize)
    if len(content) != count * dtype.itemsize:
        raise InputError(f"{place} is cut off")
    packed.read()  # to its end, where its checksum is compared
    array = np.frombuffer(content, dtype) if dtype.itemsize else np.zeros(count, dtype)
    array = array.reshape(shape[::-1]).T if fortran else array.reshape(shape)
    array = array.astype(dtype.newbyteorder("="))
    if dtype.kind == "U" and array.size and not _is_text(array):
        raise InputError(f"{place} holds text of characters that do not exist")
    return array


def array_header(stream: IO[bytes], size: int) -> tuple[tuple[int, ...], np.dtype[Any], int]:
    """Shape and type of the array of a `.npy` file of `size` bytes, and where its content begins; rows are in C order.

    Raises
    ------
    InputError
        With the reason, without the name of the file.
    """
    with _damage():
        shape, fortran, dtype = _described(stream, size, "the file")
        begin = stream.tell()
        if fortran or not dtype.isnative or dtype.itemsize == 0:
            raise InputError("the file is not in C order and the order of bytes of this machine")
        if begin + math.prod(shape) * dtype.itemsize > size:
            raise InputError("the file is cut off")
        return shape, dtype, begin


def _described(packed: IO[bytes], size: int, place: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether in Fortran's order, and type of an array in `size` bytes."""
    version = np.lib.format.read_magic(packed)  # type: ignore[no-untyped-call]
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise InputError(f"{place} is an array of format {version[0]}.{version[1]}, expected 1.0 or 2.0")
    shape, fortran, dtype = readers[version](packed)  # type: ignore[no-untyped-call]
    if dtype.hasobject:
        raise InputError(f"{place} holds pickled objects, which are never read")
    if dtype.fields is not None or dtype.kind == "V" or (not dtype.isbuiltin and dtype.kind not in "USmMfiub"):
        raise InputError(f"{place} holds records, expected numbers or text")
    count = math.prod(shape)
    if min(shape, default=0) < 0 or count * dtype.itemsize > size:
        raise InputError(f"{place} says that it has shape {shown(shape)}, {dtype}, but holds {size} bytes")
    return shape, fortran, dtype


def _is_text(array: NDArray[Any]) -> bool:
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint32) if array.dtype.itemsize else np.zeros(0, np.uint32)
    return bool(np.all((codes < 0xD800) | ((codes > 0xDFFF) & (codes <= 0x10FFFF))))


@contextmanager
def _damage() -> Iterator[None]:
    """What zipfile, zlib, bz2, lzma and numpy.lib.format raise of damaged bytes, whatever it is, as an InputError."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        said = str(error).splitlines()[0][:100] if str(error) else type(error).__name__
        raise InputError(f"it is damaged ({said})") from error
