"""Rows that change ranks: none is lost or doubled, groups stay whole, and answers stay the same."""

import itertools
import json

import numpy as np
import pytest

from tests.mpi.dealt import CASES, ROWS
from tests.mpi.launch import printed, work

pytestmark = pytest.mark.mpi


def answers(ranks):
    return printed(ranks, "tests.mpi.dealt")


@pytest.fixture(scope="module")
def one():
    return answers(1)


@pytest.fixture(scope="module", params=[2, 3])
def several(request):
    return request.param, answers(request.param)


def test_every_row_is_dealt_once_with_its_group(several):
    ranks, found = several
    for deal in range(3):
        places = [rank[deal] for rank in found["dealing"]["places"]]
        assert sorted(itertools.chain(*places)) == list(range(ROWS))
        groups = [{place // 7 for place in mine} for mine in places]
        assert sum(map(len, groups)) == 43
        assert min(len(mine) for mine in groups) >= 43 // ranks - ranks


def test_dealing_mixes_and_is_the_same_for_a_seed(several):
    _, found = several
    for places in found["dealing"]["places"]:
        assert places[0] == places[1]
        assert places[0] != places[2]
        assert np.abs(np.mean(places[0]) - ROWS / 2) < ROWS / 4


def test_rows_are_gathered_in_rank_order(several):
    _, found = several
    places = list(itertools.chain(*(rank[0] for rank in found["dealing"]["places"])))
    assert np.rint((np.array(found["dealing"]["gathered"]) + 1.0) / 2.0 * (ROWS - 1)).astype(int).tolist() == places
    assert found["dealing"]["groups"] == [place // 7 for place in places]


@pytest.mark.parametrize("loss", CASES)
def test_rank_0_with_all_rows_has_the_same_risk(loss, one, several):
    _, found = several
    mine, alone = found[f"{loss} True"], one[f"{loss} True"]
    assert mine["values"] == pytest.approx([alone["values"][0]] * 2, rel=1e-12)


@pytest.mark.parametrize("loss", CASES)
@pytest.mark.parametrize("shared", [True, False])
def test_samples_have_the_same_rows_on_any_number_of_ranks_which_stay(loss, shared, one, several):
    mine, alone = several[1][f"{loss} {shared}"], one[f"{loss} {shared}"]
    if loss not in ("hinge", "logistic", "softmax"):
        assert mine["sample"] is alone["sample"] is None
        return
    for name, expected in alone["sample"].items():
        near = 1e-8 if name in ("bundle", "auto") else 1e-12
        assert np.allclose(mine["sample"][name], expected, rtol=near, atol=1e-12), name
    assert mine["kept"] == 0


@pytest.mark.parametrize("loss", CASES)
def test_auto_solves_small_problems_on_rank_0_where_rows_may_go_there(loss, one, several):
    _, found = several
    for shared in (True, False):
        mine = found[f"{loss} {shared}"]
        assert mine["status"] == "CONVERGED"
        assert mine["objective"] == pytest.approx(one[f"{loss} True"]["objective"], rel=2e-7)
        assert mine["bound"] <= one[f"{loss} True"]["objective"]
        assert mine["solver"].endswith(", rank 0 with all rows") == shared


@pytest.mark.parametrize("loss", CASES)
def test_rows_are_not_gathered_unless_they_may_go(loss, several):
    _, found = several
    assert len(found[f"{loss} False"]["values"]) == 1


@pytest.mark.parametrize(
    ("more", "alone"),
    [((), True), (("data.share_rows=false",), False), (("data.train=part{rank}.svm",), False)],
    ids=["files of all", "not shared", "a file of each rank"],
)
def test_files_that_every_rank_reads_are_shared(tmp_path, more, alone):
    random = np.random.default_rng(2)
    X = random.normal(size=(60, 3)).round(3)
    lines = [f"{1 if row.sum() > 0 else -1} 1:{row[0]} 2:{row[1]} 3:{row[2]}" for row in X]
    for name, part in {"all": lines, "part0": lines[:40], "part1": lines[40:]}.items():
        (tmp_path / f"{name}.svm").write_text("\n".join(part) + "\n")
    (tmp_path / "config.yaml").write_text("data: {train: all.svm}\nregularizer: {name: l2, lambda: 0.01}\n")
    options = [word for change in (*more, "output.directory=out") for word in ("--set", change)]
    done = work(2, "bmrm.run", "config.yaml", "--quiet", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert found["solver"].endswith(", rank 0 with all rows") == alone
    assert found["ranks"] == 2
