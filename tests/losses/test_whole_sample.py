"""Losses of the whole sample: what they are exactly, what they bound, and how few labelings they look at."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import fbeta_score, roc_auc_score

from bmrm.app.fit import fit
from bmrm.data.dataset import Dataset
from bmrm.losses._core.multivariate import MeasureLoss
from bmrm.losses.break_even import BreakEven
from bmrm.losses.f_beta import FBeta
from bmrm.losses.hinge import Hinge
from bmrm.losses.partial_roc_area import PartialRocArea
from bmrm.losses.precision_at_k import PrecisionAtK
from bmrm.losses.recall_at_k import RecallAtK
from bmrm.losses.roc_area import RocArea
from bmrm.metrics.ranked import precision_at, recall_at
from bmrm.problem import IncompatibleError, InputError, Targets
from bmrm.regularizers.l2 import L2
from bmrm.risk.intercept import FreeIntercept
from bmrm.risk.linear import LinearRisk
from tests.conformance.twins_ranking import worst_labeling


def value(loss, y, f, weights=None):
    prepared = loss.prepare(Targets(y, weights), loss.summarise(Targets(y, weights)))
    total, slope = prepared.value_and_slope(f)
    return total / prepared.mass, slope / prepared.mass


def sample(seed, rows=50, share=0.3):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(rows) < share, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    return y, 2.0 * rng.normal(size=rows) + 0.5 * y


@dataclass(frozen=True)
class ErrorRate(MeasureLoss):
    """The error rate as the measure: the worst labeling errs where that pays."""

    def worst(self, positive, negative):
        missed, alarms = int(np.sum(positive < 1.0)), int(np.sum(negative > -1.0))
        return positive.size - missed, alarms, (missed + alarms) / (positive.size + negative.size)


@pytest.mark.parametrize("seed", range(5))
def test_error_rate_as_the_measure_gives_the_mean_hinge(seed):
    y, f = sample(seed)
    hinge, slope = value(Hinge(), y, f)
    found, same = value(ErrorRate(), y, f)
    assert found == pytest.approx(hinge, rel=1e-14)
    np.testing.assert_allclose(same, slope, atol=1e-16)
    errors = lambda a, b: (int(np.sum(y > 0)) - a + b) / len(y)  # noqa: E731
    assert worst_labeling(errors, y, f) == pytest.approx(hinge, rel=1e-14)


@given(
    beta=st.floats(0.05, 20.0),
    signs=st.lists(st.booleans(), min_size=3, max_size=25),
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1e-3, 0.1, 1.0, 10.0, 1000.0]),
    decimals=st.integers(0, 3),
)
def test_the_walk_finds_the_worst_contingency_table(beta, signs, seed, scale, decimals):
    y = np.array([1.0, -1.0, *np.where(signs, 1.0, -1.0)])
    f = scale * np.round(np.random.default_rng(seed).normal(size=y.size), decimals)
    positives, weight = int(np.sum(y > 0)), beta**2
    worst = worst_labeling(lambda a, b: 1.0 - (1.0 + weight) * a / (weight * positives + a + b), y, f)
    assert value(FBeta(beta), y, f)[0] == pytest.approx(worst, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("beta", [0.3, 1.0, 3.0])
def test_steps_of_the_walk_are_linear(beta):
    """At most n_pos + 2 n_neg, as the docstring says: counted by a walk in Python."""
    y, f = sample(3, rows=4000)
    high, low = np.sort(f[y > 0]), np.sort(f[y < 0])[::-1]
    weight, m = beta**2, y.size
    base, b, steps = weight * high.size, 0, 0
    for a in range(high.size + 1):

        def rise(b, a=a):
            gain = (1.0 + weight) * a
            return gain / (base + a + b) - gain / (base + a + b + 1) + low[b] / m

        while b < low.size and rise(b) > 0.0:
            b, steps = b + 1, steps + 1
        while b > 0 and rise(b - 1) < 0.0:
            b, steps = b - 1, steps + 1
    assert steps <= 2 * low.size


@pytest.mark.parametrize("seed", range(5))
def test_losses_bound_what_they_are_named_after(seed):
    y, f = sample(seed)
    positive = y > 0
    assert value(RocArea(), y, f)[0] >= 1.0 - roc_auc_score(y, f)
    assert value(FBeta(2.0), y, f)[0] >= 1.0 - fbeta_score(positive, f > 0, beta=2.0) - 1e-12
    grades = positive.astype(float)
    for k in (1, 5, 20, 49):
        for loss, measure in ((PrecisionAtK(k), precision_at), (RecallAtK(k), recall_at)):
            assert value(loss, y, f)[0] >= 1.0 - measure(grades, f, k) + _margin(y, f, k) - 1e-12
    assert value(BreakEven(), y, f)[0] >= 1.0 - precision_at(grades, f, int(positive.sum())) - 1e-12
    top = np.sort(f[~positive])[::-1][: int(0.2 * np.sum(~positive))]
    part = np.mean(f[positive][:, None] <= top)
    assert value(PartialRocArea(0.2), y, f)[0] >= part * len(top) / (0.2 * np.sum(~positive)) - 1e-12


def _margin(y, f, k):
    """(1/m) sum (y'_i - y_i) f_i / 2 for the labeling y' of the k highest scores."""
    labels = np.full(y.size, -1.0)
    labels[np.argsort(-f)[:k]] = 1.0
    return float((labels - y) @ f) / (2.0 * y.size)


def test_all_of_the_curve_is_roc_area():
    y, f = sample(1)
    for a, b in zip(value(PartialRocArea(1.0), y, f), value(RocArea(), y, f), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15)


def test_break_even_is_precision_at_the_number_of_positives():
    y, f = sample(2)
    k = int(np.sum(y > 0))
    for loss in (PrecisionAtK(k), RecallAtK(k)):
        for a, b in zip(value(BreakEven(), y, f), value(loss, y, f), strict=True):
            np.testing.assert_array_equal(a, b)


def test_equal_scores_share():
    y = np.array([1.0, 1.0, -1.0, -1.0, -1.0, -1.0])
    for loss in (FBeta(), PrecisionAtK(3), RecallAtK(1), BreakEven(), PartialRocArea(0.3)):
        slope = value(loss, y, np.zeros(6))[1]
        assert slope[0] == slope[1]
        assert len(set(slope[2:].tolist())) == 1


@pytest.mark.parametrize("loss", [RocArea(), PartialRocArea(), PrecisionAtK(5), RecallAtK(5), BreakEven()], ids=str)
def test_free_intercepts_are_refused_where_they_mean_nothing(loss):
    y, f = sample(1)
    with pytest.raises(IncompatibleError, match=f"{loss.title}: a free intercept has no meaning"):
        fit(f[:, None], y, loss=loss, regularizer=L2(0.1), bias="free")


def test_f_beta_takes_a_free_intercept():
    y, f = sample(4)
    risk = FreeIntercept(LinearRisk(Dataset.from_arrays(f[:, None], y), FBeta()))
    lowest = min(value(FBeta(), y, f + b)[0] for b in np.linspace(-5.0, 5.0, 2001))
    assert lowest - 1e-3 <= risk.value_and_subgradient(np.ones(1))[0] <= lowest + 1e-9


def test_samples_that_cannot_be_measured():
    y, _ = sample(1)
    with pytest.raises(InputError, match="precision_at_k: k is 51, expected at most the 50 rows"):
        value(PrecisionAtK(51), y, y)
    with pytest.raises(InputError, match="f_beta: the weight of row 0 is 2"):
        value(FBeta(), y, y, np.full(50, 2.0))
    with pytest.raises(InputError, match="roc_area: expected rows of positive weight in both classes"):
        LinearRisk(Dataset.from_arrays(np.eye(50), y, weights=(y > 0).astype(float)), RocArea(), summary=_summary(y))
    for wrong in (dict(beta=0.0), dict(beta=-1.0)):
        with pytest.raises(InputError, match="beta"):
            FBeta(**wrong)
    with pytest.raises(InputError, match="max_fpr"):
        PartialRocArea(1.5)
    with pytest.raises(InputError, match="k is 0"):
        PrecisionAtK(0)


def _summary(y):
    return RocArea().summarise(Targets(y))
