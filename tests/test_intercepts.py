"""Which intercept a model has: the table on the page Stability, row by row, from every door."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import yaml

import bmrm
from bmrm.app.defaults import INTERCEPTS
from bmrm.app.model import load_model
from bmrm.cli import main
from bmrm.estimators import Classifier, SequenceTagger

PAGE = Path(__file__).parents[1] / "docs/stability.md"
LOSSES = {"with one": "hinge", "without": "roc_area", "sequences": "chain_crf"}
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(30, 3)).round(3)
Y = np.where(X[:, 0] > 0.2, 1, -1)
SENTENCES = "the D\ncat N\nsleeps V\n\na D\ndog N\nbarks V\n\nthe D\nsleeps N\n\n" * 3


def rows():
    lines = [line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    found = [line for line in lines if len(line) == 2 + len(LOSSES) and line[0] != "door"]
    return [(door.strip("`"), re.sub("`", "", written), *rest) for door, written, *rest in found]


def fitted(written, loss):
    arguments = {} if written == "nothing more" else eval(f"dict({written})", {"bmrm": bmrm})
    if loss == "chain_crf":
        return bmrm.fit(X, Y, loss=loss, groups=np.arange(30) // 3, **arguments)
    return bmrm.fit(X, Y, loss=loss, **arguments)


def source(loss):
    if loss == "chain_crf":
        Path("t.conll").write_text(SENTENCES)
        return ["t.conll"], {"train": "t.conll", "format": {"name": "conll", "templates": "w=%x[0,0]"}}
    lines = [f"{y} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(x)) for x, y in zip(X.tolist(), Y)]
    Path("t.svm").write_text("\n".join(lines) + "\n")
    return ["t.svm"], {"train": "t.svm"}


def ran(words):
    status = main([*words, "--quiet"])
    if status == 2:
        raise bmrm.IncompatibleError("refused")
    assert status in (0, 3)
    return load_model(next(Path().glob("runs/*/model.npz")))


def trained(written, loss):
    files, data = source(loss)
    words = ["train", *files, "--loss", loss, *([] if written == "nothing more" else shlex.split(written))]
    if loss == "chain_crf":
        words += ["--format", str(data["format"]).replace("'", '"')]
    return ran(words)


def configured(written, loss):
    _, data = source(loss)
    more = {} if written == "nothing more" else yaml.safe_load(written)
    settings = {**more, "data": {**data, **more.get("data", {})}, "loss": loss}
    Path("c.yaml").write_text(yaml.safe_dump(settings))
    return ran(["train", "c.yaml"])


def estimated(written, loss):
    arguments = {} if written == "nothing more" else eval(f"dict({written})", {"bmrm": bmrm})
    if loss == "chain_crf":
        if arguments == {"fit_intercept": False}:
            arguments = {}
        parts = [[line.split() for line in text.splitlines()] for text in SENTENCES.strip().split("\n\n")]
        words, labels = ([[pair[k] for pair in part] for part in parts] for k in (0, 1))
        return SequenceTagger(**arguments).fit(words, labels).model_
    return Classifier(loss, **arguments).fit(X, Y).model_


def begun(written, loss):
    files, _ = source(loss)
    if loss == "roc_area":  # which init never proposes
        Path("t.svm").write_text("".join(f"{k % 3} qid:{k // 6} 1:{X[k, 0]}\n" for k in range(30)))
    assert main(["init", *files, "--out", "c.yaml"]) == 0
    return ran(["train", "c.yaml"])


DOORS = {
    "bmrm.fit": fitted,
    "bmrm train DATA": trained,
    "a config": configured,
    "estimators": estimated,
    "bmrm init": begun,
}


def test_the_table_has_every_door():
    assert {row[0] for row in rows()} == set(DOORS)
    assert len(rows()) >= 20


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[0]} {row[1]}")
def test_what_a_user_gets(row, kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    door, written, *expected = row
    said = expected[list(LOSSES).index(kind)]
    if said == "refused":
        with pytest.raises(bmrm.IncompatibleError):
            DOORS[door](written, LOSSES[kind])
        return
    model = DOORS[door](written, LOSSES[kind])
    assert INTERCEPTS[model.header["bias"]] == said
    assert f", {said};" in repr(model)
    shifted = said != "no intercept" and kind != "without"  # a common constant changes nothing there
    assert bool(np.any(model.intercept)) == shifted
