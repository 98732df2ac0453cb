"""`bmrm init`: a config that says what the data are, and trains as it is."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from bmrm.app.config.config import load_settings
from bmrm.cli import main

random = np.random.default_rng(5)
X = random.normal(size=(40, 3)).round(3)
LABELS = np.where(X[:, 0] > 0, 1, -1)


def svm(targets, queries=False):
    lines = []
    for k, (x, a) in enumerate(zip(X.tolist(), targets)):
        tokens = [f"{j + 1}:{v}" for j, v in enumerate(x)]
        lines.append(" ".join(map(str, [a, *([f"qid:{k // 8}"] if queries else []), *tokens])) + "\n")
    return "".join(lines)


def table(targets, factor=1.0):
    return "".join(f"{x[0] * factor},{x[1]},{x[2]},{a}\n" for x, a in zip(X.tolist(), targets))


FILES = {
    "two.svm": (svm(LABELS), {"loss": "hinge", "bias": "free", "scale": "none"}),
    "three.csv": (table(np.array(["a", "b", "c"])[np.arange(40) % 3]), {"loss": "softmax", "bias": "free"}),
    "numbers.csv": (table(X @ [1.0, 2.0, 3.0], 100.0), {"loss": "least_squares", "scale": "standardize"}),
    "queries.svm": (svm(np.arange(40) % 4, queries=True), {"loss": "rank_hinge", "bias": "none"}),
    "tokens.conll": ("the D\ncat N\n\na D\ndog N\nbarks V\n\n" * 4, {"loss": "chain_crf", "bias": "none"}),
    "one.csv": (table(["same"] * 40), {"loss": "novelty", "bias": "none"}),
}


@pytest.mark.parametrize("name", FILES)
def test_the_config_fits_the_data_and_trains_as_it_is(name, folder, capsys):
    text, expected = FILES[name]
    Path(name).write_text(text)
    stem = Path(name).stem
    assert main(["init", name]) == 0
    assert f"bmrm train {stem}.yaml" in capsys.readouterr().out
    settings = load_settings(f"{stem}.yaml").plain()
    found = {"loss": settings["loss"]["name"], "bias": settings["data"]["bias"], "scale": settings["data"]["scale"]}
    assert {key: found[key] for key in expected} == expected
    assert "40 rows" in Path(f"{stem}.yaml").read_text() or name == "tokens.conll"
    assert main(["train", f"{stem}.yaml", "--quiet"]) == 0
    assert json.loads(Path(f"runs/{stem}/summary.json").read_text())["status"] == "CONVERGED"


def test_options_of_the_format_and_test_rows_beside(folder, capsys):
    rows = table(LABELS).splitlines()
    Path("train.csv").write_text("a;b;c;y\n" + "\n".join(rows).replace(",", ";") + "\n")
    Path("test.csv").write_text("a;b;c;y\n" + "\n".join(rows[:9]).replace(",", ";") + "\n")
    assert main(["init", "train.csv", "--format", "{name: csv, label: y}", "--out", "-"]) == 0
    written = yaml.safe_load(capsys.readouterr().out)
    assert written["data"]["test"] == "test.csv"
    assert written["data"]["format"]["label"] == "y"


def test_what_columns_are_is_written(folder, capsys):
    lines = [f"{k % 7},{'' if k % 5 == 0 else k % 3 + 0.5},{k % 3},{0.1 * (k % 4)!r},{k % 2}" for k in range(40)]
    Path("rows.csv").write_text("age,size,zone,log_exposure,claims\n" + "\n".join(lines) + "\n")
    words = ("--format", "{name: csv, label: claims}", "--missing", "indicator", "--categorical", "zone")
    words = (*words, "--rare", "3", "--drop-first", "--offset", "log_exposure")
    assert main(["init", "rows.csv", *words]) == 0
    found = load_settings("rows.yaml").plain()["data"]
    assert (found["missing"], found["categorical"], found["offset"]) == ("indicator", ["zone"], "log_exposure")
    assert (found["rare"], found["drop_first"]) == (3, True)
    assert "5 features" in Path("rows.yaml").read_text()  # age, size, size (missing), two of three zones
    assert main(["train", "rows.yaml", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["info", "rows.csv", *words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["features"], told["offset"]) == (5, [0.0, pytest.approx(0.3)])
    Path("rows.yaml").unlink()
    Path("offset.txt").write_text("0.5\n" * 40)
    for command in ("init", "info"):
        assert main([command, "rows.csv", "--format", "{name: csv, label: claims}"]) == 2
        assert "rows.csv" in capsys.readouterr().err
        assert main([command, "rows.csv", *words[:-1], "log_exposur"]) == 2
        said = capsys.readouterr().err
        assert "no column 'log_exposur' (did you mean 'log_exposure'?), and no file, for an offset" in said
    assert main(["init", "rows.csv", *words[:-1], "offset.txt", "--out", "b.yaml", "--quiet"]) == 0
    assert main(["train", "b.yaml", "--quiet", "--output", "b"]) == 0
    assert main(["info", "--missing", "mean"]) == 2
    assert capsys.readouterr().err == "bmrm: --missing is of a data file, expected DATA, too\n"


def test_an_older_config_stays(folder, capsys):
    Path("two.svm").write_text(FILES["two.svm"][0])
    Path("two.yaml").write_text("mine\n")
    assert main(["init", "two.svm"]) == 2
    said = capsys.readouterr().err
    assert said == "bmrm: two.yaml: it is there already; --overwrite replaces it, --out names another\n"
    assert Path("two.yaml").read_text() == "mine\n"
    assert main(["init", "two.svm", "--overwrite", "--quiet"]) == 0
    assert main(["init", "none.svm"]) == 2


@pytest.mark.parametrize("name", ["a: b.svm", "[x].svm", "true", "12", "# c.svm", 'q".svm'])
def test_names_that_yaml_would_read_otherwise(name, folder):
    Path(name).write_text(FILES["two.svm"][0])
    assert main(["init", name, "--out", "c.yaml", "--quiet"]) == 0
    assert load_settings("c.yaml").data.train == (name,)
