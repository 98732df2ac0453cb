"""The table loss x regularizer x solver has no empty row, and what `auto` begins with stands in it."""

import numpy as np
import pytest

from bmrm.checks.plug_in import instance_of
from bmrm.losses import LOSSES
from bmrm.problem import bound
from bmrm.regularizers import REGULARIZERS
from bmrm.solvers._core.auto.rules import Traits, advice
from pages.coverage import coverage, risk_of

pytestmark = pytest.mark.slow


def test_every_pair_has_a_solver_with_a_bound_and_auto_knows_one():
    found = {loss: cells for losses, cells in coverage().items() for loss in losses}
    assert found.keys() == {entry.name for entry in LOSSES.all()}
    with np.errstate(all="ignore"):
        for loss, cells in found.items():
            assert cells.keys() == {entry.name for entry in REGULARIZERS.all()}
            risk = risk_of(instance_of(LOSSES, loss))
            for regularizer, cell in cells.items():
                assert any(proved for _, proved in cell), (loss, regularizer)
                rule, _ = advice(Traits(risk, bound(instance_of(REGULARIZERS, regularizer), risk)))
                assert set(rule.solvers) & {name for name, _ in cell}, (loss, regularizer, rule)
