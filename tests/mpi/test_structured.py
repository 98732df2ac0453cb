"""A risk of the user's own over several ranks."""

import json

import pytest

from tests.mpi.launch import work

pytestmark = pytest.mark.mpi


def test_a_structured_risk_is_the_same_on_any_number_of_ranks():
    answers = []
    for ranks in (1, 2, 3):
        done = work(ranks, "tests.mpi.structured")
        assert done.returncode == 0, done.stderr
        answers.append(json.loads(done.stdout))
    for objective, bound, status in answers:
        assert status == "CONVERGED"
        assert objective == pytest.approx(answers[0][0], rel=1e-8)
        assert bound <= answers[0][0] * (1.0 + 1e-12)
