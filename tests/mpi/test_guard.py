"""Owners whose rows must not move: curious solvers learn nothing of single rows, honest ones find the same minimum."""

import json

import numpy as np
import pytest

from bmrm.data.dataset import Dataset
from bmrm.data.writers import write_npz
from bmrm.mpi.guarded import GUARDED, REVEALS
from bmrm.mpi.kinds import KINDS
from tests.mpi.curious import CURIOUS, HONEST, KINKED
from tests.mpi.launch import printed, work

FEATURE = "the weights of a point isolate a feature"
FEW = "the answer would be made of"
FALLS = "the objective does not fall as expected"
SAID = {
    "a_unit_vector": FEATURE,
    "nearly_a_unit_vector": FEATURE,
    "a_difference_that_is_one": FEATURE,
    "a_column_of_the_second_derivative": FEATURE,
    "a_point_that_isolates_rows": f"{FEW} 3 rows, expected at least 5",
    "the_value_there": f"{FEW} 3 rows",
    "on_a_line_through_it": f"{FEW} 3 rows",
    "rows_between_two_points": FEW,
    "a_scan_of_a_line": "points on one line, which would tell the scores of rows",
    "points_that_lead_nowhere": f"{FALLS}: at 501 points, one after another",
    "a_point_far_away": f"{FALLS}: this rank's part of it is",
    "a_point_that_is_none": "a point that is not finite",
    "scores": "it would hand out scores",
    "scores_as_a_sum": "it asks for more than sums over rows",
    "scores_joined": "it asks for more than sums over rows",
    "slopes_joined": "it asks for more than sums over rows",
    "a_row_by_a_slope_of_our_own": "it would hand out scores",
    "a_row_by_an_array": "numbers for rows come from elsewhere",
    "rows_themselves": "it would hand out rows",
    "blocks_of_a_row": "sums over rows that rank 0 chooses",
    "chosen_rows": "sums over rows that rank 0 chooses",
    "breakpoints": "where on a line each row has its kink",
    "a_gram_matrix": "products of two features",
    "dual_steps": "steps of single rows",
    "nothing_that_is_known": "what nobody has looked at",
    "after_a_refusal": FEATURE,
}


def test_every_request_is_answered_by_sums_or_known_to_reveal_more():
    known = {(kind, method) for kind, one in KINDS.items() for method in one.methods}
    answered = {(kind, method) for kind, one in GUARDED.items() for method in one.methods}
    assert answered <= known
    assert not answered & set(REVEALS)
    assert answered | set(REVEALS) == known


@pytest.fixture(scope="module")
def answers():
    return printed(3, "tests.mpi.curious", "ask")


@pytest.mark.mpi
def test_what_is_said_is_known_of_every_question():
    assert set(SAID) == {question.__name__ for question in CURIOUS}


@pytest.mark.mpi
@pytest.mark.parametrize("question", SAID)
def test_a_curious_solver_is_refused_and_all_ranks_end(question, answers):
    first, *others = answers[question]
    assert SAID[question] in first
    assert "data.guard refuses a request" in first
    assert first.startswith("rank ")
    assert others == ["another"] * 2


@pytest.mark.mpi
def test_the_owner_who_refuses_is_named(answers):
    """Rank 0 has no rows: what only rows can tell is said by their owners."""
    assert answers["a_unit_vector"][0].startswith("rank 1: ")
    assert answers["a_point_that_isolates_rows"][0].startswith("rank 1: ")


@pytest.mark.mpi
def test_what_needs_more_than_sums_is_not_offered(answers):
    assert answers["withheld"] == []


SOLVERS = ["auto", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("newton", "line_search_bundle"))]


@pytest.fixture(scope="module", params=SOLVERS)
def minima(request):
    return request.param, printed(3, "tests.mpi.curious", "solve", request.param)


@pytest.mark.mpi
@pytest.mark.parametrize("problem", HONEST)
def test_honest_solvers_find_the_same_minimum(problem, minima):
    solver, found = minima
    if solver == "newton" and problem in KINKED:
        assert problem not in found
        return
    plain, guarded, masked = found[problem]
    for objective, bound, status, _ in (guarded, masked):
        assert status == "CONVERGED"
        assert objective == pytest.approx(plain[0], rel=2e-7)
        assert bound <= plain[0]
        assert plain[1] <= objective
    assert masked[0] == pytest.approx(guarded[0], rel=1e-12)


