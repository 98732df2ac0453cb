"""Datasets: what arrays are taken, what is refused, and what views and copies hold."""

import numpy as np
import pytest
import scipy.sparse as sp

from bmrm.data.dataset import Dataset
from bmrm.data.labels import LabelSets
from bmrm.data.matrix import Csr
from bmrm.problem import InputError, Targets


def sparse(rows=7, columns=5, dtype=np.float64, seed=0):
    random = np.random.default_rng(seed)
    dense = random.random((rows, columns)) * (random.random((rows, columns)) < 0.4)
    return sp.csr_array(dense.astype(dtype))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, bool])
def test_every_scipy_format_and_type(form, dtype):
    dense = (sparse().toarray() * 10).astype(dtype)
    data = Dataset.from_arrays(sp.csr_array(dense).asformat(form))
    assert data.X.dtype == (np.float32 if dtype == np.float32 else np.float64)
    np.testing.assert_array_equal(data.X.to_dense(), dense.astype(np.float64))
    assert (data.rows, data.features) == dense.shape


def test_duplicates_and_disorder_leave_the_callers_matrix_alone():
    indptr, indices, values = np.array([0, 4, 5]), np.array([2, 0, 2, 1, 1]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    theirs = sp.csr_matrix((values.copy(), indices.copy(), indptr.copy()), shape=(2, 3))
    theirs.has_canonical_format = theirs.has_sorted_indices = True  # a stale flag, as scipy allows
    ours = Csr.from_scipy(theirs)
    np.testing.assert_array_equal(theirs.indices, indices)
    np.testing.assert_array_equal(theirs.data, values)
    np.testing.assert_array_equal(ours.indices, [0, 1, 2, 1])
    np.testing.assert_array_equal(ours.values, [2.0, 4.0, 4.0, 5.0])


def test_ones_are_kept_without_values():
    X = sparse()
    X.data[:] = 1
    data = Dataset.from_arrays(X)
    assert data.X.values is None
    np.testing.assert_array_equal(data.X.to_dense(), X.toarray())
    np.testing.assert_array_equal(data.X.part(2, 5).to_scipy().toarray(), X.toarray()[2:5])


def test_parts_are_views_and_join_to_the_whole():
    X, y = sparse(), np.arange(7.0)
    data = Dataset.from_arrays(X, y, weights=y + 1, groups=np.arange(7) // 2)
    for cut in range(8):
        left, right = data.part(0, cut), data.part(cut, 7)
        assert left.nnz + right.nnz == data.nnz == X.nnz
        assert np.shares_memory(left.X.indices, data.X.indices)
        np.testing.assert_array_equal(np.vstack([left.X.to_dense(), right.X.to_dense()]), X.toarray())
        for name in ("y", "weights", "groups"):
            joined = np.concatenate([getattr(left.targets, name), getattr(right.targets, name)])
            np.testing.assert_array_equal(joined, getattr(data.targets, name))


def test_select_takes_rows_in_the_order_given():
    X, y = sparse(), np.arange(7.0)
    rows = np.array([5, 0, 5, 3])
    chosen = Dataset.from_arrays(X, y, weights=y + 1, groups=np.arange(7)).part(1, 7).select(rows)
    np.testing.assert_array_equal(chosen.X.to_dense(), X.toarray()[1:][rows])
    np.testing.assert_array_equal(chosen.targets.y, y[1:][rows])
    np.testing.assert_array_equal(chosen.targets.groups, rows + 1)
    sets = Dataset.from_arrays(X, [{1}, {2}, set(), {1, 2}, {3}, {1}, {2}], structure=np.arange(7)).select([5, 0])
    assert [set(row) for row in sets.targets.y] == [{1}, {1}]
    assert sets.targets.structure.tolist() == [[5], [0]]
    assert sets.select(np.zeros(0, np.int64)).targets.structure.shape == (0, 1)
    dense = Dataset.from_arrays(X.toarray(), y).select(rows)
    np.testing.assert_array_equal(dense.X, X.toarray()[rows])


def test_dense_is_not_copied_where_it_fits_and_padded_where_asked():
    X = np.arange(6.0).reshape(3, 2)
    data = Dataset.from_arrays(X)
    assert data.X is X
    np.testing.assert_array_equal(data.targets.y, np.zeros(3))
    assert Dataset.from_arrays(X.astype(np.float32)).X.dtype == np.float32
    assert Dataset.from_arrays(np.asfortranarray(X)).X.flags.c_contiguous
    np.testing.assert_array_equal(data.with_features(4).X, np.hstack([X, np.zeros((3, 2))]))
    assert Dataset.from_arrays(sp.csr_array(X)).with_features(9).features == 9


@pytest.mark.parametrize("X", [np.ones((2, 3)), sp.csr_array(np.ones((2, 3)))])
def test_fewer_features_than_there_are(X):
    with pytest.raises(InputError, match="3 features, expected at most 2"):
        Dataset.from_arrays(X).with_features(2)


def test_labels_of_every_kind():
    X = np.ones((3, 1))
    assert Dataset.from_arrays(X, ["b", "a", "b"]).targets.y.dtype.kind == "U"
    assert Dataset.from_arrays(X, np.array(["b", "a", "b"], object)).targets.y.dtype.kind == "U"
    assert Dataset.from_arrays(X, [1, 2, 3]).targets.y.dtype == np.float64
    assert Dataset.from_arrays(X, [[1], [2], [3]]).targets.y.shape == (3,)
    assert Dataset.from_arrays(X, np.ones((3, 4))).targets.y.shape == (3, 4)
    assert Dataset.from_arrays(X, LabelSets.from_rows([[1], [], [2, 1]])).targets.rows == 3


def nan_at(value):
    X = np.ones((4, 3))
    X[2, 1] = value
    return X


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": nan_at(np.nan)}, "X: row 2, column 1 is nan"),
        ({"X": nan_at(-np.inf)}, "X: row 2, column 1 is -inf"),
        ({"X": sp.csr_array(nan_at(np.inf))}, "X: row 2, column 1 is inf"),
        ({"X": sp.csr_array(nan_at(np.nan)).tocsc()}, "X: row 2, column 1 is nan"),
        ({"X": np.ones(4)}, "expected .rows, features."),
        ({"X": np.ones((4, 3), complex)}, "complex"),
        ({"X": sp.csr_array(np.ones((4, 3), complex))}, "complex"),
        ({"X": [["a", "b"]]}, "X holds text"),
        ({"X": np.array([[object()]])}, "X: .*expected numbers"),
        ({"X": np.ones((4, 3)), "y": [1, 2, 3]}, "y has 3 entries, X has 4 rows"),
        ({"X": np.ones((4, 3)), "y": [1, 2, np.nan, 3]}, "y: row 2 is nan"),
        ({"X": np.ones((4, 3)), "y": nan_at(np.inf)}, "y: row 2, column 1 is inf"),
        ({"X": np.ones((4, 3)), "y": np.ones((4, 1, 1))}, "y has shape"),
        ({"X": np.ones((4, 3)), "y": [1, "a", None, 2]}, "y: .*expected numbers"),
        ({"X": np.ones((4, 3)), "y": LabelSets.from_rows([[1]])}, "y has 1 entries"),
        ({"X": np.ones((4, 3)), "weights": [1, 1, 1]}, "weights has 3 entries"),
        ({"X": np.ones((4, 3)), "weights": [1, -0.5, 1, 1]}, "weights: row 1 is -0.5"),
        ({"X": np.ones((4, 3)), "weights": [1, 1, np.nan, 1]}, "weights: row 2 is nan"),
        ({"X": np.ones((4, 3)), "weights": [1, 1, 1, np.inf]}, "weights: row 3 is inf"),
        ({"X": np.ones((4, 3)), "weights": np.ones((4, 1))}, "weights have shape"),
        ({"X": np.ones((4, 3)), "groups": [1, 2, 2.5, 3]}, "groups: row 2 is 2.5"),
        ({"X": np.ones((4, 3)), "groups": [1, 2]}, "groups has 2 entries"),
        ({"X": np.ones((4, 3)), "structure": [1, 2]}, "structure has 2 entries"),
        ({"X": np.ones((4, 3)), "structure": np.ones(4)}, "structure is float64 of shape"),
        ({"X": np.ones((4, 3)), "structure": np.ones((4, 1, 1), int)}, "structure is int64 of shape"),
    ],
)
def test_bad_arrays_are_named(arrays, message):
    with pytest.raises(InputError, match=message):
        Dataset.from_arrays(**arrays)


