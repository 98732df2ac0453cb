"""Files as bytes: plain or compressed ones are read, and files are written atomically."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import secrets
import stat
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
# Place, first bytes, and what a file that has them is: no format that is read begins so.
_FOREIGN = (
    (0, b"\x28\xb5\x2f\xfd", "compressed by zstd, which is not read; unpack it (zstd -d), or use gzip, bzip2 or xz"),
    (0, b"\x04\x22\x4d\x18", "compressed by lz4, which is not read; unpack it (lz4 -d), or use gzip, bzip2 or xz"),
    (0, b"\x1f\x9d", "compressed by compress, which is not read; unpack it (uncompress), or use gzip, bzip2 or xz"),
    (0, b"LZIP\x01", "compressed by lzip, which is not read; unpack it (lzip -d), or use gzip, bzip2 or xz"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive, expected the file itself; unpack it (7z x)"),
    (0, b"Rar!\x1a\x07", "a RAR archive, expected the file itself; unpack it (unrar x)"),
    (257, b"ustar", "a tar archive, expected the file itself; unpack it (tar -xf)"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a workbook of Excel (.xls), expected text; save its sheet as csv"),
    (0, b"\x89HDF\r\n", "an HDF5 file, which is not read; write its rows as npz, Parquet or csv"),
    (0, b"SQLite format 3\0", "a database of SQLite, expected text; export its rows as csv"),
    (0, b"ORC\x03", "an ORC file, which is not read; write its rows as Parquet or csv"),
    (0, b"Obj\x01", "an Avro file, which is not read; write its rows as Parquet or csv"),
)
# First bytes of formats that are read, but are no text.
_BINARY = (
    (b"PAR1", "a Parquet file (format arrow)"),
    (b"ARROW1", "an Arrow file (format arrow)"),
    (b"\x93NUMPY", "an array of NumPy (format npy)"),
)
_MARK = b"\xef\xbb\xbf"
_WIDE = ((b"\xff\xfe\0\0", "UTF-32"), (b"\0\0\xfe\xff", "UTF-32"), (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))
_SEPARATORS = (
    (b"\xe2\x80\xa8", "U+2028 (line separator)"),
    (b"\xe2\x80\xa9", "U+2029 (paragraph separator)"),
    (b"\xc2\x85", "U+0085 (next line)"),
)
"""Line separators of other systems; in a text without LF and CR they are meant as line ends."""
HEAD = 1 << 16
"""Bytes at the start of a text from which encoding and line ends are recognised."""
_LOOK = 264
"""Bytes at the start from which compressions and archives are recognised."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


def compression(path: Path) -> str | None:
    """ "gzip", "bzip2" or "xz" by the first bytes of the file, None for a plain one; InputError if it cannot be read.

    An empty file, or one whose name but not content is that of a compressed file, is an InputError too.
    """
    try:
        with explained(path):
            pipe = stat.S_ISFIFO(path.stat().st_mode)
        if pipe:
            raise InputError(f"{path}: a pipe, which can be read only once; expected a file")
        with explained(path), open(path, "rb") as file:
            head = file.read(_LOOK)
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
    _refuse_foreign(head, str(path))
    return None


def _refuse_foreign(head: bytes, name: str) -> None:
    for place, magic, words in _FOREIGN:
        if head.startswith(magic, place):
            raise InputError(f"{name}: {words}")


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
        head = stream.read(_LOOK)
        if not head:
            raise InputError(f"{name}: it is empty")
        _refuse_foreign(head, name)
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
        if not self._head:
            return self._rest.readinto(buffer) or 0  # type: ignore[attr-defined, no-any-return]
        head = self._head[: len(buffer)]
        self._head = self._head[len(head) :]
        buffer[: len(head)] = head
        return len(head)


@contextmanager
def open_lines(path: Path) -> Iterator[IO[bytes]]:
    """The decompressed bytes of a text as of `as_lines`."""
    with open_bytes(path) as file:
        yield as_lines(file, str(path))


def as_lines(stream: IO[bytes], name: str) -> IO[bytes]:
    """The bytes of a text behind its byte-order mark; where CR alone ends lines, with LF in its place.

    Parameters
    ----------
    stream : decompressed, from its start; that of a plain file, which can go back, is returned itself.
    name : of the text in messages.

    Raises
    ------
    InputError
        For UTF-16 and for content that is no text but an archive, a workbook, a web page or a binary format.
    """
    head = stream.read(HEAD)
    start = begin_of_text(head, name)
    if isinstance(stream, io.BufferedReader) and stream.seekable():
        stream.seek(start)
        rest: io.RawIOBase = _Rejoined(b"", stream)
    else:
        rest = _Rejoined(head[start:], stream)
        stream = io.BufferedReader(rest, HEAD)
    return io.BufferedReader(_LineFeeds(rest), HEAD) if ends_lines_by_cr(head) else stream


