"""One risk over several ranks: the same answers as on one, whatever the loss."""

import json

import pytest

from tests.mpi.every_loss import instances
from tests.mpi.launch import launch, printed

pytestmark = pytest.mark.mpi


def answers(ranks, *losses):
    return printed(ranks, "tests.mpi.every_loss", *losses)


@pytest.fixture(scope="module")
def one_rank():
    return answers(1)


@pytest.mark.parametrize("ranks", [2, 3])
def test_every_loss_is_the_same_on_any_number_of_ranks(ranks, one_rank):
    several = answers(ranks)
    assert set(several) == set(instances())
    for name, (objective, bound, status) in several.items():
        assert status == "CONVERGED", name
        assert objective == pytest.approx(one_rank[name][0], rel=1e-8), name
        assert bound <= one_rank[name][0] * (1.0 + 1e-12), name


def test_long_vectors_go_in_pieces_and_overlap(one_rank):
    losses = ("hinge", "logistic", "multiclass_hinge", "roc_area")
    for name, (objective, _, status) in answers(2, "--small-pieces", *losses).items():
        assert status == "CONVERGED", name
        assert objective == pytest.approx(one_rank[name][0], rel=1e-8), name


@pytest.mark.nightly
def test_sixty_four_ranks_on_a_few_cores():
    losses = ("hinge", "roc_area")
    one_rank = answers(1, *losses)
    done = launch(64, "-m", "tests.mpi.every_loss", *losses, timeout=300.0)  # only a guard against hanging
    assert done.returncode == 0, done.stderr
    for name, (objective, _, status) in json.loads(done.stdout).items():
        assert status == "CONVERGED", name
        assert objective == pytest.approx(one_rank[name][0], rel=1e-8), name
