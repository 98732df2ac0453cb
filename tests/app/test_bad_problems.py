"""Problems that cannot be: groups, bounds, weights, shares, levels, centers, offsets; one message, and nothing written.

Alone and on three ranks, from a config: exit status 2, a line that names the field or the file, no folder.
"""

import copy

import numpy as np
import pandas as pd
import pytest
import yaml

import bmrm
from bmrm.cli import main
from bmrm.run import main as run
from tests.mpi.launch import work

CONFIG = {
    "data": {"train": "rows.csv", "format": {"name": "csv", "label": "y"}},
    "loss": "logistic",
    "regularizer": {"name": "l2", "lambda": 0.1},
    "output": {"directory": "out"},
}
OMEGA = {
    "overlap": (
        {"name": "group_l2", "groups": [["a", "b"], ["b", "c"]]},
        "GroupL2: groups: feature 'b' is in groups 0 and 1, expected groups that do not overlap",
    ),
    "twice": ({"name": "sparse_group", "groups": [["a", "a"]]}, "feature 'a' is in group 0 twice"),
    "no feature": ({"name": "group_l2", "groups": [["a", "z"]]}, "there is no feature 'z'"),
    "beyond": ({"name": "group_l2", "groups": [[0, 7]]}, "GroupL2: groups: group 0: feature 7, expected 0 to"),
    "file of groups": ({"name": "group_l2", "groups": "bad.txt"}, "group 1: there is no feature 'zz'"),
    "no file": ({"name": "group_l2", "groups": "none.txt"}, "none.txt"),
    "weights": (
        {"name": "group_l2", "groups": [["a"], ["b"]], "weights": [1.0, -1.0]},
        "GroupL2: weights",
    ),
    "too few": ({"name": "group_l2", "groups": [["a"], ["b"]], "weights": [1.0]}, "GroupL2: 1 weights for 2 groups"),
    "crossed": ({"name": "box", "lower": 1.0, "upper": 0.0}, "Box: lower is 1, above upper, which is 0"),
    "crossed there": (
        {"name": "box", "lower": 0.0, "upper": {"b": -2.0}},
        "Box: lower of feature 'b' is 0, above upper, which is -2",
    ),
    "negative": (
        {"name": "l1", "feature_weights": {"a": -1.0}},
        "L1: feature_weights of 'a' is -1, expected numbers >= 0",
    ),
    "all 0": ({"name": "l1", "feature_weights": [0.0] * 5}, "L1: feature_weights are all 0"),
    "short": ({"name": "l2", "center": [1.0]}, "L2: center has 1 numbers, expected one for each of 5 features"),
    "no center": ({"name": "l2", "center": "none.npz"}, "none.npz"),
    "other model": ({"name": "l2", "center": "other.npz"}, "other.npz has none of the features 'a', 'b', 'c'"),
}
DATA = {
    "share": ({"label": "share"}, "has the targets 1.5, expected a share in [0, 1]"),
    "weight": ({"label": "y", "weight": "minus"}, "minus"),
    "offset": ({"label": "y"}, "data.offset is 'exposur', expected the name of a column", {"offset": "exposur"}),
    "categorical": ({"label": "y"}, "zone", {"categorical": ["zone"]}),
    "class": ({"label": "y"}, "class_weight", {"class_weight": {0: -1.0}}),
    "label": ({"label": "y"}, "class_weight has the label 5", {"class_weight": {5: 1.0}}),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """`rows.csv` (features a, b, c, town), `other.npz` of other features, `bad.txt` of groups."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(30, 3)), columns=list("abc"))
    frame["town"] = np.array(["Oslo", "Bergen"])[np.arange(30) % 2]
    frame.assign(y=np.arange(30) % 3 % 2).to_csv("rows.csv", index=False)
    plain = frame.assign(y=np.arange(30) % 3 % 2)
    plain.assign(minus=np.where(np.arange(30) == 20, -1.0, 1.0)).to_csv("weight.csv", index=False)
    shares = np.linspace(0.0, 1.0, 30)
    shares[25] = 1.5
    frame.assign(share=shares).to_csv("share.csv", index=False)
    bmrm.fit(pd.DataFrame(np.eye(4), columns=list("uvwx")), [0, 1, 0, 1]).save("other.npz")
    (tmp_path / "bad.txt").write_text("a b\nzz\n")
    return tmp_path


def config_of(case):
    config = copy.deepcopy(CONFIG)
    if case in OMEGA:
        config["regularizer"], said = {"lambda": 0.1, **OMEGA[case][0]}, OMEGA[case][1]
        return config, said
    columns, said, *more = DATA[case]
    train = f"{case}.csv" if case in ("share", "weight") else "rows.csv"
    config["data"] = {"train": train, "format": {"name": "csv", **columns}, **(more[0] if more else {})}
    return config, said


def checked(status, printed, said, folder, before):
    lines = printed.splitlines()
    assert status == 2, printed
    assert len(lines) == 1, printed
    assert said in lines[0]
    assert "Traceback" not in printed
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("case", [*OMEGA, *DATA])
def test_alone(folder, case, capsys):
    config, said = config_of(case)
    (folder / "c.yaml").write_text(yaml.safe_dump(config))
    before = sorted(path.name for path in folder.iterdir())
    checked(run(["c.yaml", "--quiet"]), capsys.readouterr().err, said, folder, before)


@pytest.mark.mpi
@pytest.mark.parametrize("case", [*OMEGA, *DATA])
def test_over_ranks_all_stop_and_one_speaks(folder, case):
    config, said = config_of(case)
    (folder / "c.yaml").write_text(yaml.safe_dump(config))
    before = sorted(path.name for path in folder.iterdir())
    done = work(3, "bmrm.run", "c.yaml", "--quiet", cwd=folder)
    checked(done.returncode, done.stderr, said, folder, before)


def test_features_in_no_group_are_groups_of_their_own(folder):
    frame = pd.read_csv("rows.csv")
    y, X = frame.pop("y"), frame[list("abc")]
    some = bmrm.fit(X, y, loss="logistic", regularizer=bmrm.GroupL2(0.05, groups=(("a", "b"),)), tolerance=1e-8)
    all = bmrm.GroupL2(0.05, groups=(("a", "b"), ("c",)), weights=(2.0**0.5, 1.0))
    whole = bmrm.fit(X, y, loss="logistic", regularizer=all, tolerance=1e-8)
    assert some.solution.objective == pytest.approx(whole.solution.objective, rel=1e-8)


def test_an_offset_that_predict_lacks_and_a_level_that_training_had_not(folder, capsys):
    frame = pd.read_csv("rows.csv").assign(exposure=0.5)
    frame.to_csv("exposed.csv", index=False)
    words = ["exposed.csv", "--format", "{name: csv, label: y}", "--offset", "exposure", "--quiet"]
    assert main(["train", *words, "--output", "out"]) == 0
    frame.drop(columns="exposure").to_csv("bare.csv", index=False)
    frame.assign(town="Bodø").to_csv("new.csv", index=False)
    capsys.readouterr()
    assert main(["predict", "out", "bare.csv", "--out", "scores.txt"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "'exposure'" in said
    assert not (folder / "scores.txt").exists()
    assert main(["predict", "out", "new.csv", "--out", "scores.txt"]) == 0
    assert "column 'town': 30 rows, the first with 'Bodø'" in capsys.readouterr().err
    assert len(np.loadtxt("scores.txt")) == 30
