"""Every solver states its peak memory, and what it states is what is measured."""

from __future__ import annotations

import pytest

from benchmarks import memory
from bmrm.solvers import SOLVERS

pytestmark = pytest.mark.nightly

NAMES = [entry.name for entry in SOLVERS.all()]


@pytest.mark.parametrize("name", NAMES)
def test_stated_and_measured(name: str) -> None:
    stated = " ".join((SOLVERS.get(name).cls.__doc__ or "").split())
    assert "Memory: " in stated
    for key, formula in memory.FORMULAS.items():
        if key.split()[0] == name:
            assert f"{formula.text} bytes" in stated
    assert any(case.solver == name for case in memory.CASES)


def test_a_case_in_its_own_process() -> None:
    case = memory.Case("lbfgs", 100, 500_000)
    sizes, peak, _ = memory.measured(case)
    assert 8 * 15 * sizes.dim < peak <= memory.formula(case, "lbfgs").bytes(sizes) + memory.ALLOWANCE
