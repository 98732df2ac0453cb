"""Every property of proximal maps on every registered loss that has one, and on a loss that breaks it."""

import pytest

from tests.conformance.broken_prox import BROKEN
from tests.conformance.loss_cases import case_of
from tests.conformance.prox_properties import PROPERTIES
from tests.targets import losses

PROXIMAL = [loss for loss in losses() if hasattr(loss, "prox")]
ONE_SCORE = """perceptron squared_perceptron hinge squared_hinge huber_hinge modified_huber logistic exponential
cost_sensitive_hinge novelty least_squares least_absolute_deviation quantile epsilon_insensitive
squared_epsilon_insensitive huber poisson log_cosh expectile gamma tweedie"""


def test_every_loss_of_one_score_has_a_proximal_map():
    assert {loss.name for loss in PROXIMAL} >= set(ONE_SCORE.split())
    assert all(loss.prox_row is not None and loss.value_row is not None for loss in PROXIMAL)


@pytest.mark.parametrize("loss", PROXIMAL, ids=str)
@pytest.mark.parametrize("name", PROPERTIES)
def test_property_holds(name, loss):
    PROPERTIES[name](case_of(loss))


@pytest.mark.parametrize("name", PROPERTIES)
def test_property_fails_for_a_loss_that_breaks_it(name):
    with pytest.raises(AssertionError):
        PROPERTIES[name](case_of(BROKEN[name]))
