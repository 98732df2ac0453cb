"""Samples and parts of the rows, as risks and score functions of their own."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import InputError, Scored, ability
from bmrm.problem.abilities import RowParts, RowSample
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from bmrm.risk.products import Columns

ROWS = 40


def data(sparse=True, weights=True):
    random = np.random.default_rng(3)
    X = random.normal(size=(ROWS, 5)) * (random.random((ROWS, 5)) < 0.6)
    counts = random.integers(0, 4, ROWS) if weights else None
    return (
        X,
        np.arange(ROWS) % 2,
        counts,
        Dataset.from_arrays(csr_array(X) if sparse else X, np.arange(ROWS) % 2, counts),
    )


@pytest.mark.parametrize("sparse", [True, False])
def test_a_part_is_the_rows_with_a_weight(sparse):
    _, _, _, dataset = data(sparse)
    risk = LinearRisk(dataset, LOSSES.make("hinge"), bias=True)
    scored, parts = ability(risk, Scored), ability(risk, RowParts)
    weights = np.where(np.arange(ROWS) % 3 == 0, -2.0, 0.0)
    part = parts.part(weights)
    assert (parts.rows, part.rows) == (ROWS, 14)
    w = np.linspace(-1.0, 1.0, 6)
    f = scored.map.matvec(w)
    np.testing.assert_allclose(part.map.matvec(w), f[::3])
    np.testing.assert_array_equal(part.restrict(f), f[::3])
    assert part.phi.facts.mass == scored.phi.facts.mass
    value, slope = part.phi.value_and_slope(f[::3])
    whole, slopes = scored.phi.value_and_slope(f)
    others = dataset.select(np.flatnonzero(weights == 0.0))
    rest = LinearRisk(others, LOSSES.make("hinge"), summary=risk.summary, bias=True)  # weights in the same unit
    other = rest.value_and_subgradient(w)[0] * rest.mass / risk.mass
    assert value + other == pytest.approx(whole, rel=1e-12)
    np.testing.assert_allclose(slope, slopes[::3])


def test_parts_of_rows_with_several_scores():
    X, _, _, _ = data()
    risk = LinearRisk(Dataset.from_arrays(X, np.arange(ROWS) % 3), LOSSES.make("multiclass_hinge"))
    scored, parts = ability(risk, Scored), ability(risk, RowParts)
    f = scored.map.matvec(np.linspace(-1.0, 1.0, 15))
    weights = np.zeros((ROWS, 3))
    weights[4, 1], weights[9, 2] = 0.5, -1.0
    part = parts.part(weights)
    assert part.rows == 2
    np.testing.assert_array_equal(part.restrict(f), f[[4, 9]])
    np.testing.assert_allclose(part.phi.value_and_slope(f[[4, 9]])[1], scored.phi.value_and_slope(f)[1][[4, 9]])


@pytest.mark.parametrize("loss", ["hinge", "multiclass_hinge"])
def test_rows_that_do_not_bend_keep_their_slopes(loss):
    """Within the reach; and among the others some do not keep them."""
    X, _, _, _ = data()
    risk = LinearRisk(Dataset.from_arrays(X, np.arange(ROWS) % (2 if loss == "hinge" else 3)), LOSSES.make(loss))
    phi, parts = ability(risk, Scored).phi, ability(risk, RowParts)
    random = np.random.default_rng(8)
    z = ability(risk, Scored).map.matvec(3.0 * random.normal(size=risk.dim))
    for sigma, reach in ((2.0, 0.1), (10.0, 0.3), (1.0, 0.0)):
        curved = parts.curved_rows(z, sigma, reach).reshape(ROWS, -1).any(axis=1)
        assert 0 < np.count_nonzero(curved) < ROWS
        slope, changed = phi.moreau(z, sigma).slope, np.zeros(ROWS, bool)
        assert not phi.moreau(z, sigma).curvature[~curved].any()
        for _ in range(50):
            other = phi.moreau(z + reach * random.choice([-1.0, 1.0], z.shape), sigma).slope
            changed |= (np.abs(other - slope) > 1e-12).reshape(ROWS, -1).any(axis=1)
        assert not np.any(changed & ~curved)
        assert np.any(changed) == (reach > 0.0)


def test_parts_are_for_sums_over_rows():
    X, _, _, _ = data()
    area = LinearRisk(Dataset.from_arrays(X, np.arange(ROWS) % 2), LOSSES.make("roc_area"))
    assert ability(area, RowParts) is None
    assert ability(area, RowSample) is None


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("kind", ["dense", "csr", "thin", "ones"])
def test_products_are_those_of_the_scaled_inputs(kind, scaled):
    random = np.random.default_rng(9)
    table = random.normal(size=(ROWS, 30)) * (random.random((ROWS, 30)) < (0.05 if kind == "thin" else 0.5))
    table = (table != 0.0).astype(float) if kind == "ones" else table
    columns = Columns(scale=random.random(30) + 0.5, shift=random.normal(size=30)) if scaled else Columns()
    X = table if kind == "dense" else csr_array(table)
    risk = LinearRisk(Dataset.from_arrays(X, np.arange(ROWS) % 2), LOSSES.make("hinge"), bias=True, columns=columns)
    inputs = (table - columns.shift) * columns.scale if scaled else table
    inputs = np.column_stack([inputs, np.ones(ROWS)])
    parts = ability(risk, RowParts)
    np.testing.assert_allclose(parts.products(), inputs @ inputs.T, atol=1e-12)
    some = parts.part((np.arange(ROWS) % 3 == 1).astype(float))
    np.testing.assert_allclose(some.parts.products(), inputs[1::3] @ inputs[1::3].T, atol=1e-12)
    assert some.parts.rows == some.rows


def test_a_free_intercept_gives_the_parts_before_it_is_minimised_over():
    _, _, _, dataset = data()
    free = FreeIntercept(LinearRisk(dataset, LOSSES.make("hinge")))
    part = ability(free, RowParts).part(np.ones(ROWS))
    f = np.linspace(-2.0, 2.0, ROWS)
    assert part.phi.value_and_slope(f)[0] == ability(free, Scored).of_rows.value_and_slope(f)[0]


def test_a_sample_is_the_mean_loss_of_rows_drawn_once():
    _, _, counts, dataset = data()
    risk = LinearRisk(dataset, LOSSES.make("squared_hinge"))
    drawn = ability(risk, RowSample)
    assert drawn.rows == ROWS
    sample = drawn.sample(15, 4)
    again = drawn.sample(15, 4)
    np.testing.assert_array_equal(sample.data.targets.weights, again.data.targets.weights)
    assert sample.data.rows == 15
    assert sample.mass == sample.data.targets.weights.sum()
    everything = drawn.sample(ROWS, 0)
    w = np.linspace(-1.0, 1.0, 5)
    assert everything.value_and_subgradient(w)[0] == pytest.approx(risk.value_and_subgradient(w)[0], rel=1e-12)
    with pytest.raises(InputError, match="41 rows"):
        drawn.sample(ROWS + 1, 0)
    assert counts.sum() == everything.mass


def test_a_sample_under_a_free_intercept_has_an_intercept_of_its_own():
    _, _, _, dataset = data(weights=False)
    free = FreeIntercept(LinearRisk(dataset, LOSSES.make("logistic")))
    sample = ability(free, RowSample).sample(20, 1)
    assert isinstance(sample, FreeIntercept)
    assert sample.intercept(np.zeros(5)) != free.intercept(np.ones(5))
