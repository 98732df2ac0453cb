"""`bmrm show` and the report name a feature as the file of the training does."""

import html
import json
import re

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

from bmrm.cli import main

RANDOM = np.random.default_rng(4)
X = RANDOM.normal(size=(60, 3)).round(3)
Y = np.where(X @ [3.0, 0.0, -1.0] > 0, 1, 0)
TOKENS = "the DT B\nbig JJ I\ndog NN I\nruns VB O\n\n" * 20


def svmlight(first):
    lines = (f"{y} {first}:{a} {first + 2}:{b} {first + 4}:{c}\n" for y, (a, b, c) in zip(Y, X))
    return "".join(lines)


def columns(*order):
    """Lines of csv; of the columns "y" are labels, "w" weights, "z" something to be ignored."""
    values = {"y": Y, "w": np.full(60, 0.5), "z": np.arange(60.0), "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}
    return "".join(",".join(str(values[name][k]) for name in order) + "\n" for k in range(60))


CASES = {
    "svmlight from 1": ("a.svm", svmlight(1), "auto", ["feature 1", "feature 3", "feature 5"]),
    "svmlight from 0": ("a.svm", svmlight(0), "auto", ["feature 0", "feature 2", "feature 4"]),
    "a header": ("a.csv", "f1,f2,f3,y\n" + columns(*"abcy"), "{name: csv, label: y}", ["f1", "f2", "f3"]),
    "labels first": (
        "a.csv",
        columns(*"yabc"),
        "{name: csv, label: 0, header: false}",
        ["column 1", "column 2", "column 3"],
    ),
    "labels last": (
        "a.csv",
        columns(*"abcy"),
        "{name: csv, label: -1, header: false}",
        ["column 0", "column 1", "column 2"],
    ),
    "labels and weights between": (
        "a.csv",
        columns(*"aybwcz"),
        "{name: csv, label: 1, weight: -2, header: false, ignore: [5]}",
        ["column 0", "column 2", "column 4"],
    ),
}  # fmt: skip


def shown(capsys, words=()):
    """The names that `show` and the report give to the weights."""
    capsys.readouterr()
    assert main(["show", "out", "--json", *words]) == 0
    (weights, *_) = json.loads(capsys.readouterr().out)["weights"].values()
    assert main(["report", "out", "--out", "out.html"]) == 0
    with open("out.html", encoding="utf-8") as page:
        bars = page.read().split("Largest weights")[1].split("</section>")[0]
    return [one["name"] for one in weights], [html.unescape(name) for name in re.findall(r'title="([^"]*)"', bars)]


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_those_of_the_file(tmp_path, monkeypatch, capsys, case):
    monkeypatch.chdir(tmp_path)
    name, text, how, names = CASES[case]
    (tmp_path / name).write_text(text)
    assert main(["train", name, "--format", how, "--loss", "hinge", "--output", "out", "--quiet"]) == 0
    of_show, of_report = shown(capsys)
    assert sorted(of_show) == names
    assert [one for one in of_report if one != "(intercept)"] == of_show
    assert of_show[0] == names[0], "the first column decides"


def test_text_is_named_by_its_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text(TOKENS)
    assert main(["train", "a.txt", "--format", "conll", "--loss", "chain_crf", "--output", "out", "--quiet"]) == 0
    of_show, of_report = shown(capsys)
    assert any(re.fullmatch(r"pos\[-?\d\](\|.*)?=.*", name) for name in of_report)
    assert not any(name.startswith("feature") for name in of_report)
    assert set(of_show) & set(of_report)


def test_sets_of_scikit_learn_have_its_names(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "sklearn:diabetes", "--loss", "least_squares", "--output", "out", "--quiet"]) == 0
    of_show, of_report = shown(capsys)
    assert sorted(of_show) == sorted(load_diabetes().feature_names)
    assert [one for one in of_report if one != "(intercept)"] == of_show
