"""What rank 0 asks of all ranks: an object that each of them keeps, one of its methods, arguments, and what becomes of
the result.

A request is one short message, a second one where that is too long, and one for each long array: a head of numbers
(magic, lengths, checksum), a text (JSON), and the short arrays. Nothing is pickled.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bmrm.mpi.communicator import MpiGroup

FIRST = 512
"""Bytes of the first message of a request: a head, `SHORT` numbers and some 200 characters of text; longer ones take a
second message. Chosen without a sweep."""
SHORT = 32
"""Most numbers of an array that is sent inside the message of its request."""
HEAD, MAGIC = struct.Struct("<4sIII"), b"bmrm"
"""Format of the head: magic, length of the message, length of its text, and a checksum of all that follows."""
TYPES = {"f": np.dtype(np.float64), "i": np.dtype(np.int64)}
"""Types of arrays, by NumPy's code of their kind."""
Terms = tuple[tuple[int, float], ...]
"""A linear combination: numbers of kept scores, and factors."""


class RequestError(RuntimeError):
    """The message is no request, or asks for something that is not allowed: a mistake in the package."""


class Answer(str, Enum):
    """What is done with a result, or with one of several."""

    SUM = "sum"
    """Added up over the ranks, on rank 0; those of one request together."""
    STREAM = "stream"
    """A vector in pieces: each is added up while the next ones are computed."""
    GATHER = "gather"
    """Joined in rank order, on rank 0."""
    KEEP = "keep"
    """Kept on each rank, under a number."""


_ANSWERS = {each.value: each for each in Answer}


class Kept(NamedTuple):
    """An object that the ranks keep under a number: an argument, or a result."""

    number: int


class Scattered:
    """An argument of which each rank gets its rows; all of them on rank 0."""

    def __init__(self, whole: NDArray[np.float64] | None = None) -> None:
        self.whole = whole


_PARSER = json.JSONDecoder()
NOTHING: Mapping[int, Terms] = {}


class Request(NamedTuple):
    """First form the combinations of `define`, then forget what is kept under the numbers of `forget`, then act.

    Attributes
    ----------
    target : the object: by name, by the number that it is kept under, or by the request that makes and keeps it.
    method : one of those that `bmrm.mpi.kinds` lists for this kind of object.
    arguments : None, numbers, texts, dicts of numbers by name, `Kept`, `Scattered`, and arrays of rank 0 as
        `plain_array` makes them.
    answer : for each result of the method what becomes of it; empty where there is none.
    define : number to keep under -> linear combination.
    within : the number under which the ranks keep a sample, if it is asked about its rows; of a sample of a sample
        both, the outer one first.
    """

    target: str | int | Request
    method: str
    arguments: tuple[Any, ...] = ()
    answer: tuple[Answer | Kept, ...] = ()
    define: Mapping[int, Terms] = NOTHING
    forget: tuple[int, ...] = ()
    within: tuple[int, ...] = ()


class Message(NamedTuple):
    """Bytes, and the long arrays that follow in messages of their own."""

    content: bytes
    arrays: list[NDArray[Any]]


# In the text a request is the list of its attributes. An argument that is a list stands for something else: [number]
# for what is kept, [type, shape, whether it is short] for an array, [] for what is scattered.


def plain_array(array: NDArray[Any]) -> NDArray[Any]:
    """As arrays travel: contiguous, int64 or float64."""
    return np.ascontiguousarray(array, TYPES["i" if array.dtype.kind in "iu" else "f"])


def encode(request: Request) -> Message:
    """As a message."""
    arrays: list[NDArray[Any]] = []
    short: list[bytes] = []

    def plain(argument: Any) -> Any:
        if isinstance(argument, np.ndarray):
            is_short = argument.size <= SHORT
            if is_short:
                short.append(argument.tobytes())
            else:
                arrays.append(argument if argument.flags.writeable else argument.copy())
            return argument.dtype.kind, argument.shape, is_short
        return () if isinstance(argument, Scattered) else argument.item()

    text = json.JSONEncoder(separators=(",", ":"), check_circular=False, default=plain).encode(request).encode()
    content = b"".join((text, *short))
    return Message(HEAD.pack(MAGIC, HEAD.size + len(content), len(text), zlib.crc32(content)) + content, arrays)


def decode(message: bytes) -> tuple[Request, list[NDArray[Any]]]:
    """The inverse of `encode`; the long arrays are yet to be filled in."""
    length, text_length, checksum = _head(message)
    content = message[HEAD.size : length]
    if length != len(message) or text_length > len(content) or checksum != zlib.crc32(content):
        raise RequestError("a request that arrived is not whole")
    found = _Arrays(content, text_length)
    try:
        return _request(_PARSER.raw_decode(content[:text_length].decode())[0], found), found.long
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise RequestError(f"a request that arrived makes no sense: {error}") from error


def _head(message: bytes) -> tuple[int, int, int]:
    """Lengths of message and text, and the checksum."""
    if len(message) < HEAD.size:
        raise RequestError("a request that arrived is not whole")
    magic, length, text_length, checksum = HEAD.unpack_from(message)
    if magic != MAGIC or length < HEAD.size:
        raise RequestError("what arrived is no request")
    return length, text_length, checksum


class _Arrays:
    """The arrays of a message: the short ones stand behind its text, one after another."""

    def __init__(self, content: bytes, position: int) -> None:
        self._content, self._position = content, position
        self.long: list[NDArray[Any]] = []

    def next(self, kind: str, shape: list[int], is_short: bool) -> NDArray[Any]:
        """The next one."""
        array = np.empty(shape, TYPES[kind])
        if is_short:
            begin, self._position = self._position, self._position + array.nbytes
            array.reshape(-1)[:] = np.frombuffer(self._content[begin : self._position], array.dtype)
        else:
            self.long.append(array)
        return array


def _request(parts: list[Any], arrays: _Arrays) -> Request:
    target, method, arguments, answer, define, forget, within = parts
    return Request(
        _request(target, arrays) if isinstance(target, list) else target,
        method,
        tuple([_argument(one, arrays) if isinstance(one, list) else one for one in arguments]),
        tuple([Kept(*one) if isinstance(one, list) else _ANSWERS[one] for one in answer]),
        {int(number): terms for number, terms in define.items()} if define else {},
        tuple(forget),
        tuple(within),
    )


def _argument(plain: list[Any], arrays: _Arrays) -> Any:
    if len(plain) > 1:
        return arrays.next(*plain)
    return Kept(*plain) if plain else Scattered()


def send(group: MpiGroup, message: Message) -> None:
    """Rank 0 asks."""
    content, arrays = message
    group.send_out(np.frombuffer(bytearray(content[:FIRST].ljust(FIRST, b"\0")), np.uint8))
    if len(content) > FIRST:
        group.send_out(np.frombuffer(bytearray(content[FIRST:]), np.uint8))
    for array in arrays:
        group.send_out(array)


def receive(group: MpiGroup) -> Request:
    """The next request of rank 0."""
    first = np.empty(FIRST, np.uint8)
    group.send_out(first)
    content = first.tobytes()
    length = _head(content)[0]
    if length > FIRST:
        rest = np.empty(length - FIRST, np.uint8)
        group.send_out(rest)
        content += rest.tobytes()
    request, arrays = decode(content[:length])
    for array in arrays:
        group.send_out(array)
    return request
