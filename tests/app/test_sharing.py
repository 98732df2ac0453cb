"""What is said of rows that may go from rank to rank, before and after a run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bmrm.app.config.config import load_settings
from bmrm.app.pipeline.sharing import Sharing
from bmrm.app.report import moved

ROOT = Path(__file__).resolve().parents[2]
EVERY = "every rank can read data.train"


def sharing(*changes):
    return Sharing.of(load_settings(None, ["data.train=a.svm", *changes]).plain())


@pytest.mark.parametrize(
    ("changes", "allowed", "why", "said"),
    [
        (
            (),
            True,
            EVERY,
            "they are dealt out by chance, and rank 0 solves alone, with all of them, where `auto` finds",
        ),
        (("data.train=[a.svm, b.svm]",), True, EVERY, "`data.share_rows: false` keeps them where they are read"),
        (("data.train=synthetic:thesis",), True, EVERY, "rows may move between ranks"),
        (("solver=bundle",), True, EVERY, "they are dealt out by chance;"),
        (("search={name: f_measure, folds: 2}",), True, EVERY, "rank 0 may take a sample of them to start from"),
        (("data.share_rows=true",), True, "data.share_rows is true", "they are dealt out"),
        (("data.share_rows=false",), False, "data.share_rows is false", "`data.share_rows: true` lets them move"),
        (("data.train=[a.svm, 'b{rank}.svm']",), False, "b{rank}.svm is another file on each rank", "no small problem"),
        (("data.train=b-{rank:03d}.svm",), False, "b-{rank:03d}.svm is another file on each rank", "no start from a"),
        (("data.train=b{rank}.svm", "data.share_rows=true"), True, "data.share_rows is true", "they are dealt out"),
    ],
)
def test_the_first_line_says_whether_why_what_and_how_to_change_it(changes, allowed, why, said):
    found = sharing(*changes)
    assert (found.allowed, found.why) == (allowed, why)
    words = found.in_words()
    assert words.startswith(f"rows {'may move between' if allowed else 'stay on their'} ranks, since {why}: ")
    assert said in words
    assert f"`data.share_rows: {'false' if allowed else 'true'}`" in words


def test_the_end_says_what_was_done():
    found = sharing()
    assert moved(found.plain(True, True)) == "rows were dealt out by chance, rank 0 solved alone with all of them"
    assert moved(found.plain(True, False)) == "rows were dealt out by chance"
    assert moved(found.plain(False, False)) == "rows were not dealt out"
    assert moved(sharing("data.share_rows=false").plain(False, False)).startswith("rows stay where they are")
    assert moved({"allowed": True}) == "rows were not dealt out"  # of older versions


@pytest.mark.parametrize(("rank", "times"), [("0", 1), ("1", 0)])
def test_a_fit_under_mpirun_says_once_that_it_is_alone(rank, times):
    """The launcher's words in the environment are all that is looked at."""
    code = "import bmrm; [bmrm.fit([[1.0], [-1.0], [0.5]], [1, -1, 1], lam=0.1) for _ in range(2)]"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PMI_SIZE": "3", "PMI_RANK": rank}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr.count("3 ranks were started, and `bmrm.fit` trains in each of them alone") == times


def test_with_slices_rank_0_does_not_solve_alone():
    assert "rank 0 solves alone" in sharing().in_words()
    assert "rank 0 solves alone" not in sharing("mpi.slices=true").in_words()
