"""What every registered regularizer must satisfy; a new file in bmrm/regularizers/ is tested without a change here."""

import dataclasses
import math

import numpy as np
import pytest

from bmrm.checks.regularizers import REGULARIZER_LAWS, RegularizerCase, check_regularizer
from bmrm.problem import Elastic, HasConjugate, HasMaster, InputError, Regularizer, Space, bound
from bmrm.problem.regularizer import StronglyConvex
from bmrm.registry import option_name
from bmrm.regularizers import REGULARIZERS
from tests.conformance.broken_regularizers import LAWLESS

DIM = 6


def instances():
    """Each regularizer with its required parameters, then with each other value that it states."""
    for entry in REGULARIZERS.all():
        missing = dataclasses.MISSING
        base = {p.name: p.metadata["example"] for p in entry.parameters if p.default is missing}
        yield entry.cls(**base)
        for p in entry.parameters:
            values = [p.metadata["example"], *(p.metadata["range"].choices or ())]
            if p.name in base and isinstance(base[p.name], float):
                values = [3.0 * base[p.name], 100.0 * base[p.name]]
            for value in values:
                if value not in (p.default, base.get(p.name)):
                    yield entry.cls(**base | p.metadata["beside"] | {p.name: value})


def of_vectors(regularizer):
    """As a function of the vectors of a space, which some are only then."""
    return bound(regularizer, SpaceOnly(Space(DIM)))


@dataclasses.dataclass
class SpaceOnly:
    """All that `bound` asks of a risk."""

    space: Space

    def ability(self, kind):
        return self.space if kind is Space else None


ALL = list(dict.fromkeys(instances()))
CONJUGATE = [r for r in ALL if isinstance(of_vectors(r), HasConjugate)]


@pytest.mark.parametrize("regularizer", ALL, ids=str)
def test_is_a_regularizer(regularizer):
    assert isinstance(of_vectors(regularizer), Regularizer)
    assert type(of_vectors(regularizer).smooth) is bool
    assert REGULARIZERS.make(*name_and_options(regularizer)) == regularizer
    assert REGULARIZERS.get(regularizer.name).headline.count(":") >= 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        regularizer.lam = 2.0


def name_and_options(regularizer):
    options = REGULARIZERS.describe(regularizer)
    return options.pop("name"), options


@pytest.mark.parametrize("regularizer", ALL, ids=str)
def test_parameters_outside_their_range_are_refused(regularizer):
    name, options = name_and_options(regularizer)
    for p in REGULARIZERS.get(name).parameters:
        limits, option = p.metadata["range"], option_name(p.name)
        wrong = [x for x in (0.0, -1.0, math.inf, -math.inf, math.nan, 1e9, "no such choice") if x not in limits]
        assert p.metadata["range"].doc
        assert p.metadata["example"] in limits
        assert wrong or not isinstance(p.default, float)
        for value in wrong:
            with pytest.raises(InputError, match=option):
                REGULARIZERS.make(name, options | {option: value})


@pytest.mark.parametrize("regularizer", CONJUGATE, ids=str)
def test_conjugate_is_the_maximum_on_a_line(regularizer):
    """In the last coordinate, the others 0, or at the center: groups of the examples have the first two."""
    lam, omega = regularizer.lam, of_vectors(regularizer)
    grid, last = np.append(np.linspace(-40.0, 40.0, 4001), [-0.25, 0.125]), np.eye(DIM)[-1]  # with bounds of examples
    others = (1.0 - last) * (getattr(regularizer, "center", None) or 0.0)
    for v in (0.0, 0.5 * lam, -lam, 3.0 * lam):
        best = max(v * w - omega.value(w * last + others) for w in grid)
        conjugate = omega.conjugate(v * last)
        assert best <= conjugate * (1 + 1e-12) + 1e-15
        if conjugate < math.inf:
            assert conjugate <= best + 1e-3 * lam
        else:
            assert best >= 10.0 * lam


@pytest.mark.parametrize("regularizer", ALL, ids=str)
def test_laws_hold_and_what_is_offered_is_tried(regularizer):
    report = REGULARIZER_LAWS.report(str(regularizer), RegularizerCase(regularizer, DIM, each=10))
    assert report.ok, str(report)
    kinds = {"conjugate": HasConjugate, "master": HasMaster, "elastic": Elastic, "strong convexity": StronglyConvex}
    omega = of_vectors(regularizer)
    assert {law for law, kind in kinds.items() if isinstance(omega, kind)} == set(kinds) & set(report.held)
    if isinstance(omega, Elastic):
        assert isinstance(omega, StronglyConvex) == (omega.l2 > 0.0)


@pytest.mark.parametrize(("law", "regularizer"), LAWLESS, ids=str)
def test_a_regularizer_that_breaks_a_law_is_told_so(law, regularizer):
    report = check_regularizer(regularizer)
    broken = {violation.law: violation for violation in report.violations}
    assert law in broken, str(report)
    assert broken[law].message


def test_each_law_has_a_regularizer_that_breaks_it():
    assert {law for law, _ in LAWLESS} >= set(REGULARIZER_LAWS.all)
