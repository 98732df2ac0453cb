"""Every property on every registered loss, and every property on a loss that breaks it."""

import pytest

from tests.conformance.broken_losses import BROKEN, Plain
from tests.conformance.loss_cases import case_of
from tests.conformance.loss_properties import PROPERTIES
from tests.targets import losses


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
