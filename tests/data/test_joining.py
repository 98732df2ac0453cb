"""Rows as bytes and back, and joined: nothing is lost, whatever the kind of features and targets."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from bmrm.data.dataset import Dataset
from bmrm.data.joining import join_rows, packed, unpacked
from bmrm.data.labels import LabelSets
from bmrm.data.matrix import Csr


def dense_of(data):
    return data.X.to_dense() if isinstance(data.X, Csr) else data.X


def same(one, other):
    assert type(one.X) is type(other.X)
    assert one.X.dtype == other.X.dtype
    np.testing.assert_array_equal(dense_of(one), dense_of(other))
    if isinstance(one.targets.y, LabelSets):
        assert [set(row) for row in rows_of(one.targets.y)] == [set(row) for row in rows_of(other.targets.y)]
        assert (one.targets.y.dtype, one.targets.y.form) == (other.targets.y.dtype, other.targets.y.form)
    else:
        assert one.targets.y.dtype.kind == other.targets.y.dtype.kind
        np.testing.assert_array_equal(one.targets.y, other.targets.y)
    for name in ("weights", "groups", "structure"):
        mine, theirs = getattr(one.targets, name), getattr(other.targets, name)
        assert (mine is None) == (theirs is None)
        assert mine is None or np.array_equal(mine, theirs)
    assert (one.targets.dtype, one.labelled) == (other.targets.dtype, other.labelled)


def rows_of(sets):
    return [sets.labels[a:b].tolist() for a, b in zip(sets.indptr[:-1], sets.indptr[1:], strict=True)]


RNG = np.random.default_rng(3)
DENSE = RNG.normal(size=(7, 4))
SPARSE = sp.random(7, 4, 0.4, "csr", random_state=5)
CASES = {
    "dense": Dataset.from_arrays(DENSE, RNG.normal(size=7)),
    "float32": Dataset.from_arrays(DENSE.astype(np.float32), [1, 2] * 3 + [1]),
    "sparse": Dataset.from_arrays(SPARSE, ["no", "perhaps", "ü"] * 2 + ["no"], RNG.uniform(0.5, 2.0, 7)),
    "valueless": Dataset.from_arrays(sp.csr_matrix(SPARSE != 0.0, dtype=float), [True, False] * 3 + [True]),
    "sets": Dataset.from_arrays(SPARSE, [{1, 3}, set(), {2}, {1}, {1, 2, 3}, {3}, set()], groups=[0, 0, 1, 1, 1, 2, 3]),
    "sets of text": Dataset.from_arrays(SPARSE, [{"a"}, {"b", "längst"}, set(), {"a"}, {"b"}, set(), {"a"}]),
    "several numbers": Dataset.from_arrays(DENSE, RNG.normal(size=(7, 3))),
    "structure": Dataset.from_arrays(
        DENSE, range(7), groups=[0, 0, 1, 1, 1, 2, 3], structure=RNG.integers(-1, 3, (7, 2))
    ),
    "no targets": Dataset.from_arrays(DENSE),
}


@pytest.mark.parametrize("name", CASES)
def test_bytes_hold_all(name):
    data = CASES[name]
    same(unpacked(packed(data)), data)
    same(unpacked(packed(data.part(2, 5))), data.select(np.arange(2, 5)))
    assert unpacked(packed(data.part(3, 3))).rows == 0


@pytest.mark.parametrize("name", CASES)
@given(cuts=st.lists(st.integers(0, 7), max_size=4))
def test_parts_joined_are_the_whole(name, cuts):
    data, edges = CASES[name], [0, *sorted(cuts), 7]
    parts = [unpacked(packed(data.part(a, b))) for a, b in itertools.pairwise(edges)]
    same(join_rows(parts, "parts"), data)


def test_rows_without_weights_weigh_one():
    X = np.eye(2)
    joined = join_rows([Dataset.from_arrays(X, [0, 1], [2.0, 3.0]), Dataset.from_arrays(X, [1, 0])], "both")
    assert joined.targets.weights.tolist() == [2.0, 3.0, 1.0, 1.0]