def begin_of_text(head: bytes, name: str) -> int:
    """Where a text begins that starts with these bytes: behind its mark; InputError where it is no UTF-8 text."""
    wide = next((kind for mark, kind in _WIDE if head.startswith(mark)), None)
    odd, even = head[1::2].count(0), head[::2].count(0)
    if wide is None and max(odd, even) > max(1, len(head) // 5) and 8 * min(odd, even) <= max(odd, even):
        wide = "UTF-16"
    if wide is not None:
        raise InputError(f"{name}: {wide} text, expected UTF-8; convert it: iconv -f {wide} -t UTF-8 FILE > NEW")
    _refuse_foreign(head, name)
    if head.startswith(b"PK\x03\x04"):
        raise InputError(f"{name}: {in_zip(head)}")
    for magic, words in _BINARY:
        if head.startswith(magic):
            raise InputError(f"{name}: {words}, expected text")
    if head.lstrip(_MARK + b" \t\r\n")[:14].lower().startswith((b"<!doctype html", b"<html")):
        raise InputError(f"{name}: a web page (HTML), expected rows; the download may have failed")
    if not any(end in head.strip() for end in (b"\n", b"\r")):
        for end, words in _SEPARATORS:
            if end in head.strip():
                raise InputError(f"{name}: {words} where lines end, expected LF, CR LF or CR")
    return len(_MARK) if head.startswith(_MARK) else 0


def is_binary(head: bytes) -> bool:
    """Whether a file that begins like this is of a format that is read, but is no text."""
    return head.startswith((b"PK\x03\x04", *(magic for magic, _ in _BINARY)))


def in_zip(head: bytes) -> str:
    """What a file is that begins as a zip archive does, in words."""
    if b"[Content_Types].xml" in head or b"xl/" in head:
        return "a workbook of Excel (.xlsx), expected text; save its sheet as csv"
    if b".npy" in head[:HEAD]:
        return "an archive of NumPy (format npz), expected text"
    return "a zip archive, expected the file itself, plain or compressed by gzip, bzip2 or xz; unpack it (unzip)"


def ends_lines_by_cr(head: bytes) -> bool:
    """Whether a text that begins like this has lines that end with CR alone, as on a Macintosh before 2001."""
    return b"\n" not in head and b"\r" in head[:-1]


def divisible(path: Path) -> bool:
    """Whether any part of the bytes of a text can be read, the file being plain and LF ending its lines.

    InputError where it is no text.
    """
    if compression(path) is not None:
        return False
    with open_bytes(path) as file:
        head = file.read(HEAD)
    begin_of_text(head, str(path))
    return not ends_lines_by_cr(head)


class _LineFeeds(io.RawIOBase):
    """A stream with LF for every CR."""

    def __init__(self, stream: io.RawIOBase) -> None:
        self._stream = stream

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """As of `RawIOBase`."""
        count = self._stream.readinto(buffer) or 0
        buffer[:count] = bytes(buffer[:count]).replace(b"\r", b"\n")
        return count


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """The decompressed text of a file, UTF-8 with or without a mark; newlines as they are but CR alone, for `csv`."""
    with open_lines(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        try:
            yield text
        except UnicodeDecodeError as error:
            raise InputError(_not_utf8(path)) from error


def _not_utf8(path: Path) -> str:
    """The first line that is not UTF-8, in words."""
    with open_lines(path) as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                near = line[max(0, error.start - 8) : error.start + 8].decode("latin-1").strip()
                return (
                    f"{path}, line {number}: the byte 0x{line[error.start]:02x} is not UTF-8 ({near!r} if the text is "
                    "Latin-1); convert it: iconv -f LATIN1 -t UTF-8 FILE > NEW"
                )
    return f"{path}: the text is not UTF-8"


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
def about(what: object) -> Iterator[None]:
    """Messages about what is wrong begin with what it is about: a file, a field."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{what}: {error}") from error


def checked_path(path: Any, what: str = "") -> Path:
    """The path of a file; InputError for a name that none can have, and for what is no path."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(f"{what}{shown(path)}: expected the path of a file")
    if "\0" in str(path):
        raise InputError(f"{what}{shown(str(path))}: a NUL is not possible in the name of a file")
    if not str(path):
        raise InputError(f"{what}the path is empty, expected that of a file")
    return Path(path)


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
    target = checked_path(path)
    temporary: Path | None = None
    try:
        with failures_of(target):
            name = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
            with open(name, "xb") as file:
                temporary = name
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, target)
            temporary = None
            flush_folder(target.parent)
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


@contextmanager
def failures_of(target: Path) -> Iterator[None]:
    """InputError where a file cannot be written, OutputError where the disk is full or fails."""
    try:
        yield
    except OSError as error:
        kind = OutputError if error.errno in _FULL else InputError
        raise kind(f"{target}: cannot be written: {_reason(error)}") from error


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


def is_number(text: str | bytes) -> bool:
    """Whether a text is a number, as `float` reads it; underscores are not for data."""
    try:
        float(text)
    except ValueError:
        return False
    return (b"_" if isinstance(text, bytes) else "_") not in text  # type: ignore[operator]