CONFIG = """
data: {train: "part-{rank}.npz", guard: true}
loss: logistic
regularizer: {name: l2, lambda: 0.01}
solver: {name: auto, tolerance: 1.0e-6}
output: {directory: out}
"""
CURIOUS_SOLVER = """
from dataclasses import dataclass
import numpy as np

@dataclass(frozen=True)
class Curious:
    number: int = 2

    def minimize(self, risk, regularizer, *, start=None, callback=None):
        return risk.value_and_subgradient(np.eye(risk.dim)[self.number])[1]
"""


@pytest.fixture
def shards(tmp_path):
    """A folder with a config and the rows of three owners."""
    random = np.random.default_rng(0)
    for rank in range(3):
        X = random.normal(size=(150, 4))
        y = np.where(X.sum(axis=1) + random.normal(size=150) > 0.0, 1.0, -1.0)
        write_npz(tmp_path / f"part-{rank}.npz", Dataset.from_arrays(X, y))
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "curious_solver.py").write_text(CURIOUS_SOLVER)
    return tmp_path


def run(shards, *changes):
    options = [word for change in changes for word in ("--set", change)]
    return work(3, "bmrm.run", "config.yaml", "--quiet", *options, cwd=shards)


@pytest.mark.mpi
def test_a_guarded_run_measures_nothing_and_finds_the_minimum(shards):
    found = []
    for changes in (["data.guard=false"], [], ["data.guard={secure_sums: true}"]):
        done = run(shards, *changes, "output.overwrite=true")
        assert done.returncode == 0, done.stderr
        found.append(json.loads((shards / "out" / "summary.json").read_text()))
    plain, guarded, masked = found
    for one in (guarded, masked):
        assert one["objective"] == pytest.approx(plain["objective"], rel=2e-6)
        assert one["lower_bound"] <= plain["objective"]
        assert one["metrics"] == {}
        assert one["row_sharing"]["why"].startswith("data.guard")
    assert plain["metrics"]["train"]
    assert masked["objective"] == pytest.approx(guarded["objective"], rel=1e-12)


@pytest.mark.mpi
def test_a_curious_plug_in_ends_the_job_with_one_message(shards):
    done = run(shards, "solver=curious_solver:Curious", "data.bias=none")
    assert done.returncode == 2
    assert done.stderr.count("refuses a request") == 1
    assert FEATURE in done.stderr
    assert "killed" not in done.stderr
    assert not list(shards.glob("out/*.npz"))


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (["data.guard={min_rows: 151}"], "rank 0: data.guard: 150 rows, expected none or at least 151"),
        (["solver=dual_coordinate"], "solver dual_coordinate: it takes steps of single rows, which data.guard forbids"),
    ],
)
def test_what_cannot_be_guarded_is_one_message(shards, changes, said):
    done = run(shards, *changes)
    assert done.returncode == 2
    assert done.stderr.count(said) == 1, done.stderr
    assert not (shards / "out").exists()


@pytest.mark.mpi
def test_a_feature_of_few_rows_is_refused_without_its_name(shards):
    X = np.random.default_rng(1).normal(size=(150, 4))
    X[3:, 2] = 0.0
    write_npz(shards / "part-1.npz", Dataset.from_arrays(X, np.where(X[:, 0] > 0.0, 1.0, -1.0)))
    done = run(shards)
    assert done.returncode == 2
    said = "rank 1: data.guard: fewer than 10 rows (min_rows) touch 1 of 4 features"
    assert done.stderr.count(said) == 1, done.stderr


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("wanted", "job", "status"),
    [
        ("{min_rows: 20}", "true", 2),
        ("{min_rows: 20}", "null", 2),
        ("{secure_sums: true}", "{min_rows: 30}", 2),
        ("{min_rows: 20}", "{min_rows: 30}", 0),
        ("twenty", "true", 2),
    ],
)
def test_an_owner_asks_for_more_than_the_job_has(wanted, job, status, shards):
    done = work(3, "tests.mpi.owners", wanted, "config.yaml", "--quiet", "--set", f"data.guard={job}", cwd=shards)
    assert done.returncode == status, done.stderr
    said = "BMRM_GUARD is 'twenty'" if wanted == "twenty" else "the owner of this rank asks for data.guard"
    said = f"rank 1: {said}"
    assert done.stderr.count(said) == (status == 2), done.stderr
