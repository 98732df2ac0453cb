"""What a run is charged: passes where the data are read, Gram matrices by their products, time once."""

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.data.matrix import Csr
from bmrm.losses import LOSSES
from bmrm.problem import Scored, ability
from bmrm.problem.abilities import Blocks, DualBlocks, ProblemSize, Rounding, RowParts, RowSubsets
from bmrm.problem.counted import metered_risk
from bmrm.problem.meter import FULL_SPEED, UNMETERED, Meter
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from tests import problems

ROWS, FEATURES = 60, 7


def made(loss="logistic", free=False, sparse=False):
    X, y = problems.data("logistic", ROWS, FEATURES)
    if sparse:
        X = X * (np.arange(FEATURES) % 3 == np.arange(ROWS)[:, None] % 3)
        kept = X != 0.0
        X = Csr(np.r_[0, np.cumsum(kept.sum(axis=1))], np.nonzero(kept)[1].astype(np.int32), X[kept], FEATURES)
    if loss == "softmax":
        y = np.arange(ROWS) % 3
    risk = LinearRisk(Dataset.from_arrays(X, y), LOSSES.make(loss))
    return FreeIntercept(risk) if free else risk


def charged(risk, *calls):
    """Passes that each call has cost; all are of the metered risk."""
    meter = Meter()
    found, costs = metered_risk(risk, meter), []
    for call in calls:
        before = meter.passes
        call(found)
        costs.append(meter.passes - before)
    return costs


@pytest.mark.parametrize(
    "risk", [made(), made(free=True), made("softmax"), problems.ScoredRisk(*problems.data("hinge"), "hinge")]
)
def test_reading_the_data_once_is_half_a_pass(risk):
    w = np.linspace(-1.0, 1.0, risk.dim)
    f = ability(risk, Scored).map.matvec(w)

    def look(found):
        scored = ability(found, Scored)
        scored.phi.value_and_slope(f)
        scored.phi.along(f, f)(np.ones(3))

    costs = charged(
        risk,
        lambda found: found.value_and_subgradient(w),
        lambda found: ability(found, Scored).map.matvec(w),
        lambda found: ability(found, Scored).map.rmatvec(f),
        look,
    )
    assert costs == [1.0, 0.5, 0.5, 0.0]


@pytest.mark.parametrize("sparse", [False, True])
def test_a_gram_matrix_costs_its_products(sparse):
    """A pass multiplies every entry twice."""
    risk, weights = made(sparse=sparse), np.where(np.arange(ROWS) < 30, 0.5, 0.0)
    X = risk.data.X
    lengths = np.diff(X.indptr)[:30] if sparse else np.full(30, FEATURES)
    entries = X.nnz if sparse else X.size
    products = (lengths * (lengths + 1)).sum() / 2 / (1 if sparse else FULL_SPEED)
    meter = Meter()
    map = ability(metered_risk(risk, meter), Scored).map
    map.gram(weights)
    assert meter.reading == 0.5
    assert meter.products == pytest.approx(products / (2 * entries))
    map.gram(weights, np.arange(FEATURES))
    assert meter.products == pytest.approx(2 * products / (2 * entries))
    part = ability(metered_risk(risk, meter), RowParts).part(weights)
    before = meter.reading, meter.products
    part.map.gram(np.ones(30))
    assert meter.reading - before[0] == pytest.approx(0.25)
    assert meter.products - before[1] == pytest.approx(products / (2 * entries), rel=0.1)  # rows of equal length


def test_gram_matrices_of_several_scores_are_as_many():
    risk = made("softmax")
    table = np.random.default_rng(0).random((ROWS, 3))
    one = FEATURES * (FEATURES + 1) / 2 / (2 * FEATURES * 3) / FULL_SPEED
    blocks, pairs = charged(
        risk,
        lambda found: ability(found, Scored).map.gram_blocks(table),
        lambda found: ability(found, Scored).map.gram(table),
    )
    assert blocks == pairs == pytest.approx(0.5 + 3 * one)


def test_rows_blocks_and_ascents_are_charged_what_they_visit():
    w = np.linspace(-1.0, 1.0, FEATURES)

    def probe(found):
        active = ability(found, RowSubsets).active_set(1, 2, 3, 0)
        active.step(w)
        active.rest(w)

    sweeps = []
    costs = charged(
        made("hinge"),
        lambda found: ability(found, RowSubsets).value_and_subgradient_of(np.arange(15), w),
        probe,
        lambda found: ability(found, Blocks).values_and_subgradients(w, 4),
        lambda found: ability(found, Rounding).at(w),
        lambda found: sweeps.append(ability(found, DualBlocks).ascent(0.0, 0.1, seed=0).sweep()),
    )
    assert costs == pytest.approx([0.25, 1.0, 1.0, 1.5, sweeps[0].visits])


@pytest.mark.parametrize("free", [False, True])
def test_a_metered_copy_leaves_the_risk_as_it_is(free):
    risk = made("softmax", free)
    found = metered_risk(risk, Meter())
    assert ability(found, ProblemSize) is ability(risk, ProblemSize)
    assert risk.meter is risk.map.meter is risk.phi.meter is UNMETERED
    assert found.meter is found.map.meter is found.phi.meter is not UNMETERED
    w = np.linspace(-1.0, 1.0, risk.dim)
    assert found.value_and_subgradient(w)[0] == risk.value_and_subgradient(w)[0]


def test_time_within_time_counts_once_and_a_check_may_end_a_call():
    ticks, enough = iter(range(100)), []

    def check():
        if enough:
            raise TimeoutError

    meter = Meter(check, lambda: next(ticks))
    assert meter.timed(1.0, lambda: meter.timed(0.5, lambda: 7)) == 7
    assert (meter.passes, meter.seconds) == (1.5, 1)
    with pytest.raises(ValueError, match="no"):
        meter.timed(0.0, int, "no")
    assert meter.seconds == 2
    enough.append(True)
    with pytest.raises(TimeoutError):
        meter.timed(1.0, int)
    assert meter.passes == 1.5
