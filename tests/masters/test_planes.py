import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bmrm.masters._core import planes as module
from tests.masters.epigraph import store


@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.integers(1, 5))
def test_planes_are_what_was_added_and_not_dropped(seed, dim, rows_per_part):
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_ROWS", rows_per_part)
        planes = store(dim, (0.0, -1.0))
    twin = {}
    seen = set()
    for _ in range(40):
        if twin and rng.random() < 0.35:
            gone = [int(id) for id in rng.permutation(list(twin))[: rng.integers(1, len(twin) + 1)]]
            before = planes.ids.copy()
            order = planes.drop(gone)
            assert planes.ids.tolist() == before[order].tolist()
            for id in gone:
                del twin[id]
        else:
            a, b, block = rng.normal(size=dim), float(rng.normal()), int(rng.integers(2))
            id = planes.add(a, b, block)
            assert id not in seen
            seen.add(id)
            twin[id] = (a.copy(), b, block)
            a[:] = np.nan  # a copy was kept
        ids = planes.ids.tolist()
        assert sorted(ids) == sorted(twin)
        assert len(planes) == len(twin)
        v, alpha = rng.normal(size=dim), rng.normal(size=len(ids)) * (rng.random(len(ids)) < 0.5)
        A = np.array([twin[id][0] for id in ids]).reshape(-1, dim)
        np.testing.assert_allclose(planes.products(v), A @ v, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(planes.combine(alpha), A.T @ alpha, rtol=1e-13, atol=1e-13)
        np.testing.assert_array_equal(planes.offsets, [twin[id][1] for id in ids])
        np.testing.assert_array_equal(planes.blocks, [twin[id][2] for id in ids])
        for place, id in enumerate(ids):
            a, b, block = planes.plane(id)
            np.testing.assert_array_equal(planes.row(place), a)
            np.testing.assert_array_equal(a, twin[id][0])
            assert (b, block) == twin[id][1:]
        # one matrix beyond those in use, at most
        assert planes.nbytes <= 8 * dim * (len(ids) + 2 * rows_per_part)


def test_order_changes_at_drop_only():
    planes = store(2)
    first = [planes.add(np.ones(2), float(k)) for k in range(5)]
    assert planes.ids.tolist() == first
    assert planes.drop(first[1:2]).tolist() == [0, 4, 2, 3]
    before = planes.ids.tolist()
    new = planes.add(np.ones(2), 9.0)
    assert planes.ids.tolist() == [*before, new]


def test_long_rows_take_no_more_than_they_need():
    planes = store(5_000_000)
    assert planes.nbytes == 0
    planes.add(np.zeros(5_000_000), 0.0)
    assert planes.nbytes == 8 * 5_000_000


def test_a_sum_that_overflows_is_still_finite():
    planes = store(3)
    planes.add(np.full(3, 1e300), 0.0)
    assert planes.plane(planes.ids[0])[0][0] == 1e300


@pytest.mark.parametrize(
    ("a", "b", "block", "message"),
    [
        (np.zeros(3), 0.0, 0, "shape"),
        (np.zeros((2, 1)), 0.0, 0, "shape"),
        (np.zeros(2), 0.0, 1, "block"),
        (np.zeros(2), 0.0, -1, "block"),
        (np.array([0.0, np.nan]), 0.0, 0, "finite"),
        (np.array([np.inf, -np.inf]), 0.0, 0, "finite"),
        (np.zeros(2), np.inf, 0, "finite"),
    ],
)
def test_refuses_what_is_no_plane(a, b, block, message):
    planes = store(2)
    with pytest.raises(ValueError, match=message):
        planes.add(a, b, block)
    assert len(planes) == 0


@pytest.mark.parametrize(("dim", "infima"), [(0, (0.0,)), (1, ()), (1, (np.nan,)), (1, (np.inf,))])
def test_refuses_senseless_infima(dim, infima):
    with pytest.raises(ValueError, match="infimum"):
        store(dim, infima)
