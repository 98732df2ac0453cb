"""The thesis' synthetic data: marginals along the tree, labels, families."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import bmrm
from bmrm.data.generators import FAMILIES, Thesis
from bmrm.data.reading import read
from bmrm.problem import InputError


def dense(**options):
    data = Thesis(**options).make()
    return data.X.to_dense(), data.targets.y


def test_without_coupling_attributes_are_independent():
    X, _ = dense(rows=20_000, features=12, sparsity=0.3, coupling=0.0)
    np.testing.assert_allclose(X.mean(axis=0), 0.3, atol=0.015)
    correlation = np.corrcoef(X.T) - np.eye(12)
    assert np.abs(correlation).max() < 0.03


def test_full_coupling_makes_rows_all_ones_or_all_zeros():
    X, _ = dense(rows=4_000, features=9, sparsity=0.5, coupling=0.5)
    sums = X.sum(axis=1)
    assert set(sums) == {0.0, 9.0}
    assert np.mean(sums == 9.0) == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize(("s", "c"), [(0.2, 0.05), (0.2, 0.2), (0.05, 0.45), (0.7, 0.1)])
def test_marginals_given_the_parent(s, c):
    """Two attributes: one is the root, the other its child, which is 1 as often as the root is."""
    X, _ = dense(rows=60_000, features=2, sparsity=s, coupling=c, seed=3)
    one = min(s + 2 * c, 1.0)
    zero = s * (1.0 - one) / (1.0 - s)
    assert s * one + (1.0 - s) * zero == pytest.approx(s)
    found = []
    for root, child in ((X[:, 0], X[:, 1]), (X[:, 1], X[:, 0])):
        if abs(root.mean() - s) < 0.01:
            found.append((child[root == 1].mean(), child[root == 0].mean()))
    assert any(pair == pytest.approx((one, zero), abs=0.015) for pair in found)


def test_zero_and_one_are_extremes():
    assert dense(rows=50, features=5, sparsity=0.0)[0].sum() == 0
    assert dense(rows=50, features=5, sparsity=1.0)[0].sum() == 250


def test_labels_are_the_top_of_a_linear_rule():
    X, y = dense(rows=300, features=15, sparsity=0.3, positives=40)
    assert y.sum() == 40
    from scipy.optimize import linprog

    # separable up to ties: some (b, threshold) has <b, x> >= threshold for 1, <= threshold for 0, b not 0
    signs = np.where(y > 0, 1.0, -1.0)[:, None]
    apart = (X[y > 0].mean(axis=0) - X[y == 0].mean(axis=0)) @ np.eye(15, 16)
    found = linprog(
        np.zeros(16),
        A_ub=np.vstack((-signs * np.column_stack((X, -np.ones(300))), -apart)),
        b_ub=np.append(np.zeros(300), -1.0),
        bounds=(None, None),
    )
    assert found.status == 0


@pytest.mark.parametrize("family", FAMILIES)
def test_families(family):
    table = FAMILIES[family]
    varied = {"numrows": ("rows", 2_000), "numatts": ("features", 2_000), "sparse": ("sparsity", 0.001)}
    option, value = varied.get(family, ("coupling", 0.45))
    data = read(f"synthetic:thesis?family={family}&{option}={value}")
    expected = table | {option: value}
    assert data.X.shape == (expected["rows"], expected["features"])
    assert data.targets.y.sum() == expected["share"] * expected["rows"]
    assert data.X.values is None
    near = 0.1 if expected["coupling"] else 0.02
    assert data.nnz / np.prod(data.X.shape) == pytest.approx(expected["sparsity"], rel=near)


def test_the_coupled_family_is_coupled():
    assert FAMILIES["coupled"]["coupling"] > 0.0
    assert FAMILIES["coupled"] != FAMILIES["sparse"]


@pytest.mark.parametrize(("family", "coupling"), [("numatts", None), ("coupled", None), ("coupled", 0.45)])
def test_the_dependent_families_can_be_learned(family, coupling):
    """Ones are as frequent as s says, and logistic regression finds the rule, on rows that it has not seen too."""
    data = Thesis(family=family, coupling=coupling).make()
    assert data.nnz / np.prod(data.X.shape) == pytest.approx(0.01, rel=0.1)
    half = data.rows // 2
    seen, unseen = data.select(np.arange(half)), data.select(np.arange(half, data.rows))
    options = {"loss": "logistic", "regularizer": bmrm.L2(10.0 / half), "solver": "irls", "bias": "regularized"}
    model = bmrm.fit(seen.X.to_scipy(), seen.targets.y, **options)
    for part in (seen, unseen):
        assert roc_auc_score(part.targets.y, part.X.to_scipy() @ model.weights) > 0.95


def test_seeds_and_errors():
    again, first, other = (read(f"synthetic:thesis?rows=100&seed={seed}") for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.X.to_dense(), again.X.to_dense())
    np.testing.assert_array_equal(first.targets.y, again.targets.y)
    assert not np.array_equal(first.X.to_dense(), other.X.to_dense())
    with pytest.raises(InputError, match="positives is 100, expected fewer"):
        read("synthetic:thesis?rows=100&positives=100")
    with pytest.raises(InputError, match="family is 'rows', expected one of"):
        read("synthetic:thesis?family=rows")
    with pytest.raises(InputError, match="rows is 'many', expected int"):
        read("synthetic:thesis?rows=many")