def test_weights_of_a_part_of_the_rows_may_all_be_0():
    data = Dataset.from_arrays(np.ones((2, 1)), [0, 1], weights=[0, 0])
    assert not data.checked().with_weights([0.0, 0.0]).targets.weights.any()


def test_overflowing_sums_of_finite_numbers_pass():
    assert Dataset.from_arrays(np.full((2, 2), 1.7e308)).rows == 2


def test_rows_of_targets_must_match():
    with pytest.raises(InputError, match="X has 2 rows, y has 3"):
        Dataset(np.ones((2, 1)), Targets(np.zeros(3)))


def test_csr_refuses_other_types():
    with pytest.raises(InputError, match="indptr int32"):
        Csr(np.zeros(1, np.int32), np.zeros(0, np.int32), None, 1)
    with pytest.raises(InputError, match="values are int64"):
        Csr(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64), 1)


def test_label_sets():
    sets = LabelSets.from_rows([[3, 1, 3], [], [2], [1, 2]])
    assert [list(row) for row in sets] == [[1, 3], [], [2], [1, 2]]
    assert [list(row) for row in sets[1:3]] == [[], [2]]
    assert [list(row) for row in sets.select([3, 0])] == [[1, 2], [1, 3]]
    np.testing.assert_array_equal(sets.classes(), [1, 2, 3])
    np.testing.assert_array_equal(sets[2:4].indicator(sets.classes()), [[0, 1, 0], [1, 1, 0]])
    with pytest.raises(InputError, match="label 3 is not one of"):
        sets.indicator(np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="row 1: a label is not finite"):
        LabelSets.from_rows([[1], [np.nan]])
