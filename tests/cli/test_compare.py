"""`bmrm compare`: what differs, objectives with bounds, measures with intervals."""

import json
from pathlib import Path

import numpy as np
import pytest

from bmrm.cli import main


@pytest.fixture
def runs(rows):
    """a and b: the same problem by two solvers; c: another lambda and loss."""
    words = ["train", "train.svm", "--quiet", "--test", "test.svm"]
    for name, more in {
        "a": ["--lambda", "0.1", "--solver", "newton", "--loss", "logistic", "--tolerance", "1e-9"],
        "b": ["--lambda", "0.1", "--solver", "lbfgs", "--loss", "logistic"],
        "c": ["--lambda", "0.2", "--solver", "bundle", "--loss", "hinge"],
    }.items():
        assert main([*words, *more, "--output", name]) == 0
    return rows


def compared(capsys, *words):
    assert main(["compare", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_settings_that_differ(runs, capsys):
    found = compared(capsys, "a", "b", "c", "--folds", "0")
    assert found["settings"]["solver.name"] == ["newton", "lbfgs", "bundle"]
    assert found["settings"]["regularizer.lambda"] == [0.1, 0.1, 0.2]
    assert found["settings"]["solver.memory"] == ["-", 10, "-"]
    assert not {"data.train", "output.directory", "seed", "regularizer.name"} & set(found["settings"])
    assert not found["same_problem"]
    assert compared(capsys, "a", "b", "--folds", "0")["same_problem"]


def test_rows_in_another_order_are_the_same_problem(runs, capsys):
    """As over ranks, which are dealt rows."""
    lines = Path("train.svm").read_text().splitlines(keepends=True)
    for name, text in (("turned.svm", lines[::-1]), ("fewer.svm", lines[1:])):
        Path(name).write_text("".join(text))
        words = ["train", name, "--quiet", "--lambda", "0.1", "--loss", "logistic"]
        assert main([*words, "--output", name[:-4]]) == 0
    assert compared(capsys, "a", "turned", "--folds", "0")["same_problem"]
    assert not compared(capsys, "a", "fewer", "--folds", "0")["same_problem"]


def test_results_are_those_of_the_runs(runs, capsys):
    found = compared(capsys, "a", "c", "--folds", "0")
    for one in found["runs"]:
        summary = json.loads((Path(one["folder"]) / "summary.json").read_text())
        assert all(one[key] == summary[key] for key in ("objective", "lower_bound", "metrics", "seconds"))
        assert one["intervals"] == {}


def test_intervals_are_those_of_folds(runs, capsys):
    interval = compared(capsys, "a", "c", "--folds", "4")["runs"][0]["intervals"]["test"]["accuracy"]
    assert main(["evaluate", "a", "test.svm", "--folds", "4", "--metrics", "accuracy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == interval
    assert interval["low"] < interval["mean"] < interval["high"]
    Path("test.svm").rename("gone.svm")
    assert compared(capsys, "a", "c")["runs"][0]["intervals"] == {}


def test_the_tables(runs, capsys):
    assert main(["compare", "a", "b", "--folds", "4"]) == 0
    printed = capsys.readouterr().out
    lines = {line[: line.find("  ")]: line.split() for line in printed.splitlines() if "  " in line}
    assert lines["solver.name"][1:] == ["newton", "lbfgs"]
    summaries = [json.loads(Path(name, "summary.json").read_text()) for name in "ab"]
    assert lines["objective"][1:] == [f"{one['objective']:.8g}" for one in summaries]
    assert np.array(lines["lower bound"][2:], float) == pytest.approx(
        [one["lower_bound"] for one in summaries], rel=1e-7
    )
    assert " to " in next(line for line in printed.splitlines() if line.startswith("test accuracy"))
    assert printed.endswith("\nthe same problem\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("a", "only one run, a; expected two or more"),
        ("a none", "none/summary.json: cannot be read; expected the folder of a run"),
        ("a b --folds -1", "expected a whole number >= 0"),
    ],
)
def test_wrong_input_is_one_line(runs, words, said, capsys):
    try:
        status = main(["compare", *words.split()])
    except SystemExit as end:
        status = end.code
    message = capsys.readouterr().err
    assert status == 2
    assert said in message
    assert len(message.splitlines()) == 1
