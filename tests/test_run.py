"""Whole runs: exit statuses, files whole or absent, and one message for wrong input."""

import csv
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

import bmrm
import bmrm.app.pipeline.write
from bmrm.run import main
from bmrm.solvers import SOLVERS
from tests.mpi.launch import mpirun as launcher
from tests.mpi.launch import work

FILES = {"model.npz", "summary.json", "history.csv", "convergence.svg", "config.yaml", "curves.json"}


def svmlight(path, X, y):
    lines = (f"{label} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row)) for row, label in zip(X, y))
    path.write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A folder with train.svm, test.svm and config.yaml."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(2)
    X = random.normal(size=(80, 5)).round(6)
    y = np.where(X @ [1.0, -2.0, 0.5, 0.0, 1.0] + random.normal(size=80) > 0, 1, -1)
    svmlight(tmp_path / "train.svm", X[:60].tolist(), y[:60])
    svmlight(tmp_path / "test.svm", X[60:].tolist(), y[60:])
    settings = {
        "schema": 1,
        "data": {"train": "train.svm", "test": "test.svm"},
        "loss": "hinge",
        "regularizer": {"name": "l2", "lambda": 0.01},
        "solver": {"name": "auto", "tolerance": 1e-4},
        "output": {"directory": "out"},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
    return tmp_path


def run(*overrides):
    words = (word for override in overrides for word in ("--set", override))
    return main(["config.yaml", "--quiet", "--overwrite", *words])


def summary(directory="out"):
    return json.loads((Path(directory) / "summary.json").read_text())


def test_a_run_converges_writes_six_files_and_returns_0(job, capsys):
    assert main(["config.yaml"]) == 0
    assert {path.name for path in (job / "out").iterdir()} == FILES
    printed = capsys.readouterr().out
    for words in ("CONVERGED", "hinge + l2 on train.svm", "files in out"):
        assert words in printed


@pytest.mark.parametrize(
    "place", ["bmrm.app.pipeline.measuring.scores_of", "bmrm.metrics.evaluate", "bmrm.metrics.curves.drawn"]
)
def test_without_memory_for_measures_there_is_a_model_all_the_same(place, job, capsys, monkeypatch):
    assert run() == 0
    expected = bmrm.load_model("out/model.npz").weights

    def refused(*arguments):
        raise MemoryError("no room for 8 rows")

    with monkeypatch.context() as patched:
        patched.setattr(place, refused)
        assert run() == 4
    assert capsys.readouterr().err.splitlines()[-1].endswith("memory is short: no room for 8 rows")
    assert np.array_equal(bmrm.load_model("out/model.npz").weights, expected)
    values = summary()
    assert values["status"] == "CONVERGED"
    assert "data.test: not" in values["notes"][-1]
    assert set(values["metrics"]) == ({"train", "test"} if place.endswith("drawn") else set())


def test_without_memory_elsewhere_there_is_one_line(job, capsys, monkeypatch):
    def refused(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr("bmrm.app.pipeline.train.load", refused)
    assert run() == 1
    assert capsys.readouterr().err == "bmrm: memory is short\n"


def test_the_files_say_the_same_and_agree_with_python(job):
    assert run() == 0
    values = summary()
    assert values["status"] == "CONVERGED"
    assert values["relative_gap"] <= 1e-4
    assert (values["rows"], values["dim"], values["nnz"], values["ranks"]) == (60, 5, 300, 1)
    assert set(values["metrics"]) == {"train", "test"}
    assert values["solver"].split()[0] in {entry.name for entry in SOLVERS.all()}
    assert "one score, rows, l2" in values["solver"]
    history = list(csv.DictReader((job / "out/history.csv").read_text().splitlines()))
    assert float(history[-1]["objective"]) == values["objective"]
    assert len(history) == values["iterations"] + 1
    model = bmrm.load_model("out/model.npz")
    assert model.header["objective"] == values["objective"]
    data = bmrm.data.reading.read("train.svm")
    f = model.decision_function(data)
    by_hand = 0.005 * model.weights @ model.weights + np.maximum(0, 1 - f * data.targets.y).mean()
    assert values["objective"] == pytest.approx(by_hand, rel=1e-12)
    direct = bmrm.fit(data.X, data.targets.y, regularizer=bmrm.L2(0.01), bias="none", tolerance=1e-4)
    assert direct.solution.objective == pytest.approx(values["objective"], rel=1e-4)
    assert values["metrics"]["test"]["accuracy"] > 0.7


def test_the_resolved_config_gives_the_same_run_again(job):
    assert run() == 0
    first = summary()
    assert main(["out/config.yaml", "--quiet", "--set", "output.directory=again"]) == 0
    assert summary("again")["objective"] == first["objective"]


def test_a_limit_is_status_3_with_all_files(job):
    assert run("solver.max_iterations=2") == 3
    assert summary()["status"] == "ITERATION_LIMIT"
    assert {path.name for path in (job / "out").iterdir()} == FILES | {"checkpoint.npz"}


HOPELESS = """
import math
from dataclasses import dataclass
import numpy as np
from bmrm.problem import Solution, Status

@dataclass(frozen=True)
class Hopeless:
    def minimize(self, risk, regularizer, *, start=None, callback=None):
        return Solution(np.zeros(risk.dim), math.inf, -math.inf, Status.NON_FINITE, 0, 1.0, 0.0)
"""


def test_without_a_finite_point_the_status_is_1_and_nothing_is_written(job, capsys, monkeypatch):
    (job / "hopeless.py").write_text(HOPELESS)
    monkeypatch.syspath_prepend(job)
    assert main(["config.yaml", "--set", "solver={name: 'hopeless:Hopeless'}"]) == 1
    assert not (job / "out").exists()
    printed = capsys.readouterr().out
    assert "NON_FINITE" in printed
    assert "no usable point" in printed


def test_an_error_of_ours_is_status_1_with_a_traceback(job, capsys, monkeypatch):
    monkeypatch.setattr("bmrm.app.pipeline.train.load", lambda *_: 1 / 0)
    assert run() == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert not (job / "out").exists()


def test_help_is_status_0_and_a_wrong_command_line_2(capsys):
    assert main(["--help"]) == 0
    assert main([]) == 2
    assert main(["config.yaml", "--sett", "x=1"]) == 2


GOOD = "1 1:0.5 2:1\n-1 1:-0.5 2:2\n"
WRONG_FILES = {
    "a missing file": (None, "No such file"),
    "an empty file": ("", "empty"),
    "only comments": ("# nothing\n", "no rows"),
    "a token that is no number": (GOOD + "1 1:abc\n", "line 3"),
    "a label that is no number": (GOOD + "x 1:1\n", "line 3"),
    "decreasing indices": (GOOD + "1 2:1 1:1\n", "line 3"),
    "nan": (GOOD + "1 1:nan\n", "line 3"),
    "infinity": (GOOD + "1 1:inf\n", "line 3"),
    "a label of infinity": (GOOD + "inf 1:1\n", "line 3"),
    "one class only": ("1 1:1\n1 1:2\n", "only one class"),
    "three classes": (GOOD + "2 1:1\n", "two classes"),
}


@pytest.mark.parametrize("what", WRONG_FILES)
def test_wrong_data_are_status_2_with_one_message_and_nothing_written(job, capsys, what):
    content, words = WRONG_FILES[what]
    (job / "train.svm").unlink()
    if content is not None:
        (job / "train.svm").write_text(content)
    assert run("data.test=null") == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.out == ""
    assert len(printed.err.strip().splitlines()) == 1
    assert not (job / "out").exists()
    if "class" not in what:
        assert "train.svm" in printed.err


def test_index_0_where_indices_count_from_1(job, capsys):
    (job / "train.svm").write_text("1 0:1 1:2\n-1 1:3\n")
    assert run("data.test=null", "data.format={name: svmlight, one_based: true}") == 2
    assert "train.svm" in capsys.readouterr().err


def test_a_truncated_gzip(job, capsys):
    import gzip

    (job / "train.svm.gz").write_bytes(gzip.compress((job / "train.svm").read_bytes())[:-20])
    assert run("data.train=train.svm.gz") == 2
    assert "train.svm.gz" in capsys.readouterr().err


def test_test_data_with_more_features_than_the_model(job, capsys):
    (job / "test.svm").write_text("1 9:1\n")
    assert run() == 2
    message = capsys.readouterr().err
    for words in ("data.test", "test.svm", "9 features", "5"):
        assert words in message


def test_test_data_with_fewer_features_and_a_wider_model_are_fine(job):
    (job / "test.svm").write_text("1 2:1\n-1 1:1\n")
    assert run("data.dimension=12") == 0
    assert bmrm.load_model("out/model.npz").dim == 12
    assert run("data.dimension=3") == 2


@pytest.mark.parametrize(("label", "status"), [("1", 0), ("2", 2), ("-1", 0)])
def test_a_test_label_that_training_did_not_have(job, capsys, label, status):
    (job / "test.svm").write_text(f"{label} 2:1\n")
    assert run() == status
    if status:
        assert "data.test" in capsys.readouterr().err


def test_a_rare_class_in_the_test_data_counts_as_an_error(job):
    svmlight(job / "train.svm", np.eye(3).tolist() * 4, [1, 2, 3] * 4)
    svmlight(job / "test.svm", [*np.eye(3).tolist(), [1.0, 1.0, 1.0]], [1, 2, 3, 9])
    assert run("loss=softmax") == 0
    assert summary()["metrics"]["test"] == {"accuracy": 0.75, "log_loss": None}


def test_numbers_for_a_loss_of_labels_and_text_for_a_loss_of_numbers(job, capsys):
    (job / "t.csv").write_text("1,2,yes\n2,1,no\n3,3,yes\n")
    assert run("data.train=t.csv", "data.test=null") == 0
    assert list(bmrm.load_model("out/model.npz").labels) == ["no", "yes"]
    assert run("data.train=t.csv", "data.test=null", "data.positive_label=no") == 0
    assert list(bmrm.load_model("out/model.npz").labels) == ["yes", "no"]
    assert run("data.train=t.csv", "data.test=null", "loss=least_squares") == 2
    assert run("data.train=t.csv", "data.test=test.svm") == 2


WEIGHTS = {
    "too few": ("1\n2\n", "2 weights, the training data have 60 rows"),
    "negative": ("1\n" * 59 + "-1\n", "line 60"),
    "nan": ("1\n" * 59 + "nan\n", "line 60"),
    "text": ("1\n" * 59 + "heavy\n", "line 60"),
    "all 0": ("0\n" * 60, "all weights are 0"),
    "empty": ("", "w.txt"),
}


@pytest.mark.parametrize("what", WEIGHTS)
def test_wrong_weights(job, capsys, what):
    content, words = WEIGHTS[what]
    (job / "w.txt").write_text(content)
    assert run("data.weights=w.txt") == 2
    message = capsys.readouterr().err
    assert words in message
    assert "w.txt" in message


def weighed(path, rows, weight):
    """A csv file of rows and labels that all have one weight."""
    path.write_text("a,b,y,weight\n" + "".join(f"{k % 7},{k % 3},{k % 2},{weight}\n" for k in rows))


def test_all_rows_of_a_file_may_weigh_0_beside_others(job, capsys):
    weighed(job / "p1.csv", range(20), 1)
    weighed(job / "p2.csv", range(20, 40), 0)
    csv = ("data.format={name: csv, label: y, weight: weight}", "data.test=null", "solver.tolerance=1e-9")
    assert run("data.train=p1.csv", *csv) == 0
    alone = summary()["objective"]
    assert run("data.train=p*.csv", *csv) == 0
    assert summary()["objective"] == pytest.approx(alone, rel=1e-8)
    assert run("data.train=p2.csv", *csv) == 2
    assert "weights are all zero" in capsys.readouterr().err
    assert run("data.train=p1.csv", *csv[:1], "data.test=p2.csv") == 2
    assert "data.test: weights are all zero" in capsys.readouterr().err


def test_weights_of_0_take_rows_away(job):
    lines = (job / "train.svm").read_text().splitlines()
    (job / "half.svm").write_text("\n".join(lines[:30]) + "\n")
    (job / "w.txt").write_text("1\n" * 30 + "0\n" * 30)
    assert run("data.weights=w.txt", "solver.tolerance=1e-9") == 0
    weighted = summary()["objective"]
    assert run("data.train=half.svm", "solver.tolerance=1e-9") == 0
    assert summary()["objective"] == pytest.approx(weighted, rel=1e-8)


@pytest.mark.parametrize("place", ["train.svm/out", "/proc/out", "train.svm"])
def test_a_folder_that_cannot_be_written_is_refused_before_training(job, capsys, monkeypatch, place):
    monkeypatch.setattr("bmrm.app.pipeline.train.solve_any", lambda *_: pytest.fail("training began"))
    assert run(f"output.directory={place}") == 2
    message = capsys.readouterr().err
    assert "output.directory" in message
    assert place in message


def test_a_wrong_config_names_file_and_line(job, capsys):
    (job / "config.yaml").write_text("schema: 1\ndata: {train: a}\nlos: hinge\nregularizer: {name: l2, lambda: 1}\n")
    assert run() == 2
    assert "config.yaml, line 3: unknown field 'los' (did you mean 'loss'?)" in capsys.readouterr().err


def start(*words, **options):
    command = [sys.executable, "-m", "bmrm.run", "config.yaml", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def run_where_files_hold(limit):
    """The exit status and messages of a run in a process of its own, whose files hold so many bytes at most."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        status = 70
        try:
            os.dup2(writing, 2)
            sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115 (until the process ends)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            status = main(["config.yaml", "--quiet"])
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading) as messages:
        said = messages.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said.splitlines()


@pytest.mark.parametrize("limit", [10, 2000, 6000])
def test_a_disk_that_fills_leaves_nothing_half_written(job, limit):
    config = (job / "config.yaml").read_text()
    (job / "config.yaml").write_text(config.replace("auto", "semismooth_newton"))  # its history has few lines
    status, messages = run_where_files_hold(limit)
    # other packages complain of their caches
    ours = [line for line in messages if line.startswith("bmrm: ")]
    assert len(ours) == 1
    assert ours[0].startswith("bmrm: out/")
    assert "cannot be written: the limit of the file size is reached" in ours[0]
    if limit == 6000:  # enough for all but the picture, which is no result
        assert status == 0
        assert {path.name for path in (job / "out").iterdir()} == FILES - {"convergence.svg"}
        assert bmrm.load_model("out/model.npz").header["status"] == "CONVERGED"
    else:
        assert status == 4
        assert list((job / "out").iterdir()) == []


def test_files_of_an_older_run_stay_when_the_disk_fills(job):
    assert run() == 0
    before = {path.name: path.read_bytes() for path in (job / "out").iterdir()}
    assert run_where_files_hold(2000)[0] == 4
    assert {path.name: path.read_bytes() for path in (job / "out").iterdir()} == before


LONG = ("--set", "solver.tolerance=0", "--set", "solver.max_iterations=100000000", "--set", "regularizer.lambda=1e-9")
LONG += (
    "--set",
    "data.train=synthetic:sparse_binary?rows=20000",
    "--set",
    "data.test=null",
    "--set",
    "solver.name=bundle",
)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_with_the_best_point_and_all_files(job, number):
    process = start(*LONG)
    wait_for_progress(process)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 3
    assert summary()["status"] == "INTERRUPTED"
    assert {path.name for path in (job / "out").iterdir()} == FILES | {"checkpoint.npz"}


def test_a_job_in_the_background_is_deaf_to_ctrl_c_but_ends_in_good_order_at_sigterm(job):
    """As scripts and nohup start them: SIGINT is inherited as ignored."""
    process = start(*LONG, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    wait_for_progress(process)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=1.0)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 3
    assert summary()["status"] == "INTERRUPTED"
    assert {path.name for path in (job / "out").iterdir()} == FILES | {"checkpoint.npz"}


@pytest.mark.parametrize("bias", ["none", "free"])
def test_a_checkpoint_is_a_model_and_goes_when_the_run_ends_well(job, monkeypatch, bias):
    seen = []
    save = bmrm.app.pipeline.write.write_file

    def spy(folder, name, write):
        save(folder, name, write)
        if name == "checkpoint.npz":
            again = bmrm.load_model(folder / name)
            seen.append((again.header["objective"], again.decision_function(bmrm.data.reading.read("train.svm"))))

    monkeypatch.setattr("bmrm.app.pipeline.write.write_file", spy)
    assert run("output.checkpoint_every=1e-9", f"data.bias={bias}") == 0
    assert len(seen) > 3
    # What a run ends with is evaluated afresh: by rounding it may be above what was carried along.
    assert seen[0][0] >= seen[-1][0] >= summary()["objective"] * (1.0 - 1e-15)
    assert {path.name for path in (job / "out").iterdir()} == FILES
    final = bmrm.load_model("out/model.npz").decision_function(bmrm.data.reading.read("train.svm"))
    np.testing.assert_allclose(seen[-1][1], final, atol=1e-6)
    seen.clear()
    assert run("output.checkpoint_every=null") == 0
    assert seen == []


def wait_for_progress(process):
    """Until the first line of progress."""
    begin = time.monotonic()
    for line in process.stderr:
        if line.startswith("iteration"):
            return
        assert time.monotonic() - begin < 60
    pytest.fail("no progress")


SHORT = ("bmrm.run", "config.yaml", "--quiet", "--overwrite")


def ranks(count, *overrides):
    """A run on ranks that stand ready."""
    return work(count, *SHORT, *(word for override in overrides for word in ("--set", override)), cwd=Path.cwd())


def mpirun(count, *overrides):
    """A run on ranks of its own: how they end."""
    words = [word for override in overrides for word in ("--set", override)]
    command = [launcher(), "-n", str(count), sys.executable, "-m", *SHORT, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.mpi
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("loss", ["hinge", "softmax"])
def test_two_ranks_give_what_one_gives(job, bias, loss):
    (job / "w.txt").write_text("".join(f"{1 + k % 3}\n" for k in range(60)))
    words = (
        f"data.bias={bias}",
        f"loss={loss}",
        "solver.tolerance=1e-8",
        "data.weights=w.txt",
        "data.scale=standardize",
    )
    assert run(*words, "output.directory=one") == 0
    done = ranks(2, *words, "output.directory=two")
    assert done.returncode == 0, done.stderr
    one, two = summary("one"), summary("two")
    assert two["ranks"] == 2
    assert two["objective"] == pytest.approx(one["objective"], rel=2e-8)
    assert (two["rows"], two["nnz"], two["dim"]) == (one["rows"], one["nnz"], one["dim"])
    for part in ("train", "test"):
        assert two["metrics"][part] == pytest.approx(one["metrics"][part], abs=1e-3)
    assert {path.name for path in (job / "two").iterdir()} == FILES


@pytest.mark.mpi
def test_a_wrong_line_in_one_ranks_shard_is_one_message_with_rank_file_and_line(job):
    lines = (job / "train.svm").read_text().splitlines()
    for rank in range(3):
        part = lines[20 * rank : 20 * rank + 20]
        if rank == 2:
            part[4] = "1 1:oops"
        (job / f"part-{rank}.svm").write_text("\n".join(part) + "\n")
    done = mpirun(3, "data.train=part-{rank}.svm", "data.test=null")
    assert done.returncode == 2
    message = done.stderr.strip()
    for words in ("rank 2", "part-2.svm", "line 5", "oops"):
        assert words in message
    assert len(message.splitlines()) == 1
    assert not (job / "out").exists()


@pytest.mark.mpi
def test_ranks_without_rows_are_fine_and_an_empty_file_is_not(job):
    (job / "train.svm").write_text("1 1:1\n-1 1:-1\n")
    done = ranks(3, "data.train=[train.svm]", "data.test=null")
    assert done.returncode == 0, done.stderr
    assert summary()["rows"] == 2
    (job / "empty.svm").write_text("")
    done = ranks(3, "data.train=[train.svm, empty.svm]", "data.test=null")
    assert done.returncode == 2
    assert "empty.svm" in done.stderr


@pytest.mark.mpi
def test_a_run_says_what_each_rank_has_and_which_has_too_much(job):
    rng = np.random.default_rng(0)
    for rank, rows in enumerate((700, 900, 1100)):
        X, y = rng.standard_normal((rows, 40)), rng.choice([-1, 1], rows)
        lines = (f"{label} " + " ".join(f"{k}:{v:.3f}" for k, v in enumerate(row, 1)) for row, label in zip(X, y))
        (job / f"part-{rank}.svm").write_text("\n".join(lines) + "\n")
    spoken = "config.yaml", "--overwrite", "--set", "data.test=null", "--set"
    done = work(3, "bmrm.run", *spoken, "data.train=part-{rank}.svm", cwd=job)
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()
    assert said[0] == (
        "bmrm: rows stay on their ranks, since part-{rank}.svm is another file on each rank: no start from a sample, no"
        " small problem solved on rank 0; `data.share_rows: true` lets them move"
    )
    assert "bmrm: ranks: 3, one thread each; rows 700 to 1,100, entries 28,000 to 44,000 each" in said
    assert any(line.startswith("bmrm: rank 2 has 44,000 entries, 22% more than the mean") for line in said)
    found = summary()
    assert (found["spread"]["rows"], found["spread"]["entries"]) == ([700, 900, 1100], [28000, 36000, 44000])
    assert len(found["spread"]["seconds"]) == 3
    assert min(found["spread"]["seconds"]) > 0.0
    assert found["sent"]["messages"] > 2 * found["iterations"]
    assert found["sent"]["bytes"] > 8 * 40 * found["passes"]
    assert found["share_rows"] is False
    assert found["row_sharing"] == {
        "allowed": False,
        "why": "part-{rank}.svm is another file on each rank",
        "dealt_out": False,
        "rank_0_alone": False,
    }
    assert "rows stay where they are" in " ".join(done.stdout.split())
    whole = "data.train=[part-0.svm, part-1.svm, part-2.svm]", "--set"
    done = work(3, "tests.mpi.uneven", *spoken, *whole, "solver=auto", cwd=job)
    assert done.stderr.startswith(
        "bmrm: rows may move between ranks, since every rank can read data.train: they are dealt out by chance, and"
        " rank 0 solves alone, with all of them, where `auto` finds that faster; `data.share_rows: false` keeps them"
        " where they are read\nbmrm: ranks: 3, one thread each; rows "
    )
    assert re.search(r"^bmrm: ranks: 3, one thread each; rows (89\d|900) to 90\d, entries", done.stderr, re.MULTILINE)
    assert "more than the mean" not in done.stderr
    found = summary()
    assert found["share_rows"] is True
    assert found["row_sharing"]["why"] == "every rank can read data.train"
    assert (found["row_sharing"]["dealt_out"], found["row_sharing"]["rank_0_alone"]) == (True, True)
    said = " ".join(done.stdout.split())
    assert "rows were dealt out by chance, rank 0 solved alone with all of them" in said
    done = work(3, "tests.mpi.uneven", *spoken, *whole, "solver=bundle", cwd=job)
    assert re.search(
        r"^bmrm: rank 2 computes for 2e\+03 s, 100% more than the mean: the others", done.stderr, re.MULTILINE
    )


@pytest.mark.mpi
def test_classes_are_judged_over_all_ranks(job):
    (job / "part-0.svm").write_text("1 1:1\n1 2:1\n")
    (job / "part-1.svm").write_text("-1 1:-1 7:2\n")
    done = ranks(2, "data.train=part-{rank}.svm", "data.test=null")
    assert done.returncode == 0, done.stderr
    assert summary()["dim"] == 7
    (job / "part-1.svm").write_text("1 1:-1 7:2\n")
    done = ranks(2, "data.train=part-{rank}.svm", "data.test=null")
    assert done.returncode == 2
    assert "only one class" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.mpi
def test_a_wrong_config_is_said_once_under_mpirun(job):
    done = mpirun(2, "solver.tolerence=1")
    assert done.returncode == 2
    assert done.stderr.count("did you mean 'tolerance'") == 1


@pytest.mark.mpi
def test_a_signal_to_mpirun_stops_all_ranks_with_the_best_point(job):
    command = [launcher(), "-n", "2", sys.executable, "-m", "bmrm.run", "config.yaml", *LONG]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for_progress(process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 3
    assert summary()["status"] == "INTERRUPTED"


def test_a_model_remembers_whether_features_count_from_zero(tmp_path):
    """Feature 0 occurs in training but not in the new file, whose smallest index is 1: it still counts from 0."""
    random = np.random.default_rng(0)
    lines = []
    for _ in range(60):
        a, b, c = random.normal(size=3)
        lines.append(f"{1 if b > 0 else -1} 0:{a:.3f} 1:{b:.3f} 2:{c:.3f}")
    (tmp_path / "train.svm").write_text("\n".join(lines) + "\n")
    (tmp_path / "new.svm").write_text("1 1:1 2:0.5\n-1 1:-1 2:0.5\n")
    (tmp_path / "config.yaml").write_text(
        f"schema: 1\ndata: {{train: {tmp_path / 'train.svm'}}}\nloss: hinge\n"
        f"regularizer: {{name: l2, lambda: 0.01}}\noutput: {{directory: {tmp_path / 'out'}}}\n"
    )
    assert main([str(tmp_path / "config.yaml"), "--quiet"]) == 0
    model = bmrm.load_model(tmp_path / "out" / "model.npz")
    scores = model.decision_function(model.read(tmp_path / "new.svm"))
    w = model.weights
    np.testing.assert_allclose(scores, [w[1] + 0.5 * w[2], -w[1] + 0.5 * w[2]])


NOT_CONVEX_LOSS = """
from dataclasses import dataclass
import numpy as np
from bmrm.losses.base import RegressionLoss

@dataclass(frozen=True)
class Cauchy(RegressionLoss):
    smooth = True
    def value(self, f, y):
        return np.log1p((f - y) ** 2)
    def slope(self, f, y):
        return 2 * (f - y) / (1 + (f - y) ** 2)
"""


def test_a_loss_that_proves_not_to_be_convex_ends_with_1_a_message_and_no_model(job, capsys, monkeypatch):
    (job / "cauchy_loss.py").write_text(NOT_CONVEX_LOSS)
    monkeypatch.syspath_prepend(str(job))
    monkeypatch.setattr("bmrm.mpi.shared.sample_loss", lambda *rest: None)  # a sample may see nothing wrong
    assert run() == 0
    assert run("loss=cauchy_loss:Cauchy", "solver=bundle", "regularizer.lambda=0.001", "data.test=null") == 1
    message = capsys.readouterr().err
    assert message.startswith("bmrm: loss Cauchy: R(w) is ")
    found = summary()
    assert message == f"bmrm: {found['message']}\n"
    assert (found["status"], found["lower_bound"], found["gap"], found["relative_gap"]) == (
        "NOT_CONVEX",
        None,
        None,
        None,
    )
    assert {path.name for path in Path("out").iterdir()} == FILES - {"model.npz"}
