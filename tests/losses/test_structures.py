"""Structures: one row without parameters gives the losses of classes; what is missing is named."""

from dataclasses import dataclass

import numpy as np
import pytest

from bmrm import extend
from bmrm.data.dataset import Dataset
from bmrm.losses import LOSSES
from bmrm.problem import InputError, Status
from bmrm.regularizers.l2 import L2
from bmrm.risk.linear import LinearRisk
from bmrm.solvers.dual_coordinate import DualCoordinate


class Alone(extend.Structure):
    """A row by itself."""

    @staticmethod
    @extend.compiled
    def terms(path, f, parameters, given, at):
        for t in range(path.size):
            at[t] = parameters.size + t * f.shape[1] + path[t]
        return path.size

    @staticmethod
    @extend.compiled
    def best(f, parameters, given, path):
        for t in range(path.size):
            path[t] = f[t].argmax()

    @staticmethod
    @extend.compiled
    def violating(f, parameters, given, truth, margins, rates, path):
        excess = rates[1] * (margins[1] + f[0] - f[0, truth[0]])
        excess[truth[0]] = 0.0
        path[0] = excess.argmax()

    @staticmethod
    @extend.compiled
    def marginals(f, parameters, given, shares, of_parameters):
        total = 0.0
        for t in range(f.shape[0]):
            shares[t] = np.exp(f[t] - f[t].max())
            total += f[t].max() + np.log(shares[t].sum())
            shares[t] /= shares[t].sum()
        return total

    def shape(self, labels):
        return (0,)


@dataclass(frozen=True)
class AloneMargin(extend.StructuredLoss):
    structure = Alone()
    form = extend.MARGIN


@dataclass(frozen=True)
class AloneSlack(AloneMargin):
    form = extend.SLACK


@dataclass(frozen=True)
class AloneLog(AloneMargin):
    form = extend.LOG


def rows(groups):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4))
    y = (X @ random.normal(size=(4, 3)) + random.gumbel(size=(60, 3))).argmax(axis=1)
    return Dataset.from_arrays(X, y.astype(float), random.integers(1, 4, 60).astype(float), groups)


PAIRS = [(AloneMargin, "multiclass_hinge"), (AloneSlack, "scaled_multiclass_hinge"), (AloneLog, "softmax")]


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_a_row_by_itself_is_a_loss_of_classes(kind, name):
    data, f = rows(np.arange(60)), np.random.default_rng(1).normal(size=(60, 3)) * 3.0
    ours, theirs = LinearRisk(data, kind()), LinearRisk(data, LOSSES.make(name))
    assert ours.dim == theirs.dim
    (value, slope), (expected, of_f) = (risk.phi.value_and_slope(f) for risk in (ours, theirs))
    assert value == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(slope, of_f, atol=1e-14)
    step = np.random.default_rng(2).normal(size=f.shape)
    along, other = (risk.phi.along(f, step)(np.array([0.0, 0.7])) for risk in (ours, theirs))
    np.testing.assert_allclose(along, other, rtol=1e-12)


@pytest.mark.parametrize(("kind", "name"), [PAIRS[0], PAIRS[2]])
def test_its_dual_steps_find_the_same_minimum(kind, name):
    data = rows(np.arange(60))
    ours, theirs = (
        DualCoordinate(tolerance=1e-8).minimize(LinearRisk(data, loss), L2(0.05))
        for loss in (kind(), LOSSES.make(name))
    )
    assert ours.status is theirs.status is Status.CONVERGED
    assert ours.objective == pytest.approx(theirs.objective, rel=2e-8)
    assert ours.lower_bound <= theirs.objective * (1.0 + 1e-12)


class Half(extend.Structure):
    """No marginals, no violations."""

    terms, best = Alone.terms, Alone.best


@pytest.mark.parametrize(("form", "lacks"), [(extend.LOG, "marginals"), (extend.SLACK, "violating")])
def test_a_form_names_what_the_structure_lacks(form, lacks):
    cls = dataclass(frozen=True)(
        type("Halved", (extend.StructuredLoss,), {"structure": Half(), "form": form, "__annotations__": {}})
    )
    with pytest.raises(InputError, match=rf"Halved: .*Half has no {lacks}"):
        LinearRisk(rows(np.arange(60)), cls())
