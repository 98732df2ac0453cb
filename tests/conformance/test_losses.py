"""Every law and every property on every registered loss, and each of them on a loss that breaks it."""

import pytest

from bmrm.checks.losses import ALL_LAWS, check_loss
from tests.conformance import broken_prox, loss_properties, prox_properties
from tests.conformance.broken_losses import BROKEN, LAWLESS, Plain
from tests.conformance.loss_cases import case_of
from tests.targets import losses

LOSSES = list(losses())
ONE_SCORE = """perceptron squared_perceptron hinge squared_hinge huber_hinge modified_huber logistic exponential
cost_sensitive_hinge novelty least_squares least_absolute_deviation quantile epsilon_insensitive
squared_epsilon_insensitive huber poisson log_cosh expectile gamma tweedie"""
BROKEN_PROPERTIES = [
    *((loss_properties.PROPERTIES[name], loss) for name, loss in BROKEN.items()),
    *((prox_properties.PROPERTIES[name], loss) for name, loss in broken_prox.BROKEN.items()),
]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_laws_and_properties_hold(loss):
    case = case_of(loss)
    report = ALL_LAWS.report(str(loss), case)
    assert report.ok, str(report)
    for holds in loss_properties.PROPERTIES.values():
        holds(case)
    for holds in prox_properties.PROPERTIES.values() if hasattr(loss, "prox") else ():
        holds(case)


def test_every_loss_of_one_score_has_a_proximal_map():
    proximal = [loss for loss in LOSSES if hasattr(loss, "prox")]
    assert {loss.name for loss in proximal} >= set(ONE_SCORE.split())
    assert all(loss.prox_row is not None and loss.value_row is not None for loss in proximal)


@pytest.mark.parametrize(("holds", "loss"), BROKEN_PROPERTIES, ids=lambda one: getattr(one, "__name__", "on"))
def test_a_property_fails_for_a_loss_that_breaks_it(holds, loss):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        holds(case_of(loss))


@pytest.mark.parametrize(("law", "loss"), [*LAWLESS, *broken_prox.LAWLESS], ids=str)
def test_a_loss_that_breaks_a_law_is_told_so(law, loss):
    report = check_loss(loss)
    assert not report.ok
    broken = {violation.law: violation for violation in report.violations}
    assert law in broken, str(report)
    assert broken[law].message
    assert law in str(report)


def test_each_law_and_property_has_a_loss_that_breaks_it():
    assert {law for law, _ in [*LAWLESS, *broken_prox.LAWLESS]} >= set(ALL_LAWS.all)
    assert set(BROKEN) == set(loss_properties.PROPERTIES)
    assert set(broken_prox.BROKEN) == set(prox_properties.PROPERTIES)


def test_a_loss_without_kernels_keeps_all_laws_and_properties():
    report = check_loss(Plain())
    assert report.ok, str(report)
    assert {"convexity", "subgradient", "weights"} <= set(report.held)
    for holds in loss_properties.PROPERTIES.values():
        holds(case_of(Plain()))
