"""LinearRisk against the formula written with dense matrices."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from bmrm.data.dataset import Dataset
from bmrm.losses.hinge import Hinge
from bmrm.losses.logistic import Logistic
from bmrm.losses.roc_area import RocArea
from bmrm.losses.softmax import Softmax
from bmrm.problem import IncompatibleError, InputError, Scored, ability
from bmrm.problem.abilities import Blocks, RowSubsets
from bmrm.risk import linear_map
from bmrm.risk.linear import LinearRisk
from bmrm.risk.products import Columns

ROWS, FEATURES = 60, 7


def table(seed=0):
    rng = np.random.default_rng(seed)
    return np.where(rng.random((ROWS, FEATURES)) < 0.5, rng.normal(size=(ROWS, FEATURES)), 0.0)


def labels(classes=2, seed=1):
    return np.random.default_rng(seed).integers(0, classes, ROWS).astype(float)


def columns():
    rng = np.random.default_rng(2)
    return Columns(rng.uniform(0.5, 2.0, FEATURES), rng.normal(size=FEATURES))


def logistic_by_hand(X, y, w, weights):
    z = np.where(y == 1, 1.0, -1.0)
    value = np.sum(weights * np.log1p(np.exp(-z * (X @ w)))) / weights.sum()
    return value, X.T @ (weights * -z / (1 + np.exp(z * (X @ w)))) / weights.sum()


@pytest.mark.parametrize("store", [np.asarray, csr_matrix])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("transform", [None, Columns(columns().scale), Columns(None, columns().shift), columns()])
def test_scaling_and_bias_are_those_of_a_changed_matrix(store, bias, transform):
    X, y, weights = table(), labels(), np.random.default_rng(3).uniform(0, 2, ROWS)
    changed = X if transform is None or transform.shift is None else X - transform.shift
    changed = changed if transform is None or transform.scale is None else changed * transform.scale
    changed = np.hstack([changed, np.ones((ROWS, 1))]) if bias else changed
    risk = LinearRisk(Dataset.from_arrays(store(X), y, weights), Logistic(), bias=bias, columns=transform)
    w = np.random.default_rng(4).normal(size=risk.dim)
    value, gradient = risk.value_and_subgradient(w)
    by_hand = logistic_by_hand(changed, y, w, weights)
    assert value == pytest.approx(by_hand[0], rel=1e-13)
    np.testing.assert_allclose(gradient, by_hand[1], rtol=1e-11, atol=1e-13)
    raw, intercept = risk.raw_weights(w)
    np.testing.assert_allclose(X @ raw + intercept, changed @ w, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("store", [np.asarray, csr_matrix])
def test_raw_weights_of_several_scores(store):
    X = table()
    risk = LinearRisk(Dataset.from_arrays(store(X), labels(4)), Softmax(), bias=True, columns=columns())
    w = np.random.default_rng(5).normal(size=risk.dim)
    raw, intercept = risk.raw_weights(w)
    assert raw.shape == (FEATURES, 4)
    assert intercept.shape == (4,)
    np.testing.assert_allclose(X @ raw + intercept, risk.map.matvec(w), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("store", [np.asarray, lambda X: X.astype(np.float32), csr_matrix])
@pytest.mark.parametrize("loss", [Hinge(), Softmax(), RocArea()])
@pytest.mark.parametrize("parts", [1, 2, 3, 8, 50])
def test_feature_ranges_make_up_the_rmatvec(store, loss, parts):
    y = labels(3 if loss.task == "multiclass" else 2)
    risk = LinearRisk(Dataset.from_arrays(store(table()), y), loss, bias=True, columns=columns(), threads=2)
    scored = ability(risk, Scored)
    _, slope = scored.phi.value_and_slope(scored.map.matvec(np.full(risk.dim, 0.1)))
    whole, found, stop = scored.map.rmatvec(slope), np.full(risk.dim, np.nan), 0
    pieces = list(scored.map.rmatvec_parts(slope, parts))
    for where, piece in pieces:
        assert where.start == stop
        found[where], stop = piece, where.stop
    assert len(pieces) == min(parts, FEATURES + 1)
    np.testing.assert_allclose(found, whole, rtol=1e-12, atol=1e-14)


def test_threads_take_parts_of_the_rows_and_of_the_features(monkeypatch):
    monkeypatch.setattr(linear_map, "WORK_PER_THREAD", 10)
    X, y = csr_matrix(table()), labels()
    one, three = (LinearRisk(Dataset.from_arrays(X, y), Hinge(), threads=threads) for threads in (1, 3))
    assert len(three.map.spans(0, ROWS)) == 3
    w = np.random.default_rng(6).normal(size=FEATURES)
    np.testing.assert_array_equal(one.map.matvec(w), three.map.matvec(w))
    slope = np.random.default_rng(7).normal(size=ROWS)
    np.testing.assert_allclose(one.map.rmatvec(slope), three.map.rmatvec(slope), rtol=1e-12, atol=1e-13)
    for (a, one_piece), (b, three_piece) in zip(
        one.map.rmatvec_parts(slope, 3), three.map.rmatvec_parts(slope, 3), strict=True
    ):
        assert a == b
        np.testing.assert_allclose(one_piece, three_piece, rtol=1e-12, atol=1e-13)


def test_chunks_cover_the_rows_in_order(monkeypatch):
    monkeypatch.setattr(linear_map, "CHUNK_ROWS", 4)
    monkeypatch.setattr(linear_map, "CHUNK_BYTES", 100)
    for store in (np.asarray, csr_matrix):
        chunks = LinearRisk(Dataset.from_arrays(store(table()), labels()), Hinge()).map.chunks(10, ROWS)
        assert len(chunks) > 3
        assert [a for a, _ in chunks] == [10] + [b for _, b in chunks[:-1]]
        assert chunks[-1][1] == ROWS


def test_blocks_add_up_and_stay_the_same():
    risk = LinearRisk(Dataset.from_arrays(csr_matrix(table()), labels()), Hinge())
    w = np.random.default_rng(8).normal(size=FEATURES)
    blocks = ability(risk, Blocks)
    values, subgradients = blocks.values_and_subgradients(w, 4)
    again, _ = blocks.values_and_subgradients(w, 4)
    value, subgradient = risk.value_and_subgradient(w)
    np.testing.assert_array_equal(values, again)
    assert values.sum() == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(subgradients.sum(axis=0), subgradient, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(blocks.infima(4), np.zeros(4))


def test_more_blocks_than_rows():
    risk = LinearRisk(Dataset.from_arrays(table()[:3], [0.0, 1.0, 1.0]), Hinge())
    values, subgradients = ability(risk, Blocks).values_and_subgradients(np.ones(FEATURES), 5)
    assert values.sum() == pytest.approx(risk.value_and_subgradient(np.ones(FEATURES))[0])
    assert subgradients.shape == (5, FEATURES)


@pytest.mark.parametrize("store", [np.asarray, csr_matrix])
def test_chosen_rows_have_the_risk_as_their_mean(store):
    X, y, weights = table(), labels(), np.random.default_rng(9).uniform(0, 2, ROWS)
    risk = LinearRisk(Dataset.from_arrays(store(X), y, weights), Hinge(), bias=True, columns=columns())
    w = np.random.default_rng(10).normal(size=risk.dim)
    subsets = ability(risk, RowSubsets)
    singles = [subsets.value_and_subgradient_of(np.array([k]), w) for k in range(ROWS)]
    value, subgradient = risk.value_and_subgradient(w)
    assert np.mean([each[0] for each in singles]) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(np.mean([each[1] for each in singles], axis=0), subgradient, rtol=1e-11, atol=1e-13)
    twice = subsets.value_and_subgradient_of(np.array([3, 3, 5]), w)
    assert twice[0] == pytest.approx((2 * singles[3][0] + singles[5][0]) / 3, rel=1e-12)


def test_a_whole_sample_loss_offers_scores_only():
    risk = LinearRisk(Dataset.from_arrays(table(), labels()), RocArea())
    assert ability(risk, Scored) is not None
    assert ability(risk, RowSubsets) is None
    assert ability(risk, Blocks) is None


def test_a_part_without_rows():
    whole = Dataset.from_arrays(csr_matrix(table()), labels())
    summary = Hinge().summarise(whole.targets)
    empty = LinearRisk(whole.part(5, 5), Hinge(), summary=summary, mass=float(ROWS), bias=True)
    value, subgradient = empty.value_and_subgradient(np.ones(FEATURES + 1))
    assert (value, empty.local_mass, empty.infimum) == (0.0, 0.0, 0.0)
    np.testing.assert_array_equal(subgradient, np.zeros(FEATURES + 1))
    scored = ability(empty, Scored)
    value, slope = scored.phi.value_and_slope(scored.map.matvec(np.ones(FEATURES + 1)))
    np.testing.assert_array_equal(scored.map.rmatvec(slope), np.zeros(FEATURES + 1))
    values, derivatives = scored.phi.along(slope, slope)(np.array([0.0, 1.0]))
    np.testing.assert_array_equal([values, derivatives], np.zeros((2, 2)))


def test_curvature_is_refused_where_there_is_none():
    scored = ability(LinearRisk(Dataset.from_arrays(table(), labels()), Hinge()), Scored)
    f = scored.map.matvec(np.zeros(FEATURES))
    with pytest.raises(IncompatibleError, match="hinge has no second derivative"):
        scored.phi.hessian_product(f, f)


def test_arguments_that_do_not_fit_are_refused():
    data = Dataset.from_arrays(table(), labels())
    with pytest.raises(InputError, match=r"w has shape \(3,\), expected \(7,\)"):
        LinearRisk(data, Hinge()).value_and_subgradient(np.zeros(3))
    with pytest.raises(InputError, match="scale has 3 entries, the data have 7 features"):
        LinearRisk(data, Hinge(), columns=Columns(np.ones(3)))
    with pytest.raises(InputError, match="threads is 0"):
        LinearRisk(data, Hinge(), threads=0)
    with pytest.raises(InputError, match="total weight 0"):
        LinearRisk(data, Hinge(), mass=0.0)
    with pytest.raises(InputError, match="finite"):
        Columns(scale=np.array([1.0, np.inf]))
    subsets = ability(LinearRisk(data, Hinge()), RowSubsets)
    for rows in ([], [-1], [ROWS]):
        with pytest.raises(InputError, match="rows must be"):
            subsets.value_and_subgradient_of(np.array(rows, np.int64), np.zeros(FEATURES))


def test_weights_may_be_read_only_and_strided():
    risk = LinearRisk(Dataset.from_arrays(csr_matrix(table()), labels()), Hinge())
    w = np.random.default_rng(11).normal(size=2 * FEATURES)
    w.flags.writeable = False
    value, _ = risk.value_and_subgradient(w[::2])
    assert value == risk.value_and_subgradient(w[::2].copy())[0]
