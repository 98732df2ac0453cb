"""Sparse matrices that refer to entries they do not have are refused at every door, before kernels follow them."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import bmrm
from bmrm.data.dataset import Dataset
from bmrm.data.index_arrays import check_sparse
from bmrm.data.matrix import Csr
from bmrm.losses import LOSSES
from bmrm.problem import InputError, Targets

ROWS, COLUMNS = 200, 50
RIGHT = sp.random(ROWS, COLUMNS, 0.1, random_state=0, format="csr")
Y = np.where(np.asarray(RIGHT.sum(axis=1)).ravel() > 2.4, 1, -1)


def broken(form, column):
    """RIGHT with one wrong index."""
    B = RIGHT.asformat(form).copy()
    if form == "coo":
        B.coords[1][5] = column
    elif form == "lil":
        B.rows[1][0] = column
    elif form == "csc":
        B.indices[5] = column if column != COLUMNS else ROWS
    else:
        B.indices[5] = column
    return B


@pytest.fixture(scope="module")
def trained():
    return bmrm.fit(RIGHT, Y), bmrm.Classifier().fit(RIGHT, Y)


DOORS = {
    "fit": lambda model, classifier, B: bmrm.fit(B, Y),
    "validation": lambda model, classifier, B: bmrm.fit(RIGHT, Y, validation=(B, Y), follow=["accuracy"]),
    "predict": lambda model, classifier, B: model.predict(B),
    "decision_function": lambda model, classifier, B: model.decision_function(B),
    "evaluate": lambda model, classifier, B: model.evaluate(B, Y),
    "evaluate_folds": lambda model, classifier, B: model.evaluate_folds(B, Y, folds=2),
    "Dataset": lambda model, classifier, B: Dataset.from_arrays(B, Y),
    "Classifier": lambda model, classifier, B: bmrm.Classifier().fit(B, Y),
    "Regressor": lambda model, classifier, B: bmrm.Regressor().fit(B, Y),
    "NoveltyDetector": lambda model, classifier, B: bmrm.NoveltyDetector().fit(B),
    "estimator": lambda model, classifier, B: classifier.decision_function(B),
    "tagger": lambda model, classifier, B: bmrm.SequenceTagger().fit([RIGHT, B], [Y, Y]),
    "labels": lambda model, classifier, B: bmrm.fit(np.ones((ROWS, 1)), (B > 0) if B.format == "lil" else B),
    "multilabel": lambda model, classifier, B: bmrm.MultilabelClassifier().fit(np.ones((ROWS, 1)), B),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr"])
def test_every_door(trained, door, form):
    with pytest.raises(InputError, match=r"^(X|y)(: sequence 1)?: .*(row|column) "):
        DOORS[door](*trained, broken(form, COLUMNS))


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("column", [COLUMNS, 10**7, -1, -(2**31)])
def test_every_wrong_index(column, index_type):
    B = broken("csr", column)
    B.indices, B.indptr = B.indices.astype(index_type), B.indptr.astype(index_type)
    row = int(np.searchsorted(B.indptr, 5, side="right")) - 1
    with pytest.raises(InputError, match=f"X: row {row} has the column index {column}, expected 0 to 49"):
        Dataset.from_arrays(B)


def test_indices_that_wrap_to_the_right_ones():
    B = RIGHT.copy()
    B.indices = B.indices.astype(np.int64)
    B.indices[5] += 2**32  # would be the right column if it were cut to 32 bits
    with pytest.raises(InputError, match="has the column index"):
        Dataset.from_arrays(B)


def set_to(B, **arrays):
    for name, array in arrays.items():
        setattr(B, name, array)
    return B


def with_position(form, place, value):
    B = RIGHT.asformat(form).copy()
    B.indptr[place] = value
    return B


def lists(change):
    B = RIGHT.tolil()
    change(B)
    return B


WRONG = {
    "falls": (with_position("csr", 5, 10**8), "indptr falls from 100000000 to .* at row 5"),
    "falls below 0": (with_position("csc", 5, -1), "indptr falls from .* to -1 at column 4"),
    "ends late": (with_position("bsr", -1, 10**8), "indptr goes from 0 to 100000000"),
    "starts early": (with_position("csr", 0, -5), "indptr goes from -5 to"),
    "few values": (set_to(RIGHT.copy(), data=RIGHT.data[:-3]), "1000 indices and 997 values"),
    "few positions": (set_to(RIGHT.copy(), indptr=RIGHT.indptr[:-1]), "indptr has 200 entries, expected 201"),
    "fractions": (set_to(RIGHT.copy(), indices=RIGHT.indices + 0.5), "indices holds float64"),
    "few of a list": (lists(lambda B: B.rows[3].append(3)), "row 3 has . column indices and . values"),
    "of a list": (broken("lil", 77), "row 1 has the column index 77"),
    "a diagonal alone": (set_to(sp.eye(9, format="dia"), data=np.ones(9)), "the dia matrix is damaged|9 diagonals"),
    "of diagonals": (set_to(sp.eye(9, format="dia"), offsets=np.arange(3)), "3 offsets and 1 diagonals"),
}


@pytest.mark.parametrize("case", WRONG)
def test_positions_and_lengths(case):
    matrix, message = WRONG[case]
    with pytest.raises(InputError, match=f"X: {message}"):
        Dataset.from_arrays(matrix)


def test_a_matrix_that_changes_after_it_was_checked(trained):
    B = RIGHT.copy()
    data = Dataset.from_arrays(B, Y)
    assert np.shares_memory(data.X.indices, B.indices)
    B.indices[5] = 99
    for use in (
        lambda: bmrm.fit(data),
        lambda: trained[0].predict(data),
        lambda: trained[0].evaluate(data),
        lambda: bmrm.LinearRisk(data, LOSSES.make("hinge")),
    ):
        with pytest.raises(InputError, match="row 1 has the column index 99"):
            use()


@pytest.mark.parametrize("indices", [[0, 3, 1], [2, 2, 1], [0, -1, 1], [1, 0, 1]])
def test_sparse_rows_made_by_users(indices):
    X = Csr(np.array([0, 2, 3]), np.array(indices, np.int32), np.ones(3), 3)
    data = Dataset(X, Targets(np.array([1.0, -1.0])))
    for use in (Dataset.from_arrays, lambda X: bmrm.fit(data), lambda X: bmrm.LinearRisk(data, LOSSES.make("hinge"))):
        with pytest.raises(InputError, match=r"X: row 0 has (column|the column index)"):
            use(X)


def test_lengths_of_sparse_rows_made_by_users():
    with pytest.raises(InputError, match="3 indices, values of shape"):
        Csr(np.array([0, 2, 3]), np.array([0, 1, 1], np.int32), np.ones(2), 3)
    with pytest.raises(InputError, match="expected two lists"):
        Csr(np.zeros(0, np.int64), np.zeros(0, np.int32), None, 3)
    with pytest.raises(InputError, match="weights have shape"):
        Dataset(np.ones((3, 1)), Targets(np.zeros(3), np.ones(2)))
    with pytest.raises(InputError, match="groups have shape"):
        Dataset(np.ones((3, 1)), Targets(np.zeros(3), None, np.ones(4, np.int64)))


@pytest.mark.parametrize("seed", range(20))
def test_right_matrices_pass_in_every_format(seed):
    random = np.random.default_rng(seed)
    shape = random.integers(0, 9, 2)
    dense = random.integers(0, 3, shape) * (random.random(shape) < 0.4)
    for form in ("csr", "csc", "coo", "lil", "dok", "dia", "bsr"):
        matrix = sp.csr_array(dense).asformat(form)
        check_sparse(matrix)
        np.testing.assert_array_equal(Csr.from_scipy(matrix).checked().to_dense(), dense)
    part = Csr.from_scipy(sp.csr_array(dense)).part(0, int(shape[0]) // 2)
    assert part.checked() is part


@pytest.mark.parametrize("seed", range(20))
def test_disorder_is_seen_as_a_loop_over_rows_sees_it(seed):
    random = np.random.default_rng(seed)
    indptr = np.concatenate(([0], np.cumsum(random.integers(0, 4, 6))))
    indices = random.integers(0, 6, indptr[-1]).astype(np.int32)
    X = Csr(indptr, indices, None, 6)
    rising = all(np.all(np.diff(indices[a:b]) > 0) for a, b in pairwise(indptr))
    if rising:
        assert X.checked() is X
    else:
        with pytest.raises(InputError, match="expected rising numbers"):
            X.checked()


def test_duplicates_of_small_integers_do_not_wrap():
    X = sp.coo_array((np.array([100, 100], np.int8), (np.zeros(2, int), np.zeros(2, int))), shape=(1, 2))
    np.testing.assert_array_equal(Csr.from_scipy(X).to_dense(), [[200.0, 0.0]])


def test_sparse_objects():
    X = sp.csr_array(np.eye(2))
    X.data = np.array(["a", "b"], object)
    with pytest.raises(InputError, match="X holds object, expected numbers"):
        Dataset.from_arrays(X)


# What scipy does not look at, or asks its own members for; set to in a matrix of each format.
DAMAGED = {
    "values of another length": ("coo", lambda B: setattr(B, "data", B.data[:-1])),
    "values in a table": ("coo", lambda B: setattr(B, "data", B.data[:, None])),
    "values in a list": ("coo", lambda B: setattr(B, "data", B.data.tolist())),
    "no values": ("csr", lambda B: setattr(B, "data", None)),
    "indices in a list": ("csr", lambda B: setattr(B, "indices", B.indices.tolist())),
    "no positions": ("csc", lambda B: setattr(B, "indptr", B.indptr[:0])),
    "positions in a table": ("csr", lambda B: setattr(B, "indptr", B.indptr[None])),
    "positions that begin late": ("csc", lambda B: B.indptr.__setitem__(0, 2)),
    "blocks without width": ("bsr", lambda B: setattr(B, "data", B.data[:, :, 0])),
    "a row that is None": ("lil", lambda B: B.rows.__setitem__(3, None)),
    "an index of text": ("lil", lambda B: (B.rows.__setitem__(3, ["a"]), B.data.__setitem__(3, [1.0]))),
    "a fraction as index": ("lil", lambda B: (B.rows.__setitem__(3, [1.5]), B.data.__setitem__(3, [1.0]))),
    "an index of 70 bits": ("lil", lambda B: (B.rows.__setitem__(3, [2**70]), B.data.__setitem__(3, [1.0]))),
    "a value of text": ("lil", lambda B: (B.rows.__setitem__(3, [1]), B.data.__setitem__(3, ["x"]))),
    "a key outside": ("dok", lambda B: B._dict.__setitem__((3, 99), 1.0)),
    "a key below": ("dok", lambda B: B._dict.__setitem__((-3, 1), 1.0)),
    "a key of 40 bits": ("dok", lambda B: B._dict.__setitem__((2**40, 1), 1.0)),
    "a value of none": ("dok", lambda B: B._dict.__setitem__((3, 1), None)),
    "a complex value": ("dok", lambda B: B._dict.__setitem__((3, 1), 1j)),
}


@pytest.mark.parametrize("array", [False, True])
@pytest.mark.parametrize("case", DAMAGED)
def test_parts_that_are_not_of_the_format(trained, case, array):
    form, change = DAMAGED[case]
    B = (sp.csr_array if array else sp.csr_matrix)(RIGHT).asformat(form)
    change(B)
    for use in (lambda: bmrm.fit(B, Y), lambda: trained[0].predict(B), lambda: trained[1].predict(B)):
        with pytest.raises(InputError, match=r"^X: "):
            use()


def test_small_floats_are_added_up_in_double():
    table = sp.coo_matrix((np.ones(90), (np.zeros(90, int), np.zeros(90, int))), (2, 2))
    table.data = np.full(90, 2000, np.float16)  # scipy makes none of this type, and does not look
    assert Dataset.from_arrays(table).X.to_dense()[0, 0] == 180000.0


def test_sparse_matrices_where_arrays_are_wanted():
    with pytest.raises(InputError, match=r"^weights is a sparse matrix"):
        bmrm.fit(RIGHT, Y, sample_weight=RIGHT)
    with pytest.raises(InputError, match=r"^start is a sparse matrix"):
        bmrm.fit(RIGHT, Y, start=RIGHT)
    with pytest.raises(InputError, match="expected a Csr or an array"):
        Dataset(RIGHT, Targets(Y.astype(float)))
    with pytest.raises(InputError, match=r"^y: sequence 1 is a sparse matrix"):
        bmrm.SequenceTagger().fit([RIGHT, RIGHT], [Y, sp.csr_matrix(Y[:, None])])
    with pytest.raises(InputError, match=r"^y: sequence 1: column 0 has the row index 200"):
        bmrm.SequenceTagger().fit([RIGHT, RIGHT], [Y, broken("csc", COLUMNS)])


@pytest.mark.parametrize("start", ["x", b"abc", {}, np.zeros(3, complex), np.array(["a"] * 3), [None] * 3])
def test_starts_that_are_no_numbers(start):
    risk = bmrm.extend.LinearRisk(Dataset.from_arrays(np.eye(3), [1, -1, 1]), LOSSES.make("hinge"))
    with pytest.raises(InputError, match=r"^start"):
        bmrm.minimize(risk, bmrm.L2(0.1), start=start)
