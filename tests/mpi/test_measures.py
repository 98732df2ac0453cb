"""Every measure of rows that are shared out has the value that it has on one rank."""

import json

import pytest

from bmrm.losses import LOSSES
from bmrm.metrics import MEASURES, TASKS
from tests.mpi.launch import launch
from tests.mpi.measures import CASES

pytestmark = pytest.mark.mpi


def test_every_measure_has_the_value_of_one_rank():
    assert {LOSSES.get(name).cls.task for name in CASES} == set(TASKS)
    done = launch(3, "-m", "tests.mpi.measures")
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    seen = set()
    for name in CASES:
        shared, alone = answers[name]
        defined = {measure: value for measure, value in alone.items() if value is not None}
        assert {measure: value for measure, value in shared.items() if value is not None} == pytest.approx(
            defined, rel=1e-12
        ), name
        seen |= {measure.partition("@")[0] for measure in defined}
    assert seen == set(MEASURES)
