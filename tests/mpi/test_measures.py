"""Every measure of rows that are shared out has the value that it has on one rank."""

import pytest

from bmrm.losses import LOSSES
from bmrm.metrics import MEASURES, TASKS
from bmrm.metrics.curves import CURVES
from tests.mpi.launch import printed
from tests.mpi.measures import CASES

pytestmark = pytest.mark.mpi


@pytest.fixture(scope="module")
def answers():
    """Of every case, by its name: measures of three ranks and of one, and curves likewise."""
    return printed(3, "tests.mpi.measures")


def test_every_measure_has_the_value_of_one_rank(answers):
    assert {LOSSES.get(name).cls.task for name in CASES} == set(TASKS)
    seen = set()
    for name in CASES:
        shared, alone, *_ = answers[name]
        defined = {measure: value for measure, value in alone.items() if value is not None}
        assert {measure: value for measure, value in shared.items() if value is not None} == pytest.approx(
            defined, rel=1e-12
        ), name
        seen |= {measure.partition("@")[0] for measure in defined}
    assert seen == set(MEASURES)


def flat(value):
    """The numbers of nested lists and dictionaries, without text."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if inside is None:
        return [] if isinstance(value, str) else [value]
    return [one for part in inside for one in flat(part)]


def test_every_curve_is_that_of_one_rank(answers):
    seen = set()
    for name in CASES:
        *_, shared, alone = answers[name]
        assert list(shared) == list(alone), name
        for curve in alone:
            assert flat(shared[curve]) == pytest.approx(flat(alone[curve]), rel=1e-9), (name, curve)
        seen |= set(alone)
    assert seen == set(CURVES)


def test_parts_for_which_one_rank_has_no_memory_are_not_measured(answers):
    table, curves, missing = answers["short of memory"]
    assert table == curves == {}
    assert missing == [f"data.{part}: not measured: memory is short: nothing is left" for part in ("train", "test")]
