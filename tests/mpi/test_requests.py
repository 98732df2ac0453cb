"""What rank 0 says to the others arrives as it was said, or not at all."""

import struct
import zlib
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from bmrm.mpi.kinds import KINDS
from bmrm.mpi.local import LocalObjects
from bmrm.mpi.requests import HEAD, Answer, Kept, Request, RequestError, Scattered, decode, encode
from bmrm.mpi.share import Rank, Share

numbers = st.integers(0, 2**31)
floats = st.floats(width=64)
names = st.text(max_size=12)
arrays = st_numpy.arrays(
    st.sampled_from([np.dtype(np.float64), np.dtype(np.int64)]),
    st_numpy.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=9),
)
arguments = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    floats,
    names,
    st.dictionaries(names, floats, max_size=3),
    st.builds(Kept, numbers),
    st.builds(Scattered),
    arrays,
)
answers = st.lists(st.one_of(st.sampled_from([Answer.SUM, Answer.STREAM, Answer.GATHER]), st.builds(Kept, numbers)))
terms = st.lists(st.tuples(numbers, floats), min_size=1, max_size=4).map(tuple)


def requests(targets):
    return st.builds(
        Request,
        targets,
        names,
        st.lists(arguments, max_size=5).map(tuple),
        answers.map(tuple),
        st.dictionaries(numbers, terms, max_size=3),
        st.lists(numbers, max_size=5).map(tuple),
    )


any_request = requests(st.one_of(names, numbers, requests(st.one_of(names, numbers))))


def as_received(request):
    """The request that the other ranks have once the long arrays have come."""
    content, sent = encode(request)
    found, long = decode(content)
    assert [array.shape for array in long] == [array.shape for array in sent]
    for array, numbers in zip(long, sent, strict=True):
        array[...] = numbers
    return found


def assert_same(one, other):
    if isinstance(one, Scattered):
        assert isinstance(other, Scattered)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other, strict=True)
    elif isinstance(one, tuple | list):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, dict):
        assert one.keys() == other.keys()
        for key, value in one.items():
            assert_same(value, other[key])
    else:
        assert type(one) is type(other)
        assert one == other or (one != one and other != other)


@given(any_request)
def test_a_request_arrives_as_it_was_sent(request):
    assert_same(request, as_received(request))


@given(any_request, st.data())
def test_a_message_cut_short_is_refused(request, data):
    content, _ = encode(request)
    with pytest.raises(RequestError, match=r"a request that arrived|what arrived"):
        decode(content[: data.draw(st.integers(0, len(content) - 1))])


@given(any_request, st.data())
def test_a_byte_that_has_changed_is_noticed(request, data):
    content, _ = encode(request)
    place, bits = data.draw(st.integers(0, len(content) - 1)), data.draw(st.integers(1, 255))
    changed = bytearray(content)
    changed[place] ^= bits
    with pytest.raises(RequestError):
        decode(bytes(changed))


@given(st.binary(max_size=60))
def test_text_that_is_no_request_is_refused(text):
    whole = HEAD.pack(b"bmrm", HEAD.size + len(text), len(text), zlib.crc32(text)) + text
    with pytest.raises(RequestError, match="makes no sense"):
        decode(whole)


def test_a_message_of_a_request_is_short():
    request = Request("phi", "value_and_slope", (Kept(117),), (Answer.SUM, Kept(118)), {117: ((3, 1.0), (5, -0.25))})
    content, arrays = encode(request)
    assert len(content) < 200
    assert not arrays
    assert struct.unpack_from("<I", content, 4) == (len(content),)


@pytest.fixture
def objects():
    return LocalObjects(Rank(Share(3, 0.0, 0, None, None, None), SimpleNamespace(waited=0.0, busy=0.0), 0, 0), KINDS)


@pytest.mark.parametrize(
    ("target", "method"), [("phi", "__class__"), ("phi", "learned"), ("os", "system"), ("curve", "at")]
)
def test_what_is_not_listed_is_refused(objects, target, method):
    with pytest.raises(RequestError, match=f"the ranks allow no request for '{method}' of '{target}'"):
        objects.kind_made(Request(target, method))


def test_a_number_that_nothing_is_kept_under_is_refused(objects):
    with pytest.raises(RequestError, match="keep nothing under the number 7"):
        objects.kind_made(Request(7, "step"))


def test_an_object_that_a_rank_has_not_is_refused(objects):
    request = Request("map", "matvec", (np.zeros(3),), (Kept(1),))
    with pytest.raises(RequestError, match="this rank has no 'map'"):
        objects.answer(request, objects.kind_made(request))
