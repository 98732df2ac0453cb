"""The output folder: sets of files replace one another as one, killed runs leave nothing, others' results stay."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import bmrm
from bmrm.app.pipeline import run_folder
from bmrm.app.pipeline.run_folder import FINISHED, RESULTS, UNFINISHED, open_folder, write_file, write_set
from bmrm.problem import InputError, OutputError
from bmrm.run import main
from tests.test_run import FILES, job, summary  # noqa: F401 (a fixture)


def train(*words):
    return main(["config.yaml", "--quiet", *words])


def text(content):
    return lambda stream: stream.write(content.encode())


def full_set(content, names=RESULTS[:4]):
    needed = {name: text(content) for name in names[:2]}
    return needed, {name: text(content) for name in names[2:]}


def contents(directory):
    return {path.name: path.read_text() for path in directory.iterdir() if path.is_file()}


class KilledError(BaseException):
    """What a SIGKILL is to Python code that cannot see it: nothing after it runs."""


def killed_after(monkeypatch, steps, work):
    """Run `work` until so many changes of the disk have been made, then as if killed; False if it came to its end."""
    left = [steps]
    rmtree = shutil.rmtree

    def remove(*arguments, **options):
        if left[0]:
            rmtree(*arguments, **options)

    def counted(function):
        def wrapper(*arguments, **options):
            if left[0] == 0:
                raise KilledError
            left[0] -= 1
            return function(*arguments, **options)

        return wrapper

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", counted(os.replace))
        patch.setattr("pathlib.Path.unlink", counted(run_folder.Path.unlink))
        patch.setattr("pathlib.Path.rename", counted(run_folder.Path.rename))
        patch.setattr("shutil.rmtree", remove)
        try:
            work()
        except KilledError:
            return True
    return False


@pytest.mark.parametrize("names", [RESULTS[:4], RESULTS[:2]], ids=["four files", "two files"])
def test_a_kill_at_any_moment_leaves_no_mixture_and_the_next_run_finishes(tmp_path, monkeypatch, names):
    """The old set has five files, the new one fewer; at each of its changes of the disk the writer dies."""
    moments = 0
    while True:
        folder = tmp_path / str(moments)
        write_set(folder, *full_set("old"))
        write_file(folder, RESULTS[4], text("old"))
        before = contents(folder)
        killed = killed_after(monkeypatch, moments, lambda folder=folder: write_set(folder, *full_set("new", names)))
        visible = set(contents(folder).values())
        assert visible in ({"old"}, {"new"}, set()), visible
        open_folder(folder)
        after = contents(folder)
        assert after in (before, dict.fromkeys(names, "new"))
        assert {path.name for path in folder.iterdir()} == set(after)
        if not killed:
            break
        moments += 1
    assert moments > 8


def test_what_a_dead_run_has_begun_goes_and_what_a_live_one_has_stays(tmp_path):
    holder = "import sys, time; from bmrm.app.pipeline.run_folder import _staging; from pathlib import Path\n"
    holder += "with _staging(Path(sys.argv[1])) as folder:\n  (folder / 'model.npz').write_text('half')\n"
    holder += "  print('ready', flush=True)\n  time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", holder, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    open_folder(tmp_path)
    assert [path.name[: len(UNFINISHED)] for path in tmp_path.iterdir()] == [UNFINISHED]
    process.kill()
    process.communicate(timeout=30)
    open_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_in_the_middle_leaves_the_old_set(tmp_path):
    def fails(stream):
        raise OSError(28, "No space left on device")

    write_set(tmp_path, *full_set("old"))
    with pytest.raises(OutputError, match=r"summary.json: cannot be written: the disk is full"):
        write_set(tmp_path, {"model.npz": text("new"), "summary.json": fails}, {})
    assert set(contents(tmp_path).values()) == {"old"}
    complaints = write_set(tmp_path, full_set("new")[0], {"history.csv": fails, "config.yaml": text("new")})
    assert complaints == [f"{tmp_path}/history.csv: cannot be written: the disk is full"]
    assert contents(tmp_path) == dict.fromkeys(("model.npz", "summary.json", "config.yaml"), "new")


OTHERS = {
    "regularizer.lambda=0.1": "regularizer.lambda is 0.01 there, 0.1 here",
    "loss=logistic": "loss is hinge there, logistic here",
    "loss={name: huber_hinge, h: 0.25}": "loss is hinge there, huber_hinge here",
    "data.bias=free": "bias is none there, free here",
    "data.scale=standardize": "scale is none there, standardize here",
    "data.train=test.svm": "the training data have 60 rows there, 20 here",
    "data.dimension=9": "the training data have 5 features there, 9 here",
}


def test_results_of_another_problem_are_refused_and_those_of_the_same_replaced(job, capsys, monkeypatch):  # noqa: F811
    assert train() == 0
    before = {path.name: path.read_bytes() for path in (job / "out").iterdir()}
    with monkeypatch.context() as patch:
        patch.setattr("bmrm.app.pipeline.train.solve_any", lambda *_, **__: pytest.fail("training began"))
        for override, words in OTHERS.items():
            assert train("--set", override) == 2
            message = capsys.readouterr().err
            assert message.startswith("bmrm: output.directory out holds the results of another problem: " + words)
            assert "--overwrite" in message
        lines = (job / "train.svm").read_text().splitlines()
        (job / "train.svm").write_text("\n".join([*lines[:-1], "1 1:1"]) + "\n")
        assert train() == 2
        assert "the training data differ in features, labels or weights" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in (job / "out").iterdir()} == before
    (job / "train.svm").write_text("\n".join(reversed(lines)) + "\n")  # the same rows
    assert train("--set", "solver.tolerance=1e-5") == 0
    assert train("--set", "regularizer.lambda=0.1", "--overwrite") == 0
    assert summary()["problem"]["regularizer"]["lambda"] == 0.1
    assert train("--set", "output.overwrite=true") == 0
    assert train() == 0


def test_files_that_no_run_has_left_are_not_replaced(job, capsys):  # noqa: F811
    (job / "out").mkdir()
    (job / "out" / "config.yaml").write_text("# mine\n")
    assert train() == 2
    assert "it holds config.yaml, but no summary.json" in capsys.readouterr().err
    assert (job / "out" / "config.yaml").read_text() == "# mine\n"
    (job / "out" / "summary.json").write_text("{}")
    assert train() == 2
    assert "what it is of is not said there" in capsys.readouterr().err


def test_the_digest_does_not_depend_on_who_has_the_rows(job):  # noqa: F811
    from bmrm.data.digest import digests, totals
    from bmrm.data.reading import read

    data = read("train.svm")
    whole = totals(digests(data), 0)
    for cut in (0, 1, 37, 60):
        parts = [data.part(0, cut), data.part(cut, 60)]
        sums = zip(*(totals(digests(part), first) for part, first in zip(parts, (0, cut))))
        assert tuple(sum(pair) % 2**64 for pair in sums) == whole
    backwards = totals(digests(data.select(range(59, -1, -1))), 0)
    assert backwards[0] == whole[0]
    assert backwards[1] != whole[1]
    assert totals(digests(data.with_weights([2.0] * 60)), 0)[0] != whole[0]
    trees = replace(data, targets=replace(data.targets, structure=np.arange(60)[:, None]))
    assert totals(digests(trees), 0)[0] != whole[0]


def test_a_picture_that_fails_takes_nothing_with_it(job, capsys, monkeypatch):  # noqa: F811
    monkeypatch.setattr("bmrm.app.plots.convergence_svg", lambda *_, **__: 1 / 0)
    assert train() == 0
    assert capsys.readouterr().err == "bmrm: out/convergence.svg: cannot be drawn: division by zero\n"
    assert {path.name for path in (job / "out").iterdir()} == FILES - {"convergence.svg"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_while_files_are_written_are_noted(job, monkeypatch, number):  # noqa: F811
    write = bmrm.Model.write

    def impatient(model, stream):
        for _ in range(3):
            os.kill(os.getpid(), number)
            time.sleep(1e-3)
        write(model, stream)

    monkeypatch.setattr("bmrm.app.model.Model.write", impatient)
    assert train() == 0
    assert {path.name for path in (job / "out").iterdir()} == FILES


def test_a_model_that_finds_no_place_is_saved_elsewhere(job, capsys, monkeypatch):  # noqa: F811
    def full(directory, needed, more):
        raise OutputError("out/model.npz: cannot be written: the disk is full")

    monkeypatch.setattr("bmrm.app.pipeline.write.write_set", full)
    monkeypatch.setattr("tempfile.tempdir", str(job))
    assert train() == 4
    message = capsys.readouterr().err.strip()
    assert message.startswith("bmrm: out/model.npz: cannot be written: the disk is full; the model is in ")
    assert bmrm.load_model(message.rsplit(" ", 1)[1]).header["status"] == "CONVERGED"
    assert not (job / "out" / "model.npz").exists()


@contextlib.contextmanager
def small_disk(folder, kilobytes):
    """A file system of so many kB; skips where none can be mounted."""
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("no file system can be mounted")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("status", [0, 4], ids=["but the picture", "nothing"])
def test_a_disk_on_which_all_fits_but(job, capsys, status):  # noqa: F811
    assert train() == 0
    pages = [-(-path.stat().st_size // 4096) for path in (job / "out").iterdir() if path.name != "convergence.svg"]
    with small_disk(job / "small", 4 * sum(pages) if status == 0 else 4):
        assert train("--set", "output.directory=small/out") == status
        message = capsys.readouterr().err
        assert "the disk is full" in message
        if status == 0:
            assert {path.name for path in (job / "small" / "out").iterdir()} == FILES - {"convergence.svg"}
            assert json.loads((job / "small/out/summary.json").read_text())["status"] == "CONVERGED"
        else:
            assert "the model is in " in message


def test_a_folder_that_cannot_be_opened_is_an_input_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        open_folder(tmp_path / "file" / "out")
    assert not list(tmp_path.glob(FINISHED + "*"))
