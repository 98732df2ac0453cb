"""Every law and every property on every registered loss, and each of them on a loss that breaks it."""

import pytest

from bmrm.checks.losses import ALL_LAWS, check_loss
from bmrm.checks.running import NotOfferedError
from tests.conformance import broken_prox
from tests.conformance.broken_losses import BROKEN, LAWLESS, Plain
from tests.conformance.loss_cases import case_of
from tests.conformance.loss_properties import PROPERTIES
from tests.targets import losses


@pytest.mark.parametrize("loss", list(losses()), ids=str)
@pytest.mark.parametrize("name", ALL_LAWS.all)
def test_law_holds(name, loss):
    try:
        found = ALL_LAWS.violation(name, case_of(loss))
    except NotOfferedError:
        return
    assert found is None, str(found)


@pytest.mark.parametrize("loss", list(losses()), ids=str)
@pytest.mark.parametrize("name", PROPERTIES)
def test_property_holds(name, loss):
    PROPERTIES[name](case_of(loss))


@pytest.mark.parametrize("name", PROPERTIES)
def test_loss_that_is_not_registered_has_them_too(name):
    PROPERTIES[name](case_of(Plain()))


@pytest.mark.parametrize("name", PROPERTIES)
def test_property_fails_for_a_loss_that_breaks_it(name):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        PROPERTIES[name](case_of(BROKEN[name]))


@pytest.mark.parametrize(("law", "loss"), [*LAWLESS, *broken_prox.LAWLESS], ids=lambda one: str(one))
def test_a_loss_that_breaks_a_law_is_told_so(law, loss):
    report = check_loss(loss)
    assert not report.ok
    broken = {violation.law: violation for violation in report.violations}
    assert law in broken, str(report)
    assert broken[law].message
    assert law in str(report)


def test_each_law_has_a_loss_that_breaks_it():
    assert {law for law, _ in [*LAWLESS, *broken_prox.LAWLESS]} >= set(ALL_LAWS.all)


def test_a_loss_without_kernels_keeps_all_laws():
    report = check_loss(Plain())
    assert report.ok, str(report)
    assert {"convexity", "subgradient", "weights"} <= set(report.held)
