"""Files as bytes: plain or compressed ones are read, and files are written atomically."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO

from bmrm.problem import InputError, OutputError, shown

# Name, first bytes, usual suffix and opener of each compression.
_COMPRESSIONS = (
    ("gzip", b"\x1f\x8b", ".gz", gzip.open),
    ("bzip2", b"BZh", ".bz2", bz2.open),
    ("xz", b"\xfd7zXZ\x00", ".xz", lzma.open),
)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


def compression(path: Path) -> str | None:
    """ "gzip", "bzip2" or "xz" by the first bytes of the file, None for a plain one; InputError if it cannot be read.

    An empty file, or one whose name but not content is that of a compressed file, is an InputError too.
    """
    try:
        with explained(path), open(path, "rb") as file:
            head = file.read(6)
    except UnicodeError as error:
        raise InputError(f"{shown(str(path))}: no file can have this name") from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{shown(str(path))}: {error}") from error
    if not head:
        raise InputError(f"{path}: the file is empty")
    for name, magic, suffix, _ in _COMPRESSIONS:
        if head.startswith(magic):
            return name
        if path.suffix.lower() == suffix:
            raise InputError(f"{path}: named {suffix}, but the content is not {name}")
    return None


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """The decompressed bytes of a file; any failure to open or read is an InputError with its name."""
    kind = compression(path)
    opener = next((entry[3] for entry in _COMPRESSIONS if entry[0] == kind), None)
    with explained(path), open(path, "rb") as raw:
        if opener is None:
            yield raw
        else:
            with opener(raw) as file:
                yield file  # type: ignore[misc]


@contextmanager
def decompressed(stream: IO[bytes], name: str) -> Iterator[IO[bytes]]:
    """The decompressed bytes of a stream that cannot go back, such as a pipe; errors are InputError with the name."""
    with explained(Path(name)):
        head = stream.read(6)
        if not head:
            raise InputError(f"{name}: it is empty")
        whole = io.BufferedReader(_Rejoined(head, stream), 1 << 16)
        opener = next((entry[3] for entry in _COMPRESSIONS if head.startswith(entry[1])), None)
        if opener is None:
            yield whole
        else:
            with opener(whole) as file:
                yield file  # type: ignore[misc]


class _Rejoined(io.RawIOBase):
    """Some bytes, then the rest of the stream that they were read from."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = head, rest

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As of `RawIOBase`."""
        head = self._head[: len(buffer)]
        self._head = self._head[len(head) :]
        data = head + self._rest.read(len(buffer) - len(head))
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """The decompressed text of a file, UTF-8 with or without a mark; newlines as they are, for `csv`."""
    with open_bytes(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        try:
            yield text
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: not UTF-8 text (byte {error.start} of a block: {error.reason})") from error


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn errors of the system and of the decompressors into InputError."""
    try:
        yield
    except _DAMAGED as error:
        raise InputError(f"{path}: the compressed file is truncated or damaged ({error})") from error
    except OSError as error:
        # bz2 reports damage as an OSError without a number.
        what = error.strerror if error.errno is not None else f"the compressed file is damaged ({error})"
        raise InputError(f"{path}: {what}") from error


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file that is written atomically: it appears complete, or not at all.

    It is written under a temporary name in the same folder, flushed to disk and renamed, which replaces an older file
    of that name atomically. On any error the temporary file is removed and the older file stays.

    Raises
    ------
    InputError
        When the folder cannot be written.
    OutputError
        When the disk is full, a size limit is reached or the disk fails.
    """
    target = Path(path)
    temporary: Path | None = None
    try:
        name = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        with open(name, "xb") as file:
            temporary = name
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
        temporary = None
        flush_folder(target.parent)
    except OSError as error:
        kind = OutputError if error.errno in _FULL else InputError
        raise kind(f"{target}: cannot be written: {_reason(error)}") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


@contextmanager
def compressed_like_its_name(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """`whole_file`, compressed where the name ends in .gz, .bz2 or .xz."""
    suffix = Path(path).suffix.lower()
    opener = next((entry[3] for entry in _COMPRESSIONS if entry[2] == suffix), None)
    with whole_file(path) as file:
        if opener is None:
            yield file
        else:
            with opener(file, "wb") as packed:
                yield packed  # type: ignore[misc]


def named_compressed(path: Path) -> bool:
    """Whether its name is that of a compressed file."""
    return path.suffix.lower() in {entry[2] for entry in _COMPRESSIONS}


def bare_suffix(path: Path) -> str:
    """The last suffix but that of a compression, in lower case: ".csv" for "a.CSV.gz"."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    known = {entry[2] for entry in _COMPRESSIONS}
    while suffixes and suffixes[-1] in known:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


@contextmanager
def whole_text(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """`whole_file` for UTF-8 text with newlines as they are."""
    with whole_file(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        try:
            yield text
            text.flush()
        finally:
            text.detach()


def _reason(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full"
    if error.errno == errno.EFBIG:
        return "the limit of the file size is reached"
    return error.strerror or str(error)


def flush_folder(folder: Path) -> None:
    """Flush the rename to disk, if the file system supports it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)
