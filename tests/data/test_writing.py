"""What is written and read back is equal to the last bit; archives that are not ours are refused."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bmrm.data.archives import write_arrays
from bmrm.data.dataset import Dataset
from bmrm.data.labels import LabelSets
from bmrm.data.matrix import Csr
from bmrm.data.readers.npz import read_npz
from bmrm.data.readers.svmlight import Svmlight
from bmrm.data.reading import read, scan
from bmrm.data.writers import write_npz, write_svmlight
from bmrm.problem import InputError, Targets


def equal(left, right):
    assert type(left.X) is type(right.X)
    assert left.X.shape == right.X.shape
    if isinstance(left.X, Csr):
        for a, b in (
            (left.X.indptr - left.X.indptr[0], right.X.indptr),
            (left.X._slice_of(left.X.indices), right.X.indices),
        ):
            np.testing.assert_array_equal(a, b)
        assert (left.X.values is None) == (right.X.values is None)
        if left.X.values is not None:
            assert left.X.dtype == right.X.dtype
            assert left.X._slice_of(left.X.values).tobytes() == right.X.values.tobytes()
    else:
        assert left.X.dtype == right.X.dtype
        assert left.X.tobytes() == right.X.tobytes()
    a, b = left.targets, right.targets
    if isinstance(a.y, LabelSets):
        assert [list(row) for row in a.y] == [list(row) for row in b.y]
    else:
        np.testing.assert_array_equal(a.y, b.y)
        assert a.y.dtype == b.y.dtype
    for name in ("weights", "groups"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def sparse(values="random", dtype=np.float64, rows=9, columns=6):
    rng = np.random.default_rng(1)
    present = rng.random((rows, columns)) < 0.4
    present[:, 0] = present[:, -1] = True
    indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    entries = (
        None
        if values is None
        else (rng.standard_normal(indptr[-1]) * 10.0 ** rng.integers(-30, 30, indptr[-1])).astype(dtype)
    )
    return Csr(indptr, np.nonzero(present)[1].astype(np.int32), entries, columns)


@pytest.mark.parametrize("X", [sparse(), sparse(dtype=np.float32), sparse(None)])
@pytest.mark.parametrize("one_based", [True, False])
@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_svmlight_round_trip(tmp_path, X, one_based, suffix):
    rng = np.random.default_rng(2)
    data = Dataset(X, Targets(rng.standard_normal(9), None, np.repeat([4, 2, -7], 3)))
    path = tmp_path / f"a.svm{suffix}"
    write_svmlight(path, data, one_based=one_based)
    equal(data, read(path, format=Svmlight(dtype=X.dtype.name)))
    write_svmlight(path, data.part(3, 8), one_based=one_based)
    equal(data.part(3, 8), read(path, format={"name": "svmlight", "dtype": X.dtype.name}))


@given(st.data())
def test_dense_svmlight_round_trip_of_wild_floats(tmp_path_factory, data):
    finite = st.floats(allow_nan=False, allow_infinity=False)
    X = data.draw(hnp.arrays(np.float64, (4, 3), elements=finite))
    y = data.draw(hnp.arrays(np.float64, 4, elements=finite))
    path = tmp_path_factory.getbasetemp() / "wild.svm"
    write_svmlight(path, Dataset.from_arrays(X, y))
    back = read(path, features=3, one_based=True)
    np.testing.assert_array_equal(back.X.to_dense(), X)
    # Whole numbers above 2^53 are read as int64, which loses none.
    assert back.targets.y.astype(np.float64).tobytes() == y.tobytes()


def test_label_sets_round_trip(tmp_path):
    data = Dataset(sparse(rows=4), Targets(LabelSets.from_rows([[1, 3], [], [2.5], [3]])))
    write_svmlight(tmp_path / "a.svm", data)
    equal(data, read(tmp_path / "a.svm", format=Svmlight(multilabel=True)))
    write_npz(tmp_path / "a.npz", data.part(0, 3))
    equal(data.part(0, 3), read(tmp_path / "a.npz"))


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (Targets(np.array(["a", "b"])), "not text or vectors"),
        (Targets(np.ones((2, 3))), "not text or vectors"),
        (Targets(np.ones(2), np.ones(2)), "no sample weights"),
        (Targets(LabelSets.from_rows([[], [1]])), "without labels and entries"),
    ],
)
def test_what_svmlight_cannot_hold(tmp_path, targets, message):
    with pytest.raises(InputError, match=message):
        write_svmlight(tmp_path / "a.svm", Dataset(np.zeros((2, 1)), targets))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "X", [sparse(), sparse(dtype=np.float32), sparse(None), np.arange(18.0).reshape(9, 2), np.ones((9, 2), np.float32)]
)
@pytest.mark.parametrize("y", [np.arange(9.0), np.array(list("abcabcabc")), np.ones((9, 4))])
def test_npz_round_trip(tmp_path, X, y):
    data = Dataset(X, Targets(y, np.arange(9.0), np.repeat([3, 1, 2], 3)))
    path = tmp_path / "a.npz"
    write_npz(path, data)
    equal(data, read(path))
    for parts in (2, 4, 12):
        shares = [scan(path, part=part, parts=parts) for part in range(parts)]
        np.testing.assert_array_equal(
            np.concatenate([share.data.targets.groups for share in shares]), data.targets.groups
        )
        np.testing.assert_array_equal(np.concatenate([share.data.targets.y for share in shares]), y)
        assert sum(share.data.nnz for share in shares) == data.nnz
    write_npz(path, data.part(2, 6))
    equal(data.part(2, 6), read(path))


CSR = {"indptr": [0, 2, 3], "indices": [0, 4, 2], "shape": [2, 5]}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"weights_of_model": [1.0]}, "unknown array 'weights_of_model'"),
        ({"y": [1.0]}, "neither X nor indptr"),
        ({"X": [[1.0, np.nan]]}, "X: row 0, column 1 is nan"),
        ({"X": np.zeros((0, 3))}, "no rows"),
        ({"X": [[1.0]], "y": [1.0, 2.0]}, "y has 2 entries"),
        ({"X": [[1.0]], "weights": [-1.0]}, "weights: row 0"),
        ({"X": np.array([[object()]], object)}, "not an archive of plain arrays"),
        ({"indptr": [0, 1]}, "indices is missing"),
        (CSR | {"shape": [3, 5]}, "expected rows . 1 of them"),
        (CSR | {"shape": [2, 4]}, "X: row 0 has the column index 4, expected 0 to 3"),
        (CSR | {"indices": [4, 0, 2]}, "X: row 0 has column 0 after 4, expected rising numbers"),
        (CSR | {"indices": [0, -4, 2]}, "X: row 0 has the column index -4"),
        (CSR | {"indices": [0.0, 4.0, 2.0]}, "indices is float64"),
        (CSR | {"indptr": [0, 3, 2]}, "indptr goes from 0 to 2, expected from 0 to 3"),
        (CSR | {"indptr": [0, 4, 3]}, "X: indptr falls from 4 to 3 at row 1"),
        (CSR | {"values": [1.0]}, "values are float64 of shape"),
        (CSR | {"values": [1.0, np.inf, 1.0]}, "X: row 0, column 4 is inf"),
        ({"X": [[1.0]], "labels": [1.0]}, "label_indptr is missing"),
        ({"X": [[1.0]], "labels": [1.0], "label_indptr": [0, 2]}, "label_indptr does not rise"),
    ],
)
def test_archives_that_are_wrong(tmp_path, arrays, message):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=r"a\.npz") as caught:
        read(path)
    assert message.replace(" . ", " + ") in str(caught.value)


def test_what_is_no_archive(tmp_path):
    path = tmp_path / "a.npz"
    for content in (b"1 1:1\n", pickle.dumps({"X": 1}), b"PK\x03\x04 damaged"):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"a\.npz: not an? .*archive"):
            read_npz(path)
    write_npz(path, Dataset.from_arrays(np.ones((3, 2))))
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"a\.npz: not an archive"):
        read_npz(path)


def test_sparse_archive_of_other_integer_types(tmp_path):
    np.savez(tmp_path / "a.npz", **{key: np.array(value, np.int16) for key, value in CSR.items()})
    data = read(tmp_path / "a.npz")
    assert data.X.values is None
    np.testing.assert_array_equal(data.X.to_dense(), [[1, 0, 0, 0, 1], [0, 0, 1, 0, 0]])


def test_archives_have_no_pickles_whatever_the_version_of_numpy(tmp_path):
    empty = np.zeros((0, 3), np.int32)
    with open(tmp_path / "a.npz", "wb") as file:
        write_arrays(file, {"x": [1.5, 2.5], "allow_pickle": np.array(["a", "bc"]), "empty": empty})
    with np.load(tmp_path / "a.npz", allow_pickle=False) as read:
        assert sorted(read.files) == ["allow_pickle", "empty", "x"]
        assert read["x"].tolist() == [1.5, 2.5]
        assert read["allow_pickle"].tolist() == ["a", "bc"]
        assert (read["empty"].shape, read["empty"].dtype) == ((0, 3), np.int32)
    with open(tmp_path / "b.npz", "wb") as file, pytest.raises(ValueError, match="allow_pickle"):
        write_arrays(file, {"x": np.array([{}], object)})
