"""Whole runs that are killed, stopped and gone on from: alone, over ranks, from Python."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

import bmrm
from bmrm.app.phases import SOLVING
from bmrm.app.pipeline.checkpoint import read_start
from bmrm.problem import InputError
from bmrm.run import main
from tests.mpi.launch import mpirun as launcher
from tests.mpi.launch import work

EVERY = 0.2
"""Seconds between checkpoints in these tests."""
TOLERANCE = 1e-3


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A folder with a config whose run takes some seconds."""
    monkeypatch.chdir(tmp_path)
    settings = {
        "data": {"train": "synthetic:sparse_binary?rows=6000", "bias": "regularized"},
        "loss": "hinge",
        "regularizer": {"name": "l2", "lambda": 1e-5},
        "solver": {"name": "bundle", "tolerance": TOLERANCE, "threads": 1},
        "output": {"directory": "out", "checkpoint_every": EVERY},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
    return tmp_path


def train(*words):
    return main(["config.yaml", "--quiet", *words])


def summary(directory="out"):
    return json.loads((Path(directory) / "summary.json").read_text())


def forked(*words):
    """A run in a process of its own that has all modules; its id."""
    child = os.fork()
    if child == 0:
        status = 70
        try:
            status = main(["config.yaml", "--quiet", "--resume", *words])
        finally:
            os._exit(status)
    return child


def launched(*words):
    """The same on three ranks; the process of mpirun."""
    command = [launcher(), "-n", "3", sys.executable, "-m", "bmrm.run", "config.yaml", "--quiet", "--resume", *words]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def ended(child, seconds):
    """The exit status, or None where it has not ended after so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(min(0.002, seconds))
    return None


def age_of_checkpoint(begin):
    """Seconds since the last checkpoint of this life, or None without one."""
    try:
        written = Path("out/checkpoint.npz").stat().st_mtime
    except OSError:
        return None
    return time.time() - written if written > begin else None


def killed_until_it_ends(kills, most, seed, lost, *words):
    """Kill runs `kills` times in all at random moments and resume them, each to its end.

    A kill comes up to `most` seconds after the first checkpoint of a life, or before there is one. Yields the exit
    status of each run that ends; `lost` gets the seconds of work that a kill cost.
    """
    dice = random.Random(seed)
    while kills >= 0:
        begin, child = time.time(), forked(*words)
        before_any = dice.random() < 0.2
        status, wait = None, dice.uniform(0.0, most)
        while status is None and not before_any and age_of_checkpoint(begin) is None:
            status = ended(child, 0.002)
        if status is None:
            status = ended(child, wait if kills else 600.0)
        if status is not None:
            yield status
            if not kills:
                return
            shutil.rmtree("out")
            continue
        kills -= 1
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        age = age_of_checkpoint(begin)
        if age is not None:
            lost.append(age)


def check_like_uninterrupted(whole):
    values = summary()
    assert values["status"] == whole["status"] == "CONVERGED"
    assert values["relative_gap"] <= TOLERANCE
    assert values["objective"] == pytest.approx(whole["objective"], rel=TOLERANCE)
    assert values["lower_bound"] <= whole["objective"]
    assert whole["lower_bound"] <= values["objective"]
    assert {path.name for path in Path("out").iterdir()} == {
        "model.npz",
        "summary.json",
        "curves.json",
        "history.csv",
        "convergence.svg",
        "config.yaml",
    }
    iterations = [int(line.split(",")[0]) for line in Path("out/history.csv").read_text().splitlines()[1:]]
    assert iterations == list(range(len(iterations)))
    if values["ranks"] > whole["ranks"]:  # rows have been dealt out
        values["problem"]["data"]["order"] = whole["problem"]["data"]["order"]
    assert values["problem"] == whole["problem"]


def pace(*words):
    """The summary of a run that nobody disturbs; with how it is said how often to save, and how long a life lasts.

    In shares of that run, so that a fast machine meets as many kills in it as a slow one.
    """
    assert train(*words, "--set", "output.directory=whole") == 0
    whole = summary("whole")
    solving = sum(whole["seconds"][part] for part in SOLVING)
    every, most = min(0.05, solving / 30), min(0.3, solving / 6)
    return whole, (*words, "--set", f"output.checkpoint_every={every:.2g}"), most


LIVES = [("bundle", 5)]
MORE = {"bundle": 25, "line_search_bundle": 10, "dual_coordinate": 10, "auto": 5}
LIVES += [pytest.param(name, kills, marks=pytest.mark.nightly) for name, kills in MORE.items()]


@pytest.mark.parametrize(("solver", "kills"), LIVES)
def test_a_run_killed_again_and_again_is_certified_like_one_that_was_not(job, solver, kills):
    whole, words, most = pace("--set", f"solver.name={solver}")
    ends, lost = 0, []
    for status in killed_until_it_ends(kills, most, 7, lost, *words):
        assert status == 0
        check_like_uninterrupted(whole)
        ends += 1
    assert lost
    assert max(lost) < 5.0  # an iteration and the writing, on a busy machine
    print(f"{solver}: {kills} kills in {ends} runs, {len(lost)} after a checkpoint; lost at most {max(lost):.2f} s")


@pytest.mark.slow
@pytest.mark.mpi
def test_killed_on_three_ranks_and_resumed_on_three_and_on_one(job):
    whole, words, most = pace()
    dice = random.Random(3)
    for _ in range(8):
        begin, process = time.time(), launched(*words)
        deadline = time.monotonic() + 120.0
        while process.poll() is None and age_of_checkpoint(begin) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(dice.uniform(0.0, most))
        if process.poll() is not None:
            break
        os.killpg(process.pid, signal.SIGKILL)  # mpirun, its proxy and the ranks
        process.wait()
    if not Path("out/summary.json").exists():
        assert read_start(Path("out/checkpoint.npz")).start.history
        process = launched(*words)
        assert process.wait(timeout=600) == 0
    check_like_uninterrupted(whole)


def test_a_run_killed_while_it_draws_gets_its_picture_when_resumed(job, capsys):
    assert train("--set", "solver.tolerance=1e-2") == 0
    before = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    Path("out/convergence.svg").unlink()
    assert train("--set", "solver.tolerance=1e-2", "--resume") == 0
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == before
    Path("out/convergence.svg").unlink()
    Path("out/history.csv").write_text("of another kind\n1\n")
    capsys.readouterr()
    assert train("--set", "solver.tolerance=1e-2", "--resume") == 0
    assert "out/convergence.svg: cannot be drawn" in capsys.readouterr().err


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("solver", "bias"), [("bundle", "regularized"), ("dual_coordinate", "regularized"), ("dual_coordinate", "free")]
)
def test_what_one_process_has_begun_three_ranks_finish(job, solver, bias):
    # over ranks dual ascent takes many sweeps at small lambda, resumed or not
    words = ("--set", f"solver.name={solver}", "--set", "regularizer.lambda=1e-3", "--set", f"data.bias={bias}")
    assert train(*words, "--set", "output.directory=whole") == 0
    half = summary("whole")["iterations"] // 2
    assert train(*words, "--set", f"solver.max_iterations={half}") == 3
    done = work(3, "bmrm.run", "config.yaml", "--quiet", "--resume", *words, timeout=300.0, cwd=job)
    assert done.returncode == 0, done.stderr
    assert summary()["ranks"] == 3
    assert summary()["iterations"] < 4 * summary("whole")["iterations"]
    check_like_uninterrupted(summary("whole"))


def test_counts_go_on_and_what_is_finished_stays(job, capsys):
    assert train("--set", "solver.max_iterations=30") == 3
    first = summary()
    assert first["status"] == "ITERATION_LIMIT"
    assert Path("out/checkpoint.npz").exists()
    assert main(["config.yaml", "--resume"]) == 0
    assert "goes on from out/checkpoint.npz: iteration 30" in capsys.readouterr().err
    values = summary()
    assert values["iterations"] > 30
    assert values["passes"] >= values["iterations"]
    assert values["resumed"]["seconds"] >= 0.9 * first["seconds"]["risk"]
    assert not Path("out/checkpoint.npz").exists()
    before = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    assert main(["config.yaml", "--resume"]) == 0
    assert "holds the result already" in capsys.readouterr().err
    absolute = f"solver.absolute_tolerance={1.01 * values['gap']}"
    assert main(["config.yaml", "--resume", "--set", "solver.tolerance=0", "--set", absolute]) == 0
    assert "holds the result already" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == before
    assert main(["config.yaml", "--resume", "--set", "solver.tolerance=5e-4"]) == 0
    assert summary()["relative_gap"] <= 5e-4


OTHERS = {
    "regularizer.lambda=1e-4": "regularizer.lambda is 1e-05 there, 0.0001 here",
    "data.train=synthetic:sparse_binary?rows=5999": "the training data have 6000 rows there, 5999 here",
    "seed=3": "the training data differ",
}


@pytest.mark.parametrize("override", OTHERS)
def test_a_checkpoint_of_another_problem_is_refused(job, capsys, override):
    assert train("--set", "solver.max_iterations=5") == 3
    checkpoint = Path("out/checkpoint.npz").rename("kept.npz")
    capsys.readouterr()
    assert train("--set", override, "--set", f"start={checkpoint}", "--overwrite") == 2
    assert f"kept.npz is of another problem: {OTHERS[override]}" in capsys.readouterr().err
    checkpoint.rename("out/checkpoint.npz")
    assert train("--set", override, "--resume") == 2
    message = capsys.readouterr().err
    assert "its checkpoint.npz is of another problem" in message
    assert OTHERS[override] in message


def test_a_model_of_another_lambda_is_a_start(job):
    assert train("--set", "output.directory=first") == 0
    words = ("--set", "solver.name=lbfgs", "--set", "loss=logistic", "--set", "regularizer.lambda=2e-5")
    assert train(*words, "--set", "output.directory=cold") == 0
    assert train(*words, "--set", "start=cold/model.npz", "--set", "output.directory=warm") == 0
    assert summary("warm")["iterations"] <= 2
    assert train(*words, "--set", "start=first/model.npz", "--set", "output.directory=other") == 0
    assert train("--set", "start=first/none.npz", "--set", "output.directory=none") == 2


DAMAGE = {
    "a vector of another length": {"run_w": np.zeros(3)},
    "no numbers": {"run_w": np.array(["a"])},
    "a history without columns": {"run_history": np.zeros((3, 2))},
    "a header that is no JSON": {"run_header": np.array("{")},
    "a header without a problem": {"run_header": np.array("{}")},
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_checkpoint_is_one_message(job, capsys, what):
    assert train("--set", "solver.max_iterations=5") == 3
    with np.load("out/checkpoint.npz") as file:
        members = dict(file)
    np.savez("out/checkpoint.npz", **{**members, **DAMAGE[what]})
    capsys.readouterr()
    assert train("--resume", "--overwrite") == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_checkpoint_holds_no_pickles_and_is_a_model(job):
    assert train("--set", "solver.max_iterations=20") == 3
    with np.load("out/checkpoint.npz", allow_pickle=False) as file:
        assert not any(file[name].dtype.hasobject for name in file.files)
    model = bmrm.load_model("out/checkpoint.npz")
    np.testing.assert_array_equal(model.weights, bmrm.load_model("out/model.npz").weights)
    start = read_start(Path("out/checkpoint.npz"))
    assert start.problem == summary()["problem"]
    assert start.start.lower_bound == summary()["lower_bound"]
    assert len(start.start.history) == 21


def test_from_python(job):
    data = bmrm.data.reading.read("synthetic:sparse_binary?rows=6000&seed=0")
    assert train("--set", "solver.max_iterations=40") == 3
    arguments = {"regularizer": bmrm.L2(1e-5), "bias": "regularized", "solver": "bundle", "tolerance": TOLERANCE}
    whole = bmrm.fit(data.X, data.targets.y, **arguments)
    model = bmrm.fit(data.X, data.targets.y, start="out/checkpoint.npz", **arguments)
    assert model.solution.converged
    assert model.solution.iterations > 40
    assert model.solution.history[40].objective == summary()["objective"]
    assert model.solution.objective == pytest.approx(whole.solution.objective, rel=TOLERANCE)
    with pytest.raises(InputError, match=r"regularizer.lambda is 1e-05 there, 0.001 here"):
        bmrm.fit(data.X, data.targets.y, start="out/checkpoint.npz", **arguments | {"regularizer": bmrm.L2(1e-3)})
    warm = bmrm.fit(data.X, data.targets.y, start=whole, **arguments | {"solver": "lbfgs", "loss": "logistic"})
    assert warm.solution.converged
    vector = bmrm.fit(data.X, data.targets.y, start=whole.solution.w, **arguments)
    assert vector.solution.history[0].objective == pytest.approx(whole.solution.objective, rel=1e-12)
    other = bmrm.fit(np.eye(4), [1, -1, 1, -1], regularizer=bmrm.L2(1.0))
    with pytest.raises(InputError, match="the model has"):
        bmrm.fit(data.X, data.targets.y, start=other, **arguments)
