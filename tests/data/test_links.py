"""Link data: what each option says of the rows, and that the target can be found from those around it."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import bmrm
from bmrm.data.generators import Links
from bmrm.data.reading import read
from bmrm.problem import InputError


def dense(**options):
    data = Links(**options).make()
    return data.X.to_dense(), data.targets.y


def test_without_noise_rows_are_groups():
    X, y = dense(rows=4_000, features=40, groups=12, members=5, target_groups=3, omitted=0.0, unrelated=0.0)
    kinds, which = np.unique(X, axis=0, return_inverse=True)
    assert len(kinds) == 12
    assert set(X.sum(axis=1)) == {5.0}
    # a group has the target in all of its links or in none
    labels = [set(y[which.ravel() == k]) for k in range(12)]
    assert sorted(map(tuple, labels)) == [(0.0,)] * 9 + [(1.0,)] * 3


def test_omitted_objects():
    X, y = dense(rows=30_000, features=60, groups=10, members=8, target_groups=4, omitted=0.4, unrelated=0.0)
    assert X.sum(axis=1).mean() == pytest.approx(8 * 0.6, rel=0.02)
    assert X.sum(axis=1).max() <= 8.0
    assert y.mean() == pytest.approx(4 / 10 * 0.6, rel=0.05)
    everything_left_out = dense(rows=50, omitted=1.0, unrelated=0.0)
    assert everything_left_out[0].sum() == everything_left_out[1].sum() == 0.0


def test_unrelated_objects_are_all_alike():
    X, y = dense(rows=40_000, features=30, groups=5, target_groups=0, omitted=1.0, unrelated=2.0)
    # an object is there unless none of a Poisson number of draws from 31 objects is it
    chance = 1.0 - np.exp(-2.0 / 31)
    np.testing.assert_allclose(X.mean(axis=0), chance, rtol=0.1)
    assert y.mean() == pytest.approx(chance, rel=0.1)


def test_defaults_can_be_learned():
    """Sparse, few positive rows, as the thesis' citeseer (299 of them); the AUC there is 0.946."""
    data = read("synthetic:links")
    assert data.X.values is None
    assert data.X.shape == (20_000, 5_000)
    assert data.targets.y.sum() == pytest.approx(20_000 * (10 / 500 * 0.75 + 0.5 / 5_001), rel=0.15)
    assert data.nnz / 20_000 == pytest.approx(6 * 0.75 + 0.5, rel=0.02)
    X, y = data.X.to_scipy(), data.targets.y
    options = {"loss": "logistic", "regularizer": bmrm.L2(1e-4), "solver": "irls", "bias": "regularized"}
    model = bmrm.fit(X[:10_000], y[:10_000], **options)
    assert roc_auc_score(y[10_000:], X[10_000:] @ model.weights) > 0.95


def test_seeds_and_errors():
    again, first, other = (dense(rows=300, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0], other[0])
    with pytest.raises(InputError, match=r"synthetic:links: members is 6, expected at most features \(5\)"):
        read("synthetic:links?features=5")
    with pytest.raises(InputError, match=r"target_groups is 10, expected at most groups \(4\)"):
        read("synthetic:links?groups=4")
    with pytest.raises(InputError, match=r"omitted is 1\.5, expected a number >= 0 and <= 1"):
        read("synthetic:links?omitted=1.5")
    with pytest.raises(InputError, match="no option 'group'"):
        read("synthetic:links?group=4")
